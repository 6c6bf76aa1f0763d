//! Questions to clouds of which nobody waits for the end who has no use for it any more.
//!
//! ```text
//! whoever waits <-- parts, two at a time -- a thread, which asks the cloud and which nobody joins
//! ```
//! A cloud that is slow may take its time: whoever waits looks up now and then, asks another one as well, and goes with the first answer.
//! The thread that is left ends with the next part, which nobody takes, or with the patience of its cloud.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel, sync_channel};
use std::thread::Scope;
use std::time::Duration;

use crate::fragments::{Answer, Name, Question};
use crate::provider::{Failure, Provider};

/// How often whoever waits looks up.
const TICK: Duration = Duration::from_millis(20);
/// Others are asked as well when nobody has answered for so long.
pub(crate) const HEDGE: Duration = Duration::from_millis(1500);
/// Parts that wait to be taken.
const PARTS: usize = 2;

enum Part {
    Some(Answer),
    Done(Result<(), Failure>),
}

/// Asks a cloud, as long as the answer is wanted; whether it came to its end.
///
/// # Errors
/// [`Failure`], that of `is_wanted` and `take` among them.
pub(crate) fn ask(
    cloud: &Arc<dyn Provider>,
    (table, question): (Name, Question),
    is_wanted: &dyn Fn() -> Result<bool, Failure>,
    take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
) -> Result<bool, Failure> {
    let (give, parts) = sync_channel(PARTS);
    let cloud = cloud.clone();
    let asking = move || {
        let mut pass = |answer| give.send(Part::Some(answer)).map_err(|_| Failure::CalledOff);
        let done = cloud.ask(&table, &question, &mut pass);
        // Nobody may wait any more.
        let _ = give.send(Part::Done(done));
    };
    let started = std::thread::Builder::new().spawn(asking);
    started.map_err(|error| Failure::Unreachable(format!("no thread to ask it: {error}")))?;
    loop {
        match parts.recv_timeout(TICK) {
            Ok(Part::Some(answer)) => take(answer)?,
            Ok(Part::Done(done)) => return done.map(|()| true),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Failure::Malformed("what asks it broke off".into())),
        }
        if !is_wanted()? {
            return Ok(false);
        }
    }
}

/// What several clouds answer, as each of them does.
pub(crate) struct Running<'scope, 'env, T> {
    scope: &'scope Scope<'scope, 'env>,
    give: Sender<(usize, Option<T>)>,
    answers: std::sync::mpsc::Receiver<(usize, Option<T>)>,
    running: Vec<usize>,
    slow: Vec<usize>,
}

impl<'scope, 'env, T: Send + 'scope> Running<'scope, 'env, T> {
    /// Nobody yet.
    pub fn new(scope: &'scope Scope<'scope, 'env>) -> Self {
        let (give, answers) = channel();
        Self { scope, give, answers, running: Vec::new(), slow: Vec::new() }
    }

    /// Asks one more, which is called by a number.
    pub fn start(&mut self, number: usize, ask: impl FnOnce() -> T + Send + 'scope) {
        let give = self.give.clone();
        self.running.push(number);
        self.scope.spawn(move || {
            let answer = catch_unwind(AssertUnwindSafe(ask)).ok();
            // Whoever has gone wants none.
            let _ = give.send((number, answer));
        });
    }

    /// The numbers of those that have not answered.
    pub fn numbers(&self) -> &[usize] {
        &self.running
    }

    /// Of those the ones that were waited for in vain.
    pub fn slow(&self) -> impl Iterator<Item = usize> {
        self.slow.iter().copied().filter(|number| self.running.contains(number))
    }

    /// The next answer, none of one that broke off; or that nobody has answered for a while.
    pub fn next(&mut self) -> Option<(usize, Option<T>)> {
        let Ok((number, answer)) = self.answers.recv_timeout(HEDGE) else {
            self.slow.clone_from(&self.running);
            return None;
        };
        self.running.retain(|own| *own != number);
        Some((number, answer))
    }
}
