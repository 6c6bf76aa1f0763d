//! What there is one of: the database, its owner, its schemas; and what is the same everywhere.

use super::numbers::{BTREE, DATABASE, HEAP, INFORMATION, OWNER, PG_CATALOG, PUBLIC};
use super::shape::{Cell, Rows};
use super::words::Said;
use crate::functions::USER;

/// Names of PostgreSQL's character sets by number; this one is the only one here.
pub(super) const UTF8: (i64, &str) = (6, "UTF8");

/// Fills one of these tables; those that are not known stay empty.
pub(super) fn fill(name: &str, rows: &mut Rows) {
    match name {
        "pg_namespace" => schemas(rows),
        "pg_database" => database(rows),
        "pg_roles" => owner(rows, "********".into()),
        "pg_authid" => owner(rows, Cell::Null),
        "pg_user" | "pg_shadow" => user(rows),
        "pg_am" => methods(rows),
        "pg_tablespace" => {
            rows.push([("oid", 1663u32.into()), ("spcname", "pg_default".into()), ("spcowner", OWNER.into())])
        }
        "pg_language" => rows.push([
            ("oid", 14u32.into()),
            ("lanname", "sql".into()),
            ("lanowner", OWNER.into()),
            ("lanpltrusted", true.into()),
        ]),
        "pg_get_keywords" => keywords(rows),
        _ => {}
    }
}

fn schemas(rows: &mut Rows) {
    for (number, name) in [(PG_CATALOG, super::SCHEMA), (PUBLIC, crate::SCHEMA), (INFORMATION, crate::INFORMATION)] {
        rows.push([("oid", number.into()), ("nspname", name.into()), ("nspowner", OWNER.into())]);
    }
}

fn database(rows: &mut Rows) {
    rows.push([
        ("oid", DATABASE.into()),
        ("datname", crate::CATALOG.into()),
        ("datdba", OWNER.into()),
        ("encoding", Cell::Number(UTF8.0)),
        ("datlocprovider", "c".into()),
        ("datallowconn", true.into()),
        ("datconnlimit", (-1).into()),
        ("dattablespace", 1663u32.into()),
        ("datcollate", "C.UTF-8".into()),
        ("datctype", "C.UTF-8".into()),
    ]);
}

fn owner(rows: &mut Rows, password: Cell) {
    rows.push([
        ("rolname", USER.into()),
        ("rolsuper", true.into()),
        ("rolinherit", true.into()),
        ("rolcreaterole", true.into()),
        ("rolcreatedb", true.into()),
        ("rolcanlogin", true.into()),
        ("rolreplication", false.into()),
        ("rolbypassrls", true.into()),
        ("rolconnlimit", (-1).into()),
        ("rolpassword", password),
        ("oid", OWNER.into()),
    ]);
}

fn user(rows: &mut Rows) {
    rows.push([
        ("usename", USER.into()),
        ("usesysid", OWNER.into()),
        ("usecreatedb", true.into()),
        ("usesuper", true.into()),
        ("userepl", false.into()),
        ("usebypassrls", true.into()),
        ("passwd", "********".into()),
    ]);
}

fn methods(rows: &mut Rows) {
    for (number, name, handler, sort) in
        [(HEAP, "heap", "heap_tableam_handler", "t"), (BTREE, "btree", "bthandler", "i")]
    {
        rows.push([
            ("oid", number.into()),
            ("amname", name.into()),
            ("amhandler", handler.into()),
            ("amtype", sort.into()),
        ]);
    }
}

/// The rows of `pg_settings`.
pub(super) fn settings(rows: &mut Rows, said: &Said) {
    for (name, setting) in said.settings() {
        rows.push([
            ("name", name.as_str().into()),
            ("setting", setting.as_str().into()),
            ("category", "Counterfoil".into()),
            ("short_desc", "".into()),
            ("context", "user".into()),
            ("vartype", "string".into()),
            ("source", "default".into()),
            ("boot_val", setting.as_str().into()),
            ("reset_val", setting.as_str().into()),
            ("pending_restart", false.into()),
        ]);
    }
}

/// Words of PostgreSQL that cannot be names everywhere, by how far they can.
pub(super) const KEYWORDS: [(&str, &str, &str); 3] = [
    (
        "R",
        "reserved",
        "all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create \
         current_catalog current_date current_role current_time current_timestamp current_user default deferrable desc distinct \
         do else end except false fetch for foreign from grant group having in initially intersect into lateral leading limit \
         localtime localtimestamp not null offset on only or order placing primary references returning select session_user \
         some symmetric table then to trailing true union unique user using variadic when where window with",
    ),
    (
        "T",
        "reserved (can be function or type name)",
        "authorization binary collation concurrently cross current_schema freeze full ilike inner is isnull join left like \
         natural notnull outer overlaps right similar tablesample verbose",
    ),
    (
        "C",
        "unreserved (cannot be function or type name)",
        "between bigint bit boolean char character coalesce dec decimal exists extract float greatest grouping inout int \
         integer interval least national nchar none normalize nullif numeric out overlay position precision real row setof \
         smallint substring time timestamp treat trim values varchar",
    ),
];

fn keywords(rows: &mut Rows) {
    for (letter, sort, words) in KEYWORDS {
        for word in words.split_whitespace() {
            rows.push([
                ("word", word.into()),
                ("catcode", letter.into()),
                ("barelabel", true.into()),
                ("catdesc", sort.into()),
                ("baredesc", "can be bare label".into()),
            ]);
        }
    }
}
