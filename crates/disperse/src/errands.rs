//! Telling a cloud without waiting for it for ever.
//!
//! ```text
//! whoever tells --> an errand, on a thread of its own --> the cloud
//!               <-- what came of it, or after a while: nothing yet
//! ```
//! 1. A cloud that hangs would keep whoever tells it something for as long as its patience, a minute or two, and everybody who writes
//!    behind him. So whoever waits goes on after a while, as if it could not be reached: it is told later.
//! 2. Until an errand has ended the cloud is told nothing else: what it is told next must not overtake it.
//! 3. A cloud that is slow is no cloud that hangs. Rows are waited for longer the more they are, and everything twice as long as
//!    anything took that was done in the end. And what was done is remembered: telling the same again ends with that.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use crate::fragments::{Answer, Fragments, Name, Question};
use crate::lateness::Lateness;
use crate::provider::{Failure, Provider};

/// How long somebody waits for rows, and beside that for each so many bytes of them.
const PUT: Duration = Duration::from_secs(10);
const BYTES_A_SECOND: usize = 64 << 10;
/// For rows or a table to go: a store of files reads all of them, and writes some anew.
const REMOVE: Duration = Duration::from_secs(30);
/// For rows to come or go at one that was waited for in vain a moment ago, unless something has taken longer and was done: a statement
/// tells it several things, and what it does in the end is remembered.
const LATE: Duration = Duration::from_secs(1);
/// A question that ends in vain after so long has met one that hangs: what it is asked next
const SILENT: Duration = Duration::from_secs(5);
/// is waited for no longer than this, until it has begun to answer; and for each part that follows so long.
const AGAIN: Duration = Duration::from_secs(5);
const PART: Duration = Duration::from_secs(120);
/// Questions beside errands that nobody waits for any more, at most: however many are waited for.
const ABANDONED_MAX: usize = 8;
/// However long something took.
const PATIENCE_MAX: Duration = Duration::from_secs(600);

/// What an errand is about: two of the same have the same.
type About = [u8; 32];

/// The errand to a cloud that somebody has stopped waiting for, if there is one, and how long it keeps others waiting. As long as a process lives there is one of these for each cloud.
#[derive(Default)]
pub struct Errands {
    current: Mutex<Current>,
    /// The longest that anything took that was done, in milliseconds.
    longest: Arc<AtomicU64>,
    /// Whether questions were waited for in vain.
    lateness: Lateness,
    /// Questions beside errands that nobody waits for any more, and that have not ended.
    abandoned: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Current {
    /// The errand that somebody has stopped waiting for.
    out: Option<Errand>,
    /// What was done after nobody waited any more.
    done: Option<About>,
}

struct Errand {
    about: Option<About>,
    ended: Receiver<Result<(), Failure>>,
}

fn busy() -> Failure {
    Failure::Unreachable("it is busy with what it was told before".into())
}

impl Errands {
    /// Does something at the cloud that overtakes what it is told, and is waited for no longer than this, whatever took how long before.
    ///
    /// # Errors
    /// As [`Errands::run`].
    pub fn aside(
        &self,
        patience: Duration,
        errand: impl FnOnce() -> Result<(), Failure> + Send + 'static,
    ) -> Result<(), Failure> {
        let patience = if self.lateness.is_late() { patience.min(LATE) } else { patience };
        if self.abandoned.load(Ordering::SeqCst) >= ABANDONED_MAX {
            return Err(busy());
        }
        let (abandoned, is_left, (end, ended)) = (self.abandoned.clone(), Arc::new(AtomicBool::new(false)), channel());
        let is_left_by_now = is_left.clone();
        let started = thread::Builder::new().spawn(move || {
            let done = errand();
            // Whoever leaves last, of this thread and whoever waits for it, takes it off the count.
            if is_left_by_now.swap(true, Ordering::SeqCst) {
                abandoned.fetch_sub(1, Ordering::SeqCst);
            }
            let _ = end.send(done);
        });
        started.map_err(|error| Failure::Unreachable(format!("no thread to ask it: {error}")))?;
        match ended.recv_timeout(patience) {
            Ok(done) => done,
            Err(RecvTimeoutError::Disconnected) => Err(Failure::Malformed("what asks it broke off".into())),
            Err(RecvTimeoutError::Timeout) => {
                self.abandoned.fetch_add(1, Ordering::SeqCst);
                if is_left.swap(true, Ordering::SeqCst) {
                    self.abandoned.fetch_sub(1, Ordering::SeqCst);
                }
                self.lateness.note();
                Err(Failure::Unreachable(format!("it has not answered for {} ms", patience.as_millis())))
            }
        }
    }

