//! Questions to clouds of which nobody waits for the end who has no use for it any more.
//!
//! ```text
//! whoever waits <-- parts, two at a time -- a thread, which asks the cloud and which nobody joins
//! ```
//! A cloud that is slow may take its time: whoever waits looks up now and then, asks another one as well, and goes with the first answer.
//! The thread that is left ends with the next part, which nobody takes, or with the patience of its cloud.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use crate::fragments::{Answer, Name, Question};
use crate::provider::{Failure, Provider};
use crate::watch::Watch;

/// How often whoever waits looks up.
const TICK: Duration = Duration::from_millis(20);
/// Others are asked as well when nothing has come for so long.
pub(crate) const HEDGE: Duration = Duration::from_millis(1500);
/// Or when what has come says that an answer takes longer than this: a cloud that gives a row now and then would keep everybody.
const ANSWER_MOST: Duration = Duration::from_secs(600);
/// Before that nothing can be said of a pace.
const PACE_LEAST: Duration = Duration::from_secs(6);
/// Parts that wait to be taken.
const PARTS: usize = 2;
/// Questions that clouds have not answered, in this process: a share that hangs must not take a thread for each that anybody asks.
const UNANSWERED_MAX: usize = 512;

static UNANSWERED: AtomicUsize = AtomicUsize::new(0);

/// A question that is counted until its cloud has ended.
struct Counted;

impl Counted {
    fn new() -> Result<Self, Failure> {
        let before = UNANSWERED.fetch_add(1, Ordering::Relaxed);
        let counted = Self;
        match before < UNANSWERED_MAX {
            true => Ok(counted),
            false => {
                Err(Failure::Unreachable(format!("{UNANSWERED_MAX} questions wait for clouds that do not answer")))
            }
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        UNANSWERED.fetch_sub(1, Ordering::Relaxed);
    }
}

enum Part {
    Some(Answer),
    Done(Result<(), Failure>),
}

/// How far an answer has come.
#[derive(Default)]
pub(crate) struct Progress {
    parts: AtomicU64,
    rows: AtomicU64,
    /// Rows of the whole answer; nought: nobody knows.
    rows_expected: AtomicU64,
}

impl Progress {
    const ANSWERED: u64 = u64::MAX;

    /// So many rows are to come.
    pub fn expects(&self, rows: usize) {
        self.rows_expected.store(rows as u64, Ordering::Relaxed);
    }

    /// Something goes on, and so many rows have come.
    pub fn step(&self, rows: usize) {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
        self.parts.fetch_add(1, Ordering::Relaxed);
    }

    fn end(&self) {
        self.parts.store(Self::ANSWERED, Ordering::Relaxed);
    }

    fn at(&self) -> u64 {
        self.parts.load(Ordering::Relaxed)
    }

    /// Whether all of it takes too long at the pace of what has come in so long a time.
    fn is_too_slow(&self, time: Duration) -> bool {
        let expected = self.rows_expected.load(Ordering::Relaxed);
        let come = self.rows.load(Ordering::Relaxed).min(expected);
        // time * expected / come > most, where nothing that has come takes for ever.
        expected > 0
            && time >= PACE_LEAST
            && time.as_millis() * u128::from(expected) > ANSWER_MOST.as_millis() * u128::from(come)
    }
}

/// Who waits for an answer, for how many rows, and who is told how far it has come.
#[derive(Clone, Copy)]
pub(crate) struct Wait<'a> {
    pub watch: &'a dyn Watch,
    /// Whether others have given what was wanted.
    pub is_enough: &'a AtomicBool,
    pub progress: &'a Progress,
    /// Rows and parts of an answer at most: a cloud that shows more would never end.
    pub rows_max: u64,
}

impl Wait<'_> {
    fn goes_on(&self) -> Result<bool, Failure> {
        self.watch.part(0)?;
        Ok(!self.is_enough.load(Ordering::Relaxed))
    }
}

/// Asks a cloud, as long as the answer is wanted; whether it came to its end.
///
/// # Errors
/// [`Failure`], that of the watch and of `take` among them.
pub(crate) fn ask(
    cloud: &Arc<dyn Provider>,
    (table, question): (Name, Question),
    wait: Wait<'_>,
    take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
) -> Result<bool, Failure> {
    let (give, parts) = sync_channel(PARTS);
    let (cloud, counted) = (cloud.clone(), Counted::new()?);
    let asking = move || {
        let mut pass = |answer| give.send(Part::Some(answer)).map_err(|_| Failure::CalledOff);
        let done = cloud.ask(&table, &question, &mut pass);
        drop(counted);
        // Nobody may wait any more.
        let _ = give.send(Part::Done(done));
    };
    let started = std::thread::Builder::new().spawn(asking);
    started.map_err(|error| Failure::Unreachable(format!("no thread to ask it: {error}")))?;
    let done = hear(&parts, wait, take);
    wait.progress.end();
    done
}

