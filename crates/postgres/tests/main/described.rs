//! Clients that ask what a statement wants and answers before they run it, and count on that.

use crate::client::{Client, message};
use crate::clients::{bind, execute, parse, sync};
use crate::server::Server;

const INT4: u32 = 23;
const INT8: u32 = 20;
const TEXT: u32 = 25;
const NUMERIC: u32 = 1700;
const UUID: u32 = 2950;

/// Prepares and asks.
fn describe(client: &mut Client, name: &str, sql: &str, types: &[u32]) -> crate::client::Answer {
    client.send(&parse(name, sql, types));
    client.send(&message(b'D', format!("S{name}\0").as_bytes()));
    client.send(&sync());
    client.answer(None)
}

#[test]
fn parameters_that_were_left_open_go_in_binary_as_they_were_told() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, price NUMERIC(10,2))");
    let told = describe(&mut client, "in", "INSERT INTO t VALUES ($1, $2, $3) RETURNING id, name", &[]);
    assert_eq!(told.parameters, [INT4, TEXT, NUMERIC]);
    assert_eq!(told.columns, [("id".to_owned(), INT4), ("name".to_owned(), TEXT)]);
    // 12.50 as PostgreSQL has it: two groups of four digits, the first of weight 0, scale 2.
    let price = [0, 2, 0, 0, 0, 0, 0, 2, 0, 12, 0x13, 0x88];
    client.send(&bind("", "in", &[Some(&7i32.to_be_bytes()), Some(b"n"), Some(&price)], 1));
    client.send(&execute("", 0));
    client.send(&sync());
    let answer = client.answer(None);
    assert_eq!(answer.error, None);
    assert_eq!(answer.rows, [[Some(7i32.to_be_bytes().to_vec()), Some(b"n".to_vec())]]);
    assert_eq!(client.ask("SELECT * FROM t").texts(), [["7", "n", "12.50"]]);
    let told = describe(&mut client, "out", "SELECT price FROM t WHERE id = $1", &[]);
    assert_eq!((told.parameters, told.columns), (vec![INT4], vec![("price".to_owned(), NUMERIC)]));
    // Whoever does not ask writes by the same types.
    client.send(&parse("unasked", "SELECT name FROM t WHERE id = $1", &[]));
    client.send(&bind("", "unasked", &[Some(&7i32.to_be_bytes())], 0));
    client.send(&execute("", 0));
    client.send(&sync());
    assert_eq!(client.answer(None).texts(), [["n"]]);
}

#[test]
fn uuids_and_arrays_are_told_as_such() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask("CREATE TABLE t (id UUID PRIMARY KEY, name TEXT)");
    let told = describe(&mut client, "in", "INSERT INTO t VALUES ($1, $2) RETURNING id", &[]);
    assert_eq!((told.parameters, told.columns), (vec![UUID, TEXT], vec![("id".to_owned(), UUID)]));
    let id: [u8; 16] = std::array::from_fn(|place| place as u8);
    client.send(&[bind("", "in", &[Some(&id), Some(b"n")], 1), execute("", 0), sync()].concat());
    assert_eq!(client.answer(None).rows, [[Some(id.to_vec())]]);
    let told = describe(&mut client, "one", "SELECT name FROM t WHERE id = $1", &[]);
    assert_eq!(told.parameters, [UUID]);
    client.send(&[bind("", "one", &[Some(&id)], 0), execute("", 0), sync()].concat());
    assert_eq!(client.answer(None).texts(), [["n"]]);
    let sql = "SELECT relname FROM pg_class WHERE oid = ANY ($1::oid[]) AND relname <> '$2::int4[]' AND relkind = $2";
    assert_eq!(describe(&mut client, "array", sql, &[]).parameters[0], 1028);
}

/// What changes something and answers no rows is not planned to say so.
#[test]
fn a_change_without_returning_answers_no_rows() {
    let server = Server::new();
    let mut client = server.client("alice");
    for (sql, code) in [("INSERT INTO nothing VALUES (1)", "none"), ("DELETE FROM nothing RETURNING a", "42P01")] {
        client.send(&[parse("", sql, &[]), bind("", "", &[], 0), message(b'D', b"P\0"), sync()].concat());
        let told = client.answer(None);
        assert_eq!((told.code(), told.described), (code, 0), "{sql}");
    }
}

