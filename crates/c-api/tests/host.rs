//! What a device wrote a host opens, and the other way round.
#![cfg(feature = "relation")]

mod part;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use counterfoil_device::*;
use counterfoil_flash::{FileDevice, Geometry};
use counterfoil_log::{
    Counting, Layout, Media, NoPins, Recovered, Settings, Snapshot, View, Writer, create, record_space,
};
use counterfoil_relation::{KeyRange, NewColumn, NewKey, NewTable, Relations, RowBuilder, Type, Value, ValueRef};
use counterfoil_vault::{
    ArgonCost, Counter as _, CounterKind, DatabaseId, Header, KeyFile, MemoryCounter, RootDigests, Secret, Settled,
    Suite, SystemEntropy, Vault, VolumeKey, VolumeLayout, read_headers,
};

use part::{BLOCK_PAGES, CDevice, CKey, PAGE_BYTES, Part, device};

const BLOCKS: usize = 96;
const BYTES: usize = BLOCKS * BLOCK_PAGES * PAGE_BYTES;
static KEY: CKey = CKey { volume_key: [7; 32], database: [3; 32], cipher: 4 };
/// The image in a file, which needs no erase. A block is an extent, and the record store's window has eight of them.
const GEOMETRY: Geometry = Geometry {
    page_bytes: PAGE_BYTES as u32,
    block_pages: BLOCK_PAGES as u32,
    block_count: BLOCKS as u64,
    erase_before_program: false,
    grows: false,
};

#[repr(C)]
struct CColumn {
    name: *const c_char,
    kind: u32,
    size: u32,
    flags: u32,
    references: *const c_char,
}

#[repr(C)]
struct CValue {
    is_null: u32,
    length: u32,
    whole: i64,
    number: f64,
    bytes: *const c_void,
}

fn whole(whole: i64) -> CValue {
    CValue { is_null: 0, length: 0, whole, number: 0.0, bytes: null() }
}

fn described(part: &mut Part) -> CDevice {
    let mut described = device(part);
    described.random = Some(part::random);
    described.numbers[3] = BLOCKS as u32;
    described
}

fn begun(described: &CDevice, is_new: bool) -> (c_int, *mut Tables) {
    let (device, key) = ((&raw const *described).cast(), (&raw const KEY).cast());
    let mut tables = null_mut();
    // SAFETY: every pointer is what the header says.
    let code = unsafe {
        match is_new {
            true => counterfoil_tables_create(&mut tables, device, key, null_mut(), 0),
            false => counterfoil_tables_open(&mut tables, device, key, null_mut(), 0),
        }
    };
    (code, tables)
}

fn insert(tables: *mut Tables, id: i64, value: i64) -> c_int {
    let row = [whole(id), whole(value)];
    // SAFETY: every pointer is what the header says.
    unsafe { counterfoil_tables_insert(tables, c"readings".as_ptr(), row.as_ptr().cast(), 2) }
}

fn define(tables: *mut Tables) -> c_int {
    let column = |name: &CStr, flags| CColumn { name: name.as_ptr(), kind: 4, size: 0, flags, references: null() };
    let columns = [column(c"id", 2), column(c"value", 4)];
    // SAFETY: every pointer is what the header says.
    unsafe { counterfoil_tables_define(tables, c"readings".as_ptr(), columns.as_ptr().cast(), 2) }
}

/// A header for the volume of the device, which opens with a key file of a host; one that is for so many blocks.
fn header(blocks: usize, file: &KeyFile, key: &VolumeKey) -> Vec<u8> {
    let layout = VolumeLayout {
        page_bytes: PAGE_BYTES as u32,
        extent_pages: BLOCK_PAGES as u32,
        record_first_extent: 2,
        record_extents: 8,
        size_limit: (blocks * BLOCK_PAGES * PAGE_BYTES) as u64,
    };
    let mut header =
        Header::new(DatabaseId(KEY.database), Suite::AsconAead128, CounterKind::None, layout, 0).expect("a header");
    header.add_slot(&Secret::KeyFile(file), &ArgonCost::HOST, key, 0, &mut SystemEntropy).expect("a slot");
    header.encode(key)
}

