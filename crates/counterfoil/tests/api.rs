//! The Rust face: databases, connections, transactions, records, relations.

use std::time::Duration;

use counterfoil::arrow::array::RecordBatch;
use counterfoil::{Connection, Counter, Database, Error, Key, Kind, Options, Outcome, Value};
use tempfile::TempDir;

fn options(folder: &TempDir) -> Options {
    let key = Key::from_hex(&"0123456789abcdef".repeat(4)).expect("a key");
    Options::path(folder.path().join("db")).key(key).counter(Counter::File(folder.path().join("state")))
}

fn number(database: &Database, sql: &str) -> i64 {
    use counterfoil::arrow::array::AsArray;
    use counterfoil::arrow::datatypes::Int64Type;
    let mut connection = database.connect().expect("connects");
    let rows = connection.query(sql, &[]).expect("runs");
    rows.map(|batch| batch.expect("reads").column(0).as_primitive::<Int64Type>().value(0)).next().expect("a row")
}

fn kind<T>(result: Result<T, counterfoil::Error>) -> Option<Kind> {
    result.err().map(|error| error.kind())
}

#[test]
fn a_database_is_made_opened_and_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = Database::create(options(&folder)).expect("made");
    assert_eq!(kind(Database::create(options(&folder))), Some(Kind::Misuse));
    let mut connection = database.connect().expect("connects");
    connection.execute("CREATE TABLE t (a BIGINT PRIMARY KEY, b TEXT)", &[]).expect("runs");
    let mut insert = connection.prepare("INSERT INTO t VALUES ($1, $2)").expect("parses");
    assert_eq!(insert.parameter_count(), 2);
    for row in 0..10_i64 {
        assert_eq!(insert.execute(&[row.into(), "x".into()]).expect("runs"), 1);
    }
    assert_eq!(kind(connection.execute("INSERT INTO t VALUES (1, '')", &[])), Some(Kind::Constraint));
    assert_eq!(kind(connection.query("DELETE FROM t WHERE false", &[])), Some(Kind::Misuse));
    let outcomes = connection.run("SELECT 1; DELETE FROM t WHERE a > 7; CREATE INDEX ON t (b)", &[]).expect("runs");
    assert!(matches!(outcomes[..], [Outcome::Rows(_), Outcome::Count { tag: "DELETE", rows: 2 }, Outcome::Done(_)]));
    drop(outcomes);
    drop(connection);
    database.close().expect("closes");
    let database = Database::open(options(&folder)).expect("opens");
    assert_eq!(number(&database, "SELECT count(*) FROM t"), 8);
}

#[test]
fn a_transaction_is_all_or_nothing() {
    let database = Database::create(Options::memory()).expect("made");
    let mut connection = database.connect().expect("connects");
    connection.execute("CREATE TABLE t (a BIGINT PRIMARY KEY)", &[]).expect("runs");
    {
        let mut transaction = connection.transaction().expect("begins");
        transaction.execute("INSERT INTO t VALUES (1)", &[]).expect("runs");
        assert_eq!(number(&database, "SELECT count(*) FROM t"), 0, "others do not see it");
    }
    assert_eq!(number(&database, "SELECT count(*) FROM t"), 0, "dropped is rolled back");
    let mut transaction = connection.transaction().expect("begins");
    transaction.execute("INSERT INTO t VALUES (1)", &[]).expect("runs");
    transaction.commit().expect("commits");
    assert_eq!(number(&database, "SELECT count(*) FROM t"), 1);
    let mut transaction = connection.transaction().expect("begins");
    assert_eq!(kind(transaction.execute("INSERT INTO t VALUES (1)", &[])), Some(Kind::Constraint));
    assert_eq!(kind(transaction.commit()), Some(Kind::Misuse));
    assert_eq!(number(&database, "SELECT count(*) FROM t"), 1);
}

