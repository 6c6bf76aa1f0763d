//! Contention between openings and between processes; a child process is this test program run again.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tempfile::TempDir;

use super::*;
use crate::{FileDevice, Geometry};

const SHAPE: Geometry =
    Geometry { page_bytes: 512, block_pages: 8, block_count: 64, erase_before_program: false, grows: true };
const AT_ONCE: Duration = Duration::ZERO;

fn fresh() -> (TempDir, PathBuf, FileDevice) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("medium");
    let device = FileDevice::create_new(&path, SHAPE).expect("created");
    (directory, path, device)
}

fn again(path: &Path) -> FileDevice {
    FileDevice::open(path, SHAPE).expect("opens")
}

fn is_held<T>(result: Result<T, LockError>) -> bool {
    matches!(result, Err(LockError::Held(_)))
}

#[test]
fn one_writer_among_openings() -> Result<(), LockError> {
    let (_directory, path, device) = fresh();
    let lock = WriterLock::acquire(device.handle(), AT_ONCE)?;
    let other = again(&path);
    assert!(is_held(WriterLock::acquire(other.handle(), Duration::from_millis(5))));
    drop(lock);
    let _lock = WriterLock::acquire(other.handle(), AT_ONCE)?;
    assert!(is_held(WriterLock::acquire(device.handle(), AT_ONCE)));
    Ok(())
}

#[test]
fn closing_another_opening_loses_no_lock() -> Result<(), LockError> {
    let (_directory, path, device) = fresh();
    let _lock = WriterLock::acquire(device.handle(), AT_ONCE)?;
    drop(again(&path));
    assert!(is_held(WriterLock::acquire(again(&path).handle(), AT_ONCE)));
    Ok(())
}

#[test]
fn a_reader_is_no_writer() {
    let (_directory, path, _device) = fresh();
    let reader = FileDevice::open_read_only(path, SHAPE).expect("opens");
    assert_eq!(WriterLock::acquire(reader.handle(), AT_ONCE).err(), Some(LockError::Device(Error::ReadOnly)));
}

#[test]
fn waiting_for_the_writer_ends_when_it_lets_go() -> Result<(), LockError> {
    let (_directory, path, device) = fresh();
    let lock = WriterLock::acquire(device.handle(), AT_ONCE)?;
    let waiter =
        std::thread::spawn(move || WriterLock::acquire(again(&path).handle(), Duration::from_secs(20)).is_ok());
    std::thread::sleep(Duration::from_millis(30));
    drop(lock);
    assert!(waiter.join().expect("did not panic"));
    Ok(())
}

#[test]
fn the_oldest_pin_is_found_among_ours_and_theirs() -> Result<(), Error> {
    let (_directory, path, device) = fresh();
    let ours = Pins::new(device.handle());
    let reader = FileDevice::open_read_only(path, SHAPE)?;
    let theirs = Pins::new(reader.handle());
    assert_eq!(ours.oldest(u64::MAX)?, None);
    let nine = ours.acquire(9)?;
    let _four = theirs.acquire(4)?;
    let seven = theirs.acquire(7)?;
    let five = theirs.acquire(5)?;
    let three = theirs.acquire(3)?;
    assert_eq!((ours.oldest(100)?, theirs.oldest(100)?), (Some(3), Some(3)));
    assert_eq!(three.commit(), 3);
    assert_eq!(ours.oldest(3)?, None);
    drop(three);
    assert_eq!((ours.oldest(100)?, theirs.oldest(100)?), (Some(4), Some(4)));
    drop(seven);
    assert_eq!((ours.oldest(4)?, ours.oldest(5)?), (None, Some(4)));
    assert_eq!((ours.oldest_in(5..100)?, ours.oldest_in(6..100)?, ours.oldest_in(10..100)?), (Some(5), Some(9), None));
    assert_eq!((theirs.oldest_in(6..100)?, theirs.oldest_in(0..0)?), (Some(9), None));
    let two = ours.acquire(2)?;
    assert_eq!((ours.oldest(100)?, theirs.oldest(100)?), (Some(2), Some(2)));
    drop((nine, two, five));
    assert_eq!(theirs.oldest(100)?, Some(4));
    Ok(())
}

#[test]
fn a_commit_stays_pinned_until_its_last_pin_goes() -> Result<(), Error> {
    let (_directory, path, device) = fresh();
    let writer = Pins::new(device.handle());
    let reader = again(&path);
    let pins = Pins::new(reader.handle());
    let first = pins.acquire(0)?;
    let second = pins.acquire(0)?;
    drop(first);
    assert_eq!(writer.oldest(1)?, Some(0));
    drop(second);
    assert_eq!(writer.oldest(1)?, None);
    assert!(matches!(pins.acquire(u64::MAX), Err(Error::Device { operation: Operation::Lock, .. })));
    let last = pins.acquire(COMMIT_MAX - 1)?;
    assert_eq!(writer.oldest(u64::MAX)?, Some(last.commit()));
    Ok(())
}

