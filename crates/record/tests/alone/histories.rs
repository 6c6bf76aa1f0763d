//! Random histories in random shapes, with and without cuts: words of both widths, salted or not, with a counter or none,
//! with bits or without, on every sort of flash and on files. Content is never wrong, and no store is in the end stuck, so that
//! nothing can be deallocated any more.

use std::collections::BTreeSet;

use counterfoil_flash_sim::{Dice, Fault, Part, Scenario, SimulatedDevice, Survivors, Tearing};
use counterfoil_record::RecordId;
use counterfoil_record::alone::{Error, Memory, Moved, Opening, Shape, Standalone, Surroundings, Word};
use counterfoil_vault::{Counter, DangerFixedEntropy, DatabaseId, Entropy, Suite, Vault, VolumeKey};

use crate::chip::{Changes, Truth, apply, borrowed, compare, is_full_size};
use crate::counter::CutCounter;

/// What histories are played on.
#[derive(Clone, Copy)]
enum Media {
    /// NAND, and a file now and then.
    NandAndFiles,
    /// NOR, and words with error correction.
    NorAndWords,
}

/// A store of some shape, and what a test does to it.
struct Subject {
    device: SimulatedDevice,
    counter: Option<CutCounter>,
    entropy: DangerFixedEntropy,
    vault: Vault,
    shape: Shape,
    pending: usize,
    leaves: u32,
    live_bytes: usize,
    ids: Vec<u32>,
    bytes_max: u64,
}

fn pick<T: Copy>(dice: &mut Dice, from: &[T]) -> T {
    from[dice.below(from.len() as u64) as usize]
}

impl Subject {
    /// Of the shape that a seed stands for; none if it does not suit a store.
    fn new<W: Word>(seed: u64, dice: &mut Dice, media: Media) -> Option<Self> {
        let (page_bytes, block_pages) = (pick(dice, &[256, 512, 1024]), pick(dice, &[8, 16, 32]));
        let (index_blocks, data_blocks) = (3 + dice.below(3) as u32, 4 + dice.below(8) as u32);
        let blocks = u64::from(index_blocks + data_blocks);
        let part = match (media, dice.below(5)) {
            (Media::NandAndFiles, 0) => Part::file(page_bytes, block_pages, blocks),
            (Media::NandAndFiles, _) => Part::nand(page_bytes, block_pages, blocks),
            (Media::NorAndWords, 0) => Part::ecc_words(page_bytes, block_pages, blocks, 8),
            (Media::NorAndWords, 1) => Part::ecc_words(page_bytes, block_pages, blocks, 16),
            (Media::NorAndWords, _) => Part::nor(page_bytes, block_pages, blocks),
        };
        let (is_salted, has_counter) = (dice.once_in(3), !dice.once_in(5));
        let page_entries = pick(dice, &[4, 8, 17, 32]);
        let shape = Shape {
            first_block: 0,
            block_count: index_blocks + data_blocks,
            index_blocks,
            page_entries,
            names: 0,
            is_salted,
        };
        let sizes = shape.sizes::<W>(&part.geometry).ok()?;
        let leaves = 1 + dice.below(u64::from(sizes.leaves_max.min(4))) as u32;
        let suite = if has_counter || is_salted { Suite::AsconAead128 } else { Suite::Aes256GcmSiv };
        let records = 10 + dice.below(80);
        let ids = (0..records).map(|_| dice.below(u64::from(leaves * sizes.leaf_ids)) as u32).collect::<BTreeSet<_>>();
        Some(Subject {
            device: SimulatedDevice::new(part, Scenario::calm(seed)),
            counter: has_counter.then(|| CutCounter::at(0)),
            entropy: DangerFixedEntropy::seeded(seed),
            vault: Vault::new(&VolumeKey::from_bytes(&[seed as u8; 32]), DatabaseId([1; 32]), suite),
            shape,
            pending: 2 * page_entries as usize + dice.below(60) as usize,
            leaves,
            live_bytes: if dice.once_in(4) { 0 } else { sizes.live_bytes },
            ids: ids.into_iter().collect(),
            bytes_max: dice.below(sizes.record_bytes_max as u64 / 4),
        })
    }