#[test]
fn the_library_touches_no_state_directory_unless_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = || Key::bytes(&[7; 32]);
    let path = folder.path().join("db");
    drop(Database::create(Options::path(&path).key(key())).expect("made"));
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);

    let path = folder.path().join("counted");
    let counter = || Counter::File(folder.path().join("state"));
    drop(Database::create(Options::path(&path).key(key()).counter(counter())).expect("made"));
    let notes = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = notes.clone();
    let without =
        Options::path(&path).key(key()).on_note(move |note| heard.lock().expect("whole").push(note.to_owned()));
    let database = Database::open(without).expect("opens");
    assert_eq!(*notes.lock().expect("whole"), ["freshness not checked"]);
    let mut connection = database.connect().expect("connects");
    assert_eq!(kind(connection.execute("CREATE TABLE t (a INT)", &[])), Some(Kind::Misuse));
    drop(connection);
    assert_eq!(kind(Database::open(Options::path(&path).key(key()).require_counter(true))), Some(Kind::CounterLost));
}

#[test]
fn records_and_relations_need_no_sql() {
    let database = Database::create(Options::memory()).expect("made");
    let records = database.records();
    records.put("a", b"1").expect("put");
    records.put("b", b"").expect("put");
    assert_eq!(records.get("a").expect("read").as_deref(), Some(&b"1"[..]));
    assert_eq!(records.list("").expect("read"), [("a".to_owned(), 1), ("b".to_owned(), 0)]);
    assert_eq!(records.delete(&["a", "a", "c"]).expect("deleted"), 1);
    assert_eq!(kind(records.put("", b"")), Some(Kind::Input));

    database.connect().expect("connects").execute("CREATE TABLE t (b TEXT, a BIGINT PRIMARY KEY)", &[]).expect("runs");
    let relation = database.relation("t").expect("there");
    assert_eq!(kind(database.relation("u").map(drop)), Some(Kind::NotFound));
    let mut connection = database.connect().expect("a connection");
    connection.execute("CREATE CLOUD a OPTIONS (url 'memory:api')", &[]).expect("a cloud");
    let dispersed = "CREATE TABLE away (a BIGINT) WITH (engine = 'dispersed', clouds = 'a')";
    connection.execute(dispersed, &[]).expect("a table whose rows are elsewhere");
    assert_eq!(kind(database.relation("away").map(drop)), Some(Kind::Misuse));
    let columns: Vec<String> = relation.columns().into_iter().map(|column| column.name).collect();
    assert_eq!(columns, ["b", "a"]);
    relation.insert(&["x".into(), 1.into()]).expect("inserted");
    relation.insert(&[Value::Null, 2.into()]).expect("inserted");
    assert_eq!(kind(relation.insert(&["x".into(), 1.into()])), Some(Kind::Constraint));
    assert_eq!(relation.count().expect("read"), 2);
    assert_eq!(relation.get(&[1.into()]).expect("read").map(|batch| batch.num_rows()), Some(1));
    assert!(relation.get(&[3.into()]).expect("read").is_none());
    let batches: Vec<_> = relation.rows().expect("runs").collect::<Result<_, _>>().expect("reads");
    assert!(relation.delete(&[1.into()]).expect("deleted"));
    assert_eq!(kind(relation.load(batches.clone())), Some(Kind::Constraint), "row 2 is still there");
    assert!(relation.delete(&[2.into()]).expect("deleted"));
    assert_eq!(relation.load(batches).expect("loaded"), 2);
}

#[test]
fn a_second_opening_waits_for_the_first_to_close() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = Database::create(options(&folder)).expect("made");
    first.connect().expect("connects").execute("CREATE TABLE t (a BIGINT)", &[]).expect("runs");
    let second = Database::open(options(&folder).lock_timeout(Duration::from_millis(50))).expect("opens");
    let mut connection = second.connect().expect("connects");
    assert_eq!(kind(connection.execute("INSERT INTO t VALUES (1)", &[])), Some(Kind::Locked));
    assert_eq!(number(&second, "SELECT count(*) FROM t"), 0);
    first.connect().expect("connects").execute("INSERT INTO t VALUES (1)", &[]).expect("runs");
    assert_eq!(number(&second, "SELECT count(*) FROM t"), 1, "it follows the first one's commits");
    first.close().expect("closes");
    connection.execute("INSERT INTO t VALUES (2)", &[]).expect("runs");
    assert_eq!(number(&second, "SELECT count(*) FROM t"), 2);
}

