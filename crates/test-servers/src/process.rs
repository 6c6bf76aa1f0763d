//! A process that is killed, with those that it began.

use std::process::Child;
use std::thread;
use std::time::Duration;

/// Kills a process, and waits for those that it began: they serve their connections until they notice.
pub fn kill(mut running: Child) {
    let begun = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", running.id()));
    let begun = begun.unwrap_or_default();
    running.kill().expect("killed");
    running.wait().expect("ended");
    begun.split_whitespace().for_each(wait_for_end);
}

/// Waits until a process is gone, or would be if somebody asked how it ended.
fn wait_for_end(process: &str) {
    for _ in 0..6000 {
        let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        if !state.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z')) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("process {process} does not end");
}
