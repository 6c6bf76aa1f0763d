//! `on_rollback`: what becomes of an image that its counter has left behind, and of an opening of it that is cut.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use counterfoil::{Counter, Database, Key, Kind, Options, Result};
use counterfoil_vault::witness;
use tempfile::TempDir;

/// A device that nobody attends: a database, and the state directory beside it.
struct Device {
    folder: TempDir,
    notes: Arc<Mutex<Vec<String>>>,
}

impl Device {
    /// With a table of as many rows as it was opened for writing after it was made.
    fn new(settings: &str) -> Self {
        let device = Self { folder: tempfile::tempdir().expect("a folder"), notes: Arc::default() };
        Database::create(device.options()).expect("made").close().expect("closes");
        device.write(settings).expect("set");
        device.write("CREATE TABLE t (a BIGINT PRIMARY KEY)").expect("created");
        device
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("db")
    }

    fn counter(&self) -> PathBuf {
        let mut entries = std::fs::read_dir(self.folder.path().join("state")).expect("a folder");
        entries.next().expect("a counter").expect("an entry").path()
    }

    fn options(&self) -> Options {
        let notes = self.notes.clone();
        let counter = Counter::File(self.folder.path().join("state"));
        let options = Options::path(self.path()).key(Key::bytes(&[7; 32])).counter(counter);
        options.on_note(move |note| notes.lock().expect("sound").push(note.to_owned()))
    }

    fn write(&self, sql: &str) -> Result<()> {
        let database = Database::open(self.options())?;
        database.connect()?.run(sql, &[])?;
        database.close()
    }

    fn insert(&self, value: u64) -> Result<()> {
        self.write(&format!("INSERT INTO t VALUES ({value})"))
    }

    fn image(&self) -> Vec<u8> {
        std::fs::read(self.path()).expect("read")
    }

    fn put_back(&self, image: &[u8]) {
        put(&self.path(), image);
    }

    fn rows(&self) -> Result<u64> {
        Database::open(self.options())?.relation("t")?.count()
    }

    fn incidents(&self) -> Vec<&'static str> {
        let database = Database::open(self.options()).expect("opens");
        database.incidents().expect("read").into_iter().map(|incident| incident.kind).collect()
    }

    fn problems(&self) -> Vec<Kind> {
        let verified = Database::open(self.options()).expect("opens").verify(&mut |_, _, _| {}).expect("verified");
        verified.problems.iter().map(counterfoil::Error::kind).collect()
    }

    fn notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock().expect("sound"))
    }
}

fn put(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("written");
}

fn kind<T>(result: Result<T>) -> Option<Kind> {
    result.err().map(|error| error.kind())
}

#[test]
fn an_older_image_is_gone_on_from_where_the_setting_says_so() -> Result<()> {
    let device = Device::new("SET on_rollback = 'record'");
    device.insert(1)?;
    let older = device.image();
    device.insert(2)?;
    assert_eq!((device.rows()?, device.notes().len()), (2, 0));

    // Reading shows it with a note and writes nothing.
    device.put_back(&older);
    assert_eq!(device.rows()?, 1);
    assert!(device.notes().iter().any(|note| note.contains("not the newest")), "told");
    assert_eq!((device.problems(), device.incidents()), (vec![Kind::RolledBack], vec![]));
    assert!(device.image() == older, "reading wrote");

    // Writing goes on from it, with an incident for ever.
    device.insert(3)?;
    assert_eq!((device.rows()?, device.incidents()), (2, vec!["rolled back"]));
    device.notes();
    assert_eq!(device.rows()?, 2);
    assert!(device.notes().iter().any(|note| note.contains("counter adopt")), "told");
    assert_eq!(device.problems(), [Kind::RolledBack]);
    let inspection = Database::open(device.options())?.inspect()?;
    assert_eq!((inspection.on_rollback, inspection.rollbacks), (("record", 3), 1));

    // A person accepts it.
    Counter::adopt(device.options())?;
    assert_eq!((device.problems(), device.incidents()), (vec![], vec!["rolled back", "counter adopted by hand"]));
    device.notes();
    assert_eq!((device.rows()?, device.notes().len()), (2, 0));
    assert_eq!(witness::duplicates(), []);
    Ok(())
}

#[test]
fn without_the_setting_it_is_refused() -> Result<()> {
    let device = Device::new("SET on_rollback = 'refuse'; SET rollback_limit = 7");
    let without = device.image();
    device.write("SET on_rollback = 'record'")?;
    let with = device.image();
    device.write("RESET on_rollback")?;
    device.put_back(&without);
    assert_eq!((kind(device.rows()), kind(device.insert(1))), (Some(Kind::RolledBack), Some(Kind::RolledBack)));
    // What an image says of itself holds, even if the owner has changed his mind since: the documents say so.
    device.put_back(&with);
    device.insert(1)?;
    assert_eq!(device.incidents(), ["rolled back"]);
    Ok(())
}

