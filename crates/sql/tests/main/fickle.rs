//! Clouds in memory that fail in a way and from a call on, as somebody outside would have them fail.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use counterfoil_disperse::fragments::{Answer, Data, Fragments, Name, Question, Strings};
use counterfoil_disperse::{Failure, MemoryProvider, Provider, Secret};
use counterfoil_sql::{CloudSecret, Clouds};
use parking_lot::Mutex;

use crate::database::Database;

/// What is done once, in the middle of a question.
type Errand = Box<dyn FnOnce() + Send>;

/// How a cloud fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// It does not answer; what it was told at that moment may have been done.
    #[default]
    Unreachable,
    /// It takes in nothing more.
    Full,
    /// It says that it has done what it has not.
    Forgetting,
    /// What it answers is changed: other bytes, other sums.
    Changing,
    /// It leaves rows out of what it answers.
    Hiding,
    /// It names all rows, whatever is to be true of them.
    NamingAll,
    /// It has what it had when [`Fickle::remember`] was called, and goes on from there.
    PutBack,
}

/// All of them.
pub const FAULTS: [Fault; 7] = [
    Fault::Unreachable,
    Fault::Full,
    Fault::Forgetting,
    Fault::Changing,
    Fault::Hiding,
    Fault::NamingAll,
    Fault::PutBack,
];

/// A cloud that fails from some call on, or somebody does something while it is asked.
#[derive(Default)]
pub struct Fickle {
    inner: MemoryProvider,
    /// What it is put back to: it took in what `inner` did until it was to be remembered.
    before: MemoryProvider,
    is_remembered: AtomicBool,
    /// The tables that it has.
    pub tables: Mutex<BTreeSet<Name>>,
    /// How often it was called.
    pub calls: AtomicU64,
    /// The call from which on it fails; 0: it does not.
    pub fails_from: AtomicU64,
    /// How it does.
    pub fault: Mutex<Fault>,
    /// Whether it says nothing until it does not hang any more.
    pub hangs: AtomicBool,
    /// Done once, when it is asked for a sum.
    pub at_sum: Mutex<Option<Errand>>,
    /// Done once, when it is asked for anything else.
    pub at_rows: Mutex<Option<Errand>>,
}

impl Fickle {
    /// What it has now is what it will be put back to.
    pub fn remember(&self) {
        self.is_remembered.store(true, Ordering::Relaxed);
    }

    /// It fails like this from the call after so many more.
    pub fn fail(&self, fault: Fault, after: u64) {
        *self.fault.lock() = fault;
        self.fails_from.store(self.calls.load(Ordering::Relaxed) + after, Ordering::Relaxed);
    }

    /// It is well again. One that was put back has what it was put back to.
    pub fn heal(&self) {
        if *self.fault.lock() != Fault::PutBack || !self.has_failed() {
            self.fails_from.store(0, Ordering::Relaxed);
        }
    }

    /// Whether it came to the call from which on it fails.
    pub fn has_failed(&self) -> bool {
        let from = self.fails_from.load(Ordering::Relaxed);
        from > 0 && self.calls.load(Ordering::Relaxed) > from
    }

    /// Counts a call, and says how it fails.
    fn called(&self) -> Option<Fault> {
        while self.hangs.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let from = self.fails_from.load(Ordering::Relaxed);
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        (from > 0 && call >= from).then(|| *self.fault.lock())
    }

    /// Does something that changes what is there, `adds` saying whether it takes room.
    fn change(&self, adds: bool, body: impl Fn(&MemoryProvider) -> Result<(), Failure>) -> Result<(), Failure> {
        match self.called() {
            Some(Fault::Unreachable) => return Err(cut()),
            Some(Fault::Full) if adds => return Err(Failure::Refused("it is full".into())),
            Some(Fault::Forgetting) => return Ok(()),
            Some(Fault::PutBack) => return body(&self.before),
            _ => {}
        }
        body(&self.inner)?;
        if !self.is_remembered.load(Ordering::Relaxed) {
            body(&self.before)?;
        }
        // It was done, and nobody hears of it.
        if self.called() == Some(Fault::Unreachable) { Err(cut()) } else { Ok(()) }
    }
}

