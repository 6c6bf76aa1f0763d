//! One who holds the medium changes, moves and puts back pages of every kind of container: rows, heaps, update and delete
//! logs, index runs and their filters. Whatever is asked then is answered as ever or not at all: a row that is there is never
//! taken for absent, one that is gone is never found, and nothing is shown as it was before.

use counterfoil_flash::{Device, PageNumber, Read};
use counterfoil_log::{ExtentUse, Owner, Snapshot};
use counterfoil_relation::{
    Error, KeyRange, NewColumn, NewForeignKey, NewIndex, NewKey, NewTable, Relations, RowId, Type, Value,
};

use crate::bench::{Bench, int, rounds, rows_of, text};

const FRESH_ROWS: usize = 40;
const PARENTS: i32 = 400;
const CHILDREN: i32 = 900;
/// Of a bench whose rows are sealed as whole pages, and of one that has them in cells, as a device.
const PAGES_AND_CELLS: [u64; 2] = [2, 3];
/// Keys beyond those that ever were.
const NEVER: i32 = 5000;

fn parent() -> NewTable {
    NewTable {
        name: "parent".into(),
        columns: vec![NewColumn::new("id", Type::Integer), NewColumn::new("note", Type::Text)],
        primary_key: Some(NewKey { name: None, columns: vec!["id".into()] }),
        ..NewTable::default()
    }
}

fn child() -> NewTable {
    let reference =
        NewForeignKey { columns: vec!["parent".into()], parent: "parent".into(), ..NewForeignKey::default() };
    let columns = ["id", "parent", "kind"].map(|name| NewColumn::new(name, Type::Integer));
    NewTable { name: "child".into(), columns: columns.into(), foreign_keys: vec![reference], ..parent() }
}

fn parent_row(id: i32, version: i32) -> Vec<Value> {
    vec![int(id), text(&format!("note {version} of parent {id}, and more of it"))]
}

/// Two tables in all their kinds of containers, and the pages of the medium as they were half way.
fn lived(seed: u64) -> (Bench, Vec<Vec<u8>>) {
    let mut bench = Bench::with_segments(seed, FRESH_ROWS, 6000);
    bench.create(&parent());
    bench.create(&child());
    let table = bench.table("child");
    let index = NewIndex { columns: vec!["kind".into()], ..NewIndex::default() };
    bench.statement(|relations, writer| relations.create_index(writer, &table, &index)).unwrap();
    for piece in (0..PARENTS).step_by(100) {
        let rows: Vec<_> = (piece..piece + 100).map(|id| parent_row(id, 0)).collect();
        bench.insert("parent", &rows).unwrap();
    }
    for piece in (0..CHILDREN).step_by(100) {
        let rows: Vec<_> = (piece..piece + 100).map(|id| vec![int(id), int(id % PARENTS), int(id % 37)]).collect();
        bench.insert("child", &rows).unwrap();
    }
    change(&mut bench, 1);
    bench.statement(|relations, writer| relations.vacuum(writer, None)).unwrap();
    let before = image(&bench);
    change(&mut bench, 2);
    change(&mut bench, 3);
    bench.writer.close().unwrap();
    (bench, before)
}

/// Deletes some children, moves some to another kind, and writes other notes.
fn change(bench: &mut Bench, round: i32) {
    let row = |id: i32| RowId(id as u64);
    let gone: Vec<_> = (0..30).map(|place| row(place * 29 + round)).collect();
    bench.delete("child", &gone).unwrap();
    let moved: Vec<i32> = (0..CHILDREN).filter(|id| id % 31 == round && !gone_by(*id, round)).collect();
    let rows: Vec<_> = moved.iter().map(|id| vec![int(*id), int((id * 7) % PARENTS), int(100 + round)]).collect();
    bench.update("child", &moved.iter().map(|id| row(*id)).collect::<Vec<_>>(), &rows).unwrap();
    let noted: Vec<i32> = (0..PARENTS).filter(|id| id % 23 == round).collect();
    let rows: Vec<_> = noted.iter().map(|id| parent_row(*id, round)).collect();
    bench.update("parent", &noted.iter().map(|id| row(*id)).collect::<Vec<_>>(), &rows).unwrap();
}