/// The image does not remember that it was put back before, but the counter does.
#[test]
fn the_limit_holds_however_often_the_same_image_is_put_back() -> Result<()> {
    let device = Device::new("SET on_rollback = 'record'; SET rollback_limit = 2");
    let older = device.image();
    device.insert(1)?;
    for _ in 0..2 {
        device.put_back(&older);
        device.insert(2)?;
        assert_eq!(device.incidents(), ["rolled back"]);
    }
    device.put_back(&older);
    assert_eq!((kind(device.rows()), kind(device.insert(3))), (Some(Kind::RolledBack), Some(Kind::RolledBack)));
    let text = device.rows().expect_err("refused").to_string();
    assert!(text.contains("rollback_limit = 2 is reached") && text.contains("counter adopt"), "{text}");
    Counter::adopt(device.options())?;
    device.put_back(&older);
    device.insert(4)?;
    assert_eq!(device.incidents(), ["rolled back"]);
    Ok(())
}

/// Power fails when the incident is durable and the counter is not bound yet, again and again: the state is that of the
/// older counter beside the newer image.
#[test]
fn an_opening_that_is_cut_is_finished_by_the_next_one() -> Result<()> {
    let device = Device::new("SET on_rollback = 'record'; SET rollback_limit = 1");
    let older = device.image();
    device.insert(1)?;
    let counter = std::fs::read(device.counter()).expect("read");
    device.put_back(&older);
    for cut in 0..3 {
        device.write("DELETE FROM t WHERE false")?;
        put(&device.counter(), &counter);
        assert_eq!((device.rows()?, device.incidents()), (0, vec!["rolled back"]), "{cut}");
        assert_eq!(device.problems(), [Kind::RolledBack, Kind::CounterLost], "{cut}");
    }
    // What such a cut left is nothing to go on from once the counter is bound.
    let cut = device.image();
    device.insert(2)?;
    assert_eq!((device.rows()?, device.incidents()), (1, vec!["rolled back"]));
    device.put_back(&cut);
    assert_eq!(kind(device.insert(3)), Some(Kind::RolledBack));
    assert_eq!(witness::duplicates(), []);
    Ok(())
}

/// A counter that is not this image's, or is damaged, is no rollback: nothing is gone on from.
#[test]
fn a_counter_that_cannot_vouch_is_refused_whatever_the_setting_says() -> Result<()> {
    let device = Device::new("SET on_rollback = 'record'");
    let counter = std::fs::read(device.counter()).expect("read");
    device.insert(1)?;
    put(&device.counter(), &counter);
    assert_eq!((kind(device.rows()), kind(device.insert(2))), (Some(Kind::CounterLost), Some(Kind::CounterLost)));
    put(&device.counter(), b"nonsense");
    assert_eq!((kind(device.rows()), kind(device.insert(2))), (Some(Kind::CounterLost), Some(Kind::CounterLost)));
    Ok(())
}

#[test]
fn the_setting_is_changed_like_a_row() -> Result<()> {
    let device = Device::new("SELECT 1");
    let shown = |sql: &str| -> Result<String> {
        let database = Database::open(device.options())?;
        let mut connection = database.connect()?;
        let rows = connection.query(sql, &[])?.collect::<Result<Vec<_>>>()?;
        Ok(counterfoil::arrow::util::display::array_value_to_string(rows[0].column(0), 0).expect("shown"))
    };
    assert_eq!((shown("SHOW on_rollback")?, shown("SHOW rollback_limit")?), ("refuse".into(), "3".into()));
    device.write("BEGIN; SET on_rollback = record; SET rollback_limit TO 9; ROLLBACK")?;
    assert_eq!((shown("SHOW on_rollback")?, shown("SHOW rollback_limit")?), ("refuse".into(), "3".into()));
    device.write("BEGIN; SET on_rollback = record; SET rollback_limit TO 9; COMMIT; RESET ALL")?;
    assert_eq!((shown("SHOW on_rollback")?, shown("SHOW rollback_limit")?), ("record".into(), "9".into()));
    for wrong in ["SET on_rollback = 'ignore'", "SET rollback_limit = -1", "SET rollback_limit = 'many'"] {
        assert_eq!(kind(device.write(wrong)), Some(Kind::Sql), "{wrong}");
    }
    assert_eq!(kind(device.write("SET LOCAL on_rollback = 'refuse'")), Some(Kind::NotSupported));
    let reader = Database::open(device.options().read_only(true))?;
    assert_eq!(kind(reader.connect()?.run("SET on_rollback = 'refuse'", &[])), Some(Kind::Misuse));
    Ok(())
}
