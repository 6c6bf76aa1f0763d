//! Devices keep rows in cells and hosts in pages, and either reads what the other wrote.

use counterfoil_log::Sealing;
use counterfoil_relation::{NewColumn, NewTable, RowId, Type, Value};

use crate::bench::{Bench, int, text};

fn note(id: i32) -> Vec<Value> {
    vec![int(id), text(&format!("a note that is long enough for the heap, {id}"))]
}

fn table() -> NewTable {
    let columns = vec![NewColumn::new("id", Type::Integer), NewColumn::new("note", Type::Text)];
    NewTable { name: "t".into(), columns, ..NewTable::default() }
}

/// Containers with bytes in them that are sealed in this way.
fn sealed(bench: &Bench, sealing: Sealing) -> usize {
    let containers = bench.writer.report().containers;
    containers.iter().filter(|container| container.sealing == sealing && container.bytes > 0).count()
}

#[test]
fn rows_of_a_device_stand_in_cells() {
    // Of odd seeds the first process is a device, and the next one a host.
    let mut bench = Bench::with_segments(1, 8, 3000);
    bench.create(&table());
    let mut expected: Vec<Vec<Value>> = (0..100).map(note).collect();
    bench.insert("t", &expected).unwrap();
    expected[3] = note(1003);
    bench.update("t", &[RowId(3)], std::slice::from_ref(&expected[3])).unwrap();
    let (rows, heaps) = (sealed(&bench, Sealing::Pointers), sealed(&bench, Sealing::Cells));
    assert_eq!((rows, heaps, sealed(&bench, Sealing::Whole)), (2, 1, 0), "rows and an update, their texts");
    bench.verify();

    bench.reopen();
    assert_eq!(bench.values("t"), expected);
    let more: Vec<Vec<Value>> = (100..200).map(note).collect();
    bench.insert("t", &more).unwrap();
    bench.insert("t", &more[..1]).unwrap();
    expected.extend(more.iter().chain(&more[..1]).cloned());
    assert!(sealed(&bench, Sealing::Whole) > 0, "segments of the host are whole");
    assert_eq!(bench.values("t"), expected);
    bench.verify();

    bench.reopen();
    bench.delete("t", &(0..90).map(RowId).collect::<Vec<_>>()).unwrap();
    bench.statement(|relations, writer| relations.vacuum(writer, None)).unwrap();
    assert_eq!(bench.values("t"), expected.split_off(90));
    bench.verify();
}

#[test]
fn rows_of_a_device_stand_each_on_one_page() {
    // Two of 116 bytes in a page of 512, which holds 248.
    let columns = vec![NewColumn::new("id", Type::Integer), NewColumn::new("filling", Type::Char(107))];
    let table = NewTable { name: "t".into(), columns, ..NewTable::default() };
    let rows: Vec<Vec<Value>> = (0..100).map(|id| vec![int(id), text(&format!("{id:0107}"))]).collect();
    for (seed, bytes) in [(1, 124), (2, 116)] {
        let mut bench = Bench::with_segments(seed, 8, 1 << 20);
        bench.create(&table);
        bench.insert("t", &rows).unwrap();
        let is_it = |bytes: u64| bytes >= 100 * 116;
        let stored =
            bench.writer.report().containers.iter().map(|container| container.bytes).find(|bytes| is_it(*bytes));
        assert_eq!(stored, Some(100 * bytes));
        assert_eq!(bench.values("t"), rows);
        bench.verify();
        bench.reopen();
        bench.delete("t", &[RowId(7)]).unwrap();
        bench.statement(|relations, writer| relations.vacuum(writer, None)).unwrap();
        assert_eq!(bench.values("t"), [&rows[..7], &rows[8..]].concat());
        bench.verify();
    }
}

#[test]
fn rows_of_a_host_stand_in_pages() {
    let mut bench = Bench::with_segments(2, 8, 3000);
    bench.create(&table());
    bench.insert("t", &(0..100).map(note).collect::<Vec<_>>()).unwrap();
    assert_eq!((sealed(&bench, Sealing::Pointers), sealed(&bench, Sealing::Cells)), (0, 0));
}