fn put_header(tables: *mut Tables, header: &[u8]) -> c_int {
    // SAFETY: every pointer is what the header says.
    unsafe { counterfoil_tables_put_header(tables, (&raw const KEY).cast(), header.as_ptr().cast(), header.len()) }
}

/// The tables as a host sees them in an image in a file, which it opens with a secret of its own; none if that is none of the
/// header's that the root names.
fn opened_on_a_host(image: &[u8], secret: &Secret<'_>) -> Option<(Snapshot, Settled)> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("image");
    std::fs::write(&path, image).expect("written");
    let medium = FileDevice::open_read_only(&path, GEOMETRY).expect("an image");
    let copies = read_headers(&medium).expect("headers");
    let unlocked = copies.unlock(std::slice::from_ref(secret), &ArgonCost::HOST).ok()?;
    let header = &unlocked.header;
    let layout = Layout::new(&GEOMETRY, header.layout.extent_pages, header.layout.record_extents as u32);
    let vault = Arc::new(Vault::new(&unlocked.volume_key, header.id, header.suite));
    let recovered = Recovered::recover(Arc::new(medium), vault, layout.expect("a layout"), 1 << 20);
    let snapshot = recovered.expect("a volume").snapshot();
    let digests = snapshot.record(record_space::SETTING, b"header").expect("what the root says of the header");
    let settled = unlocked.settle(&RootDigests::decode(digests.as_ref().try_into().expect("64 bytes")));
    let settled = settled.expect("the header that the root names");
    settled.slot.is_some().then_some((snapshot, settled))
}

/// How many rows there are, and the value of one.
fn read_on_a_host(image: &[u8], secret: &Secret<'_>, id: i64) -> (u64, Value) {
    let (snapshot, settled) = opened_on_a_host(image, secret).expect("a slot that opens");
    assert!(settled.fault.is_none() && settled.unfinished.is_none(), "both copies are whole");
    let relations = Relations::new();
    let table = relations.table(&snapshot, "readings").expect("a catalog").expect("the table");
    assert!(relations.verify(&snapshot, &mut |_| ()).expect("looked at").problems.is_empty());
    let primary = table.primary_key.as_ref().expect("a key").index;
    let range = KeyRange::equal(vec![Value::BigInt(id)]);
    let rows = relations.lookup(&snapshot, &table, primary, &range, 10).expect("a lookup").expect("few");
    let block = relations.fetch(&snapshot, &table, &rows, None).expect("rows");
    (relations.count(&snapshot, &table).expect("a count"), block.rows.value(0, 1).expect("a value").to_owned())
}

#[test]
fn what_a_device_wrote_a_host_opens_with_its_own_secret() {
    let mut part = Part::new(vec![0xFF; BYTES], 0);
    let described = described(&mut part);
    let (code, tables) = begun(&described, true);
    assert_eq!((code, define(tables)), (0, 0));
    let (first, second) = (KeyFile::generate(&mut SystemEntropy), KeyFile::generate(&mut SystemEntropy));
    let (first, second) = (first.expect("random"), second.expect("random"));
    let key = VolumeKey::from_bytes(&KEY.volume_key);
    assert_eq!(put_header(tables, &header(BLOCKS, &first, &key)), -32, "a commit is under way");
    // SAFETY: every pointer is what the header says.
    unsafe {
        for id in 0..50 {
            assert_eq!((insert(tables, id, 10 * id), counterfoil_tables_commit(tables)), (0, 0));
            assert!(counterfoil_tables_maintain(tables) >= 0);
        }
    }
    assert_eq!(put_header(tables, &header(BLOCKS, &first, &VolumeKey::from_bytes(&[8; 32]))), -2, "of another key");
    assert_eq!(put_header(tables, &header(BLOCKS + 1, &first, &key)), -15, "of another volume");
    assert_eq!(put_header(tables, &header(BLOCKS, &first, &key)[..100]), -2, "no header");
    assert_eq!(put_header(tables, &header(BLOCKS, &first, &key)), 0);
    assert_eq!(read_on_a_host(&part.bytes, &Secret::KeyFile(&first), 7), (50, Value::BigInt(70)));
    // Another secret in its place, and the device goes on.
    assert_eq!(put_header(tables, &header(BLOCKS, &second, &key)), 0);
    // SAFETY: every pointer is what the header says.
    unsafe {
        let (key, row) = (whole(7), [whole(7), whole(71)]);
        let (key, row) = ((&raw const key).cast(), row.as_ptr().cast());
        assert_eq!(counterfoil_tables_update(tables, c"readings".as_ptr(), key, 1, row, 2), 1);
        let gone = whole(9);
        assert_eq!(counterfoil_tables_delete(tables, c"readings".as_ptr(), (&raw const gone).cast(), 1), 1);
        assert_eq!((counterfoil_tables_commit(tables), counterfoil_tables_close(tables)), (0, 0));
    }
    assert_eq!(read_on_a_host(&part.bytes, &Secret::KeyFile(&second), 7), (49, Value::BigInt(71)));
}

