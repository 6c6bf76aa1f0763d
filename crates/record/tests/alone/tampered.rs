//! Hostile images: what was moved, forged, torn or has rotted.

use std::collections::BTreeMap;

use counterfoil_flash_sim::Dice;
use counterfoil_record::RecordId;
use counterfoil_record::alone::{Error, Purged};

use crate::chip::*;
use crate::walk::small;

/// Pages and whole blocks copied, moved, forged, torn and filled with noise.
#[test]
fn what_was_tampered_with_is_refused_or_holds_what_was_acknowledged() {
    let (mut outcomes, mut slowest) = (BTreeMap::<String, u32>::new(), 0);
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(60u64);
    for seed in 0..seeds {
        let mut dice = Dice::new(seed);
        let mut chip = small(seed);
        chip.shape.names = 7;
        chip.with(true, |_| ()).expect("made");
        let (mut truth, mut truths, mut images) = (Truth::new(), vec![Truth::new()], Vec::new());
        for _ in 0..8 {
            let device = chip.device.clone();
            let played = chip.with(false, |store| {
                for _ in 0..12 {
                    let changes = random_changes(&mut dice, 40, 30, 3);
                    match dice.below(12) {
                        0 => assert_eq!(store.purge(), Ok(Purged::Done)),
                        1 => drop(store.prepare().expect("prepares")),
                        _ => {}
                    }
                    store.commit(&borrowed(&changes)).expect("commits");
                    apply(&mut truth, &changes);
                    truths.push(truth.clone());
                    images.push(device.image());
                }
            });
            played.expect("opens");
        }
        for turn in 0..60 {
            let mut other = chip.copied();
            other.shape = chip.shape;
            other.vault = counterfoil_vault::Vault::new(
                &counterfoil_vault::VolumeKey::from_bytes(&{
                    let mut bytes = [3; 32];
                    bytes[..8].copy_from_slice(&seed.to_le_bytes());
                    bytes
                }),
                counterfoil_vault::DatabaseId([4; 32]),
                counterfoil_vault::Suite::AsconAead128,
            );
            let mut image = chip.device.image();
            for _ in 0..1 + dice.below(4) {
                let back = if dice.once_in(2) { 10 } else { images.len() as u64 };
                let old = &images[images.len() - 1 - dice.below(back) as usize];
                let (from, to) = (dice.below(9), dice.below(9));
                match dice.below(8) {
                    // An older block over another one.
                    0 | 1 => (0..8).for_each(|page| {
                        let bytes = old.page(from * 8 + page).to_vec();
                        if old.holds(from * 8 + page) {
                            image.set(to * 8 + page, &bytes)
                        } else {
                            image.clear(to * 8 + page)
                        }
                    }),
                    // The blocks of an older image in another order.
                    2 => {
                        for page in 0..8 {
                            let (a, b) = (image.page(from * 8 + page).to_vec(), image.page(to * 8 + page).to_vec());
                            image.set(from * 8 + page, &b);
                            image.set(to * 8 + page, &a);
                        }
                    }
                    3 => image.take(dice.below(72), old),
                    4 => {
                        let bytes = old.page(dice.below(72)).to_vec();
                        image.set(dice.below(72), &bytes);
                    }
                    5 => {
                        // A forged head.
                        let page = dice.below(72);
                        let mut bytes = image.page(page).to_vec();
                        let at = dice.below(10) as usize;
                        bytes[at] = if dice.once_in(2) { 0xFF } else { dice.below(256) as u8 };
                        image.set(page, &bytes);
                    }
                    6 => image.flip(dice.below(72), dice.below(512 * 8)),
                    _ => {
                        let page = dice.below(72);
                        let bytes: Vec<u8> = (0..512).map(|_| dice.below(256) as u8).collect();
                        image.set(page, &bytes);
                    }
                }
            }
            other.device.restore(image);
            other.rollbacks_max = if dice.once_in(3) { 3 } else { 0 };
            let id = format!("seed {seed}, turn {turn}, rollbacks {}", other.rollbacks_max);
            let before = other.device.meters().reads;
            let (may_be_older, device) = (other.rollbacks_max > 0, other.device.clone());
            let outcome = other.with(false, |store| {
                slowest = slowest.max(device.meters().reads - before);
                let older = store.rollbacks() > 0;
                let (mut found, mut whole, mut buffer) = (Truth::new(), true, [0; 512]);
                for number in 0..40 {
                    match store.read(RecordId(number), &mut buffer) {
                        Ok(bytes) => drop(found.insert(number, buffer[..bytes].to_vec())),
                        Err(Error::NoRecord) => {}
                        Err(_) => whole = false,
                    }
                }
                let of = |truth: &Truth| {
                    if whole { *truth == found } else { found.iter().all(|(id, record)| truth.get(id) == Some(record)) }
                };
                let is_fine = if older && may_be_older { truths.iter().any(of) } else { of(&truth) };
                assert!(is_fine, "{id}: wrong content");
                for number in 0..7 {
                    let _ = store.named_at(number, &mut buffer);
                }
                let _ = store.read_named(b"name", &mut buffer);
                let _ = store.space_left(20);
                let mut done = Vec::new();
                for number in 0..6u32 {
                    done.push(store.commit(&[(RecordId(20 + number), Some(b"after"))]).err());
                }
                done.push(store.prepare().err());
                done.push(store.purge().err());
                format!("whole {whole}, then {:?}", done.into_iter().flatten().next())
            });
            let line = match outcome {
                Ok(line) => line,
                Err(error) => format!("not opened: {error}"),
            };
            *outcomes.entry(format!("rollbacks {may_be_older}: {line}")).or_default() += 1;
        }
    }
    println!("{outcomes:#?}, at most {slowest} reads to open");
}

/// A head that rots in a page that nobody needs any more.
#[test]
fn a_rotten_head_of_a_page_that_is_not_needed_does_no_harm() {
    let mut chip = small(3);
    let mut truth = Truth::new();
    chip.with(true, |_| ()).expect("made");
    let mut dice = Dice::new(5);
    for turn in 0..60 {
        let played = chip.with(false, |store| {
            for _ in 0..dice.below(9) {
                let changes = random_changes(&mut dice, 40, 30, 3);
                store.commit(&borrowed(&changes)).expect("commits");
                apply(&mut truth, &changes);
            }
        });
        played.expect("opens");
        for page in 0..72 {
            if !chip.device.image().holds(page) {
                continue;
            }
            // What a rotten body does, a rotten head does as well.
            let seen = [500, 9].map(|at| {
                let mut other = chip.copied();
                let mut image = chip.device.image();
                let mut bytes = image.page(page).to_vec();
                bytes[at] ^= 0xF0;
                image.set(page, &bytes);
                other.device.restore(image);
                (other.vault, other.shape) = (small(3).vault, small(3).shape);
                other.with(false, |store| try_contents(store, 40)).and_then(|found| found).map(|found| found == truth)
            });
            assert!(seen[0] != Ok(true) || seen[1] == Ok(true), "turn {turn}, page {page}: {seen:?}");
        }
    }
}
