//! Power cuts: at every operation of a script, in every way, and again during what follows.

use counterfoil_flash::{Device, Read};
use counterfoil_record::{Error, Name, Which};
use counterfoil_vault::Vault;

use crate::bench::*;
use crate::part::{CUTS, Cut, Random};

/// What is known about a store whose power may go at any time.
#[derive(Clone)]
pub struct Known {
    /// The last commit that was released, which must be there whatever happens.
    pub released: (Name, Truth),
    /// Contents that the newest commit may have: those acknowledged last and those of the commit under way.
    pub acknowledged: Truth,
    pub under_way: Option<Truth>,
}

impl Known {
    /// Makes an empty store, of which nothing else is known.
    pub fn new<D: Device>(part: &mut D, vault: &Vault, shape: &Shape) -> Known {
        let mut memory = shape.memory();
        let name = format(part, vault, &mut memory, shape).name();
        Known { released: (name, Truth::new()), acknowledged: Truth::new(), under_way: None }
    }
}

/// Opens at the newest commit and commits until the script or the power ends.
pub fn play<D: Device>(
    part: &mut D,
    vault: &Vault,
    shape: &Shape,
    random: &mut Random,
    commits: usize,
    known: &mut Known,
) -> Result<(), Error> {
    let mut memory = shape.memory();
    let mut store = open(part, vault, &mut memory, shape, Which::Newest)?;
    let mut truth = known.acknowledged.clone();
    // As on a volume: what was opened is named by a durable frame before anything else is written.
    known.released = (store.name(), truth.clone());
    for _ in 0..commits {
        let changes = random_changes(random, shape.ids, shape.page_bytes as usize / 4, 6);
        let release = random.below(3) > 0;
        let mut next = truth.clone();
        apply(&mut next, &changes);
        known.under_way = Some(next.clone());
        match store.commit(&borrowed(&changes)) {
            Ok(_) => truth = next,
            Err(Error::Full { .. }) => {
                known.under_way = Some(truth.clone());
                store.prepare()?;
            }
            Err(other) => {
                assert!(matches!(store.commit(&[]), Err(Error::Latched)));
                return Err(other);
            }
        }
        store.check();
        known.acknowledged = truth.clone();
        known.under_way = None;
        if release {
            store.release(store.version());
            known.released = (store.name(), truth.clone());
        }
    }
    Ok(())
}

/// What must hold of an image after a cut; what is true then.
pub fn judge<R: Read>(part: &R, vault: &Vault, shape: &Shape, known: &Known, id: &str) -> Truth {
    let (_, found) = look(part, vault, shape, Which::Newest).unwrap_or_else(|error| panic!("{id}: {error}"));
    assert!(found == known.acknowledged || Some(&found) == known.under_way.as_ref(), "{id}: other contents");
    let (name, truth) = &known.released;
    let again = look(part, vault, shape, Which::Exactly(*name));
    let again = again.unwrap_or_else(|error| panic!("{id}: the released commit: {error}"));
    assert_eq!(again.1, *truth, "{id}: the released commit has other contents");
    found
}

