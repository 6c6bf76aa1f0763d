//! Several clients of a dispersed table at a cloud at which something happens while it is asked.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use counterfoil_disperse::fragments::{Answer, Fragments, Name, Question, evaluate};
use counterfoil_disperse::{Catalogue, Claim, Failure, MemoryProvider, Provider, Secret};
use counterfoil_sql::{CloudSecret, Clouds, EngineOptions, lost_tables};

use crate::catalogue::{Owning, SECRET};
use crate::database::Database;

/// A cloud that shows one of two claims whenever it is asked, by turns: it has kept them from before. And at which something happens before
/// it answers a question with conditions, or one for some rows, or lets go of a table. And of which something of rows is not as it was written.
#[derive(Default)]
struct Staged {
    inner: MemoryProvider,
    claims: Mutex<Vec<Fragments>>,
    asked: AtomicUsize,
    before: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    before_rows: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    before_drop: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    is_damaged: AtomicBool,
}

impl Provider for Staged {
    fn put(&self, table: &Name, rows: &Fragments) -> Result<(), Failure> {
        self.inner.put(table, rows)
    }

    fn remove(&self, table: &Name, places: &[u64]) -> Result<(), Failure> {
        self.inner.remove(table, places)
    }

    fn ask(
        &self,
        table: &Name,
        question: &Question,
        take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let happens = if question.tests.is_empty() { None } else { self.before.lock().expect("a hook").take() };
        happens.into_iter().for_each(|happens| happens());
        let is_catalogue = *table == Catalogue::new(Secret::new(SECRET)).name();
        let asks_for_some = question.places.is_some() && !is_catalogue;
        let happens = if asks_for_some { self.before_rows.lock().expect("a hook").take() } else { None };
        happens.into_iter().for_each(|happens| happens());
        self.inner.ask(table, question, take)?;
        if !is_catalogue && self.is_damaged.load(Ordering::Relaxed) {
            return Err(Failure::Malformed("something is not as it was written".into()));
        }
        let claims = self.claims.lock().expect("claims");
        let Some(shown) = claims.get(self.asked.load(Ordering::Relaxed) % 2).filter(|_| is_catalogue) else {
            return Ok(());
        };
        // What is read behind the places is the same.
        self.asked.fetch_add(usize::from(!question.columns.is_empty()), Ordering::Relaxed);
        take(evaluate(shown, question).expect("a catalogue"))
    }

    fn drop_table(&self, table: &Name) -> Result<(), Failure> {
        let happens = self.before_drop.lock().expect("a hook").take();
        happens.into_iter().for_each(|happens| happens());
        self.inner.drop_table(table)
    }
}

struct Reached(Arc<Staged>);

impl Clouds for Reached {
    fn whole_url(&self, url: &str) -> Option<Result<String, String>> {
        (url == "staged:").then(|| Ok(url.to_owned()))
    }

    fn open(&self, url: &str, _: Option<CloudSecret<'_>>, _: Secret) -> Option<Result<Arc<dyn Provider>, String>> {
        (url == "staged:").then(|| Ok(self.0.clone() as Arc<dyn Provider>))
    }
}

/// A database that reaches such a cloud.
fn staged(cloud: &Arc<Staged>, options: EngineOptions) -> Database {
    let mut database = Database::with_options(options);
    database.engine.reach_clouds_with(Arc::new(Reached(cloud.clone())));
    database.engine.belong_to(Arc::new(Owning));
    database.session.note_split(&SECRET).expect("noted");
    database
}

#[test]
fn an_answer_that_was_overtaken_while_it_was_given_is_none() {
    let cloud = Arc::new(Staged::default());
    let options = || EngineOptions { parallelism: 2, ..EngineOptions::default() };
    let mut one = staged(&cloud, options());
    one.expect(&[
        ("CREATE CLOUD a OPTIONS (url 'staged:')", "CREATE CLOUD"),
        (
            "CREATE TABLE t (id INT FOR (equality), n INT FOR (sum)) WITH (engine = 'dispersed', clouds = 'a')",
            "CREATE TABLE",
        ),
        ("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)", "INSERT 3"),
    ]);
    let mut other = staged(&cloud, options());
    let lost = lost_tables(&other.engine, &SECRET, ("staged:", None), &mut |note| panic!("{note}")).expect("tables");
    other.session.bring_back(lost, &SECRET).expect("brought back");
    other.ask("REPAIR TABLE t");
    // Whoever reads has not heard of anybody else before, and has looked a moment ago.
    for round in 1..=4 {
        let (mut reads, mut writes) = if round % 2 == 1 { (one, other) } else { (other, one) };
        let narrowed = ["SELECT n FROM t WHERE id = 3", "SELECT sum(n) FROM t WHERE id = 3"][round / 3];
        assert_eq!(reads.ask(narrowed), format!("{}", 29 + round));
        let (sent, back) = std::sync::mpsc::channel();
        *cloud.before.lock().expect("a hook") = Some(Box::new(move || {
            assert_eq!(writes.ask("UPDATE t SET n = n + 1 WHERE id = 3"), "UPDATE 1");
            sent.send(writes).expect("somebody waits");
        }));
        // It is asked again by itself, of what is there by then.
        assert_eq!(reads.ask(narrowed), format!("{}", 30 + round));
        let writes = back.recv().expect("it has written");
        (one, other) = if round % 2 == 1 { (reads, writes) } else { (writes, reads) };
    }
}

