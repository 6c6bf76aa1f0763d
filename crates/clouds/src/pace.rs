//! How long a server may take.

use std::time::Duration;

use counterfoil_disperse::Failure;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

/// So much has to arrive, or be taken, for a server to be given more time.
const STEP_BYTES: u64 = 1 << 20;

/// The time that one operation has: a server's patience, and that again from each mebibyte on which arrived. So one that hangs is found
/// out in time, one behind a slow line is not taken for it, and one that sends a byte a minute cannot keep anybody for ever.
pub(crate) struct Pace {
    patience: Duration,
    state: Mutex<State>,
}

struct State {
    ends: Instant,
    bytes: u64,
}

impl Pace {
    pub fn new(patience: Duration) -> Self {
        Self { patience, state: Mutex::new(State { ends: Instant::now() + patience, bytes: 0 }) }
    }

    /// So many bytes have come, or gone.
    pub fn moved(&self, bytes: usize) {
        let mut state = self.state.lock();
        state.bytes += bytes as u64;
        if state.bytes >= STEP_BYTES {
            *state = State { ends: Instant::now() + self.patience, bytes: 0 };
        }
    }

    fn ends(&self) -> Instant {
        self.state.lock().ends
    }

    /// Whether there is time for another try after a pause.
    pub fn allows(&self, pause: Duration) -> bool {
        Instant::now() + pause < self.ends()
    }

    /// Does something as long as there is time.
    ///
    /// # Errors
    /// [`Failure::Unreachable`]: there is none left.
    pub async fn hold<T>(&self, body: impl Future<Output = T>) -> Result<T, Failure> {
        let mut body = std::pin::pin!(body);
        loop {
            let ends = self.ends();
            if let Ok(done) = timeout_at(ends, &mut body).await {
                return Ok(done);
            }
            if self.ends() <= ends {
                let told = format!("the server does not get on in {} s", self.patience.as_secs_f32());
                return Err(Failure::Unreachable(told));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Pace, STEP_BYTES};
    use counterfoil_disperse::Failure;
    use std::time::Duration;

    const MOMENT: Duration = Duration::from_millis(20);

    #[tokio::test(start_paused = true)]
    async fn time_is_given_for_what_arrives_and_for_nothing_else() {
        let pace = Pace::new(2 * MOMENT);
        let some = async {
            for _ in 0..100 {
                tokio::time::sleep(MOMENT).await;
                pace.moved(STEP_BYTES as usize);
            }
        };
        assert_eq!(pace.hold(some).await, Ok(()));
        let pace = Pace::new(2 * MOMENT);
        let drops = async {
            for _ in 0..100 {
                tokio::time::sleep(MOMENT).await;
                pace.moved(1);
            }
        };
        assert!(matches!(pace.hold(drops).await, Err(Failure::Unreachable(_))));
    }
}
