//! Telling a cloud without waiting for it for ever.
//!
//! ```text
//! whoever tells --> an errand, on a thread of its own --> the cloud
//!               <-- what came of it, or after a while: nothing yet
//! ```
//! 1. A cloud that hangs would keep whoever tells it something for as long as its patience, a minute or two, and everybody who writes
//!    behind him. So whoever waits goes on after a while, as if it could not be reached: it is told later.
//! 2. Until an errand has ended the cloud is told nothing else: what it is told next must not overtake it.
//! 3. What came of it in the end is remembered. Telling the same again ends with that, so that a line on which something takes longer
//!    than anybody waits is not tried from the start for ever.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::fragments::{Answer, Fragments, Name, Question};
use crate::provider::{Failure, Provider};

/// How long somebody waits for an errand.
const PATIENCE: Duration = Duration::from_secs(10);

/// What an errand is about: two of the same have the same.
type About = [u8; 32];

/// The errand to a cloud that somebody has stopped waiting for, if there is one. As long as a process lives there is one of these for each cloud.
#[derive(Default)]
pub struct Errands(Mutex<Option<Errand>>);

struct Errand {
    about: About,
    ended: Receiver<Result<(), Failure>>,
}

fn busy() -> Failure {
    Failure::Unreachable("it is busy with what it was told before".into())
}

impl Errands {
    /// Does something at the cloud, on a thread of its own. `about`: what it is, none: like nothing else.
    ///
    /// # Errors
    /// [`Failure`]: that of the errand; [`Failure::Unreachable`]: it has not ended in so long a time, or the one before has not.
    pub fn run(
        &self,
        about: Option<About>,
        patience: Duration,
        errand: impl FnOnce() -> Result<(), Failure> + Send + 'static,
    ) -> Result<(), Failure> {
        let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = own.take() {
            match before.ended.try_recv() {
                Ok(done) if about == Some(before.about) => return done,
                // Something else, or one that broke off: it has ended.
                Ok(_) | Err(TryRecvError::Disconnected) => {}
                Err(TryRecvError::Empty) => {
                    *own = Some(before);
                    return Err(busy());
                }
            }
        }
        let (end, ended) = channel();
        let started = thread::Builder::new().spawn(move || {
            // Nobody may wait any more.
            let _ = end.send(errand());
        });
        started.map_err(|error| Failure::Unreachable(format!("no thread to tell it: {error}")))?;
        match ended.recv_timeout(patience) {
            Ok(done) => done,
            Err(RecvTimeoutError::Disconnected) => Err(Failure::Malformed("what tells it broke off".into())),
            Err(RecvTimeoutError::Timeout) => {
                *own = Some(Errand { about: about.unwrap_or_default(), ended });
                Err(Failure::Unreachable(format!("it has not answered for {} s", patience.as_secs())))
            }
        }
    }
}

/// A cloud that is told by errands. Questions go to it as they are: they are called off in other ways.
pub struct Told {
    cloud: Arc<dyn Provider>,
    errands: Arc<Errands>,
    patience: Duration,
}

impl Told {
    /// A cloud with its errands.
    #[must_use]
    pub fn new(cloud: Arc<dyn Provider>, errands: Arc<Errands>) -> Self {
        Self { cloud, errands, patience: PATIENCE }
    }

    fn run(
        &self,
        (what, table, places): (u8, &Name, &[u64]),
        errand: impl FnOnce(&dyn Provider, &Name) -> Result<(), Failure> + Send + 'static,
    ) -> Result<(), Failure> {
        let mut about = Sha256::new_with_prefix([what]);
        about.update(table.as_str());
        places.iter().for_each(|place| about.update(place.to_le_bytes()));
        let (cloud, table) = (self.cloud.clone(), table.clone());
        self.errands.run(Some(about.finalize().into()), self.patience, move || errand(&*cloud, &table))
    }
}

impl Provider for Told {
    fn put(&self, table: &Name, rows: &Fragments) -> Result<(), Failure> {
        // A row's place has the same fragments always.
        let own = rows.clone();
        self.run((1, table, &rows.places), move |cloud, table| cloud.put(table, &own))
    }

    fn remove(&self, table: &Name, places: &[u64]) -> Result<(), Failure> {
        let own = places.to_vec();
        self.run((2, table, places), move |cloud, table| cloud.remove(table, &own))
    }