/// Lists as parameters, where a cast says what they are and where a column beside ANY does.
#[test]
fn arrays_come_in_text_and_in_binary() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, b BIGINT, d DATE, u UUID, n NUMERIC(10,2), s TIMESTAMP, f BOOLEAN, c VARCHAR(9));
         INSERT INTO t VALUES
             (1, 10, '2024-01-01', '00112233-4455-6677-8899-aabbccddeeff', 1.50, '2024-01-01 10:00', true, 'a\"b'),
             (2, 20, '2024-01-02', NULL, 2.50, '2024-01-02', false, 'x,y')",
    );
    for (kind, array, text) in [
        ("int", 1007, "{1,7}"),
        ("bigint", 1016, "{10,11}"),
        ("date", 1182, "{2024-01-01}"),
        ("uuid", 2951, "{00112233-4455-6677-8899-AABBCCDDEEFF}"),
        ("numeric", 1231, "{1.5}"),
        ("timestamp without time zone", 1115, "{\"2024-01-01 10:00:00\"}"),
        ("bool", 1000, "{t}"),
        ("varchar", 1009, r#"{"a\"b"}"#),
    ] {
        let column = match kind {
            "int" => "id",
            "timestamp without time zone" => "s",
            "bool" => "f",
            "varchar" => "c",
            other => &other[..1],
        };
        for (sql, cast) in [("ANY ($1)", ""), ("ANY ($1::", "[])")] {
            let cast = if cast.is_empty() { String::new() } else { format!("{kind}{cast}") };
            let sql = format!("SELECT id FROM t WHERE {column} = {sql}{cast}");
            let told = describe(&mut client, "", &sql, &[]);
            assert_eq!((told.error, told.parameters), (None, vec![array]), "{sql}");
            client.send(&[bind_texts("", &[Some(text)]), execute("", 0), sync()].concat());
            assert_eq!(client.answer(None).texts(), [["1"]], "{sql}");
        }
    }
    assert_eq!(client.ask("SELECT '{1,NULL}'::int[], '{2.5}'::float8[], '{}'::int[], ARRAY[1,2]::bigint[], '{1.5,2}'::numeric[], '{t,f}'::bool[]").texts(), [["{1,NULL}", "{2.5}", "{}", "{1,2}", "{1.5,2.0}", "{t,f}"]]);
    assert_eq!(client.ask("SELECT '{a}'::int[]").code(), "22P02");
    // In binary, with a type and without.
    let array = |element: u32, part: &[u8]| {
        let head = [1, 0, element, 1, 1, part.len() as u32].map(u32::to_be_bytes).concat();
        [head.as_slice(), part].concat()
    };
    let id: Vec<u8> = (0..16).map(|digit| digit * 0x11).collect();
    for (column, element, part) in [
        ("id", INT4, 1i32.to_be_bytes().to_vec()),
        ("b", INT8, 10i64.to_be_bytes().to_vec()),
        ("d", 1082, 8766i32.to_be_bytes().to_vec()),
        ("u", UUID, id),
        ("s", 1114, 757_418_400_000_000i64.to_be_bytes().to_vec()),
        ("c", TEXT, b"a\"b".to_vec()),
    ] {
        let sql = format!("SELECT id FROM t WHERE {column} = ANY ($1) AND NOT ({column} <> ALL ($1))");
        client.send(&[parse("", &sql, &[]), bind("", "", &[Some(&array(element, &part))], 0)].concat());
        client.send(&[execute("", 0), sync()].concat());
        assert_eq!(client.answer(None).texts(), [["1"]], "{sql}");
    }
    client.send(&[parse("", "SELECT id FROM t WHERE id = ANY ($1::int[])", &[]), bind("", "", &[None], 0)].concat());
    client.send(&[execute("", 0), sync()].concat());
    assert!(client.answer(None).texts().is_empty());
}

#[test]
fn spans_come_in_binary_and_bytes_are_bytes() {
    let server = Server::new();
    let mut client = server.client("alice");
    let span = [90_000_000i64.to_be_bytes().as_slice(), &(-2i32).to_be_bytes(), &14i32.to_be_bytes()].concat();
    let sql = "SELECT TIMESTAMP '2024-01-31 10:00:00' + $1, $1";
    client.send(&[parse("", sql, &[1186]), bind("", "", &[Some(&span)], 0), execute("", 0), sync()].concat());
    assert_eq!(client.answer(None).texts(), [["2025-03-29 10:01:30", "1 year 2 mons -2 days 00:01:30"]]);
    client.ask("CREATE TABLE t (raw BYTEA)");
    let told = describe(&mut client, "", "INSERT INTO t VALUES ($1::bytea)", &[]);
    assert_eq!((told.error, told.parameters), (None, vec![17]));
    client.send(&[bind("", "", &[Some(&[0, 0xff])], 0), execute("", 0), sync()].concat());
    assert_eq!(client.answer(None).error, None);
    assert_eq!(client.ask("SELECT raw FROM t").texts(), [["\\x00ff"]]);
}