/// Rewrites the whole table, so that the space of older commits is wanted again and again.
fn churn(database: &Database, rounds: usize) {
    let mut connection = database.connect().expect("connects");
    for round in 0..rounds {
        connection.execute("DELETE FROM t", &[]).expect("runs");
        let fill = format!("INSERT INTO t SELECT i, md5((i + {round})::text) FROM generate_series(1, 3000) s(i)");
        connection.execute(&fill, &[]).expect("runs");
        connection.execute("VACUUM", &[]).expect("runs");
    }
}

#[test]
fn a_pinned_snapshot_is_kept_and_an_old_one_says_so() {
    for (age, must_live) in [(Duration::from_secs(300), true), (Duration::ZERO, false)] {
        let folder = tempfile::tempdir().expect("a folder");
        let writer = Database::create(options(&folder).snapshot_max_age(age)).expect("made");
        let mut connection = writer.connect().expect("connects");
        connection.execute("CREATE TABLE t (a BIGINT, b TEXT)", &[]).expect("runs");
        drop(connection);
        churn(&writer, 2);
        let reader = Database::open(options(&folder).snapshot_max_age(age).cache_bytes(0)).expect("opens");
        let mut reading = reader.connect().expect("connects");
        reading.execute("BEGIN ISOLATION LEVEL REPEATABLE READ", &[]).expect("begins");
        let sql = "SELECT max(b) FROM t";
        let text = |connection: &mut counterfoil::Connection| -> Result<String, counterfoil::Error> {
            use counterfoil::arrow::array::AsArray;
            let batches: Vec<_> = connection.query(sql, &[])?.collect::<Result<_, _>>()?;
            let mut out = String::new();
            counterfoil::write_cell(&mut out, batches[0].column(0).as_ref(), 0)?;
            let _ = batches[0].column(0).as_string_view_opt();
            Ok(out)
        };
        let before = text(&mut reading).expect("reads");
        churn(&writer, 12);
        match text(&mut reading) {
            Ok(after) => assert_eq!(after, before),
            Err(error) => {
                assert!(!must_live, "{error}");
                assert_eq!(error.kind(), Kind::SnapshotTooOld, "{error}");
            }
        }
        let _ = reading.execute("ROLLBACK", &[]);
        assert_eq!(number(&reader, "SELECT count(*) FROM t"), 3000, "a new snapshot reads");
    }
}

#[test]
fn a_writer_that_goes_quiet_leaves_nothing_uncounted() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = Database::create(options(&folder)).expect("made");
    let mut connection = database.connect().expect("connects");
    connection.run("CREATE TABLE t (a BIGINT); INSERT INTO t VALUES (1)", &[]).expect("runs");
    let uncounted = || {
        let seen = database.inspect().expect("inspects");
        seen.counter_value.is_none_or(|value| value < seen.version)
    };
    let begun = std::time::Instant::now();
    while uncounted() {
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody counts");
        std::thread::sleep(Duration::from_millis(50));
    }
    // Another process would find the image counted too, were this one killed now.
    connection.run("BEGIN; INSERT INTO t VALUES (2)", &[]).expect("runs");
    connection.run("COMMIT", &[]).expect("runs");
    drop(connection);
    database.close().expect("closes");
}

#[test]
fn interrupting_ends_the_statement_alone() {
    let database = Database::create(Options::memory()).expect("made");
    let mut connection = database.connect().expect("connects");
    let interrupt = connection.interrupt();
    let waker = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        interrupt.raise();
    });
    let sql = "SELECT count(*) FROM generate_series(1, 100000) a(i), generate_series(1, 1000000) b(j) WHERE i + j = -1";
    let result = connection.execute(sql, &[]);
    waker.join().expect("woke");
    assert_eq!(kind(result), Some(Kind::Interrupted));
    assert_eq!(number(&database, "SELECT 7"), 7);
}

/// The files that this process has open and that have no name any more, with what is in them.
fn unnamed_files(folder: &std::path::Path) -> Vec<Vec<u8>> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let entries = entries.flatten().map(|entry| entry.path());
    let ours = entries.filter(|path| std::fs::read_link(path).is_ok_and(|target| target.starts_with(folder)));
    ours.filter_map(|path| std::fs::read(path).ok()).collect()
}

