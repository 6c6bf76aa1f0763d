//! What brings dispersed tables back, where telling clouds of it is cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use counterfoil_disperse::fragments::{Answer, Fragments, Name, Question};
use counterfoil_disperse::{Catalogue, Failure, MemoryProvider, Patient, Provider, Secret};
use counterfoil_log::{View, record_space};
use counterfoil_sql::{CloudSecret, Clouds, Owner, Patience, lost_tables, secrets_of_before};
use parking_lot::Mutex;

use crate::database::Database;
use crate::dispersed::World;
use crate::repairs::brought_back;

pub const SECRET: [u8; 32] = [7; 32];

/// A cloud of which its owner does not hear that it has taken in a catalogue: what a cut leaves behind.
#[derive(Default)]
struct Unheard {
    inner: MemoryProvider,
    is_cut: AtomicBool,
    /// It takes in no catalogue at all.
    is_deaf: AtomicBool,
    /// It does not answer.
    is_away: AtomicBool,
    /// It lets go of nothing.
    is_keeping: AtomicBool,
}

impl Unheard {
    fn there(&self) -> Result<&MemoryProvider, Failure> {
        match self.is_away.load(Ordering::Relaxed) {
            true => Err(Failure::Unreachable("away".into())),
            false => Ok(&self.inner),
        }
    }

    fn letting_go(&self) -> Result<&MemoryProvider, Failure> {
        match self.is_keeping.load(Ordering::Relaxed) {
            true => Err(Failure::Unreachable("keeping".into())),
            false => self.there(),
        }
    }
}

impl Provider for Unheard {
    fn put(&self, table: &Name, rows: &Fragments) -> Result<(), Failure> {
        // A claim is one entry, a version has two at least.
        let is_catalogue = *table == Catalogue::new(Secret::new(SECRET)).name() && rows.places.len() > 1;
        if is_catalogue && self.is_deaf.load(Ordering::Relaxed) {
            return Err(Failure::Unreachable("deaf".into()));
        }
        self.there()?.put(table, rows)?;
        match is_catalogue && self.is_cut.load(Ordering::Relaxed) {
            true => Err(Failure::Unreachable("cut".into())),
            false => Ok(()),
        }
    }

    fn remove(&self, table: &Name, places: &[u64]) -> Result<(), Failure> {
        self.letting_go()?.remove(table, places)
    }

    fn ask(
        &self,
        table: &Name,
        question: &Question,
        take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.there()?.ask(table, question, take)
    }

    fn drop_table(&self, table: &Name) -> Result<(), Failure> {
        self.letting_go()?.drop_table(table)
    }
}

struct Reached(Arc<Unheard>);

impl Clouds for Reached {
    fn whole_url(&self, url: &str) -> Option<Result<String, String>> {
        (url == "unheard:").then(|| Ok(url.to_owned()))
    }

    fn open(&self, url: &str, _: Option<CloudSecret<'_>>, _: Secret) -> Option<Result<Arc<dyn Provider>, String>> {
        (url == "unheard:").then(|| Ok(self.0.clone() as Arc<dyn Provider>))
    }
}

/// Whoever has the shares of this database's key.
pub struct Owning;

impl Owner for Owning {
    fn catalogue_secret(&self) -> Option<zeroize::Zeroizing<[u8; 32]>> {
        Some(SECRET.into())
    }

    fn header(&self) -> Vec<u8> {
        b"a header".to_vec()
    }
}

/// The same, of a key that is changed.
struct Changing(Mutex<[u8; 32]>);

impl Owner for Changing {
    fn catalogue_secret(&self) -> Option<zeroize::Zeroizing<[u8; 32]>> {
        Some((*self.0.lock()).into())
    }

    fn header(&self) -> Vec<u8> {
        b"a header".to_vec()
    }
}

fn database(cloud: &Arc<Unheard>) -> Database {
    let database = Database::new();
    database.engine.reach_clouds_with(Arc::new(Reached(cloud.clone())));
    database
}