#[test]
fn spans_and_what_postgresql_does_not_have_go_in_binary() {
    let server = Server::new();
    let mut client = server.client("alice");
    let sql = "SELECT INTERVAL '2 months 3 days 4 seconds', NULL, DATE '2000-01-02',
               TIMESTAMP '2024-01-02 00:00:01' - TIMESTAMP '2024-01-01'";
    client.send(&[parse("", sql, &[]), bind("", "", &[], 1), execute("", 0), sync()].concat());
    let span = [&4_000_000i64.to_be_bytes()[..], &3i32.to_be_bytes(), &2i32.to_be_bytes()].concat();
    let day = [&1_000_000i64.to_be_bytes()[..], &1i32.to_be_bytes(), &[0; 4]].concat();
    assert_eq!(client.answer(None).rows, [[Some(span), None, Some(1i32.to_be_bytes().to_vec()), Some(day)]]);
}

/// Clients read bytes by what they were told; what comes of branches of several types is told, not what the first one is.
#[test]
fn columns_are_told_as_what_comes_of_all_branches() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask("CREATE TABLE t (x INTEGER, n NUMERIC(8,2), d DATE); INSERT INTO t VALUES (1, 1.25, '2020-01-01')");
    for sql in [
        "SELECT CASE WHEN x > 1 THEN 1 ELSE 2.5 END AS q FROM t",
        "SELECT x FROM t UNION ALL SELECT 2.5",
        "SELECT d FROM t UNION ALL SELECT TIMESTAMP '2020-01-01 10:30:00'",
        "SELECT 1 UNION ALL SELECT 3000000000",
        "SELECT NULL UNION ALL SELECT 1",
        "SELECT row_number() OVER (ORDER BY x) FROM t",
        "UPDATE t SET x = x RETURNING CASE WHEN x > 1 THEN 1 ELSE 2.5 END",
    ] {
        let mut simple = client.ask(sql).texts();
        describe(&mut client, "", sql, &[]);
        client.send(&[bind("", "", &[], 0), execute("", 0), sync()].concat());
        let read = client.answer(None);
        let mut rows = read.texts();
        // Branches of a UNION come in any order.
        simple.sort();
        rows.sort();
        assert_eq!((read.error, rows), (None, simple), "{sql}");
    }
    client.ask("CREATE TABLE c AS SELECT 1 AS q UNION ALL SELECT 2.5");
    assert_eq!(client.ask("SELECT sum(q) FROM c").texts(), [["3.5"]]);
}

#[test]
fn statements_of_the_protocol_are_forgotten_by_name() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.send(&[parse("one", "SELECT 1", &[]), parse("two", "SELECT 2", &[]), sync()].concat());
    client.answer(None);
    assert_eq!(client.ask("DEALLOCATE one").tags, ["DEALLOCATE"]);
    let run = |client: &mut Client, name: &str| {
        client.send(&[bind("", name, &[], 0), execute("", 0), sync()].concat());
        client.answer(None)
    };
    assert_eq!(run(&mut client, "one").code(), "26000");
    assert_eq!(run(&mut client, "two").texts(), [["2"]]);
    client.ask("DISCARD ALL");
    assert_eq!(run(&mut client, "two").code(), "26000");
}

/// What ends a thread's stack ends the server.
#[test]
fn texts_that_nest_deep_are_described() {
    let server = Server::new();
    let mut client = server.client("alice");
    let case = format!("SELECT {}1{}", "CASE WHEN 1 = 1 THEN ".repeat(90), " END".repeat(90));
    for sql in [case, format!("SELECT {}", ["1"; 900].join(" UNION ALL SELECT "))] {
        let told = describe(&mut client, "", &sql, &[]);
        assert_eq!((told.error, told.columns.len()), (None, 1));
    }
    assert_eq!(describe(&mut client, "", "PREPARE a AS EXECUTE a", &[]).error, None);
    assert_eq!(client.ask("PREPARE a AS EXECUTE a").code(), "0A000");
    assert_eq!(client.ask("SELECT 1").texts(), [["1"]]);
}