fn cut() -> Failure {
    Failure::Unreachable("cut".into())
}

/// An answer without every other row, and without one of those that were added up.
fn hidden(answer: Answer) -> Answer {
    let some: Vec<usize> = (1..answer.rows.places.len()).step_by(2).collect();
    Answer { rows: answer.rows.chosen(&some), added: answer.added.saturating_sub(1), ..answer }
}

/// An answer of other values.
fn changed(mut answer: Answer) -> Answer {
    for (_, data) in &mut answer.rows.columns {
        *data = match data {
            Data::Shares(shares) => Data::Shares(shares.iter().map(|share| share ^ 1).collect()),
            Data::Strings(strings) => Data::Strings(strings.iter().fold(Strings::default(), |mut changed, string| {
                let bytes: Vec<u8> = string.iter().map(|byte| byte ^ 1).collect();
                changed.push(&bytes);
                changed
            })),
        };
    }
    answer.sums.iter_mut().for_each(|sum| *sum ^= 1);
    answer
}

impl Provider for Fickle {
    fn put(&self, table: &Name, rows: &Fragments) -> Result<(), Failure> {
        self.change(true, |inner| inner.put(table, rows))?;
        self.tables.lock().insert(table.clone());
        Ok(())
    }

    fn remove(&self, table: &Name, places: &[u64]) -> Result<(), Failure> {
        self.change(false, |inner| inner.remove(table, places))
    }

    fn ask(
        &self,
        table: &Name,
        question: &Question,
        take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let errand = if question.sums.is_empty() { &self.at_rows } else { &self.at_sum };
        let errand = errand.lock().take();
        errand.into_iter().for_each(|errand| errand());
        match self.called() {
            Some(Fault::Unreachable) => Err(cut()),
            Some(Fault::Changing) => self.inner.ask(table, question, &mut |answer| take(changed(answer))),
            Some(Fault::Hiding) => self.inner.ask(table, question, &mut |answer| take(hidden(answer))),
            Some(Fault::NamingAll) => {
                let all = Question { tests: Vec::new(), ..question.clone() };
                self.inner.ask(table, &all, take)
            }
            Some(Fault::PutBack) => self.before.ask(table, question, take),
            _ => self.inner.ask(table, question, take),
        }
    }

    fn drop_table(&self, table: &Name) -> Result<(), Failure> {
        self.change(false, |inner| inner.drop_table(table))?;
        self.tables.lock().remove(table);
        Ok(())
    }
}

/// Six of them, by their URLs.
#[derive(Default)]
pub struct Reached(pub [Arc<Fickle>; 6]);

impl Reached {
    fn at(&self, url: &str) -> Option<Arc<Fickle>> {
        self.0.get(url.strip_prefix("fickle:")?.parse::<usize>().ok()?).cloned()
    }
}

impl Clouds for Reached {
    fn whole_url(&self, url: &str) -> Option<Result<String, String>> {
        self.at(url).map(|_| Ok(url.to_owned()))
    }

    fn open(&self, url: &str, _: Option<CloudSecret<'_>>, _: Secret) -> Option<Result<Arc<dyn Provider>, String>> {
        self.at(url).map(|cloud| Ok(cloud as Arc<dyn Provider>))
    }
}

/// A database that knows them as `f0` to `f5`.
pub fn fickle() -> (Database, Arc<Reached>) {
    let (mut database, clouds) = (Database::new(), Arc::new(Reached::default()));
    database.engine.reach_clouds_with(clouds.clone());
    for cloud in 0..6 {
        database.ask(&format!("CREATE CLOUD f{cloud} OPTIONS (url 'fickle:{cloud}')"));
    }
    (database, clouds)
}
