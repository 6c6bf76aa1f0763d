//! Pages that no longer authenticate, and catalogs that make no sense.

use std::collections::BTreeSet;

use counterfoil_flash::{Device, PageNumber, Read};
use counterfoil_log::{View, record_space};
use counterfoil_relation::{Cause, NewColumn, NewForeignKey, NewKey, NewTable, Problem, Relations, RowId, Type};

use crate::bench::{Bench, int, rounds, text};

/// Two tables with runs, deletes, updates and long values; of odd seeds in cells.
fn populated(seed: u64) -> Bench {
    let mut bench = Bench::with_fresh_rows(seed, 64);
    let parent = NewTable {
        name: "parent".into(),
        columns: vec![NewColumn::new("id", Type::Integer), NewColumn::new("note", Type::Text)],
        primary_key: Some(NewKey { name: None, columns: vec!["id".into()] }),
        ..NewTable::default()
    };
    bench.create(&parent);
    let reference =
        NewForeignKey { columns: vec!["parent".into()], parent: "parent".into(), ..NewForeignKey::default() };
    let columns = vec![NewColumn::new("id", Type::Integer), NewColumn::new("parent", Type::Integer)];
    bench.create(&NewTable { name: "child".into(), columns, foreign_keys: vec![reference], ..parent });
    let parents: Vec<_> =
        (0..1000).map(|id| vec![int(id), text(&format!("a note that is long enough {id}").repeat(5))]).collect();
    bench.insert("parent", &parents).unwrap();
    let children: Vec<_> = (0..1500).map(|id| vec![int(id), int(id % 400)]).collect();
    bench.insert("child", &children).unwrap();
    bench.delete("parent", &(900..1000).map(RowId).collect::<Vec<_>>()).unwrap();
    let changed: Vec<_> =
        (500..600).map(|id| vec![int(id), text(&format!("another note, longer than that {id}"))]).collect();
    bench.update("parent", &(500..600).map(RowId).collect::<Vec<_>>(), &changed).unwrap();
    bench.statement(|relations, writer| relations.vacuum(writer, None)).unwrap();
    bench.delete("parent", &(600..620).map(RowId).collect::<Vec<_>>()).unwrap();
    bench.update("parent", &(500..510).map(RowId).collect::<Vec<_>>(), &changed[..10]).unwrap();
    bench.writer.close().unwrap();
    bench
}

fn flip(bench: &mut Bench, page: u64) -> Vec<u8> {
    let bytes = bench.device.geometry().page_bytes as usize;
    let mut there = vec![0; bytes];
    bench.device.read(PageNumber(page), 0, &mut there).unwrap();
    let mut changed = there.clone();
    changed[bytes / 3] ^= 0x40;
    bench.device.program(PageNumber(page), &changed).unwrap();
    there
}

#[test]
fn one_damaged_page_is_named_and_costs_only_its_rows() {
    one_damaged_page(2);
}

#[test]
fn one_damaged_page_of_cells_is_named_and_costs_only_its_rows() {
    one_damaged_page(1);
}

fn one_damaged_page(seed: u64) {
    let mut bench = populated(seed);
    let whole = [bench.rows("parent"), bench.rows("child")];
    bench.verify();
    let pages = bench.pages();
    let count = pages.end - pages.start;
    let mut hurt = 0;
    // Every page, or some that the dice choose.
    let tries = rounds(60, count);
    for number in 0..tries {
        let page = pages.start + if tries == count { number } else { bench.dice(count) };
        let view = bench.recovered();
        let there = flip(&mut bench, page);
        let relations = Relations::with_fresh_rows(64);
        let report = relations.verify(&view, &mut |_| {}).unwrap();
        let mut lost = 0;
        for (table, rows) in ["parent", "child"].iter().zip(&whole) {
            let table = relations.table(&view, table).unwrap().unwrap();
            let mut salvage = relations.salvage(view.clone(), &table).unwrap();
            let mut saved = Vec::new();
            while let Some(block) = salvage.next(1000).unwrap() {
                saved.extend(block.visible_rows().map(|row| (block.id(row), block.rows.row(row).unwrap())));
            }
            let missing: Vec<RowId> =
                salvage.missing().iter().flat_map(|range| (range.start.0..range.end.0).map(RowId)).collect();
            if salvage.notes().is_empty() {
                let left = rows.iter().filter(|(id, _)| !missing.contains(id));
                assert!(saved.iter().eq(left), "page {page}");
            }
            lost += missing.len() + salvage.notes().len();
        }
        let told: BTreeSet<_> = report.problems.iter().map(|problem| (&problem.table, &problem.what)).collect();
        assert_eq!(told.len(), report.problems.len(), "each cause once: {:?}", report.problems);
        // Rows that were deleted are told of too: they stood in the page, and nobody misses them.
        let visible = |problem: &Problem| {
            let of_table = &whole[usize::from(problem.table == "child")];
            let rows = problem.rows.map_or(0..0, |rows| rows.first..rows.first + rows.count);
            of_table.iter().filter(|(id, _)| rows.contains(&id.0)).count()
        };
        let counted: usize = report.problems.iter().map(visible).sum();
        if !report.problems.is_empty() {
            hurt += 1;
            assert!(counted <= lost.max(1), "{counted} rows of {lost}: {:?}", report.problems);
            assert!(report.problems.iter().any(|problem| problem.what.contains("page")), "{:?}", report.problems);
            assert!(lost < 200, "page {page} costs {lost} rows");
        }
        assert!(lost == 0 || !report.problems.is_empty());
        bench.device.program(PageNumber(page), &there).unwrap();
    }
    assert!(hurt * 20 > tries, "{hurt} pages of tables were hit in {tries} tries of {count}");
}