    fn ask(
        &self,
        table: &Name,
        question: &Question,
        take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.cloud.ask(table, question, take)
    }

    fn drop_table(&self, table: &Name) -> Result<(), Failure> {
        self.run((3, table, &[]), |cloud, table| cloud.drop_table(table))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::thread;
    use std::time::Duration;

    use super::{Errands, Told};
    use crate::fragments::{Answer, Fragments, Name, Question};
    use crate::provider::{Failure, MemoryProvider, Provider};

    const SHORT: Duration = Duration::from_millis(30);

    /// A cloud that does nothing as long as it hangs.
    #[derive(Default)]
    struct Hanging {
        inner: MemoryProvider,
        hangs: AtomicBool,
        told: Mutex<Vec<&'static str>>,
        ended: AtomicUsize,
    }

    impl Hanging {
        fn done(&self, what: &'static str) {
            while self.hangs.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(1));
            }
            self.told.lock().expect("told").push(what);
            self.ended.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Provider for Hanging {
        fn put(&self, table: &Name, rows: &Fragments) -> Result<(), Failure> {
            self.done("put");
            self.inner.put(table, rows)
        }

        fn remove(&self, table: &Name, places: &[u64]) -> Result<(), Failure> {
            self.done("remove");
            self.inner.remove(table, places)
        }

        fn ask(
            &self,
            table: &Name,
            question: &Question,
            take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
        ) -> Result<(), Failure> {
            self.inner.ask(table, question, take)
        }

        fn drop_table(&self, table: &Name) -> Result<(), Failure> {
            self.done("drop");
            self.inner.drop_table(table)
        }
    }

    fn rows(places: &[u64]) -> Fragments {
        Fragments { places: places.to_vec(), columns: Vec::new() }
    }

    #[test]
    fn a_cloud_that_hangs_keeps_nobody_and_is_overtaken_by_nothing() {
        let (cloud, errands) = (Arc::new(Hanging::default()), Arc::new(Errands::default()));
        let told = Told { patience: SHORT, ..Told::new(cloud.clone(), errands.clone()) };
        let table = Name::parse("t0000000000000001").expect("a name");
        let is_late = |done: Result<(), Failure>| matches!(done, Err(Failure::Unreachable(_)));
        assert_eq!(told.put(&table, &rows(&[1, 2])), Ok(()));
        cloud.hangs.store(true, Ordering::SeqCst);
        assert!(is_late(told.put(&table, &rows(&[3]))));
        // Whoever reaches it in another way does not overtake either.
        let other = Told { patience: SHORT, ..Told::new(cloud.clone(), errands) };
        for told in [&told, &other] {
            assert!(is_late(told.remove(&table, &[3])));
            assert!(is_late(told.put(&table, &rows(&[3]))), "it has not ended");
            assert!(is_late(told.drop_table(&table)));
        }
        cloud.hangs.store(false, Ordering::SeqCst);
        while cloud.ended.load(Ordering::SeqCst) < 2 {
            thread::sleep(Duration::from_millis(1));
        }
        // What was sent arrives once; telling it again ends with what came of it.
        while is_late(told.put(&table, &rows(&[3]))) {}
        assert_eq!(*cloud.told.lock().expect("told"), ["put", "put"]);
        assert_eq!(told.remove(&table, &[3]), Ok(()));
        assert_eq!(*cloud.told.lock().expect("told"), ["put", "put", "remove"]);
    }

    #[test]
    fn what_was_told_otherwise_is_told_again() {
        let (cloud, errands) = (Arc::new(Hanging::default()), Arc::new(Errands::default()));
        let told = Told { patience: SHORT, ..Told::new(cloud.clone(), errands) };
        let table = Name::parse("t0000000000000001").expect("a name");
        cloud.hangs.store(true, Ordering::SeqCst);
        assert!(told.put(&table, &rows(&[3])).is_err());
        cloud.hangs.store(false, Ordering::SeqCst);
        while cloud.ended.load(Ordering::SeqCst) < 1 {
            thread::sleep(Duration::from_millis(1));
        }
        // Rows of other places: what came of the first says nothing of them.
        while told.put(&table, &rows(&[3, 4])).is_err() {}
        assert_eq!(*cloud.told.lock().expect("told"), ["put", "put"]);
    }
}
