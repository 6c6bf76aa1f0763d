//! The attacker of trust.md on raw images: keeps every image, puts back any page, moves pages, writes what he likes.

use counterfoil_record::{Error, Name, RecordId, Store, Which};
use counterfoil_vault::Vault;

use crate::bench::*;
use crate::part::{Cut, Part, Random};

/// An image that the attacker kept, with what was true in it.
#[derive(Clone)]
struct Kept {
    image: Vec<Vec<u8>>,
    name: Name,
    truth: Truth,
}

/// A history: the image after every commit, and after commits of branches that were cut short and abandoned.
struct History {
    vault: Vault,
    kept: Vec<Kept>,
    newest: Kept,
    part: Part,
}

/// Opens at `from` and commits a few times; what was true after each commit.
fn commit_on(part: &mut Part, vault: &Vault, shape: &Shape, from: &Kept, random: &mut Random) -> Vec<Kept> {
    let (mut memory, mut truth, mut names) = (shape.memory(), from.truth.clone(), Vec::new());
    let mut store = open(part, vault, &mut memory, shape, Which::Exactly(from.name)).unwrap();
    for _ in 0..=random.below(3) {
        let changes = random_changes(random, shape.ids, shape.page_bytes as usize / 4, 4);
        match store.commit(&borrowed(&changes)) {
            Ok(_) => apply(&mut truth, &changes),
            Err(Error::Full { .. }) => {
                store.prepare().unwrap();
                store.release(store.version());
            }
            Err(other) => panic!("{other}"),
        }
        names.push((store.name(), truth.clone()));
        if random.below(3) > 0 {
            store.release(store.version());
        }
    }
    let image = part.pages.clone();
    names.into_iter().map(|(name, truth)| Kept { image: image.clone(), name, truth }).collect()
}

fn history(shape: &Shape, seed: u64, rounds: usize) -> History {
    let (mut part, vault, mut memory) = (shape.part(), fresh_vault(), shape.memory());
    let mut random = Random(seed);
    let name = format(&mut part, &vault, &mut memory, shape).name();
    let mut newest = Kept { image: part.pages.clone(), name, truth: Truth::new() };
    let mut kept = vec![newest.clone()];
    for _ in 0..rounds {
        if random.below(3) == 0 {
            let mut branch = part.clone();
            kept.extend(commit_on(&mut branch, &vault, shape, &newest, &mut random));
        }
        let commits = commit_on(&mut part, &vault, shape, &newest, &mut random);
        newest = commits.last().unwrap().clone();
        kept.extend(commits);
    }
    History { vault, kept, newest, part }
}

/// What must hold of any image: a commit that the caller names has its true contents or an error, and whatever the
/// newest is, it has the contents of that commit, never a mixture.
fn hold(history: &History, shape: &Shape, image: &Part, id: &str) -> bool {
    let Kept { name, truth, .. } = &history.newest;
    let named = look(image, &history.vault, shape, Which::Exactly(*name));
    match &named {
        Ok((_, found)) => assert_eq!(found, truth, "{id}: other contents under the name"),
        Err(error) => typed(error, id),
    }
    match look(image, &history.vault, shape, Which::Newest) {
        Ok((newest, found)) => {
            let kept = history.kept.iter().find(|kept| kept.name == newest);
            assert_eq!(found, kept.expect("a commit that once was").truth, "{id}: a mixture");
        }
        Err(error) => typed(&error, id),
    }
    named.is_ok()
}

fn typed(error: &Error, id: &str) {
    let expected = matches!(error, Error::Tampered { .. } | Error::Corrupt { .. } | Error::NoCommit { .. });
    assert!(expected, "{id}: {error}");
}

#[test]
fn any_page_of_an_older_image_put_back() {
    for (shape, seed) in [(NAND, 1), (FILE, 2)] {
        let history = history(&shape, seed, 25);
        for (older, kept) in history.kept.iter().enumerate() {
            for (page, bytes) in kept.image.iter().enumerate() {
                if *bytes == history.part.pages[page] {
                    continue;
                }
                let mut forged = history.part.clone();
                forged.pages[page] = bytes.clone();
                hold(&history, &shape, &forged, &format!("page {page} of image {older}"));
            }
        }
    }
}

