//! The header against the library: the example in C is compiled, linked and run; and what it hands over wrongly is refused.

use std::path::{Path, PathBuf};
use std::process::Command;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The static library, which cargo puts beside the tests: the newest one that was built with what these tests want, since others
/// lie there from builds of before.
fn library() -> PathBuf {
    let tests = std::env::current_exe().expect("a test").parent().expect("a folder").to_owned();
    let beside = std::fs::read_dir(tests).expect("a folder").map(|entry| entry.expect("an entry").path());
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libcounterfoil_device") && name.ends_with(".a") && has_tables(path)
    };
    let newest = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).expect("a time");
    beside.filter(is_library).max_by_key(newest).expect("cargo built the static library")
}

/// Whether a library has the functions for tables, if these tests are built with them.
fn has_tables(library: &Path) -> bool {
    let symbol = b"counterfoil_tables_open";
    let has = |bytes: Vec<u8>| bytes.windows(symbol.len()).any(|part| part == symbol);
    !cfg!(feature = "relation") || std::fs::read(library).is_ok_and(has)
}

fn compiled(source: &Path, folder: &Path) -> PathBuf {
    let program = folder.join("program");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let status = Command::new(compiler)
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .arg(&program)
        .arg("-I")
        .arg(repository().join("crates/c-api/include"))
        .arg(source)
        .arg(library())
        .args(["-lpthread", "-ldl", "-lm"])
        .status()
        .expect("a C compiler");
    assert!(status.success(), "{} does not compile", source.display());
    program
}

#[test]
fn the_example_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled(&repository().join("examples/plays.c"), folder.path());
    let ran = Command::new(program).output().expect("runs");
    let text = String::from_utf8(ran.stdout).expect("text");
    assert_eq!(ran.status.code(), Some(0), "{text}");
    assert!(text.contains("played: 0 left\nyesterday's flash put back: refused\n"), "{text}");
}

#[cfg(feature = "relation")]
#[test]
fn the_example_with_tables_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled(&repository().join("examples/readings.c"), folder.path());
    let ran = Command::new(program).output().expect("runs");
    let text = String::from_utf8(ran.stdout).expect("text");
    assert_eq!(ran.status.code(), Some(0), "{text}");
    assert!(text.contains("roof: 19 readings, the greatest 31\nyesterday's flash put back: refused\n"), "{text}");
}
