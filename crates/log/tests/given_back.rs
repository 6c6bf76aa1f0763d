//! Groups that one commit makes and drops: their extents are used again within it, unless somebody may want them back.

mod bench;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bench::{Bench, fill, holds};
use counterfoil_log::{ContainerId, GroupId, PoolOptions, Writer};
use counterfoil_vault::witness;

const BYTES: usize = 6000;

fn made(writer: &mut Writer) -> (GroupId, ContainerId) {
    let group = writer.create_group().unwrap();
    (group, fill(writer, group, BYTES).unwrap())
}

#[test]
fn a_long_commit_that_makes_and_drops_takes_no_more_than_is_there_at_a_time() {
    let mut bench = Bench::file(400, 8);
    let mut writer = bench.create();
    let before = writer.extents();
    writer.begin().unwrap();
    let (_, stays) = made(&mut writer);
    // A statement reads what it found, and nothing of what comes.
    let preview = writer.pending();
    for _ in 0..300 {
        let (group, id) = made(&mut writer);
        holds(&writer, id, BYTES);
        writer.drop_group(group).unwrap();
    }
    holds(&preview, stays, BYTES);
    drop(preview);
    writer.check();
    assert!(writer.extents() <= before + 12, "{before} extents became {}", writer.extents());
    writer.commit().unwrap();
    writer.check();
    holds(&writer, stays, BYTES);
    drop(writer);
    let writer = bench.open().unwrap();
    writer.check();
    holds(&writer, stays, BYTES);
    assert_eq!(witness::duplicates(), []);
}

#[test]
fn what_a_savepoint_brings_back_is_as_it_was() {
    let mut bench = Bench::file(400, 8);
    let mut writer = bench.create();
    writer.begin().unwrap();
    let (old, id) = made(&mut writer);
    let savepoint = writer.savepoint().unwrap();
    writer.drop_group(old).unwrap();
    let (newer, _) = made(&mut writer);
    writer.drop_group(newer).unwrap();
    // Whoever takes room now takes it from the newer one, and not from the old one.
    for _ in 0..4 {
        made(&mut writer);
    }
    writer.rollback_to(&savepoint).unwrap();
    writer.check();
    holds(&writer, id, BYTES);
    // It goes on where it was, at positions that nobody has tried.
    writer.append(id, &[id.0 as u8; BYTES]).unwrap();
    writer.commit().unwrap();
    drop(writer);
    let writer = bench.open().unwrap();
    holds(&writer, id, 2 * BYTES);
    assert_eq!(witness::duplicates(), []);
}

#[test]
fn a_savepoint_that_is_released_holds_nothing() {
    let mut bench = Bench::file(400, 8);
    let mut writer = bench.create();
    let before = writer.extents();
    writer.begin().unwrap();
    let mut last = None;
    for _ in 0..300 {
        // As a statement in a transaction: it might have been undone, and was not.
        let savepoint = writer.savepoint().unwrap();
        let (group, _) = made(&mut writer);
        writer.release(&savepoint);
        assert!(writer.rollback_to(&savepoint).is_err(), "nobody goes back to what was released");
        last.replace(group).into_iter().for_each(|group| writer.drop_group(group).unwrap());
    }
    assert!(writer.extents() <= before + 16, "{before} extents became {}", writer.extents());
    writer.rollback();
    writer.check();
}

#[test]
fn who_looks_at_a_commit_on_its_way_goes_on_seeing_what_it_saw() {
    let mut bench = Bench::file(400, 8);
    let mut writer = bench.create();
    writer.begin().unwrap();
    let (group, id) = made(&mut writer);
    let preview = writer.pending();
    writer.drop_group(group).unwrap();
    for _ in 0..4 {
        made(&mut writer);
    }
    holds(&preview, id, BYTES);
    drop(preview);
    writer.commit().unwrap();
    writer.check();
}

#[test]
fn a_group_that_comes_back_after_two_returns_goes_on_where_nobody_tried() {
    let mut bench = Bench::file(400, 8);
    let mut writer = bench.create();
    writer.begin().unwrap();
    let group = writer.create_group().unwrap();
    let id = fill(&mut writer, group, 1200).unwrap();
    let first = writer.savepoint().unwrap();
    // What is tried here is undone.
    writer.append(id, &[!(id.0 as u8); 1200]).unwrap();
    writer.drop_group(group).unwrap();
    let second = writer.savepoint().unwrap();
    // A statement that fails, and then the session goes back further.
    writer.rollback_to(&second).unwrap();
    writer.rollback_to(&first).unwrap();
    writer.commit().unwrap();
    writer.begin().unwrap();
    writer.append(id, &[id.0 as u8; 1200]).unwrap();
    writer.commit().unwrap();
    holds(&writer, id, 2400);
    assert_eq!(witness::duplicates(), []);
}

#[test]
fn a_pool_that_comes_back_after_two_returns_writes_where_nobody_tried() {
    let mut bench = Bench::file(400, 8);
    let mut writer = bench.create();
    writer.begin().unwrap();
    let pool = writer.create_pool(PoolOptions::default()).unwrap();
    writer.write_nameless(pool, &[1; 496]).unwrap();
    let first = writer.savepoint().unwrap();
    writer.write_nameless(pool, &[2; 496]).unwrap();
    writer.drop_pool(pool).unwrap();
    let second = writer.savepoint().unwrap();
    writer.rollback_to(&second).unwrap();
    writer.rollback_to(&first).unwrap();
    writer.write_nameless(pool, &[3; 496]).unwrap();
    writer.commit().unwrap();
    writer.check();
    assert_eq!(witness::duplicates(), []);
}

#[test]
fn what_a_statement_drops_of_those_before_it_is_used_again_when_it_has_ended() {
    let mut bench = Bench::file(400, 8);
    let mut writer = bench.create();
    let before = writer.extents();
    writer.begin().unwrap();
    let mut last = None;
    for _ in 0..300 {
        let savepoint = writer.savepoint().unwrap();
        last.replace(made(&mut writer).0).into_iter().for_each(|group| writer.drop_group(group).unwrap());
        writer.release(&savepoint);
    }
    assert!(writer.extents() <= before + 16, "{before} extents became {}", writer.extents());
    writer.commit().unwrap();
    writer.check();
}

#[test]
fn what_waits_for_the_counter_does_not_make_the_volume_grow_without_bound() {
    let mut bench = Bench::file(4000, 8);
    // It stands still: the counter would take no step.
    bench.clock = Some(Arc::new(AtomicU64::new(5)));
    let mut writer = bench.create();
    let before = writer.extents();
    let mut last = None;
    for _ in 0..300 {
        writer.begin().unwrap();
        last.replace(made(&mut writer).0).into_iter().for_each(|group| writer.drop_group(group).unwrap());
        writer.commit().unwrap();
    }
    writer.check();
    let most = before + 2 * 16 + 8;
    assert!(writer.extents() <= most, "{before} extents became {}", writer.extents());
    drop(writer);
    bench.open().unwrap().check();
}