#[test]
fn mixtures_of_older_images() {
    let mut random = Random(8);
    for (shape, seed) in [(NAND, 3), (FILE, 4)] {
        let history = history(&shape, seed, 25);
        for trial in 0..1000 {
            let mut forged = history.part.clone();
            let often = 1 + random.below(20);
            for page in 0..forged.pages.len() {
                if random.below(often) == 0 {
                    forged.pages[page] = history.kept[random.below(history.kept.len())].image[page].clone();
                }
            }
            hold(&history, &shape, &forged, &format!("mixture {trial}"));
        }
        // A whole older image authenticates, as itself and as nothing newer.
        for kept in &history.kept {
            let mut forged = history.part.clone();
            forged.pages = kept.image.clone();
            let (name, truth) = look(&forged, &history.vault, &shape, Which::Exactly(kept.name)).unwrap();
            assert_eq!((name, truth), (kept.name, kept.truth.clone()));
            let newest = kept.image == history.newest.image;
            assert_eq!(hold(&history, &shape, &forged, "older image"), newest);
        }
    }
}

#[test]
fn pages_swapped_bytes_flipped_noise_written() {
    let mut random = Random(21);
    for (shape, seed) in [(NAND, 5), (FILE, 6)] {
        let history = history(&shape, seed, 15);
        for trial in 0..1500 {
            let mut forged = history.part.clone();
            for _ in 0..=random.below(3) {
                let page = random.below(forged.pages.len());
                let byte = random.below(forged.pages[page].len());
                match trial % 4 {
                    0 => forged.pages[page][byte] ^= 1 << random.below(8),
                    1 => {
                        let other = random.below(forged.pages.len());
                        forged.pages.swap(page, other);
                    }
                    2 => forged.pages[page].iter_mut().for_each(|byte| *byte = random.next() as u8),
                    _ => forged.pages[page].fill(0),
                }
            }
            hold(&history, &shape, &forged, &format!("trial {trial}"));
        }
        let mut noise = history.part.clone();
        noise.pages.iter_mut().flatten().for_each(|byte| *byte = random.next() as u8);
        assert!(matches!(look(&noise, &history.vault, &shape, Which::Newest), Err(Error::NoCommit { .. })));
        for fill in [0, 0xFF] {
            noise.pages.iter_mut().flatten().for_each(|byte| *byte = fill);
            let empty = look(&noise, &history.vault, &shape, Which::Newest);
            assert_eq!(empty, Err(Error::NoCommit { claims: 0 }));
        }
    }
}

/// Writes a clear head: sequence, then an epoch that stays as it is.
fn claim(page: &mut [u8], sequence: u64) {
    page[..8].copy_from_slice(&sequence.to_le_bytes());
}

#[test]
fn forged_heads_hide_nothing_and_cost_one_pass() {
    for (shape, seed) in [(NAND, 7), (FILE, 8)] {
        let history = history(&shape, seed, 15);
        let Kept { name, truth, .. } = &history.newest;
        let data_pages = (shape.blocks - 3) * u64::from(shape.block_pages);
        let copies: Vec<Vec<usize>> = shape.copies().collect();
        let bound = 6 * copies[0].len() * data_pages as usize;
        let newest = name.version % data_pages;
        let ids = |forged: &Part| {
            forged.reads.set(0);
            let found = look(forged, &history.vault, &shape, Which::Newest);
            (found, forged.reads.get())
        };
        let (_, quiet) = ids(&history.part);
        // Every page that the newest commit does not need claims to be the newest, in many ways.
        for lap in [1_000, 1 << 40, (1 << 62) / data_pages - 1, u64::MAX / data_pages] {
            for spare in 1..data_pages {
                let slot = (newest + spare) % data_pages;
                let mut forged = history.part.clone();
                let sequence = (lap.wrapping_mul(data_pages)).wrapping_add(slot);
                copies[slot as usize].iter().for_each(|page| claim(&mut forged.pages[*page], sequence));
                let (found, reads) = ids(&forged);
                if look(&forged, &history.vault, &shape, Which::Exactly(*name)).is_ok() {
                    assert_eq!(found, Ok((*name, truth.clone())));
                    assert!(reads < quiet + bound, "{reads} reads, {quiet} without the attack");
                } else {
                    // The forged page was one that the newest commit needs: at most eight older ones are tried.
                    assert!(found.is_ok_and(|found| found.0 != *name) || reads < 11 * bound);
                }
            }
        }
        // All at once, on the pages that hold nothing needed; each claim its own.
        let mut forged = history.part.clone();
        for slot in 0..data_pages {
            let mut alone = history.part.clone();
            copies[slot as usize].iter().for_each(|page| alone.pages[*page].fill(0xAB));
            if look(&alone, &history.vault, &shape, Which::Exactly(*name)).is_ok() {
                let sequence = (1 << 50) / data_pages * data_pages + slot;
                copies[slot as usize].iter().for_each(|page| claim(&mut forged.pages[*page], sequence));
            }
        }
        let (found, reads) = ids(&forged);
        assert_eq!(found, Ok((*name, truth.clone())));
        assert!(reads < quiet + bound, "{reads} reads, {quiet} without the attack");
    }
}

