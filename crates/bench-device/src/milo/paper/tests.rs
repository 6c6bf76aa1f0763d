use std::collections::BTreeMap;

use counterfoil_flash_sim::Dice;

use super::fresh::FILTERED_ROWS;
use super::*;

const SCHEMES: [Scheme; 8] = [
    Scheme::FullScan,
    Scheme::BloomScan,
    Scheme::Skip,
    Scheme::BoundedSkip(0),
    Scheme::BoundedSkip(1),
    Scheme::BoundedSkip(2),
    Scheme::BoundedSkip(5),
    Scheme::BoundedSkip(62),
];

fn key(number: u64) -> Key {
    let mut key = [0; 10];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

/// How often keys come: evenly, few of them nearly always, one after the other, or in heaps far from each other.
fn draw(dice: &mut Dice, way: u64, row: u64, distinct: u64) -> u64 {
    match way {
        0 => dice.below(distinct),
        1 => dice.below(distinct).min(dice.below(distinct)).min(dice.below(distinct)) / 3,
        2 => row % distinct,
        _ => row / 700 * 7 % distinct,
    }
}

/// Bounded chain = unbounded chain = full scan = a map, whatever the bound, the keys and what waits in the buffer.
#[test]
fn every_scheme_finds_what_a_map_finds() {
    let mut dice = Dice::new(5);
    for scheme in SCHEMES {
        for way in 0..4 {
            let distinct = [2, 40, 900, 4000][dice.below(4) as usize];
            let rows = 1 + dice.below(6 * FILTERED_ROWS);
            let mut nand = Nand::new(2000);
            let (mut fresh, mut truth) = (Fresh::new(2, scheme), BTreeMap::<Key, Vec<u64>>::new());
            for row in 0..rows {
                let keys = [key(draw(&mut dice, way, row, distinct)), key(row % 11)];
                // Most rows are loaded, since that leaves the same behind: the next test.
                if dice.once_in(50) {
                    fresh.insert(&mut nand, &keys)
                } else {
                    fresh.load(&mut nand, &keys)
                }
                fresh.note(&keys);
                truth.entry(keys[0]).or_default().insert(0, row);
                if dice.once_in(400) || row + 1 == rows {
                    let sought = key(dice.below(distinct + 2));
                    let expected = truth.get(&sought).cloned().unwrap_or_default();
                    assert_eq!(fresh.lookup(&nand, 0, &sought), expected, "{scheme:?} {way} {distinct} {row}");
                    let expected: Vec<u64> = (0..=row).rev().filter(|row| row % 11 == 3).collect();
                    assert_eq!(fresh.lookup(&nand, 1, &key(3)), expected, "{scheme:?} {way} {distinct} {row}");
                }
            }
        }
    }
}

/// Inserting finds the very rows that loading knows.
#[test]
fn loading_leaves_behind_what_inserting_does() {
    for scheme in [Scheme::Skip, Scheme::BoundedSkip(0), Scheme::BoundedSkip(2)] {
        let (mut dice, mut nand) = (Dice::new(8), Nand::new(1000));
        let (mut inserted, mut loaded) = (Fresh::new(1, scheme), Fresh::new(1, scheme));
        for _ in 0..5 * FILTERED_ROWS + 77 {
            let keys = [key(dice.below(3000))];
            inserted.insert(&mut nand, &keys);
            loaded.load(&mut nand, &keys);
        }
        assert_eq!(inserted.chain(&nand), loaded.chain(&nand), "{scheme:?}");
    }
}

/// Section 4.3.1: a bound bounds what an insert reads, and the search of a lookup goes on behind it.
#[test]
fn a_bound_bounds_what_an_insert_reads() {
    let read = |scheme| {
        let (mut nand, mut fresh) = (Nand::new(1000), Fresh::new(1, scheme));
        (0..30 * FILTERED_ROWS).for_each(|row| fresh.load(&mut nand, &[key(row)]));
        let before = nand.cost();
        fresh.insert(&mut nand, &[key(7)]);
        nand.cost().since(&before).meters.reads
    };
    assert_eq!(read(Scheme::FullScan), 0);
    assert_eq!(read(Scheme::BloomScan), 0);
    // None of the filters in reach is wrong about this key.
    assert_eq!(read(Scheme::BoundedSkip(3)), 3);
    assert_eq!(read(Scheme::BoundedSkip(0)), 0);
    // All 30, and the page that has it.
    assert!(read(Scheme::Skip) > 30);
}
