//! A key change is cut at every byte, and nothing is lost.

use counterfoil_vault::{
    ArgonCost, ChangeStep, CopyFault, DangerFixedEntropy, Header, HeaderChange, HeaderCopy, KeyFile, RootDigests,
    Secret, Settled, Unlocked, read_headers,
};

use crate::medium::{Made, made};

const COST: ArgonCost = ArgonCost::HOST;

/// A database, what its counter-bound root says, and the key that a change brings.
struct Change {
    made: Made,
    root: RootDigests,
    new_key: KeyFile,
    new: Header,
}

fn change() -> Change {
    let mut made = made();
    let new_key = KeyFile::generate(&mut made.entropy).unwrap();
    let mut new = made.header.clone();
    new.change_slot(0, &Secret::KeyFile(&new_key), &COST, &made.volume_key, 9, &mut made.entropy).unwrap();
    let root = made.root();
    Change { made, root, new_key, new }
}

impl Change {
    fn open(&self) -> (Unlocked, Settled) {
        let secrets = [Secret::KeyFile(&self.made.key_file), Secret::KeyFile(&self.new_key)];
        // Whichever key is the one by now: a person has both, and one is in force.
        let tries = secrets.iter().map(|secret| {
            let unlocked = read_headers(&self.made.medium)?.unlock(&[*secret], &COST)?;
            let settled = unlocked.settle(&self.root)?;
            Ok::<_, counterfoil_vault::HeaderError>((unlocked, settled))
        });
        let in_force =
            tries.filter_map(Result::ok).filter(|(unlocked, settled)| !unlocked.is_opened_by_a_replaced_slot(settled));
        let mut in_force: Vec<_> = in_force.collect();
        assert_eq!(in_force.len(), 1, "the database opens with the old key or the new one");
        in_force.remove(0)
    }

    /// Does one step; of a write only the first `reach` bytes.
    fn act(&mut self, change: &HeaderChange, reach: usize) {
        match change.step() {
            ChangeStep::Commit(root) => self.root = root,
            ChangeStep::Write { copy, bytes } => {
                let bytes = &bytes[..reach.min(bytes.len())];
                self.made.medium.write(copy.first_page(&self.made.header.layout), bytes);
            }
            ChangeStep::Done => {}
        }
    }

    fn finish(&mut self, mut change: HeaderChange) {
        while change.step() != ChangeStep::Done {
            self.act(&change, usize::MAX);
            change.done();
        }
    }

    /// Opens after a cut, finishes what was begun, opens again: whole, with the old header or the new one.
    fn recover(&mut self) -> Header {
        let (_, settled) = self.open();
        if let Some(unfinished) = settled.unfinished {
            assert!(settled.fault.is_none(), "a change that was cut is no fault");
            self.finish(unfinished);
        }
        let (_, settled) = self.open();
        assert!(settled.unfinished.is_none());
        assert_eq!(self.root, RootDigests::settled(settled.header.slots_digest()));
        settled.header
    }
}

#[test]
fn an_undisturbed_change_ends_with_the_new_key() {
    let mut change = change();
    let (unlocked, settled) = change.open();
    let plan = unlocked.change(&settled.header, &change.new);
    change.finish(plan);
    assert!(change.recover() == change.new);
    let old = [Secret::KeyFile(&change.made.key_file)];
    assert!(read_headers(&change.made.medium).unwrap().unlock(&old, &COST).is_err());
    assert_eq!(change.open().1.fault, None);
}

/// Runs a change up to the cut after `steps` steps and `reach` bytes of the next; `prepare` spoils things before.
fn cut(steps: usize, reach: usize, prepare: fn(&mut Change)) -> (Change, bool) {
    let mut change = change();
    prepare(&mut change);
    let (unlocked, settled) = change.open();
    let mut plan = unlocked.change(&settled.header, &change.new);
    for _ in 0..steps {
        change.act(&plan, usize::MAX);
        plan.done();
    }
    if matches!(plan.step(), ChangeStep::Write { .. }) {
        change.act(&plan, reach);
    }
    (change, plan.step() == ChangeStep::Done)
}