    fn with<W: Word, T>(
        &mut self,
        is_new: bool,
        user: impl FnOnce(&mut Standalone<'_, SimulatedDevice, W>, &[u32]) -> T,
    ) -> Result<T, Error> {
        let page_bytes = self.device.part().geometry.page_bytes as usize;
        let (mut pending, mut leaves) = (vec![Moved::EMPTY; self.pending], vec![W::NONE; self.leaves as usize]);
        let mut blocks = vec![W::NONE; self.shape.block_count as usize];
        let (mut live, mut openings) = (vec![0; self.live_bytes], [Opening::EMPTY; 8]);
        let (mut page, mut scratch) = (vec![0; page_bytes], vec![0; page_bytes]);
        let memory = Memory {
            pending: &mut pending,
            leaves: &mut leaves,
            blocks: &mut blocks,
            live: &mut live,
            openings: &mut openings,
            page: &mut page,
            scratch: &mut scratch,
        };
        let around = Surroundings {
            device: &mut self.device,
            vault: &self.vault,
            counter: self.counter.as_mut().map(|counter| counter as &mut dyn Counter),
            entropy: self.shape.is_salted.then_some(&mut self.entropy as &mut dyn Entropy),
        };
        let mut store = match is_new {
            true => Standalone::format(around, self.shape, memory)?,
            false => Standalone::open(around, self.shape, memory)?,
        };
        store.check();
        Ok(user(&mut store, &self.ids))
    }
}

fn contents<W: Word>(store: &mut Standalone<'_, SimulatedDevice, W>, ids: &[u32]) -> Result<Truth, Error> {
    let (mut found, mut buffer) = (Truth::new(), [0; 1024]);
    for id in ids {
        match store.read(RecordId(*id), &mut buffer) {
            Ok(bytes) => drop(found.insert(*id, buffer[..bytes].to_vec())),
            Err(Error::NoRecord) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(found)
}

fn changes(dice: &mut Dice, ids: &[u32], bytes_max: u64) -> Changes {
    let change = |dice: &mut Dice| {
        let (id, byte) = (pick(dice, ids), dice.below(256) as u8);
        (id, (!dice.once_in(4)).then(|| vec![byte; dice.below(bytes_max + 1) as usize]))
    };
    (0..1 + dice.below(4)).map(|_| change(dice)).collect()
}

/// Plays one history and empties the store; whether it got stuck, if the shape is one at all.
fn play<W: Word>(seed: u64, cuts: bool, media: Media) -> Option<bool> {
    let mut dice = Dice::new(seed);
    let mut subject = Subject::new::<W>(seed, &mut dice, media)?;
    subject.with::<W, _>(true, |_, _| ()).ok()?;
    let mut possible = vec![Truth::new()];
    let bytes_max = subject.bytes_max;
    for turn in 0..12 {
        let when = format!("seed {seed}, turn {turn}");
        if cuts && dice.once_in(2) {
            let at = subject.device.writes() + 1 + dice.below(30);
            let tearing = pick(&mut dice, &[Tearing::Untouched, Tearing::Complete, Tearing::Byte(100), Tearing::Bits]);
            let cut = Fault::Cut { at, tearing, survivors: Survivors::Any };
            subject.device.set_scenario(Scenario::one(seed, cut));
        }
        let played = subject.with::<W, _>(false, |store, ids| {
            let mut truth = contents(store, ids)?;
            if !possible.contains(&truth) {
                compare(&truth, &possible[0], &when);
            }
            for _ in 0..dice.below(25) {
                let made = changes(&mut dice, ids, bytes_max);
                let mut next = truth.clone();
                apply(&mut next, &made);
                possible.push(next.clone());
                match store.commit(&borrowed(&made)) {
                    Ok(_) => truth = next,
                    Err(Error::Full) => {}
                    Err(other) => return Err(other),
                }
                store.check();
                possible = vec![truth.clone()];
            }
            Ok(())
        });
        let is_cut = subject.device.is_cut();
        subject.device.set_scenario(Scenario::calm(seed));
        subject.device.power_on();
        match played.and_then(|played| played) {
            Ok(()) => {}
            Err(Error::BufferTooSmall | Error::Latched) if !is_cut => return Some(true),
            Err(error) => assert!(is_cut, "{when}: {error}"),
        }
    }
    let emptied = subject.with::<W, _>(false, |store, ids| {
        let truth = contents(store, ids).unwrap_or_else(|error| panic!("seed {seed}, in the end: {error}"));
        assert!(possible.contains(&truth), "seed {seed}: other contents in the end");
        ids.iter().try_for_each(|id| store.commit(&[(RecordId(*id), None)]).map(drop))
    });
    Some(!matches!(emptied, Ok(Ok(()))))
}

/// `cargo test -p counterfoil-record --test alone histories -- --nocapture` prints how many got stuck.
#[test]
fn random_histories_in_random_shapes_hold_what_they_should() {
    let seeds = if is_full_size() { 4_000 } else { 300 };
    let on_flash = if is_full_size() { 1_000 } else { 100 };
    for (media, seeds, cuts) in
        [(Media::NandAndFiles, seeds, false), (Media::NandAndFiles, seeds, true), (Media::NorAndWords, on_flash, true)]
    {
        let narrow = (0..seeds).filter_map(|seed| play::<u16>(seed, cuts, media));
        let wide = (0..seeds / 3).filter_map(|seed| play::<u32>(seed, cuts, media));
        let stuck: Vec<bool> = narrow.chain(wide).collect();
        let (played, count) = (stuck.len(), stuck.iter().filter(|stuck| **stuck).count());
        let name = match media {
            Media::NandAndFiles => "NAND and files",
            Media::NorAndWords => "NOR and words",
        };
        println!("{name}: {played} histories, cuts {cuts}: {count} ended in a store that takes no deletion");
        assert!(played as u64 > seeds, "{played} histories");
        assert_eq!(count, 0, "{count} of {played} got stuck");
    }
}