#[test]
fn pins_and_the_writer_do_not_meet() -> Result<(), LockError> {
    let (_directory, path, device) = fresh();
    let reader = again(&path);
    let _pin = Pins::new(reader.handle()).acquire(0)?;
    let _lock = WriterLock::acquire(device.handle(), AT_ONCE)?;
    assert_eq!(Pins::new(reader.handle()).oldest(u64::MAX)?, None);
    Ok(())
}

/// Set in the child process: the file it is to lock.
const CHILD: &str = "COUNTERFOIL_FLASH_TEST_LOCK";

/// What the child does: takes the writer's lock and pins commit 42, says so, and keeps both until its input ends.
#[test]
fn child_that_holds_the_lock() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let device = again(Path::new(&path));
    let _lock = WriterLock::acquire(device.handle(), AT_ONCE).expect("nobody else has it");
    let _pin = Pins::new(device.handle()).acquire(42).expect("pins");
    std::println!("\nlocked");
    let _ = std::io::stdin().lines().next();
}

fn child(path: &Path) -> (Child, ChildStdin, BufReader<ChildStdout>) {
    let program = std::env::current_exe().expect("this test has a program");
    let mut child = Command::new(program)
        .args(["lock::tests::child_that_holds_the_lock", "--exact", "--nocapture"])
        .env(CHILD, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("runs");
    let input = child.stdin.take().expect("piped");
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    while line != "locked\n" {
        line.clear();
        assert_ne!(output.read_line(&mut line).expect("reads"), 0, "the child ended");
    }
    (child, input, output)
}

#[test]
fn another_process_is_named_and_its_death_lets_go() -> Result<(), LockError> {
    let (_directory, path, device) = fresh();
    let pins = Pins::new(device.handle());
    let (mut holder, _input, _output) = child(&path);
    let Err(LockError::Held(found)) = WriterLock::acquire(device.handle(), AT_ONCE) else {
        panic!("two processes hold the writer's lock");
    };
    assert_eq!(found.process, Some(holder.id()));
    let message = std::format!("{}", LockError::Held(found.clone()));
    let program = found.program.expect("the system tells");
    assert!(program.starts_with("counterfoil_fla"), "{program}");
    assert_eq!(message, std::format!("process {} ({program}) is writing", holder.id()));
    assert_eq!(pins.oldest(100)?, Some(42));
    holder.kill().expect("killed");
    holder.wait().expect("ended");
    let _lock = WriterLock::acquire(device.handle(), Duration::from_secs(5))?;
    assert_eq!(pins.oldest(100)?, None);
    Ok(())
}

#[test]
fn another_process_that_closes_lets_go() -> Result<(), LockError> {
    let (_directory, path, device) = fresh();
    let (mut holder, mut input, _output) = child(&path);
    assert!(is_held(WriterLock::acquire(device.handle(), Duration::from_millis(30))));
    input.write_all(b"\n").expect("written");
    drop(input);
    let _lock = WriterLock::acquire(device.handle(), Duration::from_secs(20))?;
    assert!(holder.wait().expect("ended").success());
    Ok(())
}

#[test]
fn a_lock_file_comes_and_goes_with_its_lock() -> Result<(), LockError> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("lock");
    // What a killed process leaves: a file that nobody holds.
    std::fs::write(&path, "").expect("written");
    let lock = LockFile::acquire(&path, AT_ONCE)?;
    assert!(is_held(LockFile::acquire(&path, Duration::from_millis(5))));
    assert!(path.exists());
    drop(lock);
    assert!(!path.exists());
    drop(LockFile::acquire(&path, AT_ONCE)?);
    let missing = directory.path().join("no/lock");
    assert!(matches!(LockFile::acquire(&missing, AT_ONCE), Err(LockError::Device(_))));
    Ok(())
}

#[test]
fn a_lock_file_is_held_by_one_of_many_at_a_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("lock");
    let inside = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let lock = LockFile::acquire(&path, Duration::from_secs(60)).expect("in time");
                    assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                    inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    drop(lock);
                }
            });
        }
    });
}

#[test]
fn what_was_inherited_is_not_let_go() -> Result<(), LockError> {
    let (directory, path, device) = fresh();
    let other = again(&path);
    let mut lock = WriterLock::acquire(device.handle(), AT_ONCE)?;
    let mut pins = Pins::new(device.handle());
    let file = directory.path().join("lock");
    let mut inherited = LockFile::acquire(&file, AT_ONCE)?;
    // As after `fork`: the same locks, another process number.
    lock.process ^= 1;
    inherited.lock.process ^= 1;
    pins.process ^= 1;
    let pin = pins.acquire(7)?;
    drop((lock, inherited, pin));
    assert!(is_held(WriterLock::acquire(other.handle(), AT_ONCE)));
    assert_eq!(Pins::new(other.handle()).oldest(100)?, Some(7));
    assert!(file.exists());
    Ok(())
}
