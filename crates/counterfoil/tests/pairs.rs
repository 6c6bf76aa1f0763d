//! Every (key, nonce) pair of databases that come from one key file or from one file is distinct. The witness remembers
//! what the whole test program sealed, so the other tests of this binary are compared along with these.

use std::path::{Path, PathBuf};

use counterfoil::{Counter, Database, Key, Options};
use counterfoil_vault::witness;

/// A place for a database, and the state directory of the machine it is used on.
struct Place<'a> {
    folder: &'a Path,
    name: &'static str,
    machine: &'static str,
}

impl Place<'_> {
    fn path(&self) -> PathBuf {
        self.folder.join(self.name)
    }

    /// All of them with one key.
    fn options(&self) -> Options {
        let counter = Counter::File(self.folder.join(self.machine));
        Options::path(self.path()).key(Key::bytes(&[7; 32])).counter(counter)
    }

    fn copied_to(&self, name: &'static str, machine: &'static str) -> Place<'_> {
        let copy = Place { folder: self.folder, name, machine };
        std::fs::copy(self.path(), copy.path()).expect("copied");
        copy
    }

    /// The same for every place, but for one letter.
    fn go_on(&self, letter: char) {
        let database = Database::open(self.options()).expect("opens");
        let mut connection = database.connect().expect("connects");
        for round in 0..4 {
            let sql = format!(
                "INSERT INTO t SELECT i, repeat('{letter}', 40) FROM generate_series(1, 200) s(i);
                 BEGIN; UPDATE t SET b = '{letter}{round}' WHERE a < 20; ROLLBACK;
                 DELETE FROM t WHERE a > 100; CREATE TABLE t{letter}{round} (a INT)"
            );
            connection.run(&sql, &[]).expect("runs");
        }
        database.records().put("name", letter.to_string().as_bytes()).expect("put");
        connection.execute("VACUUM", &[]).expect("runs");
        drop(connection);
        database.close().expect("closes");
    }
}

fn made<'a>(folder: &'a Path, name: &'static str) -> Place<'a> {
    let place = Place { folder, name, machine: "here" };
    let database = Database::create(place.options()).expect("made");
    database.connect().expect("connects").execute("CREATE TABLE t (a BIGINT, b TEXT)", &[]).expect("runs");
    database.close().expect("closes");
    place.go_on('a');
    place
}

#[test]
fn databases_of_one_key_and_copies_of_one_file_share_no_pair() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = made(folder.path(), "one");
    made(folder.path(), "two");
    // A copy of the closed file goes on elsewhere, and so does the original.
    let yesterday = one.copied_to("yesterday", "nowhere");
    let elsewhere = one.copied_to("elsewhere", "there");
    one.go_on('b');
    elsewhere.go_on('c');
    elsewhere.go_on('d');
    // Yesterday's file is put back and adopted, twice.
    for letter in ['e', 'f'] {
        std::fs::copy(yesterday.path(), one.path()).expect("copied");
        Counter::adopt(one.options()).expect("adopted");
        one.go_on(letter);
    }
    let backup = folder.path().join("backup");
    let whole = &mut |_, _| true;
    Database::open(one.options()).expect("opens").backup(&backup, whole).expect("backed up");
    Database::rekey(one.options(), whole).expect("sealed anew");
    one.go_on('g');
    Database::restore(&backup, one.options(), false, whole).expect("restored");
    one.go_on('h');
    let new = Place { folder: folder.path(), name: "new", machine: "here" };
    Database::restore(&backup, new.options(), true, whole).expect("restored as new");
    new.go_on('i');

    assert!(witness::distinct() > 1000, "{} pairs", witness::distinct());
    assert_eq!(witness::duplicates(), []);
}