#[test]
fn a_row_whose_key_came_and_went_often_is_found_by_it() {
    let mut part = Part::new(vec![0xFF; BYTES], 0);
    let described = described(&mut part);
    let tables = begun(&described, true).1;
    assert_eq!((define(tables), insert(tables, 7, 0)), (0, 0));
    let key = whole(7);
    for round in 1..9 {
        let row = [whole(7), whole(round)];
        // SAFETY: every pointer is what the header says.
        unsafe {
            let (name, key) = (c"readings".as_ptr(), (&raw const key).cast());
            assert_eq!(counterfoil_tables_update(tables, name, key, 1, row.as_ptr().cast(), 2), 1, "round {round}");
            assert_eq!(counterfoil_tables_delete(tables, name, key, 1), 1, "round {round}");
            assert_eq!(counterfoil_tables_delete(tables, name, key, 1), 0, "it is gone");
            assert_eq!((insert(tables, 7, round), counterfoil_tables_commit(tables)), (0, 0));
        }
    }
    // SAFETY: every pointer is what the header says.
    assert_eq!(unsafe { counterfoil_tables_close(tables) }, 0);
}

#[test]
fn a_header_that_is_replaced_while_the_power_goes_is_the_old_one_or_the_new_one() {
    let (first, second) = (KeyFile::generate(&mut SystemEntropy), KeyFile::generate(&mut SystemEntropy));
    let (first, second) = (first.expect("random"), second.expect("random"));
    let key = VolumeKey::from_bytes(&KEY.volume_key);
    let (old, new) = (header(BLOCKS, &first, &key), header(BLOCKS, &second, &key));
    let mut part = Part::new(vec![0xFF; BYTES], 0);
    let described = described(&mut part);
    let tables = begun(&described, true).1;
    assert_eq!((define(tables), insert(tables, 1, 5), put_header(tables, &old)), (0, 0, -32));
    // SAFETY: every pointer is what the header says.
    assert_eq!(unsafe { (counterfoil_tables_commit(tables), counterfoil_tables_close(tables)) }, (0, 0));
    let tables = begun(&described, false).1;
    assert_eq!(put_header(tables, &old), 0);
    // SAFETY: every pointer is what the header says.
    assert_eq!(unsafe { counterfoil_tables_close(tables) }, 0);
    let (bytes, counter) = (part.bytes.clone(), part.counter);
    let mut seen = [false; 2];
    for left in 0.. {
        (part.bytes, part.counter, part.left) = (bytes.clone(), counter, u32::MAX);
        let (code, tables) = begun(&described, false);
        assert_eq!(code, 0);
        part.left = left;
        let is_done = put_header(tables, &new) == 0;
        // SAFETY: every pointer is what the header says.
        unsafe { counterfoil_tables_close(tables) };
        part.left = u32::MAX;
        let opened = [&first, &second].map(|file| opened_on_a_host(&part.bytes, &Secret::KeyFile(file)).is_some());
        assert!(opened[0] || opened[1], "after {left} writes");
        seen = [seen[0] | opened[0], seen[1] | opened[1]];
        // The device goes on, and puts it there once more.
        let (code, tables) = begun(&described, false);
        assert_eq!((code, put_header(tables, &new)), (0, 0), "after {left} writes");
        // SAFETY: every pointer is what the header says.
        assert_eq!(unsafe { counterfoil_tables_close(tables) }, 0);
        assert_eq!(read_on_a_host(&part.bytes, &Secret::KeyFile(&second), 1), (1, Value::BigInt(5)));
        if is_done {
            break;
        }
    }
    assert_eq!(seen, [true, true]);
}