#[test]
fn no_two_versions_that_differ_have_one_number() {
    // Which of two entries is looked at first is chance: one of eight rounds would do.
    for _ in 0..8 {
        let cloud = Arc::new(Unheard::default());
        let mut owner = database(&cloud);
        owner.engine.belong_to(Arc::new(Owning));
        owner.ask("CREATE CLOUD a OPTIONS (url 'unheard:')");
        owner.ask(
            "CREATE TABLE t (id INT GENERATED ALWAYS AS IDENTITY, n INT) WITH (engine = 'dispersed', clouds = 'a')",
        );
        assert!(owner.ask("INSERT INTO t (n) VALUES (10)").contains("key split"));
        owner.session.note_split(&SECRET).expect("noted");
        owner.ask("INSERT INTO t (n) VALUES (10)");
        cloud.is_cut.store(true, Ordering::Relaxed);
        owner.ask("INSERT INTO t (n) VALUES (20)");
        cloud.is_cut.store(false, Ordering::Relaxed);
        owner.ask("INSERT INTO t (n) VALUES (30)");

        let mut again = database(&cloud);
        let lost = lost_tables(&again.engine, &SECRET, ("unheard:", None), &mut |note| panic!("{note}"));
        let lost = lost.expect("tables");
        assert!(lost.iter().all(|lost| lost.header() == b"a header"));
        let brought = again.session.bring_back(lost, &SECRET).expect("brought back");
        assert_eq!(brought.iter().map(|table| table.rows).collect::<Vec<_>>(), [3]);
        assert_eq!(again.ask("SELECT id, n FROM t ORDER BY n"), "1|10\n2|20\n3|30");
        again.ask("INSERT INTO t (n) VALUES (40)");
        assert_eq!(again.ask("SELECT id FROM t WHERE n = 40"), "4");
    }
}

#[test]
fn no_cloud_lets_go_of_what_its_catalogue_still_leads_to() {
    let cloud = Arc::new(Unheard::default());
    let mut owner = database(&cloud);
    owner.engine.belong_to(Arc::new(Owning));
    owner.session.note_split(&SECRET).expect("noted");
    owner.ask("CREATE CLOUD a OPTIONS (url 'unheard:')");
    owner.ask("CREATE TABLE t (id INT, n INT FOR (sum)) WITH (engine = 'dispersed', clouds = 'a')");
    owner.ask("INSERT INTO t VALUES (1, 10), (2, 20)");
    cloud.is_deaf.store(true, Ordering::Relaxed);
    assert_eq!(owner.ask("REFRESH TABLE t"), "REFRESH TABLE");
    assert_eq!(owner.ask("SELECT sum(n) FROM t"), "30");
    let brought_back = || {
        let mut again = database(&cloud);
        let lost = lost_tables(&again.engine, &SECRET, ("unheard:", None), &mut |note| panic!("{note}"));
        again.session.bring_back(lost.expect("tables"), &SECRET).expect("brought back");
        again.ask("SELECT id, n FROM t ORDER BY id")
    };
    assert_eq!(brought_back(), "1|10\n2|20", "with the catalogue from before");
    cloud.is_deaf.store(false, Ordering::Relaxed);
    owner.ask("REPAIR TABLE t");
    assert_eq!(brought_back(), "1|10\n2|20", "with that of now");

    // A client from before it was refreshed again, with something that no cloud was told of, does not overwrite what leads to it now.
    let mut copy = database(&cloud);
    let lost = lost_tables(&copy.engine, &SECRET, ("unheard:", None), &mut |note| panic!("{note}"));
    copy.session.bring_back(lost.expect("tables"), &SECRET).expect("brought back");
    copy.engine.belong_to(Arc::new(Owning));
    cloud.is_away.store(true, Ordering::Relaxed);
    assert_eq!(copy.ask("INSERT INTO t VALUES (3, 30)"), "INSERT 1");
    cloud.is_away.store(false, Ordering::Relaxed);
    owner.ask("REFRESH TABLE t");
    let told = copy.ask("REPAIR TABLE t");
    assert!(told.contains("another copy of this database has told cloud a"), "{told}");
    let told = copy.ask("REPAIR TABLE t TAKE OVER");
    assert!(
        told.contains("altered or refreshed after this copy") && told.contains("restore --from unheard:"),
        "{told}"
    );
    assert!(told.contains("REPAIR TABLE t GIVE WAY"), "{told}");
    assert_eq!(brought_back(), "1|10\n2|20");
    // One that has nothing of the kind learns where it lies.
    let mut copy = database(&cloud);
    let lost = lost_tables(&copy.engine, &SECRET, ("unheard:", None), &mut |note| panic!("{note}"));
    copy.session.bring_back(lost.expect("tables"), &SECRET).expect("brought back");
    copy.engine.belong_to(Arc::new(Owning));
    owner.ask("REFRESH TABLE t");
    assert_eq!(copy.ask("REPAIR TABLE t"), "a|0|0|complete");
    assert_eq!(copy.ask("SELECT id, n FROM t ORDER BY id"), "1|10\n2|20");
    // At other clouds, too.
    let folder = tempfile::tempdir().expect("a folder");
    owner.ask(&format!("CREATE CLOUD b OPTIONS (url 'dir:{}')", folder.path().display()));
    assert_eq!(owner.ask("ALTER TABLE t SET (clouds = 'a, b', may_fail = 1)"), "ALTER TABLE");
    assert_eq!(copy.ask("INSERT INTO t VALUES (4, 40)"), "INSERT 1");
    assert_eq!(copy.ask("SELECT count(*) FROM t"), owner.ask("SELECT count(*) FROM t"));
}

