//! The counter in a real directory: absent, damaged, foreign, too low, told apart.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use counterfoil_vault::{
    Counter, CounterError, CounterValue, DatabaseId, FileCounter, Refused, StateEnvironment, Suite, Vault, VolumeKey,
    judge,
};
use tempfile::TempDir;

fn vault(id: u8) -> Vault {
    Vault::new(&VolumeKey::from_bytes(&[1; 32]), DatabaseId([id; 32]), Suite::Aes256GcmSiv)
}

fn counter(directory: &TempDir, id: u8) -> FileCounter {
    FileCounter::new(&directory.path().join("state/deep"), Path::new("/data/plant.db"), &vault(id))
}

fn file(directory: &TempDir, id: u8) -> PathBuf {
    FileCounter::path_in(&directory.path().join("state/deep"), DatabaseId([id; 32]))
}

#[test]
fn a_counter_counts_and_remembers() {
    let directory = TempDir::new().unwrap();
    assert_eq!(counter(&directory, 2).value(), Err(CounterError::Absent));
    assert_eq!(counter(&directory, 2).step(1, &[1; 16]), Err(CounterError::Absent));
    assert!(!directory.path().join("state").exists(), "asking leaves nothing behind");
    counter(&directory, 2).adopt(0, &[0; 16]).unwrap();
    for value in 1..=5u8 {
        counter(&directory, 2).step(u64::from(value), &[value; 16]).unwrap();
        counter(&directory, 2).step(u64::from(value), &[value; 16]).unwrap();
    }
    assert_eq!(counter(&directory, 2).value(), Ok(CounterValue { value: 5, tag: Some([5; 16]) }));
    let record = counter(&directory, 2).record().unwrap();
    assert_eq!(record.path, "/data/plant.db");
    assert!(record.time > 1_700_000_000);
    assert_eq!(fs::metadata(file(&directory, 2)).unwrap().len(), 1024);
    assert_eq!(counter(&directory, 2).adopt(4, &[4; 16]), Err(CounterError::Lower { present: 5, asked: 4 }));
    counter(&directory, 2).adopt(9, &[9; 16]).unwrap();
    counter(&directory, 2).forget().unwrap();
    assert_eq!(counter(&directory, 2).forget(), Err(CounterError::Absent));
}

#[test]
fn what_it_was_told_of_rollbacks_is_kept_until_it_is_told_otherwise() {
    let directory = TempDir::new().unwrap();
    counter(&directory, 2).adopt(5, &[5; 16]).unwrap();
    let rollbacks = || counter(&directory, 2).record().unwrap().rollbacks;
    assert_eq!(rollbacks(), 0);
    let mut handle = counter(&directory, 2);
    handle.set_rollbacks(3);
    assert_eq!(rollbacks(), 0, "nothing is written before it moves");
    handle.adopt(7, &[7; 16]).unwrap();
    drop(handle);
    assert_eq!(rollbacks(), 3);
    counter(&directory, 2).step(8, &[8; 16]).unwrap();
    counter(&directory, 2).adopt(20, &[9; 16]).unwrap();
    assert_eq!(rollbacks(), 3);
    let mut handle = counter(&directory, 2);
    handle.set_rollbacks(0);
    handle.step(21, &[1; 16]).unwrap();
    assert_eq!(rollbacks(), 0);
}

#[test]
fn damage_is_damage_and_adoption_heals_it() {
    let directory = TempDir::new().unwrap();
    let mut handle = counter(&directory, 2);
    handle.adopt(5, &[5; 16]).unwrap();
    handle.step(6, &[6; 16]).unwrap();
    drop(handle);
    let whole = fs::read(file(&directory, 2)).unwrap();
    let damages: [Vec<u8>; 5] =
        [vec![], whole[..1000].to_vec(), [&whole[..], &[0]].concat(), vec![0; 1024], vec![7; 5000]];
    for damage in damages {
        fs::write(file(&directory, 2), damage).unwrap();
        assert_eq!(counter(&directory, 2).value(), Err(CounterError::Damaged));
        assert_eq!(counter(&directory, 2).step(7, &[7; 16]), Err(CounterError::Damaged));
    }
    counter(&directory, 2).adopt(3, &[3; 16]).unwrap();
    assert_eq!(counter(&directory, 2).value().unwrap().value, 3);
}

