//! `sql`: transactions, files, lines of errors.

use super::stage::Stage;

#[test]
fn memory_needs_neither_init_nor_key() {
    let stage = Stage::new();
    let mut command = stage.command(&[":memory:", "SELECT 1 + 1 AS two"]);
    let output = command.env_remove("COUNTERFOIL_KEY_FILE").output().expect("runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "two\n2\n");
    assert_eq!(std::fs::read_dir(stage.folder()).expect("a folder").count(), 1, "only the key is there");
}

#[test]
fn each_command_is_one_transaction() {
    let stage = Stage::with_database();
    stage.good(&["sql", "db", "-c", "CREATE TABLE t (a INT PRIMARY KEY)"]);
    stage.refused(&["sql", "db", "-c", "INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)"], 1, &["t"]);
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "0");
    stage.refused(
        &["sql", "db", "-c", "INSERT INTO t VALUES (1)", "-c", "INSERT INTO t VALUES (2); SELECT nonsense"],
        1,
        &[],
    );
    assert_eq!(stage.ask("SELECT a FROM t"), "1");
    stage.refused(&["sql", "db", "-1", "-c", "INSERT INTO t VALUES (5)", "-c", "INSERT INTO t VALUES (1)"], 1, &[]);
    assert_eq!(stage.ask("SELECT a FROM t"), "1");
    stage.good(&["sql", "db", "-1", "-c", "INSERT INTO t VALUES (5)", "-c", "INSERT INTO t VALUES (6)"]);
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "3");
}

#[test]
fn transactions_of_ones_own_are_left_alone() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT); BEGIN; INSERT INTO t VALUES (1); ROLLBACK; INSERT INTO t VALUES (2)"]);
    assert_eq!(stage.ask("SELECT a FROM t"), "2");
    let ended = stage.run(&["db", "BEGIN; INSERT INTO t VALUES (3)"]);
    assert_eq!(ended.code, 0);
    assert!(ended.err.contains("rolled back"), "{}", ended.err);
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "1");
}

#[test]
fn files_commit_per_statement_and_name_the_line() {
    let stage = Stage::with_database();
    let script = "CREATE TABLE t (a INT PRIMARY KEY);\n-- a comment; with a semicolon\nINSERT INTO t VALUES (1);\n\nINSERT INTO t\n  VALUES (1);\nINSERT INTO t VALUES (2);\n";
    stage.write("s.sql", script);
    stage.refused(&["sql", "db", "-f", "s.sql"], 1, &["s.sql line 5"]);
    assert_eq!(stage.ask("SELECT a FROM t"), "1");

    let ended = stage.run_with_input(&["db"], "INSERT INTO t VALUES (3);\nSELEC 1;\nINSERT INTO t VALUES (4);");
    assert_eq!(ended.code, 1);
    ended.says(&["standard input line 2"]);
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "2");
    stage.write("marked.sql", "\u{feff}SELECT 7");
    assert_eq!(stage.good(&["sql", "db", "-f", "marked.sql", "--no-header"]), "7\n");
    stage.refused(&["sql", "db", "-f", "absent.sql"], 1, &["absent.sql"]);
    stage.write("latin", b"SELECT 1;\nSELECT '\xE4';\n");
    stage.refused(&["sql", "db", "-f", "latin"], 1, &["UTF-8", "line 2"]);
}

#[test]
fn rows_of_a_copy_stand_in_the_script() {
    let stage = Stage::with_database();
    let script = "CREATE TABLE t (a INT, b TEXT);\nCOPY t FROM STDIN;\n1\tone; two\n2\t\\N\n\\.\n\
                  COPY t (b, a) FROM STDIN WITH (FORMAT csv);\n\"x\ny\",3\n\\.\nSELECT count(*), count(b) FROM t;\n";
    stage.write("s.sql", script);
    assert_eq!(stage.good(&["sql", "db", "-f", "s.sql", "--no-header"]), "3,2\n");
    let ended = stage.run_with_input(&["db"], "SELECT 1;\nCOPY t FROM STDIN;\n4\tfour\nfive\tfive\n\\.\nSELECT 2;");
    assert_eq!(ended.code, 1);
    ended.says(&["standard input line 4"]);
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "3");
}