#[test]
fn a_repair_is_complete_where_each_cloud_shows_what_brings_the_table_back() {
    let cloud = Arc::new(Unheard::default());
    let mut world = World::of(database(&cloud));
    world.database.engine.belong_to(Arc::new(Owning));
    world.database.session.note_split(&SECRET).expect("noted");
    world.add("a", "unheard:");
    ["b", "c"].into_iter().for_each(|cloud| world.add_folder(cloud));
    let owner = &mut world.database;
    owner.ask("CREATE TABLE t (id INT, n INT FOR (sum)) WITH (engine = 'dispersed', clouds = 'a, b, c')");
    owner.ask("INSERT INTO t VALUES (1, 10), (2, 20)");
    // It has lost it, and takes in no other one.
    cloud.inner.drop_table(&Catalogue::new(Secret::new(SECRET)).name()).expect("gone");
    cloud.is_deaf.store(true, Ordering::Relaxed);
    let told = owner.ask("REPAIR TABLE t");
    assert!(told.starts_with("a|0|0|what brings the table back is not there"), "{told}");
    assert!(told.ends_with("b|0|0|complete\nc|0|0|complete"), "{told}");
    cloud.is_deaf.store(false, Ordering::Relaxed);
    assert_eq!(owner.ask("REPAIR TABLE t"), "a|0|0|complete\nb|0|0|complete\nc|0|0|complete");
}

#[test]
fn a_table_that_is_dropped_while_it_moves_is_in_no_catalogue() {
    let cloud = Arc::new(Unheard::default());
    let mut owner = database(&cloud);
    owner.engine.belong_to(Arc::new(Owning));
    owner.session.note_split(&SECRET).expect("noted");
    owner.ask("CREATE CLOUD a OPTIONS (url 'unheard:')");
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(
        owner.ask(&format!("CREATE CLOUD gone OPTIONS (url 'dir:{}')", folder.path().display())),
        "CREATE CLOUD"
    );
    folder.close().expect("it goes");
    owner.ask("CREATE TABLE t (n INT) WITH (engine = 'dispersed', clouds = 'a')");
    owner.ask("INSERT INTO t VALUES (10)");
    assert_eq!(owner.ask("ALTER TABLE t SET (clouds = 'gone')"), "ALTER TABLE");
    assert_eq!(owner.ask("SELECT n FROM t"), "10");
    assert_eq!(owner.ask("DROP TABLE t"), "DROP TABLE");
    let again = database(&cloud);
    let lost = lost_tables(&again.engine, &SECRET, ("unheard:", None), &mut |note| panic!("{note}"));
    assert!(lost.is_err_and(|error| error.to_string().contains("shows no table")));
}

