//! What is stored is found in no file that any command makes, except in the output that was asked for.

use super::stage::Stage;

const MARKER: &str = "tHe-MaRkEr-51c9";

#[test]
fn the_marker_is_nowhere_in_the_clear() {
    let stage = Stage::with_database();
    let sql = format!(
        "CREATE TABLE t (a INT, b TEXT); INSERT INTO t SELECT i, '{MARKER}' || i FROM generate_series(1, 30000) s(i)"
    );
    stage.run_with_input(&["db"], &sql);
    stage.run_with_input(&["kv", "db", "put", MARKER], MARKER);
    stage.good(&["db", "SELECT b FROM t ORDER BY b, a LIMIT 5"]);
    stage.good(&["db", "CREATE INDEX ON t (b)"]);
    stage.good(&["db", "UPDATE t SET b = b || 'x' WHERE a < 1000; DELETE FROM t WHERE a > 20000"]);
    stage.good(&["backup", "db", "backup"]);
    stage.good(&["compact", "db"]);
    stage.good(&["inspect", "db", "--svg", "map.svg"]);
    stage.good(&["verify", "db"]);
    stage.good(&["rekey", "db", "--data"]);
    stage.good(&["restore", "backup", "copy", "--as-new"]);
    let ended = stage.run(&["db", &format!("SELECT nothing, '{MARKER}' FROM t")]);
    assert_eq!(ended.code, 1);
    let mut folders = vec![stage.folder().to_owned()];
    let mut looked_at = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).expect("read");
            looked_at += 1;
            assert!(!contains(&bytes, MARKER.as_bytes()), "{} holds the marker", path.display());
        }
    }
    assert!(looked_at >= 5);
    stage.good(&["export", "db", "t", "t.csv"]);
    assert!(contains(&stage.read("t.csv"), MARKER.as_bytes()));
}

/// The key and the rows of a process that dies are in its memory, and in no file.
#[test]
fn a_process_that_dies_leaves_no_core_dump() {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::process::ExitStatusExt;
    let stage = Stage::with_database();
    let mut shell = std::process::Command::new("sh");
    let program = env!("CARGO_BIN_EXE_counterfoil");
    shell.args(["-c", &format!("ulimit -c unlimited; exec '{program}' db --no-header")]);
    shell.current_dir(stage.folder()).env_clear();
    shell.env("COUNTERFOIL_KEY_FILE", stage.path("k")).env("COUNTERFOIL_STATE_DIR", stage.path("state"));
    shell.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = shell.spawn().expect("starts");
    writeln!(child.stdin.as_mut().expect("a pipe"), "SELECT '{MARKER}';").expect("written");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("read");
    assert_eq!(line.trim_end(), MARKER);
    let process = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a process"));
    nix::sys::signal::kill(process, nix::sys::signal::SIGABRT).expect("sent");
    let status = child.wait().expect("ends");
    assert_eq!(status.signal(), Some(6));
    assert!(!status.core_dumped());
    let names = std::fs::read_dir(stage.folder()).expect("a folder").flatten().map(|entry| entry.file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with("core")));
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(bytes, part).is_some()
}