#[test]
fn a_cut_commit_kept_and_put_back_is_not_the_commit_of_that_version() {
    // The paper's hole: commit A is cut after its pages, its image kept; the history goes on to another commit B at
    // the same version; A's pages are put back.
    let shape = FILE;
    let (mut part, vault, mut memory) = (shape.part(), fresh_vault(), shape.memory());
    let mut store = format(&mut part, &vault, &mut memory, &shape);
    store.commit(&[(RecordId(1), Some(b"before"))]).unwrap();
    let before = store.name();
    let image = part.clone();
    let mut store = open(&mut part, &vault, &mut memory, &shape, Which::Exactly(before)).unwrap();
    store.commit(&[(RecordId(1), Some(b"commit A"))]).unwrap();
    let a = store.name();
    let kept = part.pages.clone();
    part = image.after(Cut::Late, &mut Random(1));
    let mut store = open(&mut part, &vault, &mut memory, &shape, Which::Exactly(before)).unwrap();
    store.commit(&[(RecordId(1), Some(b"commit B"))]).unwrap();
    let b = store.name();
    assert_eq!(a.version, b.version);
    assert_ne!(a.tag, b.tag);
    part.pages = kept;
    assert!(matches!(look(&part, &vault, &shape, Which::Exactly(b)), Err(Error::Tampered { .. })));
}

#[test]
fn pages_of_another_database_made_with_one_key() {
    let shape = FILE;
    let (one, two) = (history(&shape, 11, 12), history(&shape, 11, 12));
    let mut random = Random(4);
    for trial in 0..300 {
        let mut forged = one.part.clone();
        for _ in 0..=random.below(8) {
            let page = random.below(forged.pages.len());
            forged.pages[page] = two.part.pages[page].clone();
        }
        hold(&one, &shape, &forged, &format!("splice {trial}"));
    }
    assert!(matches!(look(&two.part, &one.vault, &shape, Which::Newest), Err(Error::NoCommit { .. })));
}

#[test]
fn opening_for_reading_writes_nothing() {
    let shape = FILE;
    let mut history = history(&shape, 12, 5);
    let (pages, operations) = (history.part.pages.clone(), history.part.operations);
    let mut memory = shape.memory();
    let epoch = Some(fresh_epoch());
    let window = shape.window();
    Store::open(&mut history.part, &history.vault, window, Which::Newest, epoch, memory.buffers()).unwrap();
    look(&history.part, &history.vault, &shape, Which::Newest).unwrap();
    assert_eq!((history.part.pages, history.part.operations), (pages, operations));
}

#[test]
fn a_page_of_a_branch_at_the_same_sequence_is_another_page() {
    // Two histories from one image, alike but for contents: every page of one stands where one of the other does.
    for shape in [NAND, FILE] {
        let (mut part, vault, mut memory) = (shape.part(), fresh_vault(), shape.memory());
        format(&mut part, &vault, &mut memory, &shape);
        let tell = |part: &mut Part, fill: u8| {
            let mut memory = shape.memory();
            let mut store = open(part, &vault, &mut memory, &shape, Which::Newest).unwrap();
            let record = [fill; 60];
            for (round, id) in [33, 30, 37].into_iter().enumerate() {
                // One history keeps record 35, the other deallocates it in the end.
                let third = (fill == 1 || round < 2).then_some(&record[..4]);
                store.commit(&[(RecordId(id), Some(&record)), (RecordId(35), third)]).unwrap();
            }
            store.fold().unwrap();
            store.name()
        };
        let mut branch = part.clone();
        let name = tell(&mut part, 1);
        tell(&mut branch, 2);
        let truth = look(&part, &vault, &shape, Which::Exactly(name)).unwrap().1;
        let mut refused = 0;
        for copies in shape.copies() {
            let mut forged = part.clone();
            copies.iter().for_each(|page| forged.pages[*page] = branch.pages[*page].clone());
            match look(&forged, &vault, &shape, Which::Exactly(name)) {
                Ok((_, found)) => assert_eq!(found, truth, "page {}", copies[0]),
                Err(error) => {
                    typed(&error, "page of a branch");
                    refused += 1;
                }
            }
        }
        // Three commits, the page of the fold, and the index copy, on NAND of two pages.
        assert!(refused >= 5, "{refused} pages refused");
    }
}
