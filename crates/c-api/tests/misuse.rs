//! What C hands over wrongly is answered, and the header says what the library does.

mod part;

use std::ffi::c_int;
use std::ptr::{null, null_mut};

use counterfoil_device::*;
use counterfoil_record::alone::Error;
use part::{CKey, PAGE_BYTES, Part, device};

const HEADER: &str = include_str!("../include/counterfoil.h");
const MISUSE: c_int = -32;
const PAGES: usize = 8 * 16;

#[repr(C)]
struct CChange {
    id: u32,
    bytes: *const u8,
    length: u32,
}

#[test]
fn what_is_handed_over_wrongly_is_answered() {
    let mut part = Part::new(vec![0xFF; PAGES * PAGE_BYTES], 5);
    let described = device(&mut part);
    let device: *const Device = (&raw const described).cast();
    let key = CKey { volume_key: [1; 32], database: [2; 32], cipher: 4 };
    let other = CKey { volume_key: [9; 32], ..key };
    let key: *const Key = (&raw const key).cast();
    let mut memory = vec![0u64; 2000];
    let bytes: *mut u8 = memory.as_mut_ptr().cast();
    let mut store = null_mut();
    // SAFETY: every pointer is null or what the header says.
    unsafe {
        let needed = counterfoil_memory_bytes(device, 100, 64);
        assert!((2000..8000).contains(&needed), "{needed} bytes");
        assert_eq!(counterfoil_memory_bytes(null(), 100, 64), 0);
        assert_eq!(counterfoil_memory_bytes(device, 1_000_000, 64), 0);
        assert_eq!(counterfoil_format(null_mut(), device, key, bytes, 16000, 100, 64), MISUSE);
        assert_eq!(counterfoil_format(&mut store, null(), key, bytes, 16000, 100, 64), MISUSE);
        assert_eq!(counterfoil_format(&mut store, device, null(), bytes, 16000, 100, 64), MISUSE);
        assert_eq!(counterfoil_format(&mut store, device, key, null_mut(), 16000, 100, 64), MISUSE);
        assert_eq!(counterfoil_format(&mut store, device, key, bytes.add(1), 15999, 100, 64), MISUSE);
        let short = counterfoil_format(&mut store, device, key, bytes, needed - 1, 100, 64);
        assert_eq!(short, -(Error::BufferTooSmall as c_int));
        assert_eq!(counterfoil_open(&mut store, device, key, bytes, needed, 100, 64), -(Error::NoCommit as c_int));
        assert!(store.is_null());

        assert_eq!(counterfoil_format(&mut store, device, key, bytes, needed, 100, 64), 0);
        let (mut id, mut length, mut buffer) = (0, 0, [0u8; 8]);
        assert_eq!(counterfoil_allocate(store, &mut id), 0);
        assert_eq!(counterfoil_allocate(store, null_mut()), MISUSE);
        assert_eq!(counterfoil_allocate(null_mut(), &mut id), MISUSE);
        let changes: Vec<_> = (0..17).map(|id| CChange { id, bytes: b"seven".as_ptr(), length: 5 }).collect();
        let changes: *const Change = changes.as_ptr().cast();
        assert_eq!(counterfoil_commit(store, changes, 17), -(Error::TooManyChanges as c_int));
        assert_eq!(counterfoil_commit(store, null(), 1), MISUSE);
        assert_eq!(counterfoil_commit(store, changes, 16), 0);
        assert_eq!(counterfoil_counted(store), 9);
        assert_eq!(counterfoil_read(store, 3, buffer.as_mut_ptr(), 8, &mut length), 0);
        assert_eq!(&buffer[..length as usize], b"seven");
        let small = counterfoil_read(store, 3, buffer.as_mut_ptr(), 4, &mut length);
        assert_eq!(small, -(Error::BufferTooSmall as c_int));
        assert_eq!(counterfoil_read(store, 3, null_mut(), 8, &mut length), MISUSE);
        assert_eq!(counterfoil_deallocate(store, 3), 0);
        let gone = counterfoil_read(store, 3, buffer.as_mut_ptr(), 8, &mut length);
        assert_eq!(gone, -(Error::NoRecord as c_int));
        assert!(counterfoil_record_bytes_max(store) > 400);
        counterfoil_close(store);
        counterfoil_close(null_mut());

        let foreign = counterfoil_open(&mut store, device, (&raw const other).cast(), bytes, needed, 100, 64);
        assert_eq!(foreign, -(Error::NoCommit as c_int));
        assert_eq!(counterfoil_open(&mut store, device, key, bytes, needed, 100, 64), 0);
        counterfoil_close(store);
    }
}

