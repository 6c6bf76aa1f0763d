//! Published tables in queries, as programs meet them.

use std::fs;
use std::path::Path;

use counterfoil::{Connection, Counter, Database, Key, Kind, Options, Role};

use super::published::{open, owner_of};

/// Rows of the published table.
const ROWS: usize = 2000;

/// The owner's database, with a table that is published in `site`, and the owner's name.
fn published(folder: &Path) -> (Database, String) {
    let database = open(folder);
    let mut connection = database.connect().expect("a connection");
    let fill = "CREATE TABLE t (n INTEGER PRIMARY KEY, s TEXT); INSERT INTO t SELECT n, 'text ' || n FROM";
    connection.execute(&format!("{fill} generate_series(1, {ROWS}) AS g(n)"), &[]).expect("rows");
    drop(connection);
    let owner = publish(&database, folder);
    (database, owner)
}

/// The owner's name.
fn publish(database: &Database, folder: &Path) -> String {
    let site = folder.join("site");
    owner_of(database, &format!("PUBLISH TABLE t ORDER BY n TO 'dir:{}'", site.display()))
}

fn reader(folder: &Path) -> Options {
    Options::path(folder.join("reader")).key(Key::from_hex(&"08".repeat(32)).expect("a key")).counter(Counter::None)
}

fn create(connection: &mut Connection, folder: &Path, owner: &str) {
    let site = folder.join("site");
    let sql =
        format!("CREATE TABLE t WITH (engine = 'published', server = 'dir:{}', owner = '{owner}')", site.display());
    connection.execute(&sql, &[]).expect("a table");
}

fn rows(connection: &mut Connection, sql: &str) -> Result<usize, counterfoil::Error> {
    connection.query(sql, &[])?.map(|batch| batch.map(|batch| batch.num_rows())).sum()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)
        } else {
            fs::copy(entry.path(), &target).map(drop).expect("copied")
        }
    }
}

#[test]
fn programs_learn_what_is_known_of_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_owners, owner) = published(folder.path());
    let database = Database::create(reader(folder.path())).expect("a database");
    let mut connection = database.connect().expect("a connection");
    create(&mut connection, folder.path(), &owner);
    assert_eq!(rows(&mut connection, "SELECT * FROM t").expect("rows"), ROWS);
    let verdicts = connection.verdicts();
    assert_eq!((verdicts.len(), verdicts[0].table.as_str()), (1, "t"));
    let verdict = verdicts[0].verdict;
    assert!(verdict.signatures >= ROWS as u64 && verdict.age < 3_600_000 && verdict.as_of > 0, "{verdict:?}");
    let notices = connection.take_notices();
    assert!(
        notices.len() == 1 && notices[0].starts_with("verified: t: authentic and complete as of 20"),
        "{notices:?}"
    );
    assert_eq!(connection.take_notices(), [""; 0], "told once");
    // Two scans of one statement, of one period.
    rows(&mut connection, "SELECT a.n FROM t a JOIN t b ON a.n = b.n WHERE a.n < 10 AND b.s LIKE 'text 1%'")
        .expect("rows");
    assert_eq!(connection.verdicts().len(), 1);
    // Nobody is asked where no row can match, or nothing is wanted.
    rows(&mut connection, "SELECT n FROM t WHERE n < 5 AND n > 5").expect("none");
    assert_eq!(connection.verdicts(), []);
    rows(&mut connection, "SELECT 1").expect("a row");
    assert_eq!(connection.verdicts(), []);
    // Programs that put questions together get the same rows.
    let few = connection.select("t").filter(counterfoil::column("n").less(4)).columns(["s"]).rows();
    let few: usize = few.expect("rows").map(|batch| batch.expect("a batch").num_rows()).sum();
    assert_eq!(few, 3);
}