#[test]
fn a_cut_anywhere_is_finished_forward_or_back() {
    let nothing: fn(&mut Change) = |_| {};
    let damaged_a: fn(&mut Change) = |change| change.made.copy_bytes(HeaderCopy::A).fill(0x55);
    let damaged_b: fn(&mut Change) = |change| change.made.copy_bytes(HeaderCopy::B).fill(0x55);
    for prepare in [nothing, damaged_a, damaged_b] {
        for steps in 0..=4 {
            for reach in (0..2048).step_by(64).chain([1, 9, 95, 2047, 2048, 4096]) {
                let (mut change, done) = cut(steps, reach, prepare);
                let old = change.made.header.clone();
                let header = change.recover();
                assert!(header == old || header == change.new);
                assert!(!done || header == change.new, "a change that was acknowledged holds");
                assert!(steps < 2 || header == change.new, "one copy written whole carries the change on");
                assert!(steps > 0 || header == old, "a change that was not begun does not");
                if steps > 0 {
                    assert_eq!(change.open().1.fault, None, "finishing repairs both copies");
                }
            }
        }
    }
}

#[test]
fn a_cut_while_finishing_is_finished_too() {
    for steps in 1..=3 {
        for reach in [0, 100, 1000, 4096] {
            for again in 0..3 {
                for reach_again in [0, 500, 1990, 4096] {
                    let (mut change, _) = cut(steps, reach, |_| {});
                    let mut plan = change.open().1.unfinished.expect("the root names two headers");
                    for _ in 0..again {
                        change.act(&plan, usize::MAX);
                        plan.done();
                    }
                    if matches!(plan.step(), ChangeStep::Write { .. }) {
                        change.act(&plan, reach_again);
                    }
                    change.recover();
                    assert_eq!(change.open().1.fault, None);
                }
            }
        }
    }
}

#[test]
fn a_good_copy_is_never_written_while_the_other_one_is_not() {
    let mut change = change();
    change.made.copy_bytes(HeaderCopy::B).fill(0x55);
    let (unlocked, settled) = change.open();
    assert_eq!(settled.fault, Some((HeaderCopy::B, CopyFault::Damaged)));
    let mut plan = unlocked.change(&settled.header, &change.new);
    plan.done();
    assert!(matches!(plan.step(), ChangeStep::Write { copy: HeaderCopy::B, .. }));
}

#[test]
fn repair_writes_the_copy_that_does_not_hold() {
    let mut change = change();
    let (unlocked, settled) = change.open();
    assert!(unlocked.repair(&settled.header).is_none());
    for copy in HeaderCopy::BOTH {
        change.made.copy_bytes(copy)[100] ^= 1;
        let (unlocked, settled) = change.open();
        let plan = unlocked.repair(&settled.header).expect("one copy is damaged");
        assert!(matches!(plan.step(), ChangeStep::Write { copy: found, .. } if found == copy));
        change.finish(plan);
        assert_eq!(change.open().1.fault, None);
    }
}

#[test]
fn last_months_header_is_tampering_during_a_change_too() {
    let (mut change, _) = cut(2, 0, |_| {});
    // A third header, older than both that the root names.
    let mut older = change.made.header.clone();
    let mut entropy = DangerFixedEntropy::seeded(77);
    older.change_slot(0, &Secret::KeyFile(&change.new_key), &COST, &change.made.volume_key, 1, &mut entropy).unwrap();
    let bytes = older.encode(&change.made.volume_key);
    for copy in HeaderCopy::BOTH {
        change.made.medium.write(copy.first_page(&older.layout), &bytes);
    }
    let secrets = [Secret::KeyFile(&change.new_key)];
    let unlocked = read_headers(&change.made.medium).unwrap().unlock(&secrets, &COST).unwrap();
    assert!(unlocked.settle(&change.root).is_err());
}