/// A volume that a host made, in a file, and the value that its counter has.
fn written_on_a_host() -> (Vec<u8>, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("image");
    let layout = Layout::new(&GEOMETRY, BLOCK_PAGES as u32, 8).expect("a layout");
    std::fs::write(&path, vec![0xFF; BYTES]).expect("a file");
    let medium = FileDevice::open(&path, GEOMETRY).expect("a file");
    let media =
        Media { reader: Arc::new(FileDevice::open(&path, GEOMETRY).expect("a file")), writer: Box::new(medium) };
    let vault = Vault::new(&VolumeKey::from_bytes(&KEY.volume_key), DatabaseId(KEY.database), Suite::AsconAead128);
    let mut counted = MemoryCounter::at(0, None);
    let counter = Some(Box::new(counted.clone()) as _);
    let settings = Settings { counter, counting: Counting::EveryCommit, pins: Box::new(NoPins), headers: None };
    let mut writer = create(media, Arc::new(vault), layout, settings, &mut SystemEntropy, 0, 1 << 20).expect("made");
    // As few rows outside of runs as the device has memory for.
    let relations = Relations::with_fresh_rows(16);
    let fill = |writer: &mut Writer| {
        let columns = Vec::from([NewColumn::new("id", Type::BigInt), NewColumn::new("value", Type::BigInt)]);
        let primary_key = Some(NewKey { name: None, columns: vec!["id".into()] });
        let new = NewTable { name: "readings".into(), columns, primary_key, ..NewTable::default() };
        let table = relations.create_table(writer, &new)?;
        for first in (0..200).step_by(20) {
            let mut rows = RowBuilder::new(table.layout());
            for id in first..first + 20 {
                rows.push(&[ValueRef::BigInt(id), ValueRef::BigInt(3 * id)])?;
            }
            relations.insert(writer, &table, &rows.finish())?;
        }
        Ok::<(), counterfoil_relation::Error>(())
    };
    writer.begin().expect("begun");
    fill(&mut writer).expect("filled");
    writer.commit().expect("committed");
    writer.close().expect("closed");
    drop(writer);
    let version = counted.value().expect("a counter").value;
    (std::fs::read(&path).expect("an image"), version)
}

#[test]
fn what_a_host_wrote_a_device_opens() {
    let (bytes, version) = written_on_a_host();
    let mut part = Part::new(bytes, version);
    let described = described(&mut part);
    let (code, tables) = begun(&described, false);
    assert_eq!(code, 0);
    // SAFETY: every pointer is what the header says.
    unsafe {
        assert_eq!(insert(tables, 199, 1), -40, "this row is there");
        assert_eq!((insert(tables, 200, 600), counterfoil_tables_commit(tables)), (0, 0));
        let file = KeyFile::generate(&mut SystemEntropy).expect("random");
        let key = VolumeKey::from_bytes(&KEY.volume_key);
        assert_eq!(put_header(tables, &header(BLOCKS, &file, &key)), 0);
        assert_eq!(counterfoil_tables_close(tables), 0);
        assert_eq!(read_on_a_host(&part.bytes, &Secret::KeyFile(&file), 150), (201, Value::BigInt(450)));
    }
    // An image of which the counter has not heard, or has heard more.
    for counter in [version - 1, version + 1] {
        let (bytes, _) = written_on_a_host();
        let mut part = Part::new(bytes, counter);
        let described = self::described(&mut part);
        let code = begun(&described, false).0;
        assert!(counter < version || code == -5, "{code}");
    }
}