#[test]
fn whoever_cannot_write_remembers_in_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let (owners, owner) = published(folder.path());
    let database = Database::create(reader(folder.path())).expect("a database");
    create(&mut database.connect().expect("a connection"), folder.path(), &owner);
    database.close().expect("closed");
    let (site, before) = (folder.path().join("site"), folder.path().join("before"));
    copy(&site, &before);
    owners.connect().expect("a connection").execute("DELETE FROM t WHERE n = 1", &[]).expect("a row less");
    publish(&owners, folder.path());
    let refused = |connection: &mut Connection| {
        let after = folder.path().join("after");
        fs::rename(&site, &after).expect("moved");
        copy(&before, &site);
        let refused = rows(connection, "SELECT * FROM t").expect_err("stale");
        assert_eq!(refused.kind(), Kind::NotVerified, "{refused}");
        assert!(refused.to_string().contains("stale"), "{refused}");
        fs::remove_dir_all(&site).expect("removed");
        fs::rename(&after, &site).expect("moved back");
    };
    // Opened for reading.
    let database = Database::open(reader(folder.path()).read_only(true)).expect("a database");
    let mut connection = database.connect().expect("a connection");
    assert_eq!(rows(&mut connection, "SELECT * FROM t").expect("rows"), ROWS - 1);
    let notices = connection.take_notices();
    assert!(notices.iter().any(|notice| notice.contains("remembered by this process alone")), "{notices:?}");
    refused(&mut connection);
    drop(connection);
    database.close().expect("closed");
    // While somebody else has the writer, and when he has not any more.
    let database = Database::open(reader(folder.path())).expect("a database");
    let mut other = database.connect().expect("a connection");
    other.execute("BEGIN; CREATE TABLE own (n INTEGER)", &[]).expect("begun");
    let mut connection = database.connect().expect("a connection");
    assert_eq!(rows(&mut connection, "SELECT * FROM t").expect("rows"), ROWS - 1);
    refused(&mut connection);
    // By a statement in that transaction itself it is kept when it is over.
    assert_eq!(rows(&mut other, "SELECT * FROM t").expect("rows"), ROWS - 1);
    other.execute("ROLLBACK", &[]).expect("ended");
    refused(&mut other);
    drop((connection, other));
    database.close().expect("closed");
    let database = Database::open(reader(folder.path())).expect("a database");
    let mut connection = database.connect().expect("a connection");
    assert_eq!(rows(&mut connection, "SELECT * FROM t").expect("rows"), ROWS - 1);
    drop(connection);
    database.close().expect("closed");
    let database = Database::open(reader(folder.path())).expect("a database");
    refused(&mut database.connect().expect("a connection"));
}

#[test]
fn an_answer_counts_against_the_memory_of_its_query() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_owners, owner) = published(folder.path());
    let database = Database::create(reader(folder.path())).expect("a database");
    let mut connection = database.connect().expect("a connection");
    create(&mut connection, folder.path(), &owner);
    connection.execute("SET ram = '1M'", &[]).expect("less memory");
    let refused = rows(&mut connection, "SELECT * FROM t").expect_err("too much");
    assert_eq!(refused.kind(), Kind::Full, "{refused}");
    assert!(refused.to_string().contains("working memory"), "{refused}");
    connection.execute("RESET ram", &[]).expect("more memory");
    assert_eq!(rows(&mut connection, "SELECT * FROM t").expect("rows"), ROWS);
    // What one took is there for the next.
    for _ in 0..20 {
        assert_eq!(rows(&mut connection, "SELECT n FROM t WHERE n > 10").expect("rows"), ROWS - 10);
    }
}

#[test]
fn users_from_outside_ask_and_make_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_owners, owner) = published(folder.path());
    let database = Database::create(reader(folder.path())).expect("a database");
    create(&mut database.connect().expect("a connection"), folder.path(), &owner);
    for role in [Role::Reader, Role::Writer] {
        let mut connection = database.connect_as(role).expect("a connection");
        assert_eq!(rows(&mut connection, "SELECT * FROM t WHERE n < 5").expect("rows"), 4);
        let site = folder.path().join("site");
        let with =
            format!("engine = 'published', server = 'dir:{}', owner = '{owner}', \"table\" = 't'", site.display());
        let refused = connection.execute(&format!("CREATE TABLE u WITH ({with})"), &[]).expect_err("refused");
        assert!(matches!(refused.kind(), Kind::Misuse | Kind::NotSupported), "{refused}");
    }
}