fn gone_by(id: i32, round: i32) -> bool {
    (1..=round).any(|round| (id - round) % 29 == 0 && (0..30).contains(&((id - round) / 29)))
}

fn image(bench: &Bench) -> Vec<Vec<u8>> {
    let read = |page| {
        let mut bytes = vec![0; bench.device.geometry().page_bytes as usize];
        bench.device.read(PageNumber(page), 0, &mut bytes).unwrap();
        bytes
    };
    (0..bench.pages().end).map(read).collect()
}

/// The pages of extents in which something of a container lives.
fn used(bench: &Bench) -> Vec<u64> {
    let report = bench.writer.report();
    let pages = u64::from(report.layout.extent_pages);
    let is_used = |used: &ExtentUse| matches!(used.owner, Owner::Group(_)) && used.live_pages > 0;
    let extents = report.extents.iter().enumerate().filter(|(_, used)| is_used(used));
    extents.flat_map(|(extent, _)| extent as u64 * pages..(extent as u64 + 1) * pages).collect()
}

/// What is asked, and its answer or why there is none.
type Answers = Vec<Result<Vec<(RowId, Vec<Value>)>, Error>>;

/// Both tables whole, and rows by their indexes: keys that are there, that once were, that never were.
fn answers(view: &Snapshot) -> Answers {
    let mut found = vec![scanned(view, "parent"), scanned(view, "child")];
    let keys = (0..CHILDREN).step_by(13).chain([-1, CHILDREN, NEVER]);
    found.extend(keys.map(|key| by_index(view, "child", "id", key)));
    found.extend((0..PARENTS).step_by(17).chain([NEVER]).map(|key| by_index(view, "parent", "id", key)));
    found.extend([0, 5, 36, 37, 99, 101, 102, 103, 104, NEVER].map(|key| by_index(view, "child", "kind", key)));
    found.extend((0..PARENTS).step_by(41).chain([NEVER]).map(|key| by_index(view, "child", "parent", key)));
    found
}

fn scanned(view: &Snapshot, name: &str) -> Result<Vec<(RowId, Vec<Value>)>, Error> {
    let relations = Relations::with_fresh_rows(FRESH_ROWS);
    let table = relations.table(view, name)?.unwrap();
    let mut scan = relations.scan(view.clone(), &table)?;
    let mut rows = Vec::new();
    while let Some(block) = scan.next(100)? {
        for row in block.visible_rows() {
            rows.push((block.id(row), block.rows.row(row)?));
        }
    }
    Ok(rows)
}

/// A mind of its own each time, with no room for heads of runs: each question reads all that it believes.
fn by_index(view: &Snapshot, name: &str, column: &str, key: i32) -> Result<Vec<(RowId, Vec<Value>)>, Error> {
    let relations = Relations::with_fresh_rows(FRESH_ROWS).with_head_bytes(0);
    let table = relations.table(view, name)?.unwrap();
    let column = table.column(column).unwrap().1.id;
    let index = table.indexes.iter().find(|index| index.columns == [column]).unwrap().id;
    let rows = relations.lookup(view, &table, index, &KeyRange::equal(vec![int(key)]), 10_000)?.unwrap();
    let block = relations.fetch(view, &table, &rows, None)?;
    block.visible_rows().map(|row| Ok((block.id(row), block.rows.row(row)?))).collect()
}

