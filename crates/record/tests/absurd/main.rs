//! Pages that authenticate and make no sense: what a broken writer, or one who holds the key, might leave behind.
//! They end in typed errors after bounded work, and never in a panic (these tests run with overflow checks).
//!
//! A program of its own: it seals other bytes at one place on purpose, where the other tests compare all pairs of key
//! and nonce.

use counterfoil_record::{Error, Reader, RecordId, Store, Which};
use counterfoil_vault::{Epoch, Kind, Place, Plain, Sealed, Vault};

// Not everything on the bench is needed here.
#[allow(dead_code)]
#[path = "../main/bench.rs"]
mod bench;
#[allow(dead_code)]
#[path = "../main/part.rs"]
mod part;

use crate::bench::*;
use crate::part::{Part, Random};

const HEAD: usize = 32;

/// The place that a ring page claims; the index ring stands behind the data ring.
fn place_of(shape: &Shape, part: &Part, page: usize) -> Place {
    let bytes = &part.pages[page];
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let block = u64::from(shape.block_pages);
    let is_data = (page as u64) < (1 + shape.blocks - 3) * block;
    Place {
        kind: if is_data { Kind::RecordData } else { Kind::RecordIndex },
        allocation: number(0) / block,
        position: (number(0) % block) as u32,
        epoch: Epoch { number: number(8), salt: bytes[16..32].try_into().unwrap() },
    }
}

/// Opens a page, changes its body and seals it again at the same place. A test may: the store never does.
fn rewrite(shape: &Shape, part: &mut Part, vault: &Vault, page: usize, change: impl FnOnce(&mut [u8])) -> bool {
    let place = place_of(shape, part, page);
    let bytes = &mut part.pages[page][HEAD..];
    let Ok(opened) = vault.open(&place, Sealed::from_medium(bytes)) else { return false };
    change(opened.into_payload());
    vault.seal(&place, Plain::new(bytes));
    true
}

fn history(shape: &Shape, vault: &Vault) -> Part {
    let (mut part, mut memory, mut random) = (shape.part(), shape.memory(), Random(1));
    format(&mut part, vault, &mut memory, shape);
    for _ in 0..12 {
        let mut store = open(&mut part, vault, &mut memory, shape, Which::Newest).unwrap();
        for _ in 0..3 {
            store.commit(&borrowed(&random_changes(&mut random, shape.ids, 60, 4))).unwrap();
            store.release(store.version());
        }
    }
    part
}

/// Looks at an image and then writes to it, as far as that goes.
fn suffer(shape: &Shape, part: &mut Part, vault: &Vault, id: &str) {
    let typed = |error: Error| {
        let expected = matches!(
            error,
            Error::Tampered { .. }
                | Error::Corrupt { .. }
                | Error::NoCommit { .. }
                | Error::BufferTooSmall { .. }
                | Error::Full { .. }
        );
        assert!(expected, "{id}: {error}");
    };
    part.reads.set(0);
    let mut memory = shape.memory();
    let opened = Reader::open(part, vault, shape.window(), Which::Newest, memory.buffers());
    match opened.and_then(|mut reader| reader.visit::<Error>(|_, _| Ok(()))) {
        Ok(()) => {}
        Err(error) => typed(error),
    }
    assert!(part.reads.get() < 40 * part.pages.len(), "{id}: {} reads", part.reads.get());
    let window = shape.window();
    let store = Store::open(part, vault, window, Which::Newest, Some(fresh_epoch()), memory.buffers());
    let Ok(mut store) = store else { return };
    for _ in 0..4 {
        match store.commit(&[(RecordId(3), Some(b"on"))]) {
            Ok(version) => store.release(version),
            Err(Error::Latched) => break,
            Err(error) => typed(error),
        }
        if let Err(error) = store.prepare() {
            assert_ne!(error, Error::Latched, "{id}");
            typed(error);
            break;
        }
    }
}

#[test]
fn sealed_nonsense_ends_in_typed_errors() {
    let mut random = Random(31);
    for shape in [NAND, FILE] {
        let vault = fresh_vault();
        let part = history(&shape, &vault);
        let ring_pages: Vec<usize> =
            (0..part.pages.len()).filter(|page| rewrite(&shape, &mut part.clone(), &vault, *page, |_| {})).collect();
        assert!(ring_pages.len() > 20);
        for trial in 0..6000 {
            let mut forged = part.clone();
            for _ in 0..=random.below(2) {
                let page = ring_pages[random.below(ring_pages.len())];
                let bytes: Vec<u8> = match random.below(4) {
                    0 => vec![0xFF; 8],
                    1 => (1u64 << 62).to_le_bytes().to_vec(),
                    2 => random.next().to_le_bytes()[..1 + random.below(8)].to_vec(),
                    _ => vec![random.below(4) as u8; 1 + random.below(2)],
                };
                // Heads, directories and roots stand at the beginning of a body.
                let reach = if random.below(4) == 0 { shape.page_bytes as usize - 48 } else { 110 };
                let at = random.below(reach - bytes.len());
                rewrite(&shape, &mut forged, &vault, page, |body| body[at..at + bytes.len()].copy_from_slice(&bytes));
            }
            suffer(&shape, &mut forged, &vault, &format!("trial {trial}"));
        }
    }
}

#[test]
fn every_field_of_the_newest_root_made_absurd() {
    for shape in [NAND, FILE] {
        let vault = fresh_vault();
        let part = history(&shape, &vault);
        let (name, _) = look(&part, &vault, &shape, Which::Newest).unwrap();
        let data_pages = (shape.blocks - 3) * u64::from(shape.block_pages);
        let page = (u64::from(shape.block_pages) + name.version % data_pages) as usize;
        for offset in 0..shape.page_bytes as usize - 56 {
            for value in [0, 1, name.version + 1, name.version + data_pages, 1 << 62, u64::MAX - 1, u64::MAX] {
                let mut forged = part.clone();
                let bytes = value.to_le_bytes();
                let changed =
                    rewrite(&shape, &mut forged, &vault, page, |body| body[offset..offset + 8].copy_from_slice(&bytes));
                assert!(changed);
                suffer(&shape, &mut forged, &vault, &format!("{value} at {offset}"));
            }
        }
    }
}
