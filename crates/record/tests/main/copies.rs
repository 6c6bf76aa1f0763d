//! A doubled window: no page that is lost alone loses anything, and what was lost is made good.

use counterfoil_record::{Error, Store, Which};
use counterfoil_vault::Vault;

use crate::bench::*;
use crate::part::{CUTS, Part, Random};

const DOUBLED: Shape = FILE;

/// A store with a past, and what it holds.
fn lived(shape: &Shape, seed: u64) -> (Part, Vault, Truth) {
    let (mut part, vault, mut memory) = (shape.part(), fresh_vault(), shape.memory());
    let (mut random, mut truth) = (Random(seed), Truth::new());
    format(&mut part, &vault, &mut memory, shape);
    for _ in 0..4 {
        let mut store = open(&mut part, &vault, &mut memory, shape, Which::Newest).unwrap();
        for _ in 0..20 {
            let changes = random_changes(&mut random, shape.ids, 100, 5);
            apply(&mut truth, &changes);
            let version = store.commit(&borrowed(&changes)).unwrap();
            store.release(version);
        }
    }
    (part, vault, truth)
}

fn spoil(part: &mut Part, page: usize, random: &mut Random) {
    let bytes = &mut part.pages[page];
    match random.below(3) {
        0 => bytes.fill(0),
        1 => bytes.iter_mut().for_each(|byte| *byte = random.next() as u8),
        _ => {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
    }
}

fn damaged(part: &mut Part, vault: &Vault, memory: &mut Memory) -> Vec<u64> {
    let mut store = open(part, vault, memory, &DOUBLED, Which::Newest).unwrap();
    let mut pages = Vec::new();
    store.damaged_pages(|page, _| pages.push(page.0)).unwrap();
    pages
}

#[test]
fn one_lost_page_loses_nothing() {
    let (part, vault, truth) = lived(&DOUBLED, 1);
    let mut random = Random(2);
    for page in 0..part.pages.len() {
        for _ in 0..4 {
            let mut part = part.clone();
            spoil(&mut part, page, &mut random);
            let found = look(&part, &vault, &DOUBLED, Which::Newest);
            assert_eq!(found.unwrap_or_else(|error| panic!("page {page}: {error}")).1, truth, "page {page}");
        }
    }
}

#[test]
fn one_copy_of_each_page_is_enough() {
    let (part, vault, truth) = lived(&DOUBLED, 3);
    for seed in 0..40 {
        let (mut part, mut random) = (part.clone(), Random(seed));
        for pair in DOUBLED.copies() {
            // The first copies, the second ones, or one of each pair.
            let copy = if seed < 2 { seed as usize } else { random.below(2) };
            spoil(&mut part, pair[copy], &mut random);
        }
        assert_eq!(look(&part, &vault, &DOUBLED, Which::Newest).unwrap().1, truth, "seed {seed}");
    }
}

#[test]
fn what_was_lost_is_told_of_and_made_good() {
    let (part, vault, truth) = lived(&DOUBLED, 4);
    let mut memory = DOUBLED.memory();
    assert_eq!(damaged(&mut part.clone(), &vault, &mut memory), []);
    let mut random = Random(5);
    for _ in 0..30 {
        let mut spoiled = part.clone();
        let pairs: Vec<Vec<usize>> = DOUBLED.copies().filter(|_| random.below(3) == 0).collect();
        for pair in pairs {
            spoil(&mut spoiled, pair[random.below(2)], &mut random);
        }
        let told = damaged(&mut spoiled, &vault, &mut memory);
        assert!(told.iter().all(|page| spoiled.pages[*page as usize] != part.pages[*page as usize]));
        let mut store = open(&mut spoiled, &vault, &mut memory, &DOUBLED, Which::Newest).unwrap();
        assert_eq!(store.mend_copies().unwrap() as usize, told.len());
        assert_eq!(store.mend_copies().unwrap(), 0);
        assert_eq!(damaged(&mut spoiled, &vault, &mut memory), []);
        assert!(told.iter().all(|page| spoiled.pages[*page as usize] == part.pages[*page as usize]));
        assert_eq!(look(&spoiled, &vault, &DOUBLED, Which::Newest).unwrap().1, truth);
    }
}

#[test]
fn a_needed_page_that_is_lost_twice_is_not_believed() {
    let (mut part, vault, _) = lived(&DOUBLED, 6);
    let mut memory = DOUBLED.memory();
    let name = open(&mut part, &vault, &mut memory, &DOUBLED, Which::Newest).unwrap().name();
    let mut refused = 0;
    for pair in DOUBLED.copies() {
        let mut spoiled = part.clone();
        pair.iter().for_each(|page| spoiled.pages[*page][200] ^= 1);
        match look(&spoiled, &vault, &DOUBLED, Which::Exactly(name)) {
            Ok((_, truth)) => assert_eq!(truth, look(&part, &vault, &DOUBLED, Which::Newest).unwrap().1),
            Err(error) => {
                assert!(matches!(error, Error::Tampered { .. }), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 3, "{refused} pages are needed");
}

#[test]
fn a_cut_while_copies_are_made_good_leaves_the_good_ones() {
    let (part, vault, truth) = lived(&DOUBLED, 7);
    let mut memory = DOUBLED.memory();
    let mut random = Random(8);
    let mut spoiled = part.clone();
    for pair in DOUBLED.copies() {
        spoil(&mut spoiled, pair[random.below(2)], &mut random);
    }
    // What is spoiled is what the medium holds.
    counterfoil_flash::Device::flush(&mut spoiled).unwrap();
    let mend = |part: &mut Part, memory: &mut Memory| -> Result<u32, Error> {
        Store::open(part, &vault, DOUBLED.window(), Which::Newest, None, memory.buffers())?.mend_copies()
    };
    let mut whole = spoiled.clone();
    whole.operations = 0;
    mend(&mut whole, &mut memory).unwrap();
    let operations = whole.operations;
    assert!(operations > 20, "{operations}");
    for at in 1..=operations {
        for cut in CUTS {
            let mut part = spoiled.clone();
            (part.operations, part.cut_at) = (0, Some(at));
            mend(&mut part, &mut memory).unwrap_err();
            let mut part = part.after(cut, &mut Random(at as u64));
            assert_eq!(look(&part, &vault, &DOUBLED, Which::Newest).unwrap().1, truth, "cut {at} {cut:?}");
            mend(&mut part, &mut memory).unwrap();
            assert_eq!(damaged(&mut part, &vault, &mut memory), [], "cut {at} {cut:?}");
        }
    }
}
