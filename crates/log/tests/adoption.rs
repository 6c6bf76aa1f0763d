//! Images that are adopted, older ones among them: cut at each write, without room for a counter, and over what is left of later lives.

mod bench;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bench::{Bench, Mortal, put, record};
use counterfoil_flash_sim::{Fault, Image, Scenario, Survivors, Tearing};
use counterfoil_log::{Cause, Error, Settings, Writer};
use counterfoil_vault::{Counter, CounterError, CounterKind, CounterValue, MemoryCounter, Tag, witness};

/// An older image is bound to its counter: whatever a cut leaves of that is refused, or tells of it.
#[test]
fn an_adoption_that_is_cut_is_refused_or_has_left_its_incident() {
    // With a spine that opening has to shorten too.
    [0, 14].into_iter().for_each(cut_adoptions);
}

fn cut_adoptions(openings: u32) {
    let mut bench = Bench::file(200, 8);
    let mut writer = bench.create();
    for _ in 0..openings {
        put(&mut writer, "a", b"older").unwrap();
        drop(writer);
        writer = bench.open().unwrap();
    }
    put(&mut writer, "a", b"old").unwrap();
    let yesterday = bench.device.image();
    put(&mut writer, "a", b"new").unwrap();
    put(&mut writer, "a", b"newer").unwrap();
    drop(writer);
    let stood = bench.counter.value().unwrap();
    let mut cuts = 0;
    for operations in 0.. {
        bench.device.restore(yesterday.clone());
        bench.counter.danger_set(Some(stood));
        // Cut, and cut again at the same operation; then once without a cut.
        let left = [operations, operations, u64::MAX];
        let adopted = left.map(|left| {
            let mortal = Mortal { device: bench.device.clone(), left: Arc::new(AtomicU64::new(left)) };
            let (settings, recovered) = (bench.settings(), bench.recover().unwrap());
            let first = |writer: &mut Writer| put(writer, "incident", b"told");
            let value = bench.counter.value().unwrap().value;
            let adopted = recovered.adopt(Box::new(mortal), settings, &mut bench.entropy, value, first).map(drop);
            let told = record(&bench.recover().unwrap().snapshot(), "incident").is_some();
            match bench.judged() {
                Ok(_) => assert!(told, "{operations}: an older image passes for the newest"),
                // Whoever goes on from a cut adoption knows it by its incident.
                Err(error) if matches!(error.cause(), Cause::CounterLost { .. }) => {
                    assert!(told, "{operations}: nobody knows what this is")
                }
                Err(_) => {}
            }
            assert!(adopted.is_err() || bench.judged().is_ok(), "{operations}");
            adopted.is_ok()
        });
        assert!(adopted[2], "{operations}: what was cut can be done again");
        assert_eq!(record(&bench.open().unwrap(), "a"), Some(b"old".to_vec()));
        if adopted[0] {
            break;
        }
        cuts += 1;
    }
    assert!(cuts >= 4, "{cuts} operations before it is done");
}

/// A counter that has no room to be bound to anything.
struct Roomless(MemoryCounter);

impl Counter for Roomless {
    fn kind(&self) -> CounterKind {
        CounterKind::File
    }

    fn value(&mut self) -> Result<CounterValue, CounterError> {
        self.0.value()
    }

    fn step(&mut self, to: u64, tag: &Tag) -> Result<(), CounterError> {
        self.0.step(to, tag)
    }

    fn reserve(&mut self) -> Result<(), CounterError> {
        Err(CounterError::Device { operation: "created", code: 28 })
    }

    fn adopt(&mut self, _: u64, _: &Tag) -> Result<(), CounterError> {
        panic!("it was asked before whether it can");
    }
}

