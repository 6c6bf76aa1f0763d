//! The catalogue of PostgreSQL: what clients ask, in the very words that they send, is answered as PostgreSQL answers it.

use counterfoil_sql::arrow::datatypes::DataType;
use counterfoil_sql::{Outcome, Rights, SERVER_VERSION, Session, TYPE_OF, split};

use crate::database::{Database, ask};

/// A table with all sorts of keys and columns, one that refers to it, a series, and views.
const SCRIPT: &str = "
    CREATE TABLE a (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, n NUMERIC(10,2) DEFAULT 1);
    CREATE TABLE b (
        id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        a INTEGER REFERENCES a (id) ON DELETE CASCADE,
        t TIMESTAMPTZ,
        CONSTRAINT b_a_check CHECK (a > 0)
    );
    CREATE INDEX bi ON b (t, a);
    CREATE TABLE s (key INTEGER, time TIMESTAMP, x DOUBLE PRECISION, PRIMARY KEY (key, time)) WITH (engine = 'series');
    CREATE TABLE \"Odd name\" (\"user\" VARCHAR(10), c CHAR(3), \"Über\" BYTEA);
    CREATE VIEW v AS SELECT id, name, n FROM a;
    CREATE VIEW w AS SELECT relname FROM pg_class;
    INSERT INTO a VALUES (1, 'x', 2)";

fn filled() -> Database {
    Database::after(SCRIPT)
}

/// Runs all statements of a text with the numbers of tables put in, those about a table {t} for each: what they answer.
fn answers(database: &mut Database, text: &str) -> Vec<(String, String)> {
    let tables = ["a", "b", "s", "v", "Odd name"].map(|name| {
        let number = database.ask(&format!("SELECT oid FROM pg_class WHERE relname = '{name}'"));
        assert!(number.parse::<u32>().unwrap() >= 16_384, "{name} is {number}");
        (name, format!("'{number}'"))
    });
    let mut answers = Vec::new();
    for piece in split(text).unwrap() {
        let named = tables
            .iter()
            .fold(piece.text.to_owned(), |sql, (name, number)| sql.replace(&format!("{{{name}}}"), number));
        let each = if named.contains("{t}") { tables.as_slice() } else { &tables[..1] };
        for (_, number) in each {
            let sql = named.replace("{t}", number);
            let answer = database.ask(&sql);
            answers.push((sql, answer));
        }
    }
    answers
}

/// All statements of a text are answered.
#[track_caller]
fn all_answered(text: &str) {
    let answers = answers(&mut filled(), text);
    let wrong: Vec<_> = answers.iter().filter(|(_, answer)| answer.starts_with("error")).collect();
    let told = wrong.iter().map(|(sql, answer)| format!("{answer}\n    {sql}\n")).collect::<String>();
    assert!(wrong.is_empty(), "{} of {} failed:\n{told}", wrong.len(), answers.len());
}

#[test]
fn psql_describes_everything() {
    all_answered(include_str!("../pg_catalog/psql.sql"));
}

#[test]
fn sqlalchemy_reflects_everything() {
    all_answered(include_str!("../pg_catalog/sqlalchemy.sql"));
}

#[test]
fn jdbc_has_its_metadata() {
    all_answered(include_str!("../pg_catalog/jdbc.sql"));
}

#[test]
fn tools_find_what_they_look_for() {
    all_answered(include_str!("../pg_catalog/tools.sql"));
}

#[test]
fn asyncpg_learns_of_types() {
    all_answered(include_str!("../pg_catalog/asyncpg.sql"));
}

