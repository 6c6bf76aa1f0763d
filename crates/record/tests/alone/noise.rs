//! Noise and forged images are opened and used like any other: whatever they hold, every call ends in a typed error or an
//! answer, after a bounded number of page operations.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use counterfoil_flash_sim::{Dice, Fault, Meters, Part, Scenario, SimulatedDevice, Survivors, Tearing};
use counterfoil_record::RecordId;
use counterfoil_record::alone::{Error, Standalone};
use counterfoil_vault::witness;

use crate::chip::*;
use crate::images::{IDS, NAMES, Source};

/// Page operations of a call at most, for each page of the part; and those of a look at one record.
const OPENING_MOST: u64 = 30;
const WRITING_MOST: u64 = 6;
const READING_MOST: u64 = 3;
const RECORD_MOST: u64 = 2;

/// What the calls of all images took at most.
#[derive(Default)]
struct Worst {
    opening: u64,
    writing: u64,
    reading: u64,
    opened: u64,
    written: u64,
}

/// Says which image it was when a test fails.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("this was the image of seed {} (COUNTERFOIL_NOISE={} plays it alone)", self.0, self.0);
        }
    }
}

fn operations(device: &SimulatedDevice, since: &Meters) -> u64 {
    let done = device.meters().since(since);
    done.reads + done.programs + done.erases
}

/// Calls something, and counts; what it answers may be any error but one that says that the store is at fault.
fn bounded<T>(
    device: &SimulatedDevice,
    (worst, most): (&mut u64, u64),
    call: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let before = device.meters();
    let outcome = call();
    let took = operations(device, &before);
    assert!(took <= most, "{took} page operations, where {most} are the most");
    assert!(!matches!(outcome, Err(Error::Bug)), "the store says that it is at fault");
    *worst = took.max(*worst);
    outcome
}

type Store<'s> = Standalone<'s, SimulatedDevice, u16>;

fn look(store: &mut Store<'_>, device: &SimulatedDevice, (pages, worst): (u64, &mut Worst)) {
    let mut buffer = [0; 512];
    for id in 0..store.ids_max().min(NAMES + IDS + 8) {
        let _ = bounded(device, (&mut worst.reading, RECORD_MOST), || store.read(RecordId(id), &mut buffer));
    }
    for id in 0..store.names() {
        let _ = bounded(device, (&mut worst.reading, RECORD_MOST), || store.named_at(id, &mut buffer).map(drop));
    }
    let all_names = RECORD_MOST * u64::from(store.names());
    let _ = bounded(device, (&mut worst.reading, all_names), || store.read_named(b"n\x01", &mut buffer));
    let _ = bounded(device, (&mut worst.reading, READING_MOST * pages), || store.space_left(20));
    let _ = bounded(device, (&mut worst.reading, READING_MOST * pages), || store.allocate());
}

fn write(store: &mut Store<'_>, device: &SimulatedDevice, (pages, worst): (u64, &mut Worst), dice: &mut Dice) {
    let mut buffer = [0; 512];
    for _ in 0..6 {
        let turn = dice.below(9);
        let changes = random_changes(dice, NAMES + IDS, 30, 3);
        let done = bounded(device, (&mut worst.writing, WRITING_MOST * pages), || match turn {
            0 => store.purge().map(drop),
            1 => store.prepare().map(drop),
            2 => store.put_named(b"n\x02", b"another", &mut buffer).map(drop),
            3 => store.delete_named(b"n\x01", &mut buffer).map(drop),
            4 => store.commit_in_group(&borrowed(&changes)).map(drop),
            5 => store.close_group(),
            _ => store.commit(&borrowed(&changes)).map(drop),
        });
        worst.written += u64::from(done.is_ok());
        store.check();
    }
}

/// Opens an image, looks at everything, and goes on in it.
fn play(source: &Source, seed: u64, worst: &mut Worst) {
    let (_told, mut dice) = (Told(seed), Dice::new(seed));
    let (mut chip, pages) = (source.forged(&mut dice), source.pages());
    let device = chip.device.clone();
    for _ in 0..2 {
        // A call that would write for ever loses the power instead.
        let at = device.writes() + 100 * WRITING_MOST * pages;
        let cut = Fault::Cut { at, tearing: Tearing::Complete, survivors: Survivors::All };
        device.set_scenario(Scenario::one(seed, cut));
        // Who goes on from older images tries every commit that there is, not eight of them.
        let most = OPENING_MOST * pages * if chip.rollbacks_max > 0 { pages / 8 } else { 1 };
        let before = device.meters();
        let outcome = chip.with(false, |store| {
            let took = operations(&device, &before);
            look(store, &device, (pages, worst));
            write(store, &device, (pages, worst), &mut dice);
            look(store, &device, (pages, worst));
            took
        });
        let took = outcome.unwrap_or_else(|_| operations(&device, &before));
        assert!(took <= most, "{took} page operations, where {most} are the most of an opening");
        assert_ne!(outcome, Err(Error::Bug));
        assert!(!device.is_cut(), "a call wrote on and on");
        worst.opening = worst.opening.max(took / (most / (OPENING_MOST * pages)));
        worst.opened += u64::from(outcome.is_ok());
    }
}

fn sources() -> Vec<Source> {
    let parts = [Part::nand(512, 8, 9), Part::nor(512, 8, 9), Part::ecc_words(512, 8, 9, 8), Part::file(512, 8, 9)];
    (1..).zip(parts).map(|(key, part)| Source::new(part, key)).collect()
}

/// At full size for ten minutes, every time with other images: a number in COUNTERFOIL_NOISE plays that one alone.
#[test]
fn forged_images_end_in_typed_errors_after_a_bounded_number_of_operations() {
    let (sources, mut worst, mut images) = (sources(), Worst::default(), 0);
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
    let alone = std::env::var("COUNTERFOIL_NOISE").ok().map(|seed| seed.parse::<u64>().expect("a number"));
    let (first, least, time) = match (alone, is_full_size()) {
        (Some(seed), _) => (seed, 1, Duration::ZERO),
        (None, false) => (0, 1500, Duration::ZERO),
        (None, true) => (since_1970 << 32, 0, Duration::from_secs(600)),
    };
    let begun = Instant::now();
    while images < least || begun.elapsed() < time {
        let seed = first + images;
        play(&sources[seed as usize % sources.len()], seed, &mut worst);
        images += 1;
        if images % 1000 == 0 {
            // It would remember every seal of the ten minutes.
            witness::reset();
        }
    }
    let Worst { opening, writing, reading, opened, written } = worst;
    println!("{images} images from seed {first}: opened {opened} of {}, {written} writing calls done", 2 * images);
    println!("page operations at most: opening {opening}, writing {writing}, reading {reading}, of 72 pages");
    assert!(alone.is_some() || (opened > images / 4 && opened < 2 * images), "{opened} openings of {images} images");
}