/// A table whose database is lost, brought back while of its clouds that one alone answers which was told least: of two rows, where the
/// others know five. The others are away.
fn behind() -> (World, Database) {
    let mut world = World::new();
    world.database.engine.belong_to(Arc::new(Owning));
    world.database.session.note_split(&SECRET).expect("noted");
    let with = "WITH (engine = 'dispersed', clouds = 'a, b, c')";
    assert_eq!(world.database.ask(&format!("CREATE TABLE t (id INT, n INT FOR (sum)) {with}")), "CREATE TABLE");
    world.database.ask("INSERT INTO t VALUES (1, 10), (2, 20)");
    world.set_there("b", false);
    world.database.ask("INSERT INTO t VALUES (3, 30), (4, 40), (5, 50)");
    world.set_there("b", true);
    ["a", "c"].into_iter().for_each(|cloud| world.set_there(cloud, false));
    let mut copy = Database::new();
    let url = format!("dir:{}", world.path("b").display());
    let lost = lost_tables(&copy.engine, &SECRET, (&url, None), &mut |_| ()).expect("tables");
    copy.session.bring_back(lost, &SECRET).expect("brought back");
    copy.engine.belong_to(Arc::new(Owning));
    (world, copy)
}

#[test]
fn who_was_brought_back_from_a_cloud_that_is_behind_destroys_nothing() {
    let (world, mut copy) = behind();
    ["a", "c"].into_iter().for_each(|cloud| world.set_there(cloud, true));
    // What the others know is learned before anything is told.
    assert_eq!(copy.ask("INSERT INTO t VALUES (9, 90)"), "INSERT 1");
    assert_eq!(copy.ask("SELECT sum(n), count(*) FROM t"), "240|6");
    assert!(copy.ask("REPAIR TABLE t").lines().all(|line| line.ends_with("complete")));
    for cloud in ["a", "b", "c"] {
        assert_eq!(brought_back(&world, cloud), [("t".to_owned(), 6)], "{cloud}");
    }
}

#[test]
fn who_has_gone_on_without_clouds_that_know_more_destroys_nothing() {
    let (mut world, mut copy) = behind();
    // It goes on with the one that answers, and the two have gone apart.
    assert_eq!(copy.ask("INSERT INTO t VALUES (9, 90)"), "INSERT 1");
    ["a", "c"].into_iter().for_each(|cloud| world.set_there(cloud, true));
    let (is_newer, all) = ("another copy of this database has told cloud a", [("t".to_owned(), 5)]);
    let told = copy.ask("REPAIR TABLE t");
    assert!(told.contains(is_newer) && told.contains("restore --from dir:"), "{told}");
    let told = copy.ask("INSERT INTO t VALUES (10, 100)");
    assert!(told.contains(is_newer), "{told}");
    for cloud in ["a", "c"] {
        assert_eq!(brought_back(&world, cloud), all, "{cloud}");
    }
    let told = world.database.ask("REPAIR TABLE t");
    assert!(told.contains("another copy of this database has told cloud b"), "{told}");
    // Who says so lets go of what the others know.
    let told = copy.ask("REPAIR TABLE t TAKE OVER");
    assert!(!told.starts_with("error"), "{told}");
    assert_eq!(brought_back(&world, "a"), [("t".to_owned(), 3)]);
}

#[test]
fn what_has_gone_stays_until_a_catalogue_says_so() {
    let cloud = Arc::new(Unheard::default());
    let mut owner = database(&cloud);
    owner.engine.belong_to(Arc::new(Owning));
    owner.session.note_split(&SECRET).expect("noted");
    owner.ask("CREATE CLOUD a OPTIONS (url 'unheard:')");
    owner.ask("CREATE TABLE t (id INT FOR (equality), n INT FOR (sum)) WITH (engine = 'dispersed', clouds = 'a')");
    owner.ask("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)");
    cloud.is_deaf.store(true, Ordering::Relaxed);
    owner.ask("UPDATE t SET n = 11 WHERE id = 1");
    owner.ask("DELETE FROM t WHERE id = 2");
    // Whoever goes by the catalogue that is there finds what it leads to.
    let mut again = database(&cloud);
    let lost = lost_tables(&again.engine, &SECRET, ("unheard:", None), &mut |note| panic!("{note}"));
    again.session.bring_back(lost.expect("tables"), &SECRET).expect("brought back");
    assert_eq!(again.ask("SELECT id, n FROM t ORDER BY id"), "1|10\n2|20\n3|30");
    cloud.is_deaf.store(false, Ordering::Relaxed);
    assert_eq!(owner.ask("REPAIR TABLE t"), "a|0|0|complete");
    assert_eq!(owner.ask("SELECT id, n FROM t ORDER BY id"), "1|11\n3|30");
    let mut again = database(&cloud);
    let lost = lost_tables(&again.engine, &SECRET, ("unheard:", None), &mut |note| panic!("{note}"));
    again.session.bring_back(lost.expect("tables"), &SECRET).expect("brought back");
    assert_eq!(again.ask("SELECT id, n FROM t ORDER BY id"), "1|11\n3|30");
}