/// The same, of an answer that counts row by row, whatever is wrong behind what was shown: a cloud that says that other rows are not as they
/// were written, shows too many or breaks off has come to its end, and that is given beside. One that has no such table shows no rows. Whoever
/// asks looks whether all rows are there.
///
/// # Errors
/// As [`ask`].
pub(crate) fn ask_for_rows(
    cloud: &Arc<dyn Provider>,
    asked: (Name, Question),
    wait: Wait<'_>,
    take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
) -> Result<(bool, Option<Failure>), Failure> {
    let mut is_refused = false;
    let done = ask(cloud, asked, wait, &mut |answer| take(answer).inspect_err(|_| is_refused = true));
    match done {
        Err(damage @ Failure::Malformed(_)) if !is_refused => Ok((true, Some(damage))),
        Err(Failure::NoTable) if !is_refused => Ok((true, None)),
        done => done.map(|is_done| (is_done, None)),
    }
}

fn hear(
    parts: &Receiver<Part>,
    wait: Wait<'_>,
    take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
) -> Result<bool, Failure> {
    let mut left = wait.rows_max;
    loop {
        match parts.recv_timeout(TICK) {
            Ok(Part::Some(answer)) => {
                wait.progress.step(answer.rows.places.len());
                let own = answer.rows.places.len() as u64 + 1;
                left = left.checked_sub(own).ok_or_else(|| Failure::Malformed("more rows than there may be".into()))?;
                take(answer)?;
            }
            Ok(Part::Done(done)) => return done.map(|()| true),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Failure::Malformed("what asks it broke off".into())),
        }
        if !wait.goes_on()? {
            return Ok(false);
        }
    }
}

/// What several clouds answer, as each of them does.
pub(crate) struct Running<'scope, 'env, T> {
    scope: &'scope Scope<'scope, 'env>,
    give: Sender<(usize, Option<T>)>,
    answers: Receiver<(usize, Option<T>)>,
    running: Vec<One>,
}

/// One that has not answered.
struct One {
    number: usize,
    progress: Arc<Progress>,
    began: Instant,
    /// How far it had come when it was looked at last.
    seen: u64,
    is_slow: bool,
}

