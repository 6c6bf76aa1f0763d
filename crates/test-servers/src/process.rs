//! A process that is killed, with those that it began.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// The processes that one began, and those that these began.
fn begun_by(process: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    children.flat_map(|child| std::iter::once(child).chain(begun_by(child))).collect()
}

fn send(signal: &str, processes: impl Iterator<Item = u32>) {
    let processes: Vec<String> = processes.map(|process| process.to_string()).collect();
    if !processes.is_empty() {
        // One that ended meanwhile needs no signal.
        Command::new("kill").arg(signal).args(processes).stderr(Stdio::null()).status().expect("kill");
    }
}

/// Sends a signal (`-STOP`) to a process and those that it began.
pub fn signal(running: &Child, signal: &str) {
    send(signal, begun_by(running.id()).into_iter().chain([running.id()]));
}

/// Kills a process, and waits for those that it began: they serve their connections until they notice.
pub fn kill(mut running: Child) {
    let begun = begun_by(running.id());
    running.kill().expect("killed");
    running.wait().expect("ended");
    begun.into_iter().for_each(wait_for_end);
}

/// Kills a process and those that it began: they would serve on.
pub fn kill_all(mut running: Child) {
    // Stopped first, so that it begins no more.
    send("-STOP", std::iter::once(running.id()));
    let begun = begun_by(running.id());
    send("-KILL", begun.iter().copied());
    running.kill().expect("killed");
    running.wait().expect("ended");
    begun.into_iter().for_each(wait_for_end);
}

/// Waits until a process is gone, or would be if somebody asked how it ended.
fn wait_for_end(process: u32) {
    for _ in 0..6000 {
        let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        if !state.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z')) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("process {process} does not end");
}