    /// Whether it was waited for in vain a moment ago.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.lateness.is_late()
    }

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
        let mut own = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = own.out.take() {
            match before.ended.try_recv() {
                Ok(Ok(())) => own.done = before.about.or(own.done),
                // It failed, or broke off: it is tried again.
                Ok(Err(_)) | Err(TryRecvError::Disconnected) => {}
                Err(TryRecvError::Empty) => {
                    own.out = Some(before);
                    return Err(busy());
                }
            }
        }
        if about.is_some() {
            // What is told next may undo it.
            let done = own.done.take();
            if done == about {
                return Ok(());
            }
        }
        let patience = if self.lateness.is_late() { patience.min(LATE) } else { patience };
        let twice = Duration::from_millis(self.longest.load(Ordering::Relaxed).saturating_mul(2));
        let patience = patience.max(twice.min(PATIENCE_MAX));
        let ((end, ended), longest, begun) = (channel(), self.longest.clone(), Instant::now());
        let started = thread::Builder::new().spawn(move || {
            let done = errand();
            if done.is_ok() {
                let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                longest.fetch_max(took, Ordering::Relaxed);
            }
            // Nobody may wait any more.
            let _ = end.send(done);
        });
        started.map_err(|error| Failure::Unreachable(format!("no thread to tell it: {error}")))?;
        match ended.recv_timeout(patience) {
            Ok(done) => done,
            Err(RecvTimeoutError::Disconnected) => Err(Failure::Malformed("what tells it broke off".into())),
            Err(RecvTimeoutError::Timeout) => {
                own.out = Some(Errand { about, ended });
                self.lateness.note();
                Err(Failure::Unreachable(format!("it has not answered for {} s", patience.as_secs())))
            }
        }
    }
}

/// A cloud that is told by errands. Questions go to it as they are: they are called off in other ways. Only where it was waited for in vain a
/// moment ago they are asked aside: a statement asks several, of which each would take as long as the cloud's patience.
pub struct ByErrands {
    cloud: Arc<dyn Provider>,
    errands: Arc<Errands>,
    /// Of a test: how long it waits for anything.
    #[cfg(test)]
    patience: Option<Duration>,
}

impl ByErrands {
    /// A cloud with its errands.
    #[must_use]
    pub fn new(cloud: Arc<dyn Provider>, errands: Arc<Errands>) -> Self {
        Self {
            cloud,
            errands,
            #[cfg(test)]
            patience: None,
        }
    }

    fn run(
        &self,
        (what, table, places): (u8, &Name, &[u64]),
        patience: Duration,
        errand: impl FnOnce(&dyn Provider, &Name) -> Result<(), Failure> + Send + 'static,
    ) -> Result<(), Failure> {
        let mut about = Sha256::new_with_prefix([what]);
        about.update(table.as_str());
        places.iter().for_each(|place| about.update(place.to_le_bytes()));
        let (cloud, table) = (self.cloud.clone(), table.clone());
        #[cfg(test)]
        let patience = self.patience.unwrap_or(patience);
        self.errands.run(Some(about.finalize().into()), patience, move || errand(&*cloud, &table))
    }
}

impl ByErrands {
    #[cfg(not(test))]
    fn silent(&self) -> Duration {
        SILENT
    }

    #[cfg(test)]
    fn silent(&self) -> Duration {
        self.patience.unwrap_or(SILENT)
    }