/// Held against PostgreSQL 15 with the same tables.
#[test]
fn tables_are_told_as_postgresql_tells_them() {
    filled().expect(&[
        (
            "SELECT attname, format_type(atttypid, atttypmod), attnotnull, attidentity, atthasdef FROM pg_attribute
             WHERE attrelid = 'b'::regclass ORDER BY attnum",
            "id|integer|true|a|false\na|integer|false||false\nt|timestamp with time zone|false||false",
        ),
        (
            "SELECT attname, format_type(atttypid, atttypmod), attlen, attalign, attstorage, attcollation FROM pg_attribute
             WHERE attrelid = 'a'::regclass ORDER BY attnum",
            "id|integer|4|i|p|0\nname|text|-1|i|x|100\nn|numeric(10,2)|-1|i|m|0",
        ),
        (
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = '\"Odd name\"'::regclass ORDER BY attnum",
            "user|character varying(10)\nc|character(3)\nÜber|bytea",
        ),
        (
            "SELECT conname, contype, pg_get_constraintdef(oid, true), conkey, confkey, confrelid::regclass, confdeltype
             FROM pg_constraint WHERE conrelid = 'b'::regclass ORDER BY conname",
            "b_a_check|c|CHECK (a > 0)|{2}|NULL|-| \n\
             b_a_fkey|f|FOREIGN KEY (a) REFERENCES a(id) ON DELETE CASCADE|{2}|{1}|a|c\n\
             b_pkey|p|PRIMARY KEY (id)|{1}|NULL|-| ",
        ),
        (
            "SELECT indexdef FROM pg_indexes WHERE tablename IN ('a', 'b', 's') ORDER BY indexname",
            "CREATE UNIQUE INDEX a_name_key ON public.a USING btree (name)\n\
             CREATE UNIQUE INDEX a_pkey ON public.a USING btree (id)\n\
             CREATE UNIQUE INDEX b_pkey ON public.b USING btree (id)\n\
             CREATE INDEX bi ON public.b USING btree (t, a)\n\
             CREATE UNIQUE INDEX s_pkey ON public.s USING btree (key, \"time\")",
        ),
        (
            "SELECT c.relname, i.indkey, i.indisunique, i.indisprimary, pg_get_indexdef(i.indexrelid, 1, true)
             FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = 'b'::regclass ORDER BY 1",
            "b_pkey|{1}|true|true|id\nbi|{3,2}|false|false|t",
        ),
        ("SELECT pg_get_expr(adbin, adrelid), adrelid::regclass FROM pg_attrdef", "1|a"),
        ("SELECT pg_get_viewdef('v'), pg_get_viewdef('v'::regclass, true)", " SELECT id, name, n FROM a;| SELECT id, name, n FROM a;"),
        ("SELECT pg_get_serial_sequence('b', 'id'), pg_get_serial_sequence('b', 'a')", "public.b_id_seq|NULL"),
        ("SELECT seqstart, seqincrement, seqmax FROM pg_sequence", "1|1|2147483647"),
        (
            "SELECT relname, relkind, relnatts, relchecks, relhasindex, relhastriggers FROM pg_class WHERE relnamespace = 2200
             AND relkind <> 'i' ORDER BY 1",
            "Odd name|r|3|0|false|false\na|r|3|0|true|true\nb|r|3|1|true|true\ns|r|3|0|true|false\nv|v|3|0|false|false\n\
             w|v|1|0|false|false",
        ),
        (
            "SELECT tablename, hasindexes FROM pg_tables WHERE schemaname = 'public' ORDER BY 1",
            "Odd name|false\na|true\nb|true\ns|true",
        ),
        ("SELECT viewname, definition FROM pg_views ORDER BY 1 LIMIT 1", "v| SELECT id, name, n FROM a;"),
        ("SELECT rolname, rolsuper FROM pg_roles", "owner|true"),
        ("SELECT datname, pg_encoding_to_char(encoding) FROM pg_database", "counterfoil|UTF8"),
        ("SELECT nspname FROM pg_namespace ORDER BY oid", "pg_catalog\npublic\ninformation_schema"),
    ]);
}