/// Nothing changes before Execute.
#[test]
fn portals_are_described_without_being_run() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask("CREATE TABLE t (a INTEGER)");
    let bound = [parse("", "INSERT INTO t VALUES (7) RETURNING a", &[]), bind("p", "", &[], 1)].concat();
    client.send(&[bound.clone(), message(b'D', b"Pp\0"), sync()].concat());
    assert_eq!(client.answer(None).columns, [("a".to_owned(), INT4)]);
    assert_eq!(client.ask("SELECT count(*) FROM t").texts(), [["0"]]);
    client.send(&[bound, message(b'D', b"Pp\0"), execute("p", 0), execute("p", 0), sync()].concat());
    let answer = client.answer(None);
    assert_eq!((answer.rows.len(), answer.tags.clone(), answer.code()), (1, vec!["INSERT 0 1".to_owned()], "55000"));
    // What a portal saw ends with its transaction.
    let query = [parse("", "SELECT a FROM t", &[]), bind("q", "", &[], 0), execute("q", 1)].concat();
    let end = [parse("", "ROLLBACK", &[]), bind("r", "", &[], 0), execute("r", 0), execute("q", 0), sync()].concat();
    client.ask("BEGIN; INSERT INTO t VALUES (8), (9)");
    client.send(&[query, end].concat());
    let answer = client.answer(None);
    assert_eq!((answer.rows.len(), answer.code()), (1, "34000"));
}

#[test]
fn rows_are_what_was_told_or_there_are_none() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (5)");
    let told = describe(&mut client, "s", "SELECT a FROM t", &[]);
    assert_eq!(told.columns, [("a".to_owned(), INT4)]);
    let run = |client: &mut Client| {
        client.send(&bind("", "s", &[], 1));
        client.send(&execute("", 0));
        client.send(&sync());
        client.answer(None)
    };
    assert_eq!(run(&mut client).rows, [[Some(5i32.to_be_bytes().to_vec())]]);
    // The column is of another type now; the client reads four bytes.
    client.ask("DROP TABLE t; CREATE TABLE t (a BIGINT); INSERT INTO t VALUES (6)");
    assert_eq!(run(&mut client).rows, [[Some(6i32.to_be_bytes().to_vec())]]);
    client.ask("UPDATE t SET a = 5000000000");
    assert_eq!(run(&mut client).code(), "0A000");
    client.ask("DROP TABLE t; CREATE TABLE t (a BIGINT, b TEXT); INSERT INTO t VALUES (6, 'x')");
    client.send(&parse("all", "SELECT * FROM t", &[]));
    client.send(&message(b'D', b"Sall\0"));
    client.send(&sync());
    client.answer(None);
    client.ask("ALTER TABLE t DROP COLUMN b");
    client.send(&bind("", "all", &[], 0));
    client.send(&execute("", 0));
    client.send(&sync());
    assert_eq!(client.answer(None).code(), "0A000");
    // NULL has no type of its own.
    let told = describe(&mut client, "null", "SELECT $1::BIGINT", &[INT8]);
    assert_eq!(told.columns[0].1, INT8);
    client.send(&bind("", "null", &[None], 1));
    client.send(&execute("", 0));
    client.send(&sync());
    assert_eq!(client.answer(None).rows, [[None]]);
}

/// A change that answers other columns by now is not made: whoever prepares it anew and tries again would have made it twice.
#[test]
fn a_change_that_answers_other_columns_by_now_is_not_made() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask("CREATE TABLE t (a INTEGER)");
    let told = describe(&mut client, "s", "INSERT INTO t VALUES ($1) RETURNING *", &[INT4]);
    assert_eq!(told.columns.len(), 1);
    let run = |client: &mut Client| {
        client.send(&[bind_texts("s", &[Some("7")]), execute("", 0), sync()].concat());
        client.answer(None)
    };
    assert_eq!(run(&mut client).error, None);
    client.ask("ALTER TABLE t ADD COLUMN b INTEGER");
    assert_eq!(run(&mut client).code(), "0A000");
    assert_eq!(client.ask("SELECT count(*) FROM t").texts(), [["1"]]);
}