#[test]
fn what_a_key_of_before_opens_goes_before_the_key_is_forgotten() {
    const NEWER: [u8; 32] = [8; 32];
    let (cloud, owning) = (Arc::new(Unheard::default()), Arc::new(Changing(Mutex::new(SECRET))));
    let mut owner = database(&cloud);
    owner.engine.belong_to(owning.clone());
    owner.session.note_split(&SECRET).expect("noted");
    owner.ask("CREATE CLOUD a OPTIONS (url 'unheard:')");
    owner.ask("CREATE TABLE t (n INT) WITH (engine = 'dispersed', clouds = 'a')");
    owner.ask("INSERT INTO t VALUES (1)");
    let store = owner.engine.store().clone();
    let mut writer = store.writer(Patience::of(Duration::from_secs(9))).expect("nobody has it");
    let (name, secrets) = secrets_of_before(&store.snapshot().expect("a view"), &SECRET).expect("a table at clouds");
    writer.begin().expect("begun");
    writer.put_record(record_space::SETTING, name, &secrets).expect("put");
    writer.commit().expect("committed");
    store.committed(writer.snapshot());
    drop(writer);
    *owning.0.lock() = NEWER;
    // It is told of the new one as soon as shares are made, and cut before it lets go of the old one.
    cloud.is_keeping.store(true, Ordering::Relaxed);
    owner.session.note_split(&NEWER).expect("noted");
    let shows = |secret| {
        let shown = Catalogue::new(Secret::new(secret)).contents(&cloud.inner, &Patient);
        !shown.expect("an answer").owners.is_empty()
    };
    let is_remembered = || store.snapshot().expect("a view").record(record_space::SETTING, name).is_some();
    assert!(shows(SECRET) && shows(NEWER) && is_remembered());
    assert_eq!(owner.ask("INSERT INTO t VALUES (2)"), "INSERT 1");
    assert!(shows(SECRET) && shows(NEWER) && is_remembered());
    cloud.is_keeping.store(false, Ordering::Relaxed);
    assert_eq!(owner.ask("INSERT INTO t VALUES (3)"), "INSERT 1");
    assert!(!shows(SECRET) && shows(NEWER) && !is_remembered());
    assert_eq!(owner.ask("SELECT n FROM t ORDER BY n"), "1\n2\n3");
}

#[test]
fn rows_are_here_until_clouds_have_heard_what_leads_to_them() {
    let cloud = Arc::new(Unheard::default());
    let mut owner = database(&cloud);
    owner.engine.belong_to(Arc::new(Owning));
    owner.session.note_split(&SECRET).expect("noted");
    owner.ask("CREATE CLOUD a OPTIONS (url 'unheard:')");
    owner.ask("CREATE TABLE t (n INT) WITH (engine = 'dispersed', clouds = 'a')");
    owner.ask("INSERT INTO t VALUES (10)");
    // It takes in the row, and nothing that says so: to others the row is a stray.
    cloud.is_deaf.store(true, Ordering::Relaxed);
    assert_eq!(owner.ask("INSERT INTO t VALUES (20)"), "INSERT 1");
    cloud.is_deaf.store(false, Ordering::Relaxed);
    let mut other = database(&cloud);
    let lost = lost_tables(&other.engine, &SECRET, ("unheard:", None), &mut |note| panic!("{note}"));
    other.session.bring_back(lost.expect("tables"), &SECRET).expect("brought back");
    other.engine.belong_to(Arc::new(Owning));
    assert_eq!(other.ask("REPAIR TABLE t"), "a|0|1|complete");
    assert_eq!(owner.ask("SELECT n FROM t ORDER BY n"), "10\n20");
    // Whoever says what counts puts it there again.
    assert_eq!(owner.ask("REPAIR TABLE t TAKE OVER"), "a|0|0|complete");
    assert_eq!(owner.ask("SELECT n FROM t ORDER BY n"), "10\n20");
    assert_eq!(other.ask("SELECT n FROM t ORDER BY n"), "10\n20");
}