/// What somebody does to the medium: pages, and what they become.
fn attack(bench: &mut Bench, now: &[Vec<u8>], before: &[Vec<u8>]) -> (&'static str, Vec<(u64, Vec<u8>)>) {
    let used = used(bench);
    let mut any = || used[bench.dice(used.len() as u64) as usize];
    let (page, other) = (any(), any());
    let of =
        |image: &[Vec<u8>], page: u64| image.get(page as usize).cloned().unwrap_or_else(|| now[page as usize].clone());
    match bench.dice(7) {
        0 | 1 => {
            let mut bytes = of(now, page);
            let place = bench.dice(bytes.len() as u64) as usize;
            bytes[place] ^= 1 << bench.dice(8);
            ("a bit flipped", vec![(page, bytes)])
        }
        2 => ("a page moved", vec![(page, of(now, other))]),
        3 => ("two pages exchanged", vec![(page, of(now, other)), (other, of(now, page))]),
        4 => ("a page put back", vec![(page, of(before, page))]),
        5 => {
            let pages = page..(page + 40).min(bench.pages().end);
            ("many pages put back", pages.map(|page| (page, of(before, page))).collect())
        }
        _ => ("a page emptied", vec![(page, vec![0; now[0].len()])]),
    }
}

#[test]
fn whoever_holds_the_medium_changes_no_answer() {
    PAGES_AND_CELLS.into_iter().for_each(attacked);
}

fn attacked(seed: u64) {
    let (mut bench, before) = lived(seed);
    bench.verify();
    let now = image(&bench);
    let honest = answers(&bench.shown().unwrap());
    assert!(honest.iter().all(Result::is_ok));
    assert!(honest.iter().flatten().filter(|rows| rows.is_empty()).count() > 10, "absent rows are asked for");
    let (mut unanswered, mut refused, mut told) = (0, 0, 0);
    let tries = rounds(40, 3000);
    for number in 0..tries {
        let (what, changes) = attack(&mut bench, &now, &before);
        for (page, bytes) in &changes {
            bench.device.program(PageNumber(*page), bytes).unwrap();
        }
        match bench.shown() {
            Err(_) => refused += 1,
            Ok(view) => {
                let mut lost = 0;
                for (question, (honest, answer)) in honest.iter().zip(answers(&view)).enumerate() {
                    match answer {
                        Ok(rows) => assert!(
                            honest.as_ref().is_ok_and(|honest| *honest == rows),
                            "{seed}, try {number}, {what} {:?}: question {question} was answered {rows:?}",
                            changes.iter().map(|(page, _)| page).collect::<Vec<_>>()
                        ),
                        Err(_) => lost += 1,
                    }
                }
                unanswered += lost;
                let report = Relations::with_fresh_rows(FRESH_ROWS).verify(&view, &mut |_| {});
                let is_told = report.is_err() || report.is_ok_and(|report| !report.problems.is_empty());
                assert!(lost == 0 || is_told, "try {number}, {what}: {lost} questions failed, and verify says nothing");
                told += u64::from(is_told);
            }
        }
        for (page, _) in &changes {
            bench.device.program(PageNumber(*page), &now[*page as usize]).unwrap();
        }
    }
    assert!(told * 8 > tries, "{told} of {tries} hit something, {refused} were refused at once");
    assert!(unanswered > 0);
    assert!(answers(&bench.shown().unwrap()) == honest, "all is as it was");
}

#[test]
fn an_absent_row_is_believed_only_where_its_filter_authenticates() {
    PAGES_AND_CELLS.into_iter().for_each(asked_of_damage);
}

fn asked_of_damage(seed: u64) {
    let (mut bench, _) = lived(seed);
    let now = image(&bench);
    let ask = |bench: &Bench| by_index(&bench.shown().unwrap(), "child", "id", NEVER);
    assert_eq!(ask(&bench).unwrap(), []);
    // Where a bit of any page is flipped, an absent row is absent or unknown; for some pages it must be unknown.
    let mut unknown = 0;
    for page in bench.pages() {
        let mut bytes = now[page as usize].clone();
        let place = bytes.len() / 2;
        bytes[place] ^= 1;
        bench.device.program(PageNumber(page), &bytes).unwrap();
        if let Ok(view) = bench.shown() {
            match by_index(&view, "child", "id", NEVER) {
                Ok(rows) => assert_eq!(rows, []),
                Err(_) => unknown += 1,
            }
        }
        bench.device.program(PageNumber(page), &now[page as usize]).unwrap();
    }
    assert!(unknown > 0, "no page was needed to know that a row is absent");
    assert_eq!(rows_of(&bench.relations, bench.recovered(), &bench.table("child")).len(), bench.rows("child").len());
}
