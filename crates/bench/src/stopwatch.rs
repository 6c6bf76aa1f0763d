//! Measuring: the middle of several runs, because the machine is never ours alone.

use std::time::Instant;

use crate::Failure;

/// Seconds that `work` takes.
pub fn seconds<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<(f64, T), Failure> {
    let begun = Instant::now();
    let done = work()?;
    Ok((begun.elapsed().as_secs_f64(), done))
}

/// The middle of `runs` measurements.
pub fn median(runs: usize, mut work: impl FnMut() -> Result<f64, Failure>) -> Result<f64, Failure> {
    let mut measured = (0..runs).map(|_| work()).collect::<Result<Vec<f64>, Failure>>()?;
    measured.sort_by(f64::total_cmp);
    Ok(measured[runs / 2])
}

/// One line: what, ours, the peer's, their ratio, and what we go for.
pub fn line(what: &str, unit: &str, ours: f64, peer: f64, goal: &str) {
    let ratio = ours / peer;
    println!("{what:<44} {ours:>12.0} {peer:>12.0} {ratio:>8.2}  {unit:<10} {goal}");
}