#[test]
fn a_database_in_little_memory_answers_or_says_what_it_needs() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = || Key::bytes(&[7; 32]);
    let options = |ram| Options::path(folder.path().join("db")).key(key()).counter(Counter::None).ram(ram);
    assert_eq!(kind(Database::create(options(1000))), Some(Kind::Misuse));
    let database = Database::create(options(64 << 10)).expect("made");
    let mut connection = database.connect().expect("connects");
    let fill = "CREATE TABLE t AS SELECT i, md5(i::text) AS b FROM generate_series(1, 20000) s(i)";
    connection.execute(fill, &[]).expect("runs");
    let query = "SELECT b, count(*) FROM t GROUP BY b ORDER BY b DESC";
    let asked = |connection: &mut Connection| -> Result<Vec<_>, Error> { connection.query(query, &[])?.collect() };
    let rows: usize = asked(&mut connection).expect("answered").iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, 20_000);
    let sorted = connection.query("SELECT i FROM t ORDER BY i % 7, i", &[]).expect("runs");
    assert_eq!(sorted.map(|rows| rows.expect("answered").num_rows()).sum::<usize>(), 20_000);
    let refused = connection.query("SELECT unnest(array_agg(i)) FROM t", &[]).map(drop).expect_err("too much");
    assert!(refused.kind() == Kind::Full && refused.to_string().contains("--ram 64M"), "{refused}");
    drop(connection);
    drop(database);
    assert_eq!(kind(Database::open(options(65_535))), Some(Kind::Misuse));
    let mut connection = Database::open(options(64 << 20)).expect("opens").connect().expect("connects");
    connection.query("SELECT i FROM t ORDER BY i % 7", &[]).expect("runs");
}

#[test]
fn what_outgrows_memory_is_spilled_sealed_and_without_a_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let spills = folder.path().canonicalize().expect("a name").join("spills");
    std::fs::create_dir(&spills).expect("a folder");
    let options = || Options::memory().memory_bytes(24 << 20);
    let fill = "CREATE TABLE t AS SELECT 'tHe-MaRkEr' || md5(i::text) AS b FROM generate_series(1, 1000000) s(i)";
    let distinct = "SELECT b, count(*) FROM t GROUP BY b";

    let database = Database::create(options().spill_folder(None)).expect("made");
    let mut connection = database.connect().expect("connects");
    connection.execute(fill, &[]).expect("runs");
    let refused = connection.query(distinct, &[]).and_then(|rows| rows.collect::<Result<Vec<_>, _>>());
    assert_eq!(kind(refused), Some(Kind::Full), "so it does not fit");

    let database = Database::create(options().spill_folder(Some(spills.clone()))).expect("made");
    let mut connection = database.connect().expect("connects");
    connection.execute(fill, &[]).expect("runs");
    let (mut rows, mut spilled) = (0, Vec::new());
    for batch in connection.query(distinct, &[]).expect("runs") {
        rows += batch.expect("grouped").num_rows();
        if spilled.is_empty() {
            spilled = unnamed_files(&spills);
        }
    }
    assert_eq!(rows, 1_000_000);
    assert!(spilled.iter().any(|bytes| bytes.len() > 1 << 20), "nothing was spilled");
    for bytes in spilled {
        assert!(!bytes.windows(10).any(|part| part == b"tHe-MaRkEr"), "a spill holds the marker");
    }
    assert_eq!(std::fs::read_dir(&spills).expect("a folder").count(), 0);
}

/// The counter's folder goes wrong while the database is open: that is a fault of the machine, told in words.
#[test]
fn a_counter_that_fails_meanwhile_says_what_and_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    let options =
        || Options::path(folder.path().join("db")).key(Key::bytes(&[7; 32])).counter(Counter::File(state.clone()));
    let database = Database::create(options()).expect("made");
    database.connect().expect("connects").execute("CREATE TABLE t (a INT)", &[]).expect("runs");
    let counter = Counter::show(options()).expect("read").path.expect("a file");
    let kept = folder.path().join("kept");
    std::fs::rename(&counter, &kept).expect("renamed");
    std::fs::create_dir(&counter).expect("made");
    let error = database.close().expect_err("the last group is not counted");
    let text = error.to_string();
    assert_eq!(error.kind(), Kind::Device, "{text}");
    assert!(text.contains("counter could not be read: is a directory") && text.contains("counter show"), "{text}");
    assert!(!text.contains("error 21"), "{text}");
    // What was acknowledged is there when it is well again.
    std::fs::remove_dir(&counter).expect("removed");
    std::fs::rename(&kept, &counter).expect("renamed");
    let database = Database::open(options()).expect("opens");
    database.connect().expect("connects").execute("INSERT INTO t VALUES (1)", &[]).expect("runs");
}