#[test]
fn columns_have_the_names_that_programs_look_for() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask("CREATE TABLE t (a INTEGER, \"B b\" TEXT)");
    for (sql, expected) in [
        ("SELECT count(*), sum(a), max(a) AS most FROM t", "count, sum, most"),
        ("SELECT a, t.a, \"B b\", (a), a::TEXT FROM t", "a, a, B b, a, a"),
        ("SELECT 1, 1 + 1, 'x', NULL, true", "?column?, ?column?, ?column?, ?column?, ?column?"),
        (
            "SELECT 1.5::FLOAT8::NUMERIC, DATE '2024-01-01'::TEXT, lower('x')::VARCHAR(3)::TEXT, (SELECT 1::INT4), (SELECT true)",
            "numeric, text, lower, int4, ?column?",
        ),
        ("SELECT * FROM generate_series(1, 2)", "generate_series"),
        ("SELECT * FROM generate_series(1, 2) g, unnest(ARRAY[1]) AS u(v), unnest(ARRAY[1])", "g, v, unnest"),
        ("SELECT '1'::INTEGER, CAST('x' AS TEXT), DATE '2024-01-01'", "int4, text, date"),
        ("SELECT CASE WHEN a > 1 THEN 1 END, CASE WHEN a > 1 THEN 1 ELSE a END FROM t", "case, a"),
        ("SELECT extract(year FROM now()), coalesce(a, 1), (SELECT max(a) FROM t) FROM t", "extract, coalesce, max"),
        ("SELECT lower(\"B b\") FROM t GROUP BY lower(\"B b\") ORDER BY lower", "lower"),
        ("INSERT INTO t VALUES (1, 'X') RETURNING a + 1, lower(\"B b\")", "?column?, lower"),
        ("SHOW timezone", "timezone"),
    ] {
        let answer = client.ask(sql);
        let names: Vec<&str> = answer.columns.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((answer.error, names.join(", ")), (None, expected.to_owned()), "{sql}");
    }
}

#[test]
fn cursors_of_sql_are_portals() {
    let server = Server::new();
    let mut client = server.client("bob");
    client.ask("BEGIN; DECLARE \"My c\" CURSOR FOR SELECT x FROM generate_series(1, 10) AS g(x)");
    client.send(&message(b'D', b"PMy c\0"));
    client.send(&sync());
    let told = client.answer(None);
    assert_eq!((told.error, told.columns), (None, vec![("x".to_owned(), INT8)]));
    let some = client.ask("FETCH FORWARD 3 FROM \"My c\"");
    assert_eq!(
        (some.texts(), some.tags),
        (vec![vec!["1".to_owned()], vec!["2".into()], vec!["3".into()]], vec!["FETCH 3".into()])
    );
    assert_eq!(client.ask("FETCH FORWARD ALL FROM \"My c\"").rows.len(), 7);
    assert_eq!(client.ask("CLOSE \"My c\"").tags, ["CLOSE CURSOR"]);
    assert_eq!(client.ask("FETCH 1 FROM \"My c\"").code(), "34000");
}

#[test]
fn errors_have_the_codes_that_programs_look_at() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask(
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER NOT NULL CHECK (b > 0), c VARCHAR(2), d INTEGER REFERENCES t);
         INSERT INTO t VALUES (1, 1, NULL, NULL)",
    );
    for (sql, code) in [
        ("SELEC 1", "42601"),
        ("SELECT * FROM nothing", "42P01"),
        ("INSERT INTO nothing VALUES (1)", "42P01"),
        ("DROP TABLE nothing", "42P01"),
        ("SELECT nothing FROM t", "42703"),
        ("UPDATE t SET nothing = 1", "42703"),
        ("INSERT INTO t VALUES (1, 1, NULL, NULL)", "23505"),
        ("INSERT INTO t VALUES (2, NULL, NULL, NULL)", "23502"),
        ("INSERT INTO t VALUES (2, 0, NULL, NULL)", "23514"),
        ("INSERT INTO t VALUES (2, 1, 'abc', NULL)", "22001"),
        ("INSERT INTO t VALUES (2, 1, NULL, 9)", "23503"),
        ("SELECT 1 / (a - 1) FROM t", "22012"),
        ("SELECT a::SMALLINT FROM (SELECT a + 100000 AS a FROM t) AS s", "22003"),
        ("SELECT 'x'::INTEGER", "22P02"),
        ("SELECT a + 9223372036854775807 FROM t", "22003"),
        ("SELECT 9223372036854775807 + 1", "22003"),
        ("SELECT -(a - 9223372036854775807 - 2) FROM t", "22003"),
        ("SELECT a::SMALLINT + 32767::SMALLINT FROM t", "22003"),
        ("SELECT sum(v) FROM (VALUES (9223372036854775807), (1)) AS s(v)", "22003"),
        ("SELECT 1 / (a - 1)::DOUBLE PRECISION FROM t", "22012"),
        ("SELECT sqrt(-a) FROM t", "2201F"),
        ("INSERT INTO t VALUES (3, 1), (3, 1) ON CONFLICT (a) DO UPDATE SET b = 2", "21000"),
        ("FETCH 1 FROM nothing", "34000"),
        ("ROLLBACK TO nothing", "55000"),
    ] {
        assert_eq!(client.ask(sql).code(), code, "{sql}");
    }
}