/// Two clients of a table of three rows at such a cloud and two others, whose names begin so.
fn two(cloud: &Arc<Staged>, others: &str) -> (Database, Database) {
    let options = || EngineOptions { parallelism: 2, lease_seconds: 2, ..EngineOptions::default() };
    let mut one = staged(cloud, options());
    let with = "WITH (engine = 'dispersed', clouds = 'a, b, c', may_fail = 1, may_collude = 1)";
    one.expect(&[
        ("CREATE CLOUD a OPTIONS (url 'staged:')", "CREATE CLOUD"),
        (&format!("CREATE CLOUD b OPTIONS (url 'memory:{others}-b')"), "CREATE CLOUD"),
        (&format!("CREATE CLOUD c OPTIONS (url 'memory:{others}-c')"), "CREATE CLOUD"),
        (&format!("CREATE TABLE t (id INT, n INT FOR (sum)) {with}"), "CREATE TABLE"),
        ("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)", "INSERT 3"),
    ]);
    let mut other = staged(cloud, options());
    let lost = lost_tables(&other.engine, &SECRET, ("staged:", None), &mut |note| panic!("{note}")).expect("tables");
    other.session.bring_back(lost, &SECRET).expect("brought back");
    other.ask("REPAIR TABLE t");
    (one, other)
}

#[test]
fn a_repair_that_was_overtaken_takes_nothing_from_whoever_has_gone_on() {
    let cloud = Arc::new(Staged::default());
    let (mut one, mut other) = two(&cloud, "overtaken");
    cloud.is_damaged.store(true, Ordering::Relaxed);
    let (sent, back) = std::sync::mpsc::channel();
    *cloud.before_rows.lock().expect("a hook") = Some(Box::new(move || {
        // It waits until the lease of whoever repairs has stood still.
        assert_eq!(other.ask("INSERT INTO t VALUES (4, 400)"), "INSERT 1");
        sent.send(other).expect("somebody waits");
    }));
    let told = one.ask("REPAIR TABLE t EXTENDED");
    assert!(told.contains("another client has changed it"), "{told}");
    let mut other = back.recv().expect("it has written");
    cloud.is_damaged.store(false, Ordering::Relaxed);
    assert_eq!(other.ask("SELECT sum(n), count(id) FROM t"), "460|4");
    assert_eq!(other.ask("REPAIR TABLE t"), "a|0|0|complete\nb|0|0|complete\nc|0|0|complete");
    assert_eq!(one.ask("SELECT sum(n), count(id) FROM t"), "460|4");
}

#[test]
fn who_was_overtaken_while_clouds_let_go_of_a_layout_has_not_gone_apart() {
    let cloud = Arc::new(Staged::default());
    let (mut one, mut other) = two(&cloud, "let-go");
    let (sent, back) = std::sync::mpsc::channel();
    *cloud.before_drop.lock().expect("a hook") = Some(Box::new(move || {
        assert_eq!(other.ask("INSERT INTO t VALUES (4, 400)"), "INSERT 1");
        sent.send(other).expect("somebody waits");
    }));
    assert_eq!(one.ask("REFRESH TABLE t"), "REFRESH TABLE");
    let mut other = back.recv().expect("it has written");
    assert_eq!(one.ask("INSERT INTO t VALUES (5, 5000)"), "INSERT 1");
    for client in [&mut one, &mut other] {
        assert_eq!(client.ask("SELECT sum(n), count(id) FROM t"), "5460|5");
        assert_eq!(client.ask("REPAIR TABLE t"), "a|0|0|complete\nb|0|0|complete\nc|0|0|complete");
    }
}

#[test]
fn a_cloud_that_shows_claims_in_turns_keeps_nobody() {
    let options = EngineOptions { parallelism: 2, lease_seconds: 2, ..EngineOptions::default() };
    let liar = Arc::new(Staged::default());
    let mut database = staged(&liar, options);
    database.expect(&[
        ("SET lock_timeout = '100ms'", "SET"),
        ("CREATE CLOUD a OPTIONS (url 'staged:')", "CREATE CLOUD"),
        ("CREATE TABLE t (n INT FOR (sum)) WITH (engine = 'dispersed', clouds = 'a')", "CREATE TABLE"),
        ("INSERT INTO t VALUES (1)", "INSERT 1"),
    ]);
    let catalogue = Catalogue::new(Secret::new(SECRET));
    let shown = catalogue.read(&*liar, &counterfoil_disperse::Patient).expect("what it shows");
    let claim = Claim { client: [9; 16], version: shown[0].0.version, still: 2 };
    let claims = [7, 8].map(|salt| catalogue.code_claim(shown[0].0.table, claim, [salt; 16]));
    liar.claims.lock().expect("claims").extend(claims);
    let done = (0..4).any(|_| database.ask("INSERT INTO t VALUES (2)") == "INSERT 1");
    assert!(done, "it was kept from writing");
    assert_eq!(database.ask("SELECT sum(n) FROM t"), "3");
}