impl<'scope, 'env, T: Send + 'scope> Running<'scope, 'env, T> {
    /// Nobody yet.
    pub fn new(scope: &'scope Scope<'scope, 'env>) -> Self {
        let (give, answers) = channel();
        Self { scope, give, answers, running: Vec::new() }
    }

    /// Asks one more, which is called by a number.
    pub fn start(&mut self, number: usize, ask: impl FnOnce(&Progress) -> T + Send + 'scope) {
        let (give, progress) = (self.give.clone(), Arc::new(Progress::default()));
        let (own, began) = (progress.clone(), Instant::now());
        self.running.push(One { number, progress: own, began, seen: 0, is_slow: false });
        self.scope.spawn(move || {
            let answer = catch_unwind(AssertUnwindSafe(|| ask(&progress))).ok();
            // Whoever has gone wants none.
            let _ = give.send((number, answer));
        });
    }

    /// Nothing is expected of one that was just asked: others who answer are enough without it.
    pub fn expect_little(&mut self, number: usize) {
        self.running.iter_mut().filter(|one| one.number == number).for_each(|one| one.is_slow = true);
    }

    /// Whether all have answered.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// The numbers of those that have not answered.
    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        self.running.iter().map(|one| one.number)
    }

    /// The numbers of those from which something still comes.
    pub fn coming(&self) -> impl Iterator<Item = usize> {
        self.running.iter().filter(|one| !one.is_slow).map(|one| one.number)
    }

    /// The numbers of those that were waited for in vain, so far.
    pub fn slow(&self) -> impl Iterator<Item = usize> {
        self.running.iter().filter(|one| one.is_slow).map(|one| one.number)
    }

    /// The next answer, none of one that broke off; or that one has been found to be slow: nothing of it has come for a while, or so
    /// little that it would take too long.
    pub fn next(&mut self) -> Option<(usize, Option<T>)> {
        loop {
            if let Some(answered) = self.answered_within(HEDGE) {
                return Some(answered);
            }
            if self.look(Instant::now()) {
                return None;
            }
        }
    }

    /// The next answer, or none after so long.
    pub fn next_within(&mut self, wait: Duration) -> Option<(usize, Option<T>)> {
        let answered = self.answered_within(wait);
        if answered.is_none() {
            self.look(Instant::now());
        }
        answered
    }

    fn answered_within(&mut self, wait: Duration) -> Option<(usize, Option<T>)> {
        let (number, answer) = self.answers.recv_timeout(wait).ok()?;
        self.running.retain(|one| one.number != number);
        Some((number, answer))
    }

    /// Looks how far answers have come; whether one is slow that was not.
    fn look(&mut self, now: Instant) -> bool {
        let mut is_found = false;
        for one in &mut self.running {
            let at = one.progress.at();
            // One whose answer is there is busy here.
            let is_too_slow = || one.progress.is_too_slow(now.saturating_duration_since(one.began));
            let is_slow = at != Progress::ANSWERED && (at == one.seen || is_too_slow());
            is_found |= is_slow && !one.is_slow;
            (one.seen, one.is_slow) = (at, is_slow);
        }
        is_found
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    use super::{ANSWER_MOST, HEDGE, Progress, Running, Wait, ask};
    use crate::fragments::{Answer, Fragments, Name, Question};
    use crate::provider::{Failure, Provider};
    use crate::watch::Patient;

    /// A cloud whose answers have no end.
    struct Endless(usize);

    impl Provider for Endless {
        fn put(&self, _table: &Name, _rows: &Fragments) -> Result<(), Failure> {
            Ok(())
        }

        fn remove(&self, _table: &Name, _places: &[u64]) -> Result<(), Failure> {
            Ok(())
        }

        fn ask(
            &self,
            _table: &Name,
            _question: &Question,
            take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
        ) -> Result<(), Failure> {
            loop {
                let rows = Fragments { places: vec![7; self.0], columns: Vec::new() };
                take(Answer { rows, ..Answer::default() })?;
            }
        }

        fn drop_table(&self, _table: &Name) -> Result<(), Failure> {
            Ok(())
        }
    }

    #[test]
    fn an_answer_without_an_end_is_none() {
        for rows in [0, 10] {
            let cloud: Arc<dyn Provider> = Arc::new(Endless(rows));
            let asked = (Name::parse("t0000000000000001").expect("a name"), Question::default());
            let (is_enough, progress, mut parts) = (AtomicBool::new(false), Progress::default(), 0);
            let wait = Wait { watch: &Patient, is_enough: &is_enough, progress: &progress, rows_max: 1000 };
            let told = ask(&cloud, asked, wait, &mut |_| {
                parts += 1;
                assert!(parts <= 1000, "an answer without an end is taken for one");
                Ok(())
            });
            assert!(matches!(told, Err(Failure::Malformed(_))), "{told:?}");
            assert_eq!(parts, 1000 / (rows + 1));
        }
    }

    #[test]
    fn whoever_goes_on_is_not_slow() {
        std::thread::scope(|scope| {
            let mut running = Running::new(scope);
            let (step, steps) = channel::<()>();
            let (stepped, has_stepped) = channel::<()>();
            running.start(0, move |progress| {
                while steps.recv().is_ok() {
                    progress.step(0);
                    stepped.send(()).expect("somebody waits");
                }
            });
            let (leave, left) = channel::<()>();
            running.start(1, move |_| left.recv().unwrap_or_default());
            for _ in 0..3 {
                step.send(()).expect("it goes on");
                has_stepped.recv().expect("it has gone on");
                running.look(Instant::now());
                assert_eq!(
                    (running.coming().collect::<Vec<_>>(), running.slow().collect::<Vec<_>>()),
                    (vec![0], vec![1])
                );
            }
            assert!(running.look(Instant::now()), "it has stopped");
            assert_eq!(running.slow().count(), 2);
            drop((step, leave));
            while !running.is_empty() {
                running.next();
            }
        });
    }

    #[test]
    fn whoever_would_take_too_long_is_slow() {
        std::thread::scope(|scope| {
            let (mut running, began) = (Running::new(scope), Instant::now());
            let (step, steps) = channel::<usize>();
            let (stepped, has_stepped) = channel::<()>();
            running.start(0, move |progress| {
                progress.expects(1_000_000);
                for rows in steps {
                    progress.step(rows);
                    stepped.send(()).expect("somebody waits");
                }
            });
            let mut slow_after = |rows: usize, time: Duration| {
                step.send(rows).expect("it goes on");
                has_stepped.recv().expect("it has gone on");
                running.look(began + time);
                running.slow().count() == 1
            };
            // Too early to say; a row a second; and at a pace by which it comes in time, though it began slowly.
            assert!(!slow_after(1, HEDGE));
            assert!(slow_after(6, Duration::from_secs(8)));
            assert!(!slow_after(100_000, Duration::from_secs(20)));
            assert!(slow_after(0, ANSWER_MOST));
            drop(step);
            while !running.is_empty() {
                running.next();
            }
        });
    }
}