#[test]
fn another_databases_counter_is_foreign() {
    let directory = TempDir::new().unwrap();
    counter(&directory, 2).adopt(5, &[5; 16]).unwrap();
    fs::copy(file(&directory, 2), file(&directory, 3)).unwrap();
    assert_eq!(counter(&directory, 3).value(), Err(CounterError::Foreign));
    // The same database under another key: nobody can tell that from damage.
    let other_key = Vault::new(&VolumeKey::from_bytes(&[9; 32]), DatabaseId([2; 32]), Suite::Aes256GcmSiv);
    let mut stranger = FileCounter::new(&directory.path().join("state/deep"), Path::new("x"), &other_key);
    assert_eq!(stranger.value(), Err(CounterError::Damaged));
}

#[test]
fn a_counter_deleted_while_it_is_open_does_not_come_back() {
    let directory = TempDir::new().unwrap();
    let mut handle = counter(&directory, 2);
    handle.adopt(5, &[5; 16]).unwrap();
    fs::remove_file(file(&directory, 2)).unwrap();
    assert_eq!(handle.step(6, &[6; 16]), Err(CounterError::Absent));
    assert!(!file(&directory, 2).exists());
}

#[test]
fn an_older_counter_is_told_from_an_older_image() {
    let directory = TempDir::new().unwrap();
    let mut handle = counter(&directory, 2);
    handle.adopt(5, &[5; 16]).unwrap();
    let kept = fs::read(file(&directory, 2)).unwrap();
    for value in 6..=9u8 {
        handle.step(u64::from(value), &[value; 16]).unwrap();
    }
    let present = counter(&directory, 2).value().unwrap().value;
    assert_eq!(judge(6, false, present), Err(Refused::RolledBack { version: 6, counter: 9 }));
    fs::write(file(&directory, 2), kept).unwrap();
    let present = counter(&directory, 2).value().unwrap().value;
    assert_eq!(judge(9, false, present), Err(Refused::CounterLost { version: 9, counter: 5 }));
}

#[test]
fn copies_of_a_database_do_not_step_one_counter_by_turns() {
    let directory = TempDir::new().unwrap();
    let (mut one, mut two) = (counter(&directory, 2), counter(&directory, 2));
    one.adopt(5, &[5; 16]).unwrap();
    // Without the lock this step would be taken: it goes up by one.
    assert!(matches!(two.step(6, &[6; 16]), Err(CounterError::Held { .. })));
    assert!(matches!(two.adopt(9, &[6; 16]), Err(CounterError::Held { .. })));
    assert!(matches!(two.forget(), Err(CounterError::Held { .. })));
    assert!(matches!(two.hold(Duration::from_millis(5)), Err(CounterError::Held { .. })));
    assert_eq!(two.value().unwrap().value, 5, "readers are not held up");
    one.step(6, &[1; 16]).unwrap();
    // Other databases have other locks.
    counter(&directory, 3).adopt(1, &[1; 16]).unwrap();
    drop(one);
    two.hold(Duration::ZERO).unwrap();
    two.step(7, &[7; 16]).unwrap();
    drop(two);
    assert_eq!(fs::read_dir(directory.path().join("state/deep")).unwrap().count(), 2, "the locks are gone");
}

#[test]
fn waiting_for_a_counter_ends_when_it_is_let_go() {
    let directory = TempDir::new().unwrap();
    let (mut one, mut two) = (counter(&directory, 2), counter(&directory, 2));
    one.adopt(5, &[5; 16]).unwrap();
    let waiter = std::thread::spawn(move || two.hold(Duration::from_secs(20)));
    std::thread::sleep(Duration::from_millis(30));
    drop(one);
    assert_eq!(waiter.join().unwrap(), Ok(()));
}

