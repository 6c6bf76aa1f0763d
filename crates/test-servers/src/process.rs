//! A process that is killed, with those that it began.

use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

fn begun_by(running: &Child) -> String {
    std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", running.id())).unwrap_or_default()
}

/// Sends a signal (`-STOP`) to a process and those that it began.
pub fn signal(running: &Child, signal: &str) {
    let processes = begun_by(running);
    let processes = processes.split_whitespace().map(str::to_owned).chain([running.id().to_string()]);
    // One that ended meanwhile needs no signal.
    Command::new("kill").arg(signal).args(processes).status().expect("kill");
}

/// Kills a process, and waits for those that it began: they serve their connections until they notice.
pub fn kill(mut running: Child) {
    let begun = begun_by(&running);
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
