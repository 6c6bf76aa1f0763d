//! One test per way a file can answer, the kernel's own refusals included.

use std::process::Command;
use std::vec;

use nix::libc;
use tempfile::TempDir;

use super::*;

const SHAPE: Geometry =
    Geometry { page_bytes: 512, block_pages: 8, block_count: 1 << 20, erase_before_program: false, grows: true };

fn fresh() -> (TempDir, FileDevice) {
    let directory = tempfile::tempdir().expect("a directory");
    let device = FileDevice::create_new(directory.path().join("medium"), SHAPE).expect("created");
    (directory, device)
}

fn page_at(device: &FileDevice, page: u64) -> Result<[u8; 512], Error> {
    let mut bytes = [0xEE; 512];
    device.read(PageNumber(page), 0, &mut bytes)?;
    Ok(bytes)
}

#[test]
fn pages_survive_reopening_and_gaps_read_as_zeros() -> Result<(), Error> {
    let (directory, mut device) = fresh();
    device.program(PageNumber(3), &[7; 1024])?;
    device.flush()?;
    let again = FileDevice::open_read_only(directory.path().join("medium"), SHAPE)?;
    assert_eq!(page_at(&again, 2)?, [0; 512]);
    assert_eq!(page_at(&again, 4)?, [7; 512]);
    assert_eq!(page_at(&again, 5)?, [0; 512]);
    let mut across = [1; 20];
    again.read(PageNumber(4), 502, &mut across)?;
    assert_eq!(across, [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    Ok(())
}

#[test]
fn readers_share_the_writers_file() -> Result<(), Error> {
    let (_directory, mut device) = fresh();
    let reader = device.clone();
    let other_shape = device.with_geometry(Geometry { page_bytes: 1024, ..SHAPE })?;
    device.program(PageNumber(2), &[4; 512])?;
    assert_eq!(page_at(&reader, 2)?, [4; 512]);
    let mut bytes = [0; 1024];
    other_shape.read(PageNumber(1), 0, &mut bytes)?;
    assert_eq!((bytes[0], bytes[512]), (4, 0));
    Ok(())
}

#[test]
fn a_new_file_is_private_and_never_replaces_one() {
    use std::os::unix::fs::PermissionsExt;
    let (directory, _device) = fresh();
    let path = directory.path().join("medium");
    let mode = std::fs::metadata(&path).expect("is there").permissions().mode();
    assert_eq!(mode & 0o077, 0);
    assert!(matches!(FileDevice::create_new(&path, SHAPE).err(), Some(Error::Device { code: libc::EEXIST, .. })));
}

#[test]
fn what_is_no_file_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let wrong = Some(Error::WrongSort { wanted: "an ordinary file" });
    assert_eq!(FileDevice::open_read_only(directory.path(), SHAPE).err(), wrong);
    assert_eq!(FileDevice::open("/dev/null", SHAPE).err(), wrong);
    assert!(matches!(
        FileDevice::open(directory.path(), SHAPE).err(),
        Some(Error::Device { code: libc::EISDIR, operation: Operation::Open, .. })
    ));
    let absent = FileDevice::open(directory.path().join("absent"), SHAPE).err().expect("is not there");
    assert!(matches!(absent, Error::Device { code: libc::ENOENT, .. }));
    assert_eq!(std::format!("{absent}"), "could not open: No such file or directory (os error 2)");
    let zero = FileDevice::open("a\0b", SHAPE).err();
    assert!(matches!(zero, Some(Error::Device { code: libc::EINVAL, .. })));
}

#[test]
fn impossible_shapes_are_refused() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    for shape in [Geometry { page_bytes: 3, ..SHAPE }, Geometry { erase_before_program: true, ..SHAPE }] {
        assert!(matches!(FileDevice::open(file.path(), shape).err(), Some(Error::Shape { .. })));
    }
}

#[test]
fn reading_only_means_reading_only() -> Result<(), Error> {
    let (directory, _device) = fresh();
    let mut device = FileDevice::open_read_only(directory.path().join("medium"), SHAPE)?;
    assert_eq!(device.program(PageNumber(0), &[0; 512]), Err(Error::ReadOnly));
    assert_eq!(device.reserve(PageNumber(0), 1), Err(Error::ReadOnly));
    assert_eq!(device.flush(), Err(Error::ReadOnly));
    Ok(())
}

#[test]
fn the_limit_is_full_and_does_not_latch() -> Result<(), Error> {
    let (_directory, device) = fresh();
    let mut device = device.with_geometry(Geometry { block_count: 2, ..SHAPE })?;
    let full = Err(Error::Full { page: PageNumber(16) });
    assert_eq!(device.program(PageNumber(15), &[1; 1024]), full);
    assert_eq!(device.reserve(PageNumber(8), 9), full);
    assert_eq!(device.length()?, 0);
    device.program(PageNumber(15), &[1; 512])?;
    let past = Error::OutOfRange { page: PageNumber(16), page_count: 16 };
    assert_eq!(page_at(&device, 16), Err(past));
    assert_eq!(device.erase(BlockNumber(2)), Err(past));
    device.erase(BlockNumber(1))?;
    assert_eq!(page_at(&device, 15)?, [1; 512]);
    Ok(())
}