#[test]
fn a_counter_is_forgotten_by_whoever_holds_it() {
    let directory = TempDir::new().unwrap();
    let mut handle = counter(&directory, 2);
    assert_eq!(handle.forget(), Err(CounterError::Absent));
    assert!(!directory.path().join("state").exists());
    handle.adopt(5, &[5; 16]).unwrap();
    handle.forget().unwrap();
    drop(handle);
    assert_eq!(fs::read_dir(directory.path().join("state/deep")).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn nobody_else_reads_the_counter() {
    use std::os::unix::fs::PermissionsExt;
    let directory = TempDir::new().unwrap();
    counter(&directory, 2).adopt(5, &[5; 16]).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file(&directory, 2)), 0o600);
    assert_eq!(mode(&directory.path().join("state/deep")), 0o700);
}

#[test]
fn a_directory_that_cannot_be_is_a_device_error() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("state"), b"a file in the way").unwrap();
    assert_eq!(counter(&directory, 2).value(), Err(CounterError::Absent));
    assert!(matches!(counter(&directory, 2).adopt(1, &[1; 16]), Err(CounterError::Device { .. })));
}

/// A disk without room is found out before an image moves, and what the counter was to be written to goes with its handle.
#[cfg(target_os = "linux")]
#[test]
fn room_for_a_counter_is_there_before_it_is_needed() {
    use std::os::unix::fs::{MetadataExt, symlink};
    let directory = TempDir::new().unwrap();
    let folder = directory.path().join("state/deep");
    let fresh = file(&directory, 2).with_extension("counter.new");
    let entries = || fs::read_dir(&folder).unwrap().count();
    let mut handle = counter(&directory, 2);
    handle.reserve().unwrap();
    assert_eq!(handle.value(), Err(CounterError::Absent));
    let reserved = fs::metadata(&fresh).unwrap();
    assert_eq!(reserved.len(), 1024);
    handle.adopt(5, &[5; 16]).unwrap();
    assert_eq!(fs::metadata(file(&directory, 2)).unwrap().ino(), reserved.ino(), "what was reserved is what is used");
    handle.reserve().unwrap();
    assert_eq!(handle.step(6, &[6; 16]), Ok(()));
    drop(handle);
    assert_eq!(entries(), 1);
    for adopted in [false, true] {
        symlink("/dev/full", &fresh).unwrap();
        let mut handle = counter(&directory, 2);
        let full = if adopted { handle.adopt(9, &[9; 16]) } else { handle.reserve() };
        assert_eq!(full, Err(CounterError::Device { operation: "created", code: 28 }));
        drop(handle);
        assert_eq!((entries(), counter(&directory, 2).value().unwrap().value), (1, 6));
    }
    // What one that was killed left, longer than a counter is.
    fs::write(&fresh, [7; 2000]).unwrap();
    counter(&directory, 2).adopt(9, &[9; 16]).unwrap();
    assert_eq!(counter(&directory, 2).value().unwrap().value, 9);
}

#[test]
fn the_state_directory_is_the_first_that_is_named() {
    let named = |own: Option<&str>, xdg: Option<&str>, home: Option<&str>| {
        let environment = StateEnvironment {
            counterfoil_state_dir: own.map(OsStr::new),
            xdg_state_home: xdg.map(OsStr::new),
            home: home.map(OsStr::new),
        };
        environment.directory()
    };
    let path = |path: &str| Some(PathBuf::from(path));
    assert_eq!(named(Some("/own"), Some("/xdg"), Some("/people/a")), path("/own"));
    assert_eq!(named(Some(""), Some("/xdg"), Some("/people/a")), path("/xdg/counterfoil"));
    assert_eq!(named(None, Some("relative"), Some("/people/a")), path("/people/a/.local/state/counterfoil"));
    assert_eq!(named(None, Some(""), Some("")), None);
}