/// Programs ask which rule it was, and are told no value.
#[test]
fn errors_name_the_rule_that_was_broken() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask(
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER NOT NULL CONSTRAINT positive CHECK (b > 0), c VARCHAR(2));
         CREATE TABLE u (a INTEGER REFERENCES t, b INTEGER UNIQUE);
         INSERT INTO t VALUES (1, 1, NULL); INSERT INTO u VALUES (1, 1)",
    );
    for (sql, table, column, name) in [
        ("INSERT INTO t VALUES (1, 1, NULL)", "t", "", "t_pkey"),
        ("INSERT INTO u VALUES (1, 1)", "u", "", "u_b_key"),
        ("INSERT INTO t VALUES (2, NULL, NULL)", "t", "b", ""),
        ("INSERT INTO t VALUES (2, 0, NULL)", "t", "", "positive"),
        ("INSERT INTO u VALUES (9, 2)", "u", "", "u_a_fkey"),
        ("DELETE FROM t", "u", "", "u_a_fkey"),
    ] {
        assert_eq!(client.ask(sql).rule, ["public", table, column, name], "{sql}");
    }
    for sql in ["INSERT INTO t VALUES (2, 1, 'abc')", "SELECT nothing"] {
        assert_eq!(client.ask(sql).rule, ["", "", "", ""], "{sql}");
    }
}

#[test]
fn uuids_are_uuids() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask("CREATE TABLE t (u UUID, n TEXT); INSERT INTO t VALUES ('00112233-4455-6677-8899-AABBCCDDEEFF', 'x'), (NULL, 'y')");
    let answer = client.ask("SELECT u, n FROM t ORDER BY n");
    assert_eq!(answer.columns, [("u".to_owned(), 2950), ("n".to_owned(), TEXT)]);
    assert_eq!(answer.texts(), [["00112233-4455-6677-8899-aabbccddeeff", "x"], ["NULL", "y"]]);
    client.send(&parse("", "SELECT u FROM t ORDER BY n", &[]));
    client.send(&bind("", "", &[], 1));
    client.send(&execute("", 0));
    client.send(&sync());
    let bytes: Vec<u8> = (0..16).map(|digit| digit * 0x11).collect();
    assert_eq!(client.answer(None).rows, [[Some(bytes)], [None]]);
}

/// A Bind of values as texts, whose columns are to come as texts.
fn bind_texts(statement: &str, values: &[Option<&str>]) -> Vec<u8> {
    let mut body = format!("\0{statement}\0").into_bytes();
    body.extend([0, 0]);
    body.extend((values.len() as u16).to_be_bytes());
    for value in values {
        body.extend(value.map_or(-1, |value| value.len() as i32).to_be_bytes());
        body.extend(value.unwrap_or_default().as_bytes());
    }
    body.extend([0, 0]);
    message(b'B', &body)
}