/// What the subqueries answer that are put outside, counted or left out.
#[test]
fn subqueries_answer_what_they_say() {
    filled().expect(&[
        (
            "SELECT a.attname, (SELECT d.adbin FROM pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef)
             FROM pg_attribute a WHERE a.attrelid = 'a'::regclass ORDER BY attnum",
            "id|NULL\nname|NULL\nn|1",
        ),
        (
            "SELECT a.attname, CASE WHEN a.attidentity <> '' THEN (SELECT json_build_object('always', a.attidentity = 'a', 'start',
                 pg_sequence.seqstart) FROM pg_sequence WHERE a.attidentity <> '' AND pg_sequence.seqrelid = CAST(CAST(
                 pg_get_serial_sequence(CAST(CAST(a.attrelid AS REGCLASS) AS TEXT), a.attname) AS REGCLASS) AS OID)) END
             FROM pg_attribute a WHERE a.attrelid = 'b'::regclass ORDER BY attnum",
            "id|{\"always\" : true, \"start\" : 1}\na|NULL\nt|NULL",
        ),
        // A value of the query around it, of a row that is not there, is no value.
        (
            "SELECT c.relname, (SELECT c.relname FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary) FROM pg_class c
             WHERE c.relname IN ('a', 'v') ORDER BY 1",
            "a|a\nv|NULL",
        ),
        (
            "SELECT c.relname, ARRAY(SELECT attname FROM pg_attribute WHERE attrelid = c.oid ORDER BY 1 DESC) FROM pg_class c
             WHERE c.relname = 'a'",
            "a|{name,n,id}",
        ),
        ("SELECT r.rolname, ARRAY(SELECT m.member FROM pg_auth_members m WHERE m.member = r.oid) FROM pg_roles r", "owner|{}"),
        ("SELECT count(*), min(x.polname) FROM (SELECT polname FROM pg_policy) x", "0|NULL"),
        ("SELECT EXISTS (SELECT 1 FROM pg_policy), NOT EXISTS (SELECT 1 FROM pg_class WHERE relname = 'a')", "false|false"),
        ("SELECT pg_get_triggerdef(oid), tgname FROM pg_trigger", ""),
        ("SELECT c.relname FROM pg_class c LEFT JOIN pg_trigger t ON t.tgrelid = c.oid WHERE c.relname = 'a'", "a"),
        ("SELECT c.relname FROM pg_trigger t RIGHT JOIN pg_class c ON t.tgrelid = c.oid WHERE c.relname = 'a'", "a"),
        ("SELECT 'x' UNION ALL SELECT polname FROM pg_policy WHERE polroles = ARRAY(SELECT nobody(1))", "x"),
        ("SELECT count(*) FROM pg_policy", "0"),
    ]);
}

#[test]
fn names_are_numbers_and_numbers_names() {
    let mut database = filled();
    database.expect(&[
        ("SELECT 'pg_class'::regclass::oid, 'int4'::regtype::oid, 'public'::regnamespace::oid, 'owner'::regrole::oid", "1259|23|2200|10"),
        ("SELECT 1259::regclass, 23::regtype, 2200::regnamespace::text, 10::regrole, 'pg_catalog.array_in'::regproc", "pg_class|integer|public|owner|array_in"),
        ("SELECT '\"Odd name\"'::regclass, 'public.a'::regclass::text, to_regclass('nowhere'), '-'::regclass", "\"Odd name\"|a|NULL|-"),
        ("SELECT 'nowhere'::regclass", "error: no table nowhere"),
        ("SELECT 'nowhere'::regtype", "error: no type nowhere"),
        ("SELECT '{1,2}'::int2[], '{a,NULL}'::text[], '{23}'::oid[], 'x'::name, 'yz'::\"char\", 5::oid", "{1,2}|{a,NULL}|{23}|x|y|5"),
        ("SELECT typname FROM pg_type WHERE oid = ANY ('{23,25}'::oid[]) ORDER BY oid", "int4\ntext"),
        ("SELECT typname FROM pg_type WHERE oid = to_regtype('numeric(10,2)')", "numeric"),
        ("SELECT count(*) FROM pg_class WHERE relname OPERATOR(pg_catalog.~) '^(a|b)$' COLLATE pg_catalog.default", "2"),
        ("SELECT relname FROM pg_class WHERE relname = 'a' COLLATE \"C\"", "a"),
        ("SELECT 'a' COLLATE \"de_DE\"", "error: not supported: COLLATE: texts compare byte by byte"),
        ("SELECT * FROM pg_nonsense", "error: table 'pg_nonsense' not found"),
        ("SELECT * FROM pg_catalog.pg_nonsense", "error: table 'pg_catalog.pg_nonsense' not found"),
    ]);
    let version = database.ask("SELECT version()");
    assert!(version.starts_with(&format!("PostgreSQL {SERVER_VERSION} (Counterfoil ")), "{version}");
    assert_eq!(database.ask("SELECT pg_catalog.version()"), version);
    assert_eq!(database.ask("SHOW server_version"), SERVER_VERSION);
}