#[test]
fn a_query_that_needs_a_damaged_page_names_the_table() {
    needs_a_damaged_page(2);
    needs_a_damaged_page(1);
}

fn needs_a_damaged_page(seed: u64) {
    let mut bench = populated(seed);
    let view = bench.recovered();
    let table = bench.table("parent");
    for page in bench.pages() {
        let there = flip(&mut bench, page);
        let relations = Relations::new();
        let mut scan = relations.scan(view.clone(), &table);
        let failed = match &mut scan {
            Err(error) => Some(error.clone()),
            Ok(scan) => core::iter::from_fn(|| scan.next(100).transpose()).find_map(Result::err),
        };
        if let Some(error) = failed {
            assert!(matches!(error.cause(), Cause::Log { table, .. } if table == "parent"), "{error:?}");
            assert!(error.to_string().starts_with("table parent: page "), "{error}");
            return;
        }
        bench.device.program(PageNumber(page), &there).unwrap();
    }
    panic!("no page of the table was found");
}

#[test]
fn a_catalog_of_noise_ends_in_errors() {
    let mut bench = populated(2);
    let catalog = bench.writer.records(record_space::CATALOG, b"");
    for round in 0..rounds(60, 1500) {
        let (name, value) = &catalog[bench.dice(catalog.len() as u64) as usize];
        let mut noise = value.to_vec();
        for _ in 0..=bench.dice(3) {
            let place = bench.dice(noise.len().max(1) as u64) as usize;
            match bench.dice(4) {
                0 => noise.truncate(place),
                1 => noise.push(bench.dice(256) as u8),
                2 if place < noise.len() => noise[place] = 0xFF,
                _ if place < noise.len() => noise[place] = bench.dice(256) as u8,
                _ => {}
            }
        }
        bench.begin();
        bench.writer.put_record(record_space::CATALOG, name, &noise).unwrap();
        // A fresh mind, so that nothing known from before helps; whatever comes, no panic.
        bench.relations = Relations::with_fresh_rows(64);
        let _ = bench.relations.verify(&bench.writer, &mut |_| {});
        for table in ["parent", "child"] {
            let Ok(Some(table)) = bench.relations.table(&bench.writer, table) else { continue };
            let _ = bench.relations.count(&bench.writer, &table);
            let view = bench.writer.pending();
            if let Ok(mut salvage) = bench.relations.salvage(view, &table) {
                while let Ok(Some(block)) = salvage.next(500) {
                    block.visible_rows().for_each(|row| drop(block.rows.row(row)));
                }
            }
            if round % 10 == 0 {
                let _ = bench.relations.vacuum(&mut bench.writer, Some(&table));
            }
        }
        let _ = bench.relations.maintain(&mut bench.writer);
        bench.rollback();
    }
    bench.relations = Relations::with_fresh_rows(64);
    bench.verify();
}

#[test]
fn containers_of_noise_end_in_errors() {
    let mut bench = populated(1);
    let containers = bench.writer.snapshot().containers();
    for round in 0..rounds(150, 2000) {
        bench.begin();
        let container = containers[bench.dice(containers.len() as u64) as usize];
        // Whole rows, log entries, or neither; small numbers, so that some of it looks like something.
        let count = [1, 7, 8, 21, 46, 48, 58, 9, 18, 400][bench.dice(10) as usize] * (1 + bench.dice(3));
        let noise: Vec<u8> = (0..count).map(|_| if bench.dice(3) == 0 { bench.dice(256) as u8 } else { 0 }).collect();
        bench.writer.append(container, &noise).unwrap();
        bench.relations = Relations::with_fresh_rows(64);
        let _ = bench.relations.verify(&bench.writer, &mut |_| {});
        for name in ["parent", "child"] {
            let table = bench.table(name);
            let view = bench.writer.pending();
            let mut salvage = bench.relations.salvage(view.clone(), &table).unwrap();
            while let Ok(Some(block)) = salvage.next(500) {
                block.visible_rows().for_each(|row| drop(block.rows.row(row)));
            }
            if let Ok(mut scan) = bench.relations.scan(view, &table) {
                while scan.rows_left() > 0 {
                    let _ = scan.next(500);
                }
            }
            let row = if name == "parent" { vec![int(5000), text("new")] } else { vec![int(5000), int(3)] };
            let _ = bench.insert(name, std::slice::from_ref(&row));
            let _ = bench.update(name, &[RowId(30)], &[row]);
            let _ = bench.delete(name, &[RowId(31)]);
            if round % 5 == 0 {
                let _ = bench.statement(|relations, writer| relations.vacuum(writer, Some(&table)));
            }
        }
        bench.rollback();
    }
    bench.relations = Relations::with_fresh_rows(64);
    bench.verify();
}

#[test]
fn readers_and_the_writer_may_live_on_different_threads() {
    fn shared<T: Send + Sync>() {}
    fn moved<T: Send>() {}
    shared::<Relations>();
    shared::<counterfoil_relation::Table>();
    moved::<counterfoil_relation::Scan<counterfoil_log::Snapshot>>();
    moved::<counterfoil_relation::RowBlock>();
}
