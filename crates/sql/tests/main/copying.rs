//! COPY.

use counterfoil_sql::Outcome;

use crate::database::Database;

#[test]
fn rows_go_out_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut database = Database::after(
        "CREATE TABLE t (a INTEGER, b TEXT, c DATE);
         INSERT INTO t VALUES (1, 'x, \"y\"', '2024-01-01'), (2, NULL, NULL), (3, '', NULL)",
    );
    database.expect(&[
        ("COPY t TO STDOUT", "1\tx, \"y\"\t2024-01-01\n2\t\\N\t\\N\n3\t\t\\N"),
        ("COPY t TO STDOUT (FORMAT csv, HEADER)", "a,b,c\n1,\"x, \"\"y\"\"\",2024-01-01\n2,,\n3,\"\","),
        ("COPY (SELECT a FROM t WHERE a > 1) TO STDOUT WITH CSV", "2\n3"),
    ]);
    for file in ["t.csv", "t.txt"] {
        let path = folder.path().join(file);
        let path = path.display();
        assert_eq!(database.ask(&format!("COPY t TO '{path}'")), "COPY 3");
        assert_eq!(database.ask("CREATE TABLE u (a INTEGER, b TEXT, c DATE)"), "CREATE TABLE");
        assert_eq!(database.ask(&format!("COPY u FROM '{path}'")), "COPY 3");
        assert_eq!(database.ask("SELECT * FROM u EXCEPT SELECT * FROM t"), "");
        assert_eq!(database.ask("SELECT count(*) FROM u WHERE b IS NULL"), "1");
        assert_eq!(database.ask("DROP TABLE u"), "DROP TABLE");
    }
}

#[test]
fn a_bad_line_is_named_and_nothing_stays() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER, b TEXT DEFAULT 'd')");
    let copy =
        |database: &mut Database, sql: &str, text: &str| match database.session.copy_in(sql, &mut text.as_bytes()) {
            Ok(Outcome::Count { tag, rows }) => format!("{tag} {rows}"),
            Ok(other) => format!("{other:?}"),
            Err(error) => format!("error: {error}"),
        };
    let sql = "COPY t (a) FROM STDIN";
    assert_eq!(copy(&mut database, sql, "1\n2\n"), "COPY 2");
    assert_eq!(copy(&mut database, sql, "3\nx\n"), "error: a text is not a valid integer (column a) (line 2)");
    assert_eq!(copy(&mut database, sql, "3\t4\n"), "error: 2 fields for 1 columns (line 1)");
    assert_eq!(database.ask("SELECT * FROM t ORDER BY a"), "1|d\n2|d");
    // A file that the statement names has its own lines.
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "3\nx\n").unwrap();
    let name = file.path().display();
    let expected = format!("error: a text is not a valid integer (column a) ({name} line 2)");
    assert_eq!(database.ask(&format!("COPY t (a) FROM '{name}'")), expected);
    let told = |done: &str| {
        format!("error: the file cannot be {done}: no such file or directory (/nowhere/x): check the name")
    };
    assert_eq!(database.ask("COPY t FROM '/nowhere/x'"), told("read"));
    assert_eq!(database.ask("COPY t TO '/nowhere/x'"), told("written"));
    assert!(database.ask("COPY t FROM STDIN").starts_with("error: "));
}

#[test]
fn options_are_on_and_off_in_all_of_postgresqls_words() {
    let mut database = Database::after("CREATE TABLE t (freeze INTEGER)");
    for (sql, text) in [
        ("COPY t FROM STDIN WITH (FREEZE on)", "1\n2\n"),
        ("COPY t FROM STDIN (FORMAT csv, HEADER on, FREEZE off)", "freeze\n1\n2\n"),
        ("COPY t FROM STDIN (FORMAT csv, HEADER 1)", "freeze\n1\n2\n"),
        ("COPY t (freeze) FROM STDIN (FORMAT csv, HEADER 0)", "1\n2\n"),
    ] {
        let copied =
            database.session.copy_in(sql, &mut text.as_bytes()).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!(matches!(copied, Outcome::Count { tag: "COPY", rows: 2 }), "{sql}: {copied:?}");
    }
}

#[test]
fn a_quote_is_doubled_unless_it_is_said_what_stands_before_it() {
    let mut database = Database::after(
        "CREATE TABLE t (a TEXT, b BOOLEAN); INSERT INTO t VALUES ('it''s, \"q\"', true), ('b\\c', false), (NULL, NULL)",
    );
    for (options, written) in [
        ("(FORMAT csv)", "\"it's, \"\"q\"\"\",t\nb\\c,f\n,"),
        ("(FORMAT csv, QUOTE '''')", "'it''s, \"q\"',t\nb\\c,f\n,"),
        ("(FORMAT csv, ESCAPE '\\')", "\"it's, \\\"q\\\"\",t\nb\\c,f\n,"),
        ("csv quote '|'", "|it's, \"q\"|,t\nb\\c,f\n,"),
        ("(FORMAT text)", "it's, \"q\"\tt\nb\\\\c\tf\n\\N\t\\N"),
    ] {
        database.expect(&[(&format!("COPY t TO STDOUT {options}"), written)]);
        database.expect(&[("CREATE TABLE u (a TEXT, b BOOLEAN)", "CREATE TABLE")]);
        let sql = format!("COPY u FROM STDIN {options}");
        let copied = database.session.copy_in(&sql, &mut format!("{written}\n").as_bytes());
        assert!(matches!(copied, Ok(Outcome::Count { tag: "COPY", rows: 3 })), "{sql}: {copied:?}");
        database.expect(&[
            ("SELECT count(*) FROM t JOIN u ON t.a = u.a AND t.b = u.b", "2"),
            ("SELECT count(*) FROM u WHERE a IS NULL AND b IS NULL", "1"),
            ("DROP TABLE u", "DROP TABLE"),
        ]);
    }
    assert!(database.ask("COPY t TO STDOUT (FORMAT csv, DELIMITER '\\')").starts_with("error"));
}