#[test]
fn settings_are_asked_and_set_by_functions() {
    filled().expect(&[
        ("SELECT current_setting('search_path'), current_setting('TimeZone')", "public|UTC"),
        ("SELECT set_config('search_path', 'x, public', false)", "x, public"),
        ("SELECT current_setting('search_path')", "x, public"),
        ("SHOW search_path", "x, public"),
        ("SELECT setting FROM pg_settings WHERE name = 'search_path'", "x, public"),
        ("SELECT current_setting(name) FROM pg_settings WHERE name = 'jit'", "off"),
        ("SELECT current_setting('nix', true)", "NULL"),
        ("SELECT current_setting('nix')", "error: no setting nix: SHOW ALL lists them"),
        ("SELECT set_config('nix', 'x', false)", "error: no setting nix: SHOW ALL lists them"),
        (
            "SELECT current_schemas(true), current_schemas(false), current_schema()",
            "{pg_catalog,public}|{public}|public",
        ),
        ("SELECT user, current_role, session_user, current_database()", "owner|owner|owner|counterfoil"),
    ]);
}

#[test]
fn numbers_stay_what_they_are() {
    let mut database = filled();
    let numbers = "SELECT relname, oid FROM pg_class WHERE relname IN ('b', 'bi', 'b_pkey', 'v') UNION ALL
                   SELECT conname, oid FROM pg_constraint WHERE conrelid = 'b'::regclass ORDER BY 1";
    let before = database.ask(numbers);
    assert_eq!(before.lines().count(), 7, "{before}");
    database.expect(&[
        ("CREATE TABLE more (a INTEGER PRIMARY KEY, b INTEGER UNIQUE CHECK (b > 0))", "CREATE TABLE"),
        ("DROP TABLE s", "DROP TABLE"),
        ("DROP TABLE \"Odd name\"", "DROP TABLE"),
        ("ALTER TABLE b ADD COLUMN z INTEGER", "ALTER TABLE"),
        ("CREATE INDEX bj ON b (z)", "CREATE INDEX"),
    ]);
    assert_eq!(database.ask(numbers), before);
    assert_eq!(database.ask("SELECT count(*) = count(DISTINCT oid) FROM pg_class"), "true");
    let younger = "SELECT oid FROM pg_class WHERE relname = 'bj'";
    let number = database.ask(younger);
    database.ask("DROP INDEX bi");
    assert_eq!(database.ask(younger), number);
    let number = database.ask("SELECT oid FROM pg_class WHERE relname = 'b'");
    database.ask("ALTER TABLE b RENAME TO c");
    assert_eq!(database.ask("SELECT oid FROM pg_class WHERE relname = 'c'"), number);
}

#[test]
fn a_transaction_sees_what_it_has_made() {
    let mut database = filled();
    let count = "SELECT count(*) FROM pg_class WHERE relname = 'made'";
    database.expect(&[("BEGIN", "BEGIN"), ("CREATE TABLE made (a INTEGER)", "CREATE TABLE"), (count, "1")]);
    assert_eq!(ask(&mut database.connect(), count, &[]), "0");
    database.expect(&[("SELECT 'made'::regclass", "made"), ("ROLLBACK", "ROLLBACK"), (count, "0")]);
}

#[test]
fn columns_are_of_the_types_that_clients_know() {
    let mut database = filled();
    let outcomes =
        database.session.run("SELECT oid, relname, relkind, relam AS x, relacl FROM pg_class c", &[]).unwrap();
    let Some(Outcome::Rows(rows)) = outcomes.into_iter().next() else { panic!("no rows") };
    let told: Vec<_> =
        rows.schema().fields().iter().map(|field| field.metadata().get(TYPE_OF).map(String::as_str)).collect();
    assert_eq!(told, [None, Some("name"), Some("char"), None, None]);
    assert_eq!(rows.schema().field(0).data_type(), &DataType::UInt32);
}

#[test]
fn tables_of_the_database_come_before_those_of_the_catalogue() {
    let mut database = Database::after(
        "CREATE TABLE pg_policy (polname TEXT, user TEXT); INSERT INTO pg_policy VALUES ('mine', 'me')",
    );
    database.expect(&[
        ("SELECT polname FROM pg_policy", "mine"),
        ("SELECT upper(polname) FROM public.pg_policy WHERE EXISTS (SELECT 1 FROM pg_policy)", "MINE"),
        ("SELECT count(*) FROM pg_catalog.pg_policy", "0"),
        ("CREATE TABLE t (user TEXT)", "CREATE TABLE"),
        ("INSERT INTO t VALUES ('me')", "INSERT 1"),
        ("SELECT \"user\", user FROM t", "me|owner"),
    ]);
}

