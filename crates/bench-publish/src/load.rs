//! Transactions that arrive at random times (Poisson) and are done by threads, first come first served.
//!
//! A job begins when a thread is free for it, whenever it came; its response time counts from its arrival. Threads are more
//! than cores, since some of them wait for locks or a disk.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::random::Random;

const THREADS: usize = 16;
/// A sleep ends so much late at worst on an idle machine; the rest is waited for awake.
const AWAKE: Duration = Duration::from_micros(80);

/// What is done.
#[derive(Clone)]
pub enum Job {
    /// Records from this one on, so many.
    Query(u32, u32),
    /// A record changes.
    Update(u32),
}

pub struct Load {
    pub records: u32,
    /// Records of a query.
    pub wanted: RangeInclusive<u32>,
    /// The part of updates.
    pub updates: f64,
}

impl Load {
    /// So many jobs and when they come, in seconds; all at once where the rate is none.
    pub fn jobs(&self, count: usize, rate: Option<f64>) -> Vec<(f64, Job)> {
        let (mut random, mut now) = (Random(23), 0.0);
        let job = |_| {
            // One minus the part, so that the logarithm is of no zero.
            now += rate.map_or(0.0, |rate| -(1.0 - random.part()).ln() / rate);
            let job = if random.part() < self.updates {
                Job::Update(random.below(self.records as usize) as u32)
            } else {
                let spread = (self.wanted.end() - self.wanted.start() + 1) as usize;
                let wanted = (self.wanted.start() + random.below(spread) as u32).min(self.records);
                Job::Query(random.below((self.records - wanted + 1) as usize) as u32, wanted)
            };
            (now, job)
        };
        (0..count).map(job).collect()
    }
}

/// Mean milliseconds.
#[derive(Clone, Copy, Default, Debug)]
pub struct Times {
    /// From arrival to the end.
    pub response: f64,
    /// Of it, until a thread took it.
    pub waited: f64,
}

#[derive(Clone, Copy, Default, Debug)]
pub struct Outcome {
    /// Jobs done a second, from the first arrival to the last end.
    pub rate: f64,
    pub query: Times,
    pub update: Times,
    pub has_failed: bool,
}

/// Does all jobs; `work` says whether one was done.
pub fn run(jobs: &[(f64, Job)], work: &(impl Fn(&Job) -> bool + Sync)) -> Outcome {
    let (next, failed, start) = (AtomicUsize::new(0), AtomicBool::new(false), Instant::now());
    let share = || {
        let mut done = Vec::new();
        while let Some((arrival, job)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let due = start + Duration::from_secs_f64(*arrival);
            wait_until(due);
            let taken = Instant::now();
            if !work(job) {
                failed.store(true, Ordering::Relaxed);
            }
            done.push((matches!(job, Job::Update(_)), taken - due, due.elapsed()));
        }
        done
    };
    let done: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(share)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    let seconds = start.elapsed().as_secs_f64();
    let mean = |is_update: bool| {
        let of: Vec<_> = done.iter().filter(|(update, ..)| *update == is_update).collect();
        let mean = |total: Duration| total.as_secs_f64() * 1e3 / of.len().max(1) as f64;
        Times { response: mean(of.iter().map(|job| job.2).sum()), waited: mean(of.iter().map(|job| job.1).sum()) }
    };
    Outcome {
        rate: jobs.len() as f64 / seconds,
        query: mean(false),
        update: mean(true),
        has_failed: failed.into_inner() || done.len() < jobs.len(),
    }
}

fn wait_until(due: Instant) {
    let left = due.saturating_duration_since(Instant::now());
    if left > AWAKE {
        std::thread::sleep(left - AWAKE);
    }
    while Instant::now() < due {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use super::{Job, Load, run};

    #[test]
    fn every_job_is_done_once_and_none_before_it_came() {
        let load = Load { records: 100, wanted: 5..=15, updates: 0.25 };
        let jobs = load.jobs(4000, Some(40_000.0));
        let updates = jobs.iter().filter(|(_, job)| matches!(job, Job::Update(_))).count();
        assert!((800..1200).contains(&updates), "{updates} of 4000 where a quarter is wanted");
        let mean = jobs[3999].0 / 4000.0 * 40_000.0;
        assert!((0.9..1.1).contains(&mean), "{mean} of the time between arrivals that is wanted");
        let (done, start) = (Mutex::new(BTreeSet::new()), std::time::Instant::now());
        let outcome = run(&jobs, &|job| {
            let at = jobs.iter().position(|(_, other)| std::ptr::eq(other, job)).expect("one of them");
            assert!(start.elapsed().as_secs_f64() >= jobs[at].0);
            if let Job::Query(from, count) = job {
                assert!((5..=15).contains(count) && from + count <= 100);
            }
            done.lock().expect("no panic").insert(at)
        });
        assert!(!outcome.has_failed && done.into_inner().expect("no panic").len() == 4000);
    }
}
