//! The counters on chips over simulated banks: every cut at every operation, over several changes of the bank.

use counterfoil_flash::{BankShape, Banks, BlockNumber};
use counterfoil_flash_sim::{Fault, Scenario, SimulatedBanks, Survivors, Tearing};
use counterfoil_vault::{Counter, CounterError, CounterKind, CounterValue, EccCounter, NorCounter};

fn is_full_size() -> bool {
    std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full")
}

fn counter_in(banks: &SimulatedBanks, kind: CounterKind) -> Box<dyn Counter> {
    match kind {
        CounterKind::Nor => Box::new(NorCounter::new(banks.clone()).expect("a shape")),
        _ => Box::new(EccCounter::new(banks.clone()).expect("a shape")),
    }
}

fn banks(kind: CounterKind) -> SimulatedBanks {
    match kind {
        CounterKind::Nor => SimulatedBanks::nor(34, Scenario::calm(1)),
        _ => SimulatedBanks::ecc_words(256, 8, Scenario::calm(1)),
    }
}

fn value(banks: &SimulatedBanks, kind: CounterKind) -> Result<u64, CounterError> {
    counter_in(banks, kind).value().map(|value| value.value)
}

/// Steps until the power fails, with a new handle every few steps; what was answered or acknowledged, and what was asked.
fn run(banks: &SimulatedBanks, kind: CounterKind, from: u64, steps: u64) -> (u64, u64) {
    let (mut answered, mut asked) = (from, from);
    while asked < from + steps {
        let mut counter = counter_in(banks, kind);
        for _ in 0..7 {
            match counter.value() {
                Ok(found) => answered = answered.max(found.value),
                Err(_) => return (answered, asked),
            }
            asked = answered + 1;
            if counter.step(asked, &[9; 16]).is_err() {
                return (answered, asked);
            }
            answered = asked;
        }
    }
    (answered, asked)
}

fn every_cut(kind: CounterKind) {
    let first = u64::from(u32::MAX) - 20;
    let start = banks(kind);
    counter_in(&start, kind).adopt(first, &[0; 16]).expect("adopts");
    let calm = start.copied();
    assert_eq!(run(&calm, kind, first, 42), (first + 42, first + 42));
    assert!(calm.erases() - start.erases() >= 2, "several changes of the bank");
    let writes = calm.writes() - start.writes();
    for at in start.writes() + 1..=start.writes() + writes {
        let seeds = if is_full_size() { 20 } else { 2 };
        let seeded = [Tearing::Bits, Tearing::Fickle, Tearing::Unreadable];
        let seeded = seeded.into_iter().flat_map(|tearing| (0..seeds).map(move |seed| (tearing, seed)));
        for (tearing, seed) in [(Tearing::Untouched, 0), (Tearing::Complete, 0)].into_iter().chain(seeded) {
            let banks = start.copied();
            let cut = Fault::Cut { at, tearing, survivors: Survivors::All };
            let scenario = Scenario::one(seed, cut);
            let id = format!("{kind} {scenario}");
            banks.set_scenario(scenario);
            let (mut answered, asked) = run(&banks, kind, first, 80);
            assert!(banks.is_cut(), "{id}: the power did not fail");
            banks.power_on();
            for _ in 0..4 {
                let found = value(&banks, kind).unwrap_or_else(|error| panic!("{id}: {error}"));
                assert!((answered..=asked).contains(&found), "{id}: {found} is not {answered} to {asked}");
                answered = found;
            }
            let on = run(&banks, kind, answered, 20);
            assert!(
                on.0 == on.1 && on.0 >= answered + 20,
                "{id}: it does not go on: {on:?} from {answered}, {:?}",
                value(&banks, kind)
            );
            assert_eq!(value(&banks, kind), Ok(on.0), "{id}");
        }
    }
}

#[test]
fn a_cut_leaves_bits_at_the_old_value_or_the_new_one() {
    every_cut(CounterKind::Nor);
}

#[test]
fn a_cut_leaves_words_at_the_old_value_or_the_new_one() {
    every_cut(CounterKind::Ecc);
}