#[test]
fn views_of_the_catalogue_do_not_describe_themselves_for_ever() {
    let mut database = filled();
    database.expect(&[
        (
            "CREATE VIEW columns AS SELECT attrelid, attname, atttypid::regtype::text AS kind FROM pg_attribute",
            "CREATE VIEW",
        ),
        ("CREATE VIEW standard AS SELECT table_name, column_name FROM information_schema.columns", "CREATE VIEW"),
        (
            "CREATE VIEW over AS SELECT c.relname, k.attname FROM pg_class c JOIN columns k ON k.attrelid = c.oid",
            "CREATE VIEW",
        ),
        (
            "SELECT attname, kind FROM columns WHERE attrelid = 'a'::regclass ORDER BY 1",
            "id|integer\nn|numeric\nname|text",
        ),
        ("SELECT attname FROM over WHERE relname = 'columns' ORDER BY 1", "attname\nattrelid\nkind"),
        ("SELECT column_name FROM standard WHERE table_name = 'standard' ORDER BY 1", "column_name\ntable_name"),
        ("SELECT count(*) FROM information_schema.columns WHERE table_name = 'over'", "2"),
        ("SELECT relname FROM w WHERE relname IN ('a', 'w') ORDER BY 1", "a\nw"),
    ]);
}

#[test]
fn readers_are_told_that_they_may_read_alone() {
    let database = filled();
    let rights = Rights { writes: false, ..Rights::ALL };
    let mut reader = Session::with_rights(database.engine.clone(), rights).unwrap();
    let may = "SELECT has_table_privilege('a', 'SELECT'), has_table_privilege('owner', 'a', 'insert'), has_schema_privilege('public', 'usage')";
    assert_eq!(ask(&mut reader, may, &[]), "true|false|true");
    assert_eq!(ask(&mut database.connect(), may, &[]), "true|true|true");
}

/// A statement is not larger in our words than in those that came, whatever is in it.
#[test]
fn nothing_grows_without_bound() {
    let mut database = filled();
    let mut nested = "SELECT x.oid FROM pg_class x WHERE x.oid = c.oid".to_owned();
    for _ in 0..20 {
        nested = format!("SELECT x.oid + c.oid + x.relnamespace FROM pg_class x WHERE x.oid = ({nested})");
    }
    let answer = database.ask(&format!("SELECT ({nested}) FROM pg_class c"));
    assert!(answer.starts_with("error"), "{answer}");
    let many = vec!["pg_get_constraintdef(oid)"; 300].join(" || ");
    assert_eq!(database.ask(&format!("SELECT {many} FROM pg_constraint WHERE contype = 'x'")), "");
}

/// A small generator of numbers, the same ones every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

#[test]
fn shuffled_words_of_the_catalogue_never_panic() {
    const WORDS: &str = "c.oid i.indkey a.attname 1 '{a,b}' '{' NULL 'a' ( ) ( ) , , FROM WHERE AND OR = <> ::regclass ::regtype ::text ::oid \
        ::text[] ::oid[] ::int2[] ::name ::pg_catalog.text ARRAY( EXISTS( IN( SELECT CASE WHEN THEN ELSE END ANY( ALL( COLLATE \"C\" \
        OPERATOR(pg_catalog.~) OPERATOR(pg_catalog.nix) pg_class pg_policy pg_catalog.pg_index LEFT JOIN ON UNION ORDER BY LIMIT \
        pg_get_indexdef( pg_catalog.format_type( current_setting( set_config( current_schemas( unnest( generate_subscripts( array_upper( \
        json_build_object( (information_schema._pg_expandarray(i.indkey)).n parse_ident( c.tableoid user LATERAL AS x";
    const BEGIN: [&str; 5] = [
        "SELECT",
        "SELECT c.oid FROM pg_class c, pg_index i WHERE",
        "SELECT (SELECT min(a.attname) FROM pg_attribute a WHERE a.attrelid = c.oid AND",
        "SELECT x FROM pg_policy p JOIN pg_class c ON",
        "SELECT * FROM pg_attribute a, unnest(",
    ];
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let mut dice = Dice(20_261_122);
    let mut database = filled();
    for _ in 0..1500 {
        let begin = BEGIN[dice.below(BEGIN.len())];
        let rest: Vec<&str> = (0..dice.below(14)).map(|_| words[dice.below(words.len())]).collect();
        let sql = format!("{begin} {}", rest.join(" "));
        let answer = database.ask(&sql);
        assert!(!answer.contains("internal error"), "{sql}: {answer}");
    }
    assert_eq!(database.ask("SELECT 1"), "1");
}