#[test]
fn an_image_that_no_counter_can_be_bound_to_stays_where_it_is() {
    let mut bench = Bench::file(200, 8);
    put(&mut bench.create(), "a", b"1").unwrap();
    let before = bench.device.image();
    let settings = Settings { counter: Some(Box::new(Roomless(bench.counter.clone()))), ..bench.settings() };
    let device = Box::new(bench.device.clone());
    let told = |writer: &mut Writer| put(writer, "incident", b"told");
    let adopted = bench.recover().unwrap().adopt(device, settings, &mut bench.entropy, 9, told).map(drop);
    assert!(matches!(adopted.as_ref().map_err(Error::cause), Err(Cause::CounterFailed { code: 28, .. })));
    assert_eq!(bench.device.image().differing(&before), [0; 0]);
    assert_eq!(record(&bench.open().unwrap(), "a"), Some(b"1".to_vec()));
}

/// An older image on a medium that still has, behind it, what so many openings came to after it: under the same key.
fn older_before_later(openings: u32) -> (Bench, Image) {
    let mut bench = Bench::file(200, 8);
    let writer = bench.create();
    let extents = writer.report().extents.len() as u64;
    drop(writer);
    let older = bench.device.image();
    for opening in 0..openings {
        put(&mut bench.open().unwrap(), "a", &opening.to_le_bytes()).unwrap();
    }
    let mut mixed = bench.device.image();
    (0..extents * u64::from(bench.layout().extent_pages)).for_each(|page| mixed.take(page, &older));
    (bench, mixed)
}

fn adopt(bench: &mut Bench) -> Result<(), Error> {
    let (settings, recovered) = (bench.settings(), bench.recover().expect("an older image is whole"));
    let value = bench.counter.value().unwrap().value;
    let told = |writer: &mut Writer| put(writer, "incident", b"told");
    recovered.adopt(Box::new(bench.device.clone()), settings, &mut bench.entropy, value, told).map(drop)
}

#[test]
fn an_older_image_goes_on_where_the_medium_still_has_later_openings() {
    for openings in 0..12 {
        let (mut bench, mixed) = older_before_later(openings);
        bench.device.restore(mixed);
        adopt(&mut bench).unwrap_or_else(|error| panic!("{openings} later openings: {error}"));
        // As far as the later life had come, and further.
        for opening in 0..openings + 3 {
            let opened = bench.judged().and_then(|_| bench.open());
            let mut writer =
                opened.unwrap_or_else(|error| panic!("{opening} after {openings} later openings: {error}"));
            put(&mut writer, "a", b"restored").unwrap();
        }
    }
    assert_eq!(witness::duplicates(), []);
}

#[test]
fn an_older_image_before_later_openings_survives_every_cut() {
    for openings in 1..5 {
        let (mut bench, mixed) = older_before_later(openings);
        let stood = bench.counter.value().unwrap();
        for at in 1.. {
            let mut was_cut = false;
            for (survivors, tearing) in [(Survivors::Any, Tearing::Complete), (Survivors::All, Tearing::Untouched)] {
                let id = format!("{openings} later openings, cut at {at}, {survivors:?}");
                bench.device.restore(mixed.clone());
                bench.counter.danger_set(Some(stood));
                let cut = Fault::Cut { at: bench.device.writes() + at, tearing, survivors };
                bench.device.set_scenario(Scenario::one(at * 7, cut));
                let adopted = adopt(&mut bench);
                was_cut |= bench.device.is_cut();
                bench.device.power_on();
                bench.device.set_scenario(Scenario::calm(1));
                let shown = bench.judged();
                let lost = shown.as_ref().is_err_and(|error| matches!(error.cause(), Cause::Tampered { .. }));
                assert!(!lost, "{id}: reading answers {:?}", shown.err());
                assert!(adopted.is_err() || shown.is_ok(), "{id}");
                adopt(&mut bench).unwrap_or_else(|error| panic!("{id}: {error}"));
                drop(bench.open().unwrap_or_else(|error| panic!("{id}: {error}")));
                bench.judged().unwrap_or_else(|error| panic!("{id}: {error}"));
            }
            if !was_cut {
                assert!(at > 5, "{at} writes of an adoption");
                break;
            }
        }
    }
    assert_eq!(witness::duplicates(), []);
}