#[test]
fn records_are_deleted_in_a_transaction() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = Database::create(options(&folder)).expect("made");
    let records = database.records();
    let mut connection = database.connect().expect("connects");
    for name in ["a", "b", "c"] {
        connection.put_record(name, b"1").expect("put");
    }
    assert_eq!(connection.delete_records(&["a", "a", "none"]).expect("deleted"), 1, "one of its own");
    assert_eq!(records.get("a").expect("read"), None);
    connection.execute("BEGIN", &[]).expect("begins");
    assert_eq!(connection.delete_records(&["b", "none", "b"]).expect("deleted"), 1);
    assert_eq!(connection.record("b").expect("read"), None);
    assert!(records.get("b").expect("read").is_some(), "nobody else sees it yet");
    connection.execute("SAVEPOINT s", &[]).expect("marks");
    assert_eq!(connection.delete_records(&["c"]).expect("deleted"), 1);
    connection.execute("ROLLBACK TO SAVEPOINT s; COMMIT", &[]).expect("commits");
    assert_eq!(records.list("").expect("read"), [("c".to_owned(), 1)]);
    connection.execute("BEGIN", &[]).expect("begins");
    connection.delete_records(&["c"]).expect("deleted");
    connection.execute("ROLLBACK", &[]).expect("rolls back");
    connection.execute("BEGIN READ ONLY", &[]).expect("begins");
    assert_eq!(kind(connection.delete_records(&["c"])), Some(Kind::Misuse));
    assert_eq!(kind(connection.delete_records(&["c"])), Some(Kind::Misuse), "the transaction has failed");
    connection.execute("ROLLBACK", &[]).expect("rolls back");
    assert_eq!(records.list("").expect("read"), [("c".to_owned(), 1)]);
}

/// Whoever waits is asked on its own thread, and may use another database meanwhile.
#[test]
fn whoever_waits_can_call_it_off() {
    let database = Database::create(Options::memory()).expect("made");
    let other = Database::create(Options::memory()).expect("made");
    let mut connection = database.connect().expect("connects");
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (count, this) = (asked.clone(), std::thread::current().id());
    connection.ask_while_waiting(move || {
        assert_eq!(std::thread::current().id(), this);
        assert_eq!(number(&other, "SELECT 7"), 7);
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= 2
    });
    let endless =
        "SELECT count(*) FROM generate_series(1, 100000) a(i), generate_series(1, 1000000) b(j) WHERE i + j = -1";
    assert_eq!(kind(connection.execute(endless, &[])), Some(Kind::Interrupted));
    assert_eq!(asked.swap(0, std::sync::atomic::Ordering::Relaxed), 3);
    // A text of many short statements is called off between two of them, and what is open has failed then.
    let script = "INSERT INTO t VALUES (1);".repeat(10);
    connection.execute("CREATE TABLE t (a INTEGER)", &[]).expect("runs");
    assert_eq!(kind(connection.execute(&format!("BEGIN; {script}"), &[])), Some(Kind::Interrupted));
    assert_eq!(connection.transaction_state(), counterfoil::TransactionState::Failed);
    connection.execute("ROLLBACK", &[]).expect("rolls back");
    assert_eq!(number(&database, "SELECT count(*) FROM t"), 0);
    // So is a load, between two batches.
    let batch = counterfoil::arrow::array::RecordBatch::try_from_iter([(
        "a",
        std::sync::Arc::new(counterfoil::arrow::array::Int32Array::from(vec![1; 100_000])) as _,
    )]);
    let batch = batch.expect("a batch");
    let mut endless = std::iter::repeat_with(|| Ok::<_, counterfoil::Error>(batch.clone()));
    assert_eq!(kind(connection.load("t", &["a".to_owned()], &mut endless)), Some(Kind::Interrupted));
    assert_eq!(number(&database, "SELECT count(*) FROM t"), 0);
}