/// Names, groups, and what a device does while it has time.
#[test]
fn names_groups_and_upkeep_answer() {
    let mut part = Part::new(vec![0xFF; PAGES * PAGE_BYTES], 5);
    let described = device(&mut part);
    let device: *const Device = (&raw const described).cast();
    let key = CKey { volume_key: [1; 32], database: [2; 32], cipher: 4 };
    let key: *const Key = (&raw const key).cast();
    let mut memory = vec![0u64; 2000];
    let bytes: *mut u8 = memory.as_mut_ptr().cast();
    let (mut store, mut length, mut space) = (null_mut(), 0, 0);
    let mut buffer = [0u8; 64];
    let work = buffer.as_mut_ptr();
    let older = part.bytes.clone();
    // SAFETY: every pointer is null or what the header says.
    unsafe {
        assert_eq!(counterfoil_format(&mut store, device, key, bytes, 16000, 100, 64), 0);
        assert_eq!(counterfoil_put_named(store, b"song".as_ptr(), 4, b"7 plays".as_ptr(), 7, work, 64), 0);
        assert_eq!(counterfoil_put_named(store, null(), 4, b"7 plays".as_ptr(), 7, work, 64), MISUSE);
        assert_eq!(counterfoil_put_named(null_mut(), b"song".as_ptr(), 4, b"7".as_ptr(), 1, work, 64), MISUSE);
        let empty = counterfoil_put_named(store, b"song".as_ptr(), 0, b"7".as_ptr(), 1, work, 64);
        assert_eq!(empty, -(Error::Name as c_int));
        assert_eq!(counterfoil_read_named(store, b"song".as_ptr(), 4, work, 64, &mut length), 0);
        assert_eq!(std::slice::from_raw_parts(work, length as usize), b"7 plays");
        assert_eq!(counterfoil_read_named(store, b"song".as_ptr(), 4, work, 64, null_mut()), MISUSE);
        assert_eq!(counterfoil_delete_named(store, b"song".as_ptr(), 4, work, 64), 0);
        let gone = counterfoil_read_named(store, b"song".as_ptr(), 4, work, 64, &mut length);
        assert_eq!(gone, -(Error::NoRecord as c_int));
        assert_eq!(counterfoil_delete_named(store, b"song".as_ptr(), 4, null_mut(), 64), MISUSE);

        let change = CChange { id: 30, bytes: b"seven".as_ptr(), length: 5 };
        let change: *const Change = (&raw const change).cast();
        let counted = part.counter;
        for _ in 0..5 {
            assert_eq!(counterfoil_commit_in_group(store, change, 1), 0);
        }
        assert_eq!(part.counter, counted);
        assert_eq!((counterfoil_close_group(store), part.counter), (0, counted + 1));

        while counterfoil_prepare(store) == 1 {}
        assert_eq!(counterfoil_prepare(store), 0);
        assert_eq!(counterfoil_purge(store), 0);
        assert_eq!(counterfoil_space_left(store, 20, &mut space), 0);
        assert!((500..2000).contains(&space), "{space}");
        assert_eq!(counterfoil_space_left(store, 20, null_mut()), MISUSE);
        assert!((990..1000).contains(&counterfoil_lifetime_left(store, 1000)));
        assert_eq!(counterfoil_prepare(null_mut()), MISUSE);
        assert_eq!(counterfoil_purge(null_mut()), MISUSE);
        assert_eq!(counterfoil_close_group(null_mut()), MISUSE);
        let newest = std::mem::replace(&mut part.bytes, older);
        counterfoil_close(store);
        assert_eq!(counterfoil_open(&mut store, device, key, bytes, 16000, 100, 64), -(Error::NoCommit as c_int));
        part.bytes = newest;
        part.counter += 1;
        let refused = counterfoil_open(&mut store, device, key, bytes, 16000, 100, 64);
        assert_eq!(refused, -(Error::RolledBack as c_int));
        assert_eq!(counterfoil_open_despite_rollback(&mut store, device, key, bytes, 16000, 100, 64, 1), 0);
        assert_eq!(counterfoil_rollbacks(store), 1);
        counterfoil_close(store);
    }
}

/// Every number of the header is that of the library, by its name.
#[test]
fn the_header_has_the_numbers_of_the_library() {
    let named = |name: &str| {
        let line = HEADER.lines().find(|line| line.trim_start().starts_with(&format!("COUNTERFOIL_{name} = ")));
        let line = line.unwrap_or_else(|| panic!("COUNTERFOIL_{name} is not in the header"));
        let number = line.split("= ").nth(1).expect("a number").split([',', ' ']).next().expect("a number");
        number.parse::<c_int>().expect("a number")
    };
    for (name, error) in [
        ("DEVICE", Error::Device),
        ("TAMPERED", Error::Tampered),
        ("CORRUPT", Error::Corrupt),
        ("NO_COMMIT", Error::NoCommit),
        ("ROLLED_BACK", Error::RolledBack),
        ("COUNTER_LOST", Error::CounterLost),
        ("COUNTER", Error::Counter),
        ("FULL", Error::Full),
        ("NO_RECORD", Error::NoRecord),
        ("ID_OUT_OF_RANGE", Error::IdOutOfRange),
        ("IDS_EXHAUSTED", Error::IdsExhausted),
        ("RECORD_TOO_LONG", Error::RecordTooLong),
        ("TOO_MANY_CHANGES", Error::TooManyChanges),
        ("BUFFER_TOO_SMALL", Error::BufferTooSmall),
        ("GEOMETRY", Error::Geometry),
        ("NO_GENERATOR", Error::NoGenerator),
        ("LATCHED", Error::Latched),
        ("WORN_OUT", Error::WornOut),
        ("NAME", Error::Name),
        ("BUG", Error::Bug),
    ] {
        assert_eq!(named(name), -(error as c_int), "{name}");
    }
    assert_eq!((named("OK"), named("MISUSE")), (0, MISUSE));
}