fn every_cut(shape: &Shape, seed: u64, commits: usize) {
    let mut memory = shape.memory();
    let start = || {
        let (mut part, vault) = (shape.part(), fresh_vault());
        let known = Known::new(&mut part, &vault, shape);
        part.operations = 0;
        (part, vault, known)
    };
    let (mut whole, vault, mut known) = start();
    play(&mut whole, &vault, shape, &mut Random(seed), commits, &mut known).unwrap();
    for at in 1..=whole.operations {
        for cut in CUTS {
            let id = format!("seed {seed} cut {at} {cut:?}");
            let (mut part, vault, mut known) = start();
            part.cut_at = Some(at);
            let mut random = Random(seed);
            play(&mut part, &vault, shape, &mut random, commits, &mut known).unwrap_err();
            let mut faults = Random(seed ^ (at as u64) << 8);
            let mut part = part.after(cut, &mut faults);
            known.acknowledged = judge(&part, &vault, shape, &known, &id);
            known.under_way = None;
            // A second cut, sampled, in what follows the first; then on without one.
            part.cut_at = Some(1 + faults.below(40));
            if play(&mut part, &vault, shape, &mut random, 6, &mut known).is_err() {
                let second = CUTS[faults.below(CUTS.len())];
                part = part.after(second, &mut faults);
                known.acknowledged = judge(&part, &vault, shape, &known, &format!("{id} then {second:?}"));
                known.under_way = None;
            }
            part.cut_at = None;
            part.dead = false;
            play(&mut part, &vault, shape, &mut random, 3, &mut known)
                .unwrap_or_else(|error| panic!("{id}: going on: {error}"));
            judge(&part, &vault, shape, &known, &id);
        }
    }
    // Falling back to the released commit and going on from there leaves the abandoned ones unread.
    let (mut part, vault, mut known) = start();
    let mut random = Random(seed);
    for round in 0..20 {
        play(&mut part, &vault, shape, &mut random, 5, &mut known).unwrap();
        let (name, truth) = known.released.clone();
        let mut store = open(&mut part, &vault, &mut memory, shape, Which::Exactly(name)).unwrap();
        let changes = random_changes(&mut random, shape.ids, 20, 2);
        match store.commit(&borrowed(&changes)) {
            Ok(_) => {
                let mut truth = truth;
                apply(&mut truth, &changes);
                known.released = (store.name(), truth.clone());
                let name = store.name();
                assert_eq!(look(&part, &vault, shape, Which::Exactly(name)).unwrap().1, truth, "round {round}");
                // The frame that names it makes it the one to open; the next round needs it to be the newest.
                let (newest, found) = look(&part, &vault, shape, Which::Newest).unwrap();
                if newest != name {
                    break;
                }
                known.acknowledged = found;
            }
            Err(Error::Full { .. }) => break,
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn every_cut_of_a_script_on_nand() {
    for seed in 0..3 {
        every_cut(&NAND, seed, 14);
    }
    assert_eq!(counterfoil_vault::witness::duplicates(), []);
}

#[test]
fn every_cut_of_a_script_on_a_file() {
    for seed in 10..13 {
        every_cut(&FILE, seed, 16);
    }
    assert_eq!(counterfoil_vault::witness::duplicates(), []);
}

#[test]
fn many_cuts_on_end() {
    for seed in 0..30 {
        let shape = if seed % 2 == 0 { NAND } else { FILE };
        let (mut part, vault) = (shape.part(), fresh_vault());
        let mut known = Known::new(&mut part, &vault, &shape);
        let mut random = Random(seed);
        for round in 0..60 {
            part.operations = 0;
            part.cut_at = Some(1 + random.below(60));
            if play(&mut part, &vault, &shape, &mut random, 8, &mut known).is_ok() {
                continue;
            }
            let cut = CUTS[random.below(CUTS.len())];
            part = part.after(cut, &mut random);
            let id = format!("seed {seed} round {round} {cut:?}");
            known.acknowledged = judge(&part, &vault, &shape, &known, &id);
            known.under_way = None;
        }
    }
    assert_eq!(counterfoil_vault::witness::duplicates(), []);
}

#[test]
fn a_failed_flush_latches() {
    let (mut part, vault, mut memory) = (FILE.part(), fresh_vault(), FILE.memory());
    format(&mut part, &vault, &mut memory, &FILE);
    part.operations = 0;
    // A fresh block is erased, the commit page programmed, then flushed.
    part.cut_at = Some(3);
    let mut store = open(&mut part, &vault, &mut memory, &FILE, Which::Newest).unwrap();
    assert!(matches!(store.commit(&[]), Err(Error::Device(_))));
    assert_eq!(store.commit(&[]), Err(Error::Latched));
    assert_eq!(store.allocate(), Err(Error::Latched));
    assert_eq!(store.read(counterfoil_record::RecordId(0), &mut []), Err(Error::Latched));
    let part = part.after(Cut::Clean, &mut Random(1));
    look(&part, &vault, &FILE, Which::Newest).unwrap();
}