#[test]
fn reserving_makes_room_once_and_changes_nothing() -> Result<(), Error> {
    use std::os::unix::fs::MetadataExt;
    let (directory, mut device) = fresh();
    device.program(PageNumber(0), &[9; 512])?;
    device.reserve(PageNumber(0), 300)?;
    assert_eq!(device.length()?, 300 * 512);
    assert_eq!(page_at(&device, 0)?, [9; 512]);
    assert_eq!(page_at(&device, 299)?, [0; 512]);
    device.flush()?;
    let blocks = std::fs::metadata(directory.path().join("medium")).expect("is there").blocks();
    assert!(blocks >= 290, "{blocks} sectors are allocated");
    device.program(PageNumber(200), &[8; 512])?;
    device.reserve(PageNumber(100), 200)?;
    assert_eq!(page_at(&device, 200)?, [8; 512]);
    assert_eq!(device.length()?, 300 * 512);
    Ok(())
}

#[test]
fn a_failed_write_or_flush_latches_every_clone() -> Result<(), Error> {
    for failing in [Operation::Program, Operation::Flush] {
        let (directory, mut device) = fresh();
        let mut clone = device.clone();
        device.handle.fail_next(failing, libc::EIO);
        let first = if failing == Operation::Flush {
            device.flush().expect_err("the disk failed")
        } else {
            device.program(PageNumber(5), &[1; 512]).expect_err("the disk failed")
        };
        assert!(matches!(first, Error::Device { code: libc::EIO, operation, .. } if operation == failing));
        assert!(device.is_latched());
        assert_eq!(clone.program(PageNumber(0), &[1; 512]), Err(Error::Latched));
        assert_eq!(clone.flush(), Err(Error::Latched));
        assert_eq!(clone.reserve(PageNumber(0), 1), Err(Error::Latched));
        page_at(&clone, 0)?;
        FileDevice::open(directory.path().join("medium"), SHAPE)?.flush()?;
    }
    Ok(())
}

#[test]
fn a_full_disk_latches_when_written_to_and_not_when_reserving() -> Result<(), Error> {
    for code in [libc::ENOSPC, libc::EDQUOT, libc::EFBIG] {
        let (_directory, mut device) = fresh();
        device.handle.fail_next(Operation::Program, code);
        assert_eq!(device.reserve(PageNumber(2), 1), Err(Error::Full { page: PageNumber(2) }));
        device.flush()?;
        device.handle.fail_next(Operation::Program, code);
        assert_eq!(device.program(PageNumber(2), &[0; 512]), Err(Error::Full { page: PageNumber(2) }));
        assert_eq!(device.flush(), Err(Error::Latched));
    }
    Ok(())
}

#[test]
fn a_failed_reservation_of_another_kind_latches() {
    let (_directory, mut device) = fresh();
    device.handle.fail_next(Operation::Program, libc::EIO);
    assert!(matches!(device.reserve(PageNumber(2), 1), Err(Error::Device { code: libc::EIO, .. })));
    assert_eq!(device.flush(), Err(Error::Latched));
}

#[test]
fn a_failed_read_is_typed_and_does_not_latch() -> Result<(), Error> {
    let (_directory, mut device) = fresh();
    device.handle.fail_next(Operation::Read, libc::EIO);
    let failed = Error::Device { operation: Operation::Read, page: PageNumber(4), code: libc::EIO };
    assert_eq!(page_at(&device, 4), Err(failed));
    device.handle.fail_next(Operation::Flush, libc::EROFS);
    assert_eq!(device.flush(), Err(Error::ReadOnly));
    Ok(())
}

/// Set in the child process of the test below: where its file is.
const CHILD: &str = "COUNTERFOIL_FLASH_TEST_FULL";

#[test]
fn the_kernel_refusing_to_grow_a_file_is_full() -> Result<(), Error> {
    if let Some(path) = std::env::var_os(CHILD) {
        let mut device = FileDevice::open(path, SHAPE)?;
        device.reserve(PageNumber(0), 8)?;
        assert_eq!(device.reserve(PageNumber(8), 8), Err(Error::Full { page: PageNumber(8) }));
        device.program(PageNumber(7), &[3; 512])?;
        device.flush()?;
        assert_eq!(device.program(PageNumber(8), &[3; 512]), Err(Error::Full { page: PageNumber(8) }));
        assert_eq!(device.flush(), Err(Error::Latched));
        return Ok(());
    }
    let (directory, _device) = fresh();
    // Signals that a shell ignores stay ignored in what it executes, so the kernel answers EFBIG instead of killing.
    // `ulimit -f` counts 512-byte blocks in POSIX shells and 1024-byte blocks in some: 8 pages either way.
    let program = std::env::current_exe().expect("this test has a program");
    let limit = if cfg!(target_os = "linux") && std::path::Path::new("/bin/dash").exists() { 8 } else { 4 };
    let shell = if limit == 8 { "/bin/dash" } else { "bash" };
    let child = Command::new(shell)
        .arg("-c")
        .arg(std::format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" the_kernel_refusing_to_grow"))
        .arg(program)
        .env(CHILD, directory.path().join("medium"))
        .output()
        .expect("a shell");
    assert!(child.status.success(), "{}", std::string::String::from_utf8_lossy(&child.stdout));
    assert_eq!(vec![3; 512], page_at(&FileDevice::open(directory.path().join("medium"), SHAPE)?, 7)?);
    Ok(())
}