#[test]
fn counters_on_chips_say_why_not() {
    for kind in [CounterKind::Nor, CounterKind::Ecc] {
        let banks = banks(kind);
        let mut counter = counter_in(&banks, kind);
        assert_eq!(counter.kind(), kind);
        assert_eq!(counter.value(), Err(CounterError::Absent));
        assert_eq!(counter.step(1, &[1; 16]), Err(CounterError::Absent));
        counter.adopt(5, &[5; 16]).unwrap();
        assert_eq!(counter.value(), Ok(CounterValue { value: 5, tag: None }));
        counter.step(5, &[6; 16]).unwrap();
        assert_eq!(counter.step(4, &[4; 16]), Err(CounterError::Lower { present: 5, asked: 4 }));
        assert_eq!(counter.step(7, &[7; 16]), Err(CounterError::Skipped { present: 5, asked: 7 }));
        assert_eq!(counter.adopt(4, &[4; 16]), Err(CounterError::Lower { present: 5, asked: 4 }));
        counter.adopt(900, &[9; 16]).unwrap();
        counter.step(901, &[9; 16]).unwrap();
        assert_eq!(value(&banks, kind), Ok(901));
    }
}

#[test]
fn damage_is_damage_and_adoption_ends_it() {
    for kind in [CounterKind::Nor, CounterKind::Ecc] {
        let banks = banks(kind);
        counter_in(&banks, kind).adopt(5, &[5; 16]).unwrap();
        banks.danger_set(BlockNumber(0), 8, 0x55);
        assert_eq!(value(&banks, kind), Err(CounterError::Damaged));
        let mut counter = counter_in(&banks, kind);
        assert_eq!(counter.step(6, &[6; 16]), Err(CounterError::Damaged));
        counter.adopt(3, &[3; 16]).unwrap();
        assert_eq!(value(&banks, kind), Ok(3));
    }
}

#[test]
fn the_last_number_is_the_last() {
    for kind in [CounterKind::Nor, CounterKind::Ecc] {
        let banks = banks(kind);
        counter_in(&banks, kind).adopt(u64::MAX - 2, &[0; 16]).unwrap();
        let mut counter = counter_in(&banks, kind);
        counter.step(u64::MAX - 1, &[0; 16]).unwrap();
        counter.step(u64::MAX, &[0; 16]).unwrap();
        assert_eq!(counter.step(0, &[0; 16]), Err(CounterError::Lower { present: u64::MAX, asked: 0 }));
        assert_eq!(value(&banks, kind), Ok(u64::MAX));
    }
}

#[test]
fn a_counter_that_goes_back_is_noticed_and_bits_that_fade_are_not_missed() {
    let banks = banks(CounterKind::Nor);
    let mut counter = counter_in(&banks, CounterKind::Nor);
    counter.adopt(5, &[5; 16]).unwrap();
    (6..16).for_each(|to| counter.step(to, &[0; 16]).unwrap());
    banks.danger_set(BlockNumber(0), 32, 0b0000_0100);
    assert_eq!(value(&banks, CounterKind::Nor), Ok(15), "a bit that faded below the last one");
    banks.danger_set(BlockNumber(0), 33, 0xFF);
    assert_eq!(counter.value(), Err(CounterError::WentBack { seen: 15, found: 13 }));
}

#[test]
fn shapes_that_do_not_suit_are_refused() {
    let new = |word_bytes, bank_bytes, clears_again| {
        SimulatedBanks::new(BankShape { bank_bytes, word_bytes, clears_again }, Scenario::calm(1))
    };
    assert!(NorCounter::new(new(8, 256, false)).is_err(), "words are not cleared bit by bit");
    assert!(NorCounter::new(new(1, 32, true)).is_err(), "no room for a step");
    assert!(EccCounter::new(new(4, 256, false)).is_err(), "words too short");
    assert!(EccCounter::new(new(8, 88, false)).is_err(), "too few words");
    assert_eq!(NorCounter::<SimulatedBanks>::steps_per_erase(&new(1, 4096, true).shape()), 32_513);
    assert_eq!(EccCounter::<SimulatedBanks>::steps_per_erase(&new(8, 2048, false).shape()), 191);
}

/// The bytes that SPEC.md gives.
#[test]
fn the_cells_are_those_of_the_specification() {
    let hex = |kind: CounterKind, bytes: usize| {
        let banks = banks(kind);
        let mut counter = counter_in(&banks, kind);
        counter.adopt(5, &[0; 16]).unwrap();
        (6..8).for_each(|to| counter.step(to, &[0; 16]).unwrap());
        let mut read = vec![0; bytes];
        banks.read(BlockNumber(0), 0, &mut read).unwrap();
        read.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let specification = include_str!("../../../../SPEC.md");
    let nor = hex(CounterKind::Nor, 33);
    assert!(specification.contains(&format!("`{nor}`")), "{nor}");
    let words = hex(CounterKind::Ecc, 40);
    assert!(specification.contains(&format!("`{words}`")), "{words}");
}
