//! A child that inherited an open database by `fork`: a real child of a real fork. The test program runs itself again for
//! it, because a child has the thread that forked and no other, and inherits what every other test holds.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use counterfoil::{Connection, Counter, Database, Error, Key, Kind, Options, Transaction};
use fork::{Fork, fork, waitpid_nohang};

fn options(folder: &std::path::Path) -> Options {
    let counter = Counter::File(folder.join("state"));
    Options::path(folder.join("db")).key(Key::bytes(&[7; 32])).counter(counter).lock_timeout(Duration::ZERO)
}

fn misuse<T>(result: Result<T, Error>) {
    assert_eq!(result.err().map(|error| error.kind()), Some(Kind::Misuse));
}

/// Does something in a child; whether it ended in time and nothing in it panicked.
fn in_child(work: impl FnOnce()) -> bool {
    let child = match fork().expect("forks") {
        Fork::Child => {
            let done = std::panic::catch_unwind(AssertUnwindSafe(work));
            std::process::exit(i32::from(done.is_err()));
        }
        Fork::Parent(child) => child,
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        if let Some(status) = waitpid_nohang(child).expect("asked") {
            return status == 0;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// What the child tries with a transaction that its parent had begun, the writer on loan.
fn try_transaction(mut transaction: Transaction<'_>) {
    misuse(transaction.execute("INSERT INTO t VALUES (2)", &[]));
    misuse(transaction.commit());
}

fn try_all(database: Database, connection: &mut Connection) {
    misuse(connection.execute("INSERT INTO t VALUES (3)", &[]));
    misuse(connection.query("SELECT * FROM t", &[]));
    misuse(connection.prepare("SELECT 1").map(drop));
    misuse(connection.transaction().map(drop));
    misuse(database.connect().map(drop));
    misuse(database.records().put("name", b"value"));
    misuse(database.records().get("name"));
    misuse(database.relation("t").map(drop));
    misuse(database.verify(&mut |_, _, _| {}).map(drop));
    misuse(database.backup("never-made", &mut |_, _| true));
    database.close().expect("nothing of it is the child's to close");
}

/// Set in the process that forks.
const ALONE: &str = "COUNTERFOIL_TEST_FORK";

#[test]
fn a_forked_child_is_refused_before_it_seals() {
    let program = std::env::current_exe().expect("this test has a program");
    let mut command = std::process::Command::new(program);
    let command = command.args(["forked::in_a_process_of_its_own", "--exact", "--nocapture"]).env(ALONE, "1");
    let ended = command.output().expect("runs");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn in_a_process_of_its_own() {
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let database = Database::create(options(folder.path())).expect("made");
    let mut connection = database.connect().expect("connects");
    connection.execute("CREATE TABLE t (a BIGINT)", &[]).expect("runs");
    let file = || std::fs::read(folder.path().join("db")).expect("reads");
    let before = file();
    {
        // `Option`s here and below, because what the child takes away the parent keeps.
        let mut transaction = Some(connection.transaction().expect("begins"));
        let begun = transaction.as_mut().expect("begun");
        begun.execute("INSERT INTO t VALUES (1)", &[]).expect("runs");
        assert!(in_child(|| try_transaction(transaction.take().expect("begun"))));
        transaction.take().expect("the parent has its own").commit().expect("commits");
    }
    let after = file();
    assert!(before != after);
    let (mut database, mut connection) = (Some(database), Some(connection));
    assert!(in_child(|| {
        let mut connection = connection.take().expect("open");
        try_all(database.take().expect("open"), &mut connection);
    }));
    assert!(after == file(), "the child wrote");

    // What the child let go of is still the parent's: no other opening may write.
    let other = Database::open(options(folder.path())).expect("opens");
    let refused = other.connect().expect("connects").execute("INSERT INTO t VALUES (4)", &[]);
    assert_eq!(refused.err().map(|error| error.kind()), Some(Kind::Locked));
    let (database, mut connection) = (database.expect("still open"), connection.expect("still open"));
    connection.execute("INSERT INTO t VALUES (5)", &[]).expect("the parent goes on");
    drop(connection);
    database.close().expect("closes");
    other.connect().expect("connects").execute("INSERT INTO t VALUES (4)", &[]).expect("free");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2, "db and state");
}