    /// Asks on a thread of its own, which nobody waits for if it does not begin to answer soon.
    fn ask_aside(
        &self,
        table: &Name,
        question: &Question,
        take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.errands.abandoned.load(Ordering::SeqCst) >= ABANDONED_MAX {
            return Err(busy());
        }
        let (says, said) = sync_channel::<Result<Option<Answer>, Failure>>(1);
        let (abandoned, is_left) = (self.errands.abandoned.clone(), Arc::new(AtomicBool::new(false)));
        let (cloud, table, question, is_left_by_now) =
            (self.cloud.clone(), table.clone(), question.clone(), is_left.clone());
        let started = thread::Builder::new().spawn(move || {
            let gone = |_| Failure::Unreachable("nobody waits for it any more".into());
            let asked = cloud.ask(&table, &question, &mut |answer| says.send(Ok(Some(answer))).map_err(gone));
            if is_left_by_now.swap(true, Ordering::SeqCst) {
                abandoned.fetch_sub(1, Ordering::SeqCst);
            }
            let _ = says.send(asked.map(|()| None));
        });
        started.map_err(|error| Failure::Unreachable(format!("no thread to ask it: {error}")))?;
        let mut patience = self.silent().min(AGAIN);
        loop {
            match said.recv_timeout(patience) {
                Ok(Ok(Some(answer))) => take(answer)?,
                Ok(done) => {
                    if done.is_ok() {
                        self.errands.lateness.forget();
                    }
                    return done.map(drop);
                }
                Err(RecvTimeoutError::Disconnected) => return Err(Failure::Malformed("what asks it broke off".into())),
                Err(RecvTimeoutError::Timeout) => {
                    self.errands.abandoned.fetch_add(1, Ordering::SeqCst);
                    if is_left.swap(true, Ordering::SeqCst) {
                        self.errands.abandoned.fetch_sub(1, Ordering::SeqCst);
                    }
                    // That is not noted: whoever takes longer to begin is waited for as usual in half a minute.
                    return Err(Failure::Unreachable(format!("it has not answered for {} s", patience.as_secs())));
                }
            }
            patience = PART;
        }
    }
}

impl Provider for ByErrands {
    fn put(&self, table: &Name, rows: &Fragments) -> Result<(), Failure> {
        // A row's place has the same fragments always.
        let own = rows.clone();
        let bytes: usize = (0..rows.places.len()).map(|row| rows.row_bytes(row)).sum();
        let patience = PUT + Duration::from_secs((bytes / BYTES_A_SECOND) as u64);
        self.run((1, table, &rows.places), patience, move |cloud, table| cloud.put(table, &own))
    }

    fn remove(&self, table: &Name, places: &[u64]) -> Result<(), Failure> {
        if places.is_empty() {
            return Ok(());
        }
        let own = places.to_vec();
        self.run((2, table, places), REMOVE, move |cloud, table| cloud.remove(table, &own))
    }

    fn ask(
        &self,
        table: &Name,
        question: &Question,
        take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.errands.is_late() {
            return self.ask_aside(table, question, take);
        }
        let begun = Instant::now();
        let asked = self.cloud.ask(table, question, take);
        if matches!(asked, Err(Failure::Unreachable(_))) && begun.elapsed() >= self.silent() {
            self.errands.lateness.note();
        }
        asked
    }

    fn drop_table(&self, table: &Name) -> Result<(), Failure> {
        self.run((3, table, &[]), REMOVE, |cloud, table| cloud.drop_table(table))
    }

    fn is_near_fragments(&self) -> bool {
        self.cloud.is_near_fragments()
    }