/// What a parameter is declared to be it is, whatever stands beside it; and what is left open takes the digits that it has.
#[test]
fn parameters_keep_all_that_they_say() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask(
        "CREATE TABLE acc (id INTEGER PRIMARY KEY, bal NUMERIC(10,2), i INTEGER, d DATE);
         INSERT INTO acc VALUES (1, 100, 10, '2024-02-29'), (2, 77.78, 20, '2024-03-01')",
    );
    let (int4, numeric, timestamp, varchar) = (23, 1700, 1114, 1043);
    let mut ask = |sql: &str, types: &[u32], values: &[Option<&str>]| {
        client.send(&[parse("", sql, types), bind_texts("", values), execute("", 0), sync()].concat());
        let read = client.answer(None);
        assert_eq!(read.error, None, "{sql}");
        (read.texts().concat().join(" "), read.tags.concat())
    };
    for kind in [0, numeric] {
        assert_eq!(ask("SELECT bal * $1 FROM acc WHERE id = 1", &[kind], &[Some("1.005")]).0, "100.50000");
        assert_eq!(ask("SELECT id FROM acc WHERE bal = $1", &[kind], &[Some("77.777")]).0, "");
        assert_eq!(ask("SELECT id FROM acc WHERE bal > $1 ORDER BY id", &[kind], &[Some("77.777")]).0, "1 2");
        assert_eq!(ask("SELECT id FROM acc WHERE bal = $1", &[kind], &[Some("7.778e1")]).0, "2");
        assert_eq!(ask("SELECT id FROM acc WHERE bal IN ($1, $2)", &[kind; 2], &[Some("77.776"), Some("100")]).0, "1");
        assert_eq!(ask("DELETE FROM acc WHERE bal = $1", &[kind], &[Some("77.776")]).1, "DELETE 0");
    }
    assert_eq!(ask("SELECT i / $1 = 2.5 FROM acc WHERE id = 1", &[numeric], &[Some("4")]).0, "t");
    assert_eq!(ask("SELECT i * $1 FROM acc WHERE id = 1", &[numeric], &[Some("1.5")]).0, "15.0");
    assert_eq!(ask("SELECT i / $1 FROM acc WHERE id = 1", &[int4], &[Some("4")]).0, "2");
    assert_eq!(ask("SELECT id FROM acc WHERE i > $1 ORDER BY id", &[numeric], &[Some("9.5")]).0, "1 2");
    assert_eq!(ask("SELECT id FROM acc WHERE d = $1", &[timestamp], &[Some("2024-02-29 10:00")]).0, "");
    assert_eq!(ask("SELECT id FROM acc WHERE d < $1", &[timestamp], &[Some("2024-02-29 10:00")]).0, "1");
    assert_eq!(ask("UPDATE acc SET bal = bal * $1 WHERE id = 1", &[numeric], &[Some("1.005")]).1, "UPDATE 1");
    assert_eq!(ask("SELECT bal FROM acc WHERE id = 1", &[], &[]).0, "100.50");
    assert_eq!(
        ask("SELECT sum(g) FROM generate_series($1, $2) AS s(g)", &[numeric; 2], &[Some("1"), Some("3")]).0,
        "6"
    );
    let wide = Some("100000000000000000000000000000000000000");
    assert_eq!(ask("SELECT id FROM acc WHERE bal < $1 ORDER BY id", &[numeric], &[wide]).0, "1 2");
    for kind in [0, int4, numeric] {
        let page = ask("SELECT id FROM acc ORDER BY id LIMIT $1 OFFSET $2", &[kind; 2], &[Some("1"), Some("1")]);
        assert_eq!(page.0, "2");
    }
    for kind in [0, varchar] {
        assert_eq!(ask("SELECT $1 || $2", &[kind; 2], &[Some("a"), Some("b")]).0, "ab");
    }
    // What it is before it is bound can be asked.
    client.send(&[parse("open", "SELECT $1 || $2", &[]), message(b'D', b"Sopen\0"), sync()].concat());
    assert_eq!(client.answer(None).error, None);
}

/// Clients count changes by what statements are called, however they are written.
#[test]
fn changes_that_answer_rows_are_called_what_they_are() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)");
    for (sql, tag) in [
        ("WITH w AS (SELECT 1) INSERT INTO t SELECT 1, 1 RETURNING id", "INSERT 0 1"),
        ("WITH w AS (SELECT 1) INSERT INTO t VALUES (2, 2)", "INSERT 0 1"),
        ("PREPARE p AS INSERT INTO t VALUES (3, 3) RETURNING id", "PREPARE"),
        ("EXECUTE p", "INSERT 0 1"),
        ("WITH w AS (SELECT 2 AS x) UPDATE t SET v = 9 WHERE id IN (SELECT x FROM w) RETURNING id", "UPDATE 1"),
        ("WITH w AS (SELECT 1) DELETE FROM t WHERE id > 1 RETURNING v", "DELETE 2"),
        ("WITH w AS (SELECT 1 AS x) SELECT * FROM w", "SELECT 1"),
    ] {
        assert_eq!(client.ask(sql).tags, [tag], "{sql}");
    }
}
