//! Statements that PostgreSQL or SQLite has and that are none here, by the words that they begin with or have: the parser would say what it
//! expected in their place.

use crate::error::{Error, Result};

/// By the first words.
const BEGINNINGS: &[&[&str]] = &[
    &["ALTER", "AGGREGATE"],
    &["ALTER", "COLLATION"],
    &["ALTER", "CONVERSION"],
    &["ALTER", "DATABASE"],
    &["ALTER", "DEFAULT", "PRIVILEGES"],
    &["ALTER", "DOMAIN"],
    &["ALTER", "EVENT", "TRIGGER"],
    &["ALTER", "EXTENSION"],
    &["ALTER", "FOREIGN"],
    &["ALTER", "GROUP"],
    &["ALTER", "LANGUAGE"],
    &["ALTER", "MATERIALIZED", "VIEW"],
    &["ALTER", "PROCEDURE"],
    &["ALTER", "PUBLICATION"],
    &["ALTER", "RULE"],
    &["ALTER", "SEQUENCE"],
    &["ALTER", "SERVER"],
    &["ALTER", "STATISTICS"],
    &["ALTER", "SUBSCRIPTION"],
    &["ALTER", "SYSTEM"],
    &["ALTER", "TABLESPACE"],
    &["ALTER", "TRIGGER"],
    &["ALTER", "VIEW"],
    &["CHECKPOINT"],
    &["CLUSTER"],
    &["COMMIT", "PREPARED"],
    &["CREATE", "ACCESS", "METHOD"],
    &["CREATE", "AGGREGATE"],
    &["CREATE", "CAST"],
    &["CREATE", "COLLATION"],
    &["CREATE", "CONSTRAINT", "TRIGGER"],
    &["CREATE", "CONVERSION"],
    &["CREATE", "EVENT", "TRIGGER"],
    &["CREATE", "FOREIGN"],
    &["CREATE", "GROUP"],
    &["CREATE", "LANGUAGE"],
    &["CREATE", "OPERATOR"],
    &["CREATE", "PUBLICATION"],
    &["CREATE", "RULE"],
    &["CREATE", "SERVER"],
    &["CREATE", "STATISTICS"],
    &["CREATE", "SUBSCRIPTION"],
    &["CREATE", "TABLESPACE"],
    &["CREATE", "TRANSFORM"],
    &["CREATE", "UNLOGGED"],
    &["DETACH"],
    &["DO"],
    &["IMPORT"],
    &["LOAD"],
    &["MOVE"],
    &["PRAGMA"],
    &["PREPARE", "TRANSACTION"],
    &["REASSIGN"],
    &["REFRESH"],
    &["REINDEX"],
    &["REPLACE", "INTO"],
    &["ROLLBACK", "PREPARED"],
    &["SECURITY"],
    &["SET", "CONSTRAINTS"],
];

/// By two words behind the first ones of a statement that changes a table; the first of them of one that makes one, too.
const OF_TABLES: &[[&str; 2]] = &[
    ["EXCLUDE", "USING"],
    ["SET", "SCHEMA"],
    ["SET", "TABLESPACE"],
    ["SET", "LOGGED"],
    ["SET", "UNLOGGED"],
    ["CLUSTER", "ON"],
    ["NO", "INHERIT"],
];

/// Refuses a statement that is none here. `word` gives its words, in capitals, by their places.
///
/// # Errors
/// [`Error::NotSupported`].
pub(crate) fn refuse(word: &dyn Fn(usize) -> Option<String>, places: usize) -> Result<()> {
    let is_at = |place: usize, wanted: &[&str]| {
        wanted.iter().enumerate().all(|(more, wanted)| word(place + more).as_deref() == Some(wanted))
    };
    let first = word(0);
    let mut alike = BEGINNINGS.iter().filter(|beginning| first.as_deref() == Some(beginning[0]));
    // A statement that is prepared may be called TRANSACTION, which has a text behind it if it is meant; and REFRESH TABLE is ours.
    let is_ours = is_at(0, &["PREPARE"]) && word(2).is_some() || is_at(0, &["REFRESH", "TABLE"]);
    if let Some(beginning) = alike.find(|beginning| is_at(0, beginning) && !is_ours) {
        return Err(Error::NotSupported(beginning.join(" ")));
    }
    if matches!(first.as_deref(), Some("ALTER" | "CREATE")) && is_at(1, &["TABLE"]) {
        let of = if first.as_deref() == Some("ALTER") { OF_TABLES } else { &OF_TABLES[..1] };
        let said = |place: usize| of.iter().find(|words| is_at(place, *words));
        // Behind AS there is a query, which has names of its own.
        let is_said = |place: &usize| !is_at(*place, &["AS"]);
        if let Some(words) = (3..places).take_while(is_said).find_map(said) {
            let verb = first.unwrap_or_default();
            return Err(Error::NotSupported(format!("{verb} TABLE ... {}", words.join(" "))));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::statement::parse;

    #[test]
    fn what_others_have_is_said_not_to_be_supported() {
        for (sql, what) in [
            ("PRAGMA table_info(u)", "PRAGMA"),
            ("REFRESH MATERIALIZED VIEW v", "REFRESH"),
            ("CREATE UNLOGGED TABLE u (a int)", "CREATE UNLOGGED"),
            ("do $$ begin end $$", "DO"),
            ("alter sequence s restart", "ALTER SEQUENCE"),
            ("ALTER TABLE public.u SET SCHEMA x", "ALTER TABLE ... SET SCHEMA"),
            ("ALTER TABLE u CLUSTER ON i", "ALTER TABLE ... CLUSTER ON"),
            ("ALTER VIEW v1 RENAME TO v2", "ALTER VIEW"),
            ("CREATE STATISTICS s ON a, b FROM u", "CREATE STATISTICS"),
            ("REPLACE INTO u VALUES (1)", "REPLACE INTO"),
            ("SET CONSTRAINTS ALL DEFERRED", "SET CONSTRAINTS"),
            ("PREPARE TRANSACTION 'x'", "PREPARE TRANSACTION"),
            ("COMMIT PREPARED 'x'", "COMMIT PREPARED"),
            ("SELECT 1; CREATE SERVER x FOREIGN DATA WRAPPER y", "CREATE SERVER"),
            ("CREATE TABLE u (a int, EXCLUDE USING gist (a WITH =))", "CREATE TABLE ... EXCLUDE USING"),
        ] {
            let told = parse(sql).expect_err(sql).to_string();
            assert_eq!(told, format!("not supported: {what}"), "{sql}");
        }
        for sql in [
            "CREATE TABLE r AS SELECT * FROM node JOIN cluster ON cluster.id = node.c JOIN exclude USING (id)",
            "PREPARE transaction AS SELECT 1",
            "CREATE TABLE u (no int, inherit int, cluster int)",
            "ALTER TABLE u RENAME TO v",
            "SELECT 'PRAGMA'",
            "REFRESH TABLE u",
        ] {
            assert!(parse(sql).is_ok(), "{sql}");
        }
    }
}