    fn lateness(&self) -> Option<&Lateness> {
        Some(&self.errands.lateness)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::{ABANDONED_MAX, ByErrands, Errands};
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
        asked: AtomicUsize,
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
            let begun = Instant::now();
            self.asked.fetch_add(1, Ordering::SeqCst);
            while self.hangs.load(Ordering::SeqCst) {
                if begun.elapsed() > 3 * SHORT {
                    return Err(Failure::Unreachable("no answer in time".into()));
                }
                thread::sleep(Duration::from_millis(1));
            }
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

    /// Of a statement that asks a cloud several things the first waits as long as the cloud is waited for, and no other.
    #[test]
    fn a_cloud_that_let_a_question_wait_is_asked_aside_for_a_while() {
        let (cloud, errands) = (Arc::new(Hanging::default()), Arc::new(Errands::default()));
        let told = ByErrands { patience: Some(SHORT), ..ByErrands::new(cloud.clone(), errands.clone()) };
        let table = Name::parse("t0000000000000001").expect("a name");
        assert_eq!(told.put(&table, &rows(&[1, 2])), Ok(()));
        let ask = || {
            let mut places = Vec::new();
            told.ask(&table, &Question::default(), &mut |answer| {
                places.extend(answer.rows.places);
                Ok(())
            })
            .map(|()| places)
        };
        assert_eq!(ask(), Ok(vec![1, 2]));
        cloud.hangs.store(true, Ordering::SeqCst);
        let told_in_the_end = ask();
        assert!(
            matches!(&told_in_the_end, Err(Failure::Unreachable(text)) if text.contains("in time")),
            "{told_in_the_end:?}"
        );
        assert!(errands.is_late());
        for _ in 0..2 * ABANDONED_MAX {
            let late = ask();
            assert!(matches!(&late, Err(Failure::Unreachable(text)) if !text.contains("in time")), "{late:?}");
        }
        // Questions that nobody waits for any more are not many.
        assert!(cloud.asked.load(Ordering::SeqCst) <= 2 * ABANDONED_MAX + 2);
        cloud.hangs.store(false, Ordering::SeqCst);
        while ask() != Ok(vec![1, 2]) {}
        assert!(!errands.is_late());
    }

    #[test]
    fn a_cloud_that_hangs_keeps_nobody_and_is_overtaken_by_nothing() {
        let (cloud, errands) = (Arc::new(Hanging::default()), Arc::new(Errands::default()));
        let told = ByErrands { patience: Some(SHORT), ..ByErrands::new(cloud.clone(), errands.clone()) };
        let table = Name::parse("t0000000000000001").expect("a name");
        let is_late = |done: Result<(), Failure>| matches!(done, Err(Failure::Unreachable(_)));
        assert_eq!(told.put(&table, &rows(&[1, 2])), Ok(()));
        cloud.hangs.store(true, Ordering::SeqCst);
        assert!(is_late(told.put(&table, &rows(&[3]))));
        // Whoever reaches it in another way does not overtake either.
        let other = ByErrands { patience: Some(SHORT), ..ByErrands::new(cloud.clone(), errands) };
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
    fn as_many_may_ask_at_once_as_want_to_and_few_are_left_behind() {
        let errands = Errands::default();
        let held = Arc::new(AtomicBool::new(true));
        let asked = |held: &Arc<AtomicBool>| {
            let held = held.clone();
            move || {
                while held.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(1));
                }
                Ok(())
            }
        };
        thread::scope(|scope| {
            let all: Vec<_> = (0..3 * ABANDONED_MAX)
                .map(|_| scope.spawn(|| errands.aside(Duration::from_secs(60), asked(&held))))
                .collect();
            thread::sleep(SHORT);
            held.store(false, Ordering::SeqCst);
            assert!(all.into_iter().all(|one| one.join().expect("an answer").is_ok()));
        });
        // Of a cloud that hangs so many are left behind, and whoever comes after that is told at once.
        held.store(true, Ordering::SeqCst);
        for _ in 0..ABANDONED_MAX + 2 {
            assert!(matches!(errands.aside(SHORT, asked(&held)), Err(Failure::Unreachable(_))));
        }
        assert_eq!(errands.abandoned.load(Ordering::SeqCst), ABANDONED_MAX);
        held.store(false, Ordering::SeqCst);
        while errands.abandoned.load(Ordering::SeqCst) > 0 {
            thread::sleep(Duration::from_millis(1));
        }
        while errands.aside(20 * SHORT, || Ok(())).is_err() {}
    }

    #[test]
    fn what_was_told_otherwise_is_told_again() {
        let (cloud, errands) = (Arc::new(Hanging::default()), Arc::new(Errands::default()));
        let told = ByErrands { patience: Some(SHORT), ..ByErrands::new(cloud.clone(), errands) };
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

    #[test]
    fn a_cloud_that_is_slow_is_waited_for_longer_the_next_time() {
        let (errands, ended) = (Errands::default(), Arc::new(AtomicUsize::new(0)));
        let slow = |time: Duration| {
            let ended = ended.clone();
            move || {
                thread::sleep(time);
                ended.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
        };
        let time = 8 * SHORT;
        assert!(errands.run(None, SHORT, slow(time)).is_err());
        while ended.load(Ordering::SeqCst) < 1 {
            thread::sleep(Duration::from_millis(1));
        }
        while errands.run(None, SHORT, slow(time)).is_err() {}
        // A machine that has much to do may take it for longer once more.
        assert!(ended.load(Ordering::SeqCst) <= 5, "it was begun over and over");
    }

    #[test]
    fn what_failed_in_the_end_is_tried_again_and_a_question_forgets_nothing() {
        let (errands, about) = (Errands::default(), Some([7; 32]));
        let later = |done: Result<(), Failure>| {
            move || {
                thread::sleep(3 * SHORT);
                done
            }
        };
        let failed = Err(Failure::Refused("no".into()));
        assert!(matches!(errands.run(about, SHORT, later(failed)), Err(Failure::Unreachable(_))));
        thread::sleep(20 * SHORT);
        assert!(matches!(errands.run(about, SHORT, later(Ok(()))), Err(Failure::Unreachable(_))), "it is tried again");
        while errands.run(None, 20 * SHORT, || Ok(())).is_err() {}
        assert_eq!(errands.run(about, SHORT, || panic!("it was done")), Ok(()));
        // And once it was told of, or something else was told, it is told anew.
        assert_eq!(errands.run(about, SHORT, || Ok(())), Ok(()));
    }
}