#[test]
fn long_input_runs_as_it_comes() {
    let stage = Stage::with_database();
    let mut script = String::from("CREATE TABLE t (a INT, b TEXT);\n");
    for i in 0..3 {
        let rows: Vec<String> = (0..20_000).map(|j| format!("({}, 'a;b''c')", i * 20_000 + j)).collect();
        script.push_str(&format!("INSERT INTO t VALUES {};\n", rows.join(",\n")));
    }
    script.push_str("SELECT nonsense;");
    let ended = stage.run_with_input(&["db"], &script);
    assert_eq!(ended.code, 1);
    ended.says(&["standard input line 60002"]);
    assert_eq!(stage.ask("SELECT count(*), min(b) FROM t"), "60000,a;b'c");
}

#[test]
fn commands_and_files_run_in_their_order() {
    let stage = Stage::with_database();
    stage.write("s.sql", "INSERT INTO t VALUES (1);");
    stage.good(&["sql", "db", "-c", "CREATE TABLE t (a INT)", "-f", "s.sql", "-c", "UPDATE t SET a = a + 1"]);
    assert_eq!(stage.ask("SELECT a FROM t"), "2");
}

#[test]
fn read_only_refuses_to_write() {
    let stage = Stage::with_database();
    stage.refused(&["sql", "db", "--read-only", "CREATE TABLE t (a INT)"], 1, &["reading only"]);
    assert_eq!(stage.good(&["sql", "db", "--read-only", "SELECT 1", "--no-header"]), "1\n");
}

#[test]
fn sql_errors_are_one_line_and_exit_1() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT NOT NULL)"]);
    for sql in [
        "SELEC 1",
        "SELECT * FROM nowhere",
        "SELECT nothing FROM t",
        "INSERT INTO t VALUES (NULL)",
        "SELECT 1/0",
        "INSERT INTO t VALUES ('x')",
        "DROP TABLE nowhere",
        "SELECT 'never ends",
        "SELECT (",
        "CREATE TABLE t (a INT)",
    ] {
        stage.refused(&["db", sql], 1, &[]);
    }
    assert_eq!(stage.ask("SELECT count(*) FROM t"), "0");
}

#[test]
fn errors_say_where_once_and_what_to_do() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t (a INT)"]);
    for (sql, error) in [
        ("SELEC 1", "expected an SQL statement, found SELEC (line 1, column 1): check what stands there"),
        ("SELECT 'é'; SELEC 1", "expected an SQL statement, found SELEC (line 1, column 13): check what stands there"),
        ("SELECT 1;\n  SELEC 1", "expected an SQL statement, found SELEC (line 2, column 3): check what stands there"),
        ("SELECT * FROM nowhere", "table 'nowhere' not found: SHOW TABLES lists what there is"),
        ("SELECT a / 0 FROM (VALUES (1)) v(a)", "division by zero: divide by NULLIF(..., 0), which gives NULL there"),
        (
            "CREATE TABLE t (a INT)",
            "there is a table, view or index t already: choose another name, or DROP that one first",
        ),
        ("LISTEN x", "not supported: LISTEN"),
        ("CREATE TABLE u (b INT) INHERITS (t)", "not supported: INHERITS: tables have no parents"),
        (
            "CREATE TABLE u (LIKE t)",
            "not supported: CREATE TABLE ... LIKE: CREATE TABLE ... AS SELECT * FROM it LIMIT 0 has its columns",
        ),
    ] {
        assert_eq!(stage.refused(&["db", sql], 1, &[]), format!("error: {error}\n"), "{sql}");
    }
    for (script, error) in [
        ("SELECT 1; SELEC 1;", "found SELEC (standard input line 1, column 11): check what stands there"),
        ("SELECT 1;\nSELECT *\n  FROM 7;", "(standard input line 3, column 8): check what stands there"),
        ("SELECT 1;\n\nSELECT * FROM nowhere;", "(standard input line 3): SHOW TABLES lists what there is"),
        // A row of a COPY has the line of the row.
        ("SELECT 1;\nCOPY t\nFROM STDIN;\n4\n5\t6\n", "2 fields for 1 columns (standard input line 5)"),
        ("COPY t FROM STDIN;\n4\nx\n", "a text is not a valid integer (standard input line 3, column a)"),
    ] {
        let ended = stage.run_with_input(&["db"], script);
        assert_eq!(ended.code, 1, "{script}");
        assert!(ended.err.trim_end().ends_with(error), "{script}: {}", ended.err);
    }
}

#[test]
fn incidents_are_a_table() {
    let stage = Stage::with_database();
    assert_eq!(stage.ask("SELECT count(*) FROM counterfoil.incidents"), "0");
}
