//! Each fault really happens, and happens again under the same id.

use counterfoil_flash::{BlockNumber, Device, Error, Operation, PageNumber, Read};

use crate::*;

mod banks;
mod nor;
mod stick;
mod words;

const PAGE: usize = 1024;

fn file(scenario: &str) -> SimulatedDevice {
    SimulatedDevice::new(Part::file(PAGE as u32, 4, 1 << 16), scenario.parse().expect("a scenario"))
}

fn nand(scenario: &str) -> SimulatedDevice {
    SimulatedDevice::new(Part::nand(PAGE as u32, 4, 16), scenario.parse().expect("a scenario"))
}

fn page(device: &SimulatedDevice, number: u64) -> Vec<u8> {
    let mut bytes = vec![0; PAGE];
    device.read(PageNumber(number), 0, &mut bytes).expect("the power is on");
    bytes
}

fn program(device: &SimulatedDevice, number: u64, byte: u8) -> Result<(), Error> {
    device.clone().program(PageNumber(number), &[byte; PAGE])
}

fn flush(device: &SimulatedDevice) -> Result<(), Error> {
    device.clone().flush()
}

fn erase(device: &SimulatedDevice, block: u64) -> Result<(), Error> {
    device.clone().erase(BlockNumber(block))
}

fn is_power_cut(result: Result<(), Error>) -> bool {
    matches!(result, Err(Error::Device { code: POWER_CUT, .. }))
}

/// Two flushed pages of ones, then two unflushed programs of twos and threes, the latter cut.
fn cut_while_rewriting(tearing: Tearing, survivors: Survivors, seed: u64) -> SimulatedDevice {
    let scenario = Scenario::one(seed, Fault::Cut { at: 5, tearing, survivors });
    let device = file(&scenario.to_string());
    device.clone().program(PageNumber(0), &[1; 2 * PAGE]).expect("calm");
    flush(&device).expect("calm");
    program(&device, 0, 2).expect("calm");
    assert!(is_power_cut(program(&device, 1, 3)));
    assert!(device.is_cut());
    assert!(is_power_cut(flush(&device)));
    assert!(is_power_cut(device.read(PageNumber(0), 0, &mut [0])));
    device.power_on();
    device
}

#[test]
fn without_faults_it_is_a_medium() -> Result<(), Error> {
    let device = file("seed1");
    program(&device, 3, 7)?;
    let mut across = [9; 4];
    device.read(PageNumber(2), PAGE as u32 - 2, &mut across)?;
    assert_eq!(across, [0, 0, 7, 7]);
    assert!(!device.image().holds(3) && device.image_seen().holds(3));
    flush(&device)?;
    assert!(device.image().holds(3));
    let last = 4 * (1 << 16) - 1;
    let full = Err(Error::Full { page: PageNumber(last + 1) });
    assert_eq!(device.clone().program(PageNumber(last), &[0; 2 * PAGE]), full);
    assert!(matches!(device.read(PageNumber(last), 1, &mut [0; PAGE]), Err(Error::OutOfRange { .. })));
    assert_eq!(device.writes(), 2);
    Ok(())
}

#[test]
fn a_cut_leaves_the_page_as_it_was_or_as_it_should_be_or_torn() {
    let torn = |tearing| page(&cut_while_rewriting(tearing, Survivors::All, 1), 1);
    assert_eq!(torn(Tearing::Untouched), [1; PAGE]);
    assert_eq!(torn(Tearing::Complete), [3; PAGE]);
    let at_a_byte = torn(Tearing::Byte(10));
    assert_eq!((&at_a_byte[..10], &at_a_byte[10..]), (&[3; 10][..], &[1; PAGE - 10][..]));
    // Between 0b01 and 0b11 one bit changes; some have it and some have not.
    let bits = torn(Tearing::Bits);
    assert!(bits.contains(&1) && bits.contains(&3) && bits.iter().all(|byte| [1, 3].contains(byte)));
}

#[test]
fn unflushed_writes_survive_wholly_not_at_all_or_in_any_part() {
    let below = |survivors, seed| page(&cut_while_rewriting(Tearing::Untouched, survivors, seed), 0);
    assert_eq!(below(Survivors::All, 1), [2; PAGE]);
    assert_eq!(below(Survivors::None, 1), [1; PAGE]);
    let kinds: std::collections::BTreeSet<(u8, u8)> =
        (0..200).map(|seed| below(Survivors::Any, seed)).map(|bytes| (bytes[0], bytes[512])).collect();
    assert_eq!(Vec::from_iter(kinds), [(1, 1), (1, 2), (2, 1), (2, 2)]);
}

#[test]
fn unflushed_writes_survive_in_any_order() {
    let newest = |seed| {
        let device = file(&format!("seed{seed}+cut4-untouched-any"));
        for byte in 1..=3 {
            program(&device, 0, byte).expect("calm");
        }
        assert!(is_power_cut(flush(&device)));
        device.power_on();
        page(&device, 0)[0]
    };
    let kinds: std::collections::BTreeSet<u8> = (0..100).map(newest).collect();
    assert_eq!(Vec::from_iter(kinds), [0, 1, 2, 3]);
}

#[test]
fn a_cut_flush_may_have_been_done() {
    for (tearing, byte) in [("untouched", 0), ("complete", 5)] {
        let device = file(&format!("seed1+cut2-{tearing}-none"));
        program(&device, 0, 5).expect("calm");
        assert!(is_power_cut(flush(&device)));
        device.power_on();
        assert_eq!(page(&device, 0), [byte; PAGE]);
    }
}

#[test]
fn a_flush_can_be_acknowledged_and_lost() {
    let device = file("seed1+lostflush2+cut3-untouched-none");
    program(&device, 0, 5).expect("calm");
    flush(&device).expect("acknowledged");
    assert!(is_power_cut(program(&device, 1, 6)));
    device.power_on();
    assert_eq!(page(&device, 0), [0; PAGE]);
}

#[test]
fn a_failed_flush_latches_and_what_it_lost_reads_as_written() {
    let mut lost = 0;
    for seed in 0..20 {
        let device = file(&format!("seed{seed}+failedflush2"));
        program(&device, 0, 5).expect("calm");
        let failed = Error::Device { operation: Operation::Flush, page: PageNumber(0), code: FAULT };
        assert_eq!(flush(&device), Err(failed));
        assert_eq!(flush(&device), Err(Error::Latched));
        device.reopen();
        flush(&device).expect("the kernel believes that all is clean");
        assert_eq!(page(&device, 0), [5; PAGE]);
        device.drop_cache();
        let bytes = page(&device, 0);
        device.power_on();
        assert_eq!(page(&device, 0), bytes);
        lost += u64::from(page(&device, 0) != [5; PAGE]);
    }
    assert!((1..20).contains(&lost), "{lost} of 20 were lost");
}

#[test]
fn a_failed_write_latches_and_leaves_anything() {
    let device = file("seed1+failedwrite1");
    assert!(matches!(program(&device, 0, 0xFF), Err(Error::Device { code: FAULT, .. })));
    assert_eq!(program(&device, 1, 1), Err(Error::Latched));
    let bytes = page(&device, 0);
    assert!(bytes != [0; PAGE] && bytes != [0xFF; PAGE]);
    device.power_on();
    assert_eq!(page(&device, 0), bytes);
}

#[test]
fn flash_is_programmed_once_and_in_order() -> Result<(), Error> {
    let device = nand("seed1");
    assert_eq!(page(&device, 1), [0xFF; PAGE]);
    program(&device, 1, 1)?;
    assert_eq!(program(&device, 1, 1), Err(Error::NotErased { page: PageNumber(1) }));
    assert!(matches!(program(&device, 0, 1), Err(Error::Device { code: OUT_OF_ORDER, .. })));
    program(&device, 4, 1)?;
    erase(&device, 0)?;
    program(&device, 0, 2)?;
    assert_eq!((page(&device, 0)[0], page(&device, 1)[0], page(&device, 4)[0]), (2, 0xFF, 1));
    assert!(device.image().holds(0), "flash needs no flush");
    Ok(())
}

#[test]
fn bad_blocks_are_refused_and_more_go_bad() {
    let part = Part { bad_blocks: vec![2], ..Part::nand(PAGE as u32, 4, 16) };
    let device = SimulatedDevice::new(part, "seed1+badblock2".parse().expect("a scenario"));
    let is_bad = |result| matches!(result, Err(Error::Device { code: BAD_BLOCK, .. }));
    assert!(is_bad(program(&device, 8, 1)) && is_bad(erase(&device, 2)));
    program(&device, 0, 1).expect("calm");
    assert!(is_bad(program(&device, 1, 1)));
    assert!(device.is_bad(BlockNumber(0)) && is_bad(erase(&device, 0)));
    assert_eq!(page(&device, 0), [1; PAGE], "what was good stays to be copied");
}

#[test]
fn an_erase_is_cut_short_at_a_byte_or_a_bit() {
    for tearing in ["byte1030", "bits"] {
        let device = nand(&format!("seed1+cut4-{tearing}-all"));
        device.clone().program(PageNumber(0), &[0; 3 * PAGE]).expect("calm");
        assert!(is_power_cut(erase(&device, 0)));
        device.power_on();
        if tearing == "bits" {
            assert!(page(&device, 2) != [0; PAGE] && page(&device, 2) != [0xFF; PAGE]);
        } else {
            assert_eq!(page(&device, 0), [0xFF; PAGE]);
            assert_eq!(page(&device, 1)[..8], [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0]);
            assert_eq!(page(&device, 2), [0; PAGE]);
        }
        assert!(matches!(program(&device, 2, 1), Err(Error::NotErased { .. })));
        erase(&device, 0).expect("repeated");
        program(&device, 0, 1).expect("erased");
    }
}

#[test]
fn a_block_can_look_erased_and_not_be() {
    let device = nand("seed1+cut2-fickle-all");
    program(&device, 0, 0).expect("calm");
    assert!(is_power_cut(erase(&device, 0)));
    device.power_on();
    assert_eq!(page(&device, 1), [0xFF; PAGE]);
    assert_ne!(page(&device, 1), [0xFF; PAGE]);
    program(&device, 2, 7).expect("it looks erased");
    assert_eq!(page(&device, 2), [7; PAGE]);
    assert_ne!(page(&device, 2), [7; PAGE]);
    erase(&device, 0).expect("a whole erase");
    program(&device, 0, 7).expect("erased");
    assert_eq!((page(&device, 0), page(&device, 0)), (vec![7; PAGE], vec![7; PAGE]));
}

#[test]
fn a_page_can_read_well_once_and_badly_later() {
    for scenario in ["seed1+fade1", "seed1+cut1-fickle-all"] {
        let device = nand(scenario);
        let _ = program(&device, 0, 7);
        if device.is_cut() {
            device.power_on();
        }
        assert_eq!(page(&device, 0), [7; PAGE]);
        let later = page(&device, 0);
        assert_ne!(later, [7; PAGE]);
        assert_eq!(page(&device, 0), later);
    }
}

#[test]
fn a_torn_page_that_error_correction_finds_is_an_error_until_it_is_erased() {
    let unreadable = Err(Error::Device { operation: Operation::Read, page: PageNumber(0), code: UNCORRECTABLE });
    for part in [Part::file(PAGE as u32, 4, 64), Part::nand(PAGE as u32, 4, 16)] {
        let device = SimulatedDevice::new(part, "seed1+cut2-unreadable-all".parse().expect("a scenario"));
        program(&device, 1, 5).err();
        if device.geometry().erase_before_program {
            device.clone().erase(BlockNumber(0)).err();
        } else {
            program(&device, 0, 7).err();
        }
        device.power_on();
        for _ in 0..2 {
            assert_eq!(device.read(PageNumber(0), 3, &mut [0]), unreadable);
        }
        device.clone().erase(BlockNumber(0)).expect("calm");
        program(&device, 0, 7).expect("calm");
        assert_eq!(page(&device, 0), [7; PAGE]);
    }
}

#[test]
fn bits_rot() {
    let device = file("seed1+rot2-page0-bits1");
    program(&device, 0, 0).expect("calm");
    flush(&device).expect("calm");
    let ones: u32 = page(&device, 0).iter().map(|byte| byte.count_ones()).sum();
    assert_eq!(ones, 1);
    assert_eq!(*device.image().page(0), *page(&device, 0));
}

#[test]
fn a_cut_damages_the_older_page_of_a_pair() {
    for (scenario, is_damaged) in [("seed1+cut3-complete-all", true), ("seed1+cut3-untouched-all", false)] {
        let part = Part { paired: Some(2), ..Part::nand(PAGE as u32, 4, 16) };
        let device = SimulatedDevice::new(part, scenario.parse().expect("a scenario"));
        device.clone().program(PageNumber(0), &[1; 2 * PAGE]).expect("calm");
        assert!(is_power_cut(program(&device, 2, 1)));
        device.power_on();
        assert_eq!(page(&device, 0) != [1; PAGE], is_damaged);
        assert_eq!(page(&device, 1), [1; PAGE]);
    }
}

#[test]
fn the_same_id_happens_the_same_way() {
    for scenario in Scenario::every_cut(5, 6, PAGE as u32) {
        let run = |scenario: Scenario| {
            let device = SimulatedDevice::new(Part::file(PAGE as u32, 4, 64), scenario);
            for number in 0..3 {
                let _ = program(&device, number % 2, number as u8 + 1).and_then(|()| flush(&device));
            }
            device.power_on();
            device.image()
        };
        let id = scenario.to_string();
        assert_eq!(id.parse::<Scenario>(), Ok(scenario.clone()), "{id}");
        assert_eq!(run(scenario), run(id.parse().expect("parses")), "{id}");
    }
}

#[test]
fn ids_are_read_back_or_refused() {
    let every = "seed9+cut1-byte3-any+lostflush2+failedflush3+failedwrite4+badblock5+fade6+rot7-page8-bits9";
    assert_eq!(every.parse::<Scenario>().expect("parses").to_string(), every);
    for wrong in ["", "cut1-bits-all", "seed", "seedx", "seed1+", "seed1+cut1-bits", "seed1+cut-bits-all", "seed1+fade"]
    {
        assert!(wrong.parse::<Scenario>().is_err(), "{wrong}");
    }
    let error = "seed1+flood3".parse::<Scenario>().expect_err("unknown");
    assert_eq!(error.to_string(), "'flood3' is no part of a scenario");
}

#[test]
fn a_cut_can_be_looked_at_without_cutting() {
    let device = file("seed1");
    program(&device, 0, 1).expect("calm");
    assert_eq!(device.image_if_cut(Survivors::None, 0), device.image());
    assert_eq!(device.image_if_cut(Survivors::All, 0), device.image_seen());
    device.drop_cache();
    assert_eq!(page(&device, 0), [1; PAGE], "what waits to be written is not clean");
    let kinds = (0..20).filter(|seed| device.image_if_cut(Survivors::Any, *seed).holds(0)).count();
    assert!((1..20).contains(&kinds));
    flush(&device).expect("calm");
    assert_eq!(device.image_if_cut(Survivors::None, 0), device.image_seen());
}

#[test]
fn the_attacker_keeps_everything_and_puts_any_of_it_back() {
    let device = nand("seed1");
    let attacker = Attacker::new();
    device.watch(&attacker);
    for number in 0..8 {
        program(&device, number, 1).expect("calm");
    }
    erase(&device, 0).expect("calm");
    flush(&device).expect("calm");
    assert_eq!(attacker.image_count(), 1 + 8 + 1);
    device.restore(attacker.whole(4).expect("kept"));
    assert_eq!((page(&device, 3)[0], page(&device, 4)[0]), (1, 0xFF));
    assert!(matches!(program(&device, 3, 1), Err(Error::NotErased { .. })));
    program(&device, 4, 2).expect("blank again");

    let mixtures: Vec<Image> = (0..50).filter_map(|seed| attacker.mixture(seed)).collect();
    assert!(mixtures.iter().any(|image| !image.holds(0) && image.holds(1)));
    assert_eq!(attacker.mixture(7), attacker.mixture(7));
    let of_two = attacker.mixture_of(&[0, 4], 3).expect("kept");
    assert!(of_two.numbers().all(|number| number < 4));
    assert_eq!((attacker.whole(99), attacker.mixture_of(&[], 1)), (None, None));
}

#[test]
fn images_become_files_and_come_back() {
    let device = file("seed1");
    program(&device, 2, 6).expect("calm");
    flush(&device).expect("calm");
    let bytes = device.image().to_file();
    assert_eq!((bytes.len(), bytes[2 * PAGE - 1], bytes[2 * PAGE]), (3 * PAGE, 0, 6));
    let mut back = Image::from_file(PAGE as u32, &bytes);
    assert_eq!(back.differing(&device.image()), []);
    back.flip(1, 9);
    assert_eq!(back.differing(&device.image()), [1]);
    assert_eq!(back.page(1)[1], 2);
}

#[test]
fn the_counted_clock_follows_the_papers() -> Result<(), Error> {
    let mut board = SimulatedDevice::new(Part::gnatdb_board(16), Scenario::calm(1));
    board.program(PageNumber(0), &[0; 1024])?;
    board.read(PageNumber(0), 500, &mut [0; 20])?;
    board.erase(BlockNumber(0))?;
    assert_eq!(board.nanoseconds(), (2 * 636 + 2 * 303 + 2112) * 1000);

    let mut token = SimulatedDevice::new(Part::milo_token(16), Scenario::calm(1));
    token.program(PageNumber(0), &[0; 2048])?;
    let before = token.meters();
    token.read(PageNumber(0), 510, &mut [0; 10])?;
    token.flush()?;
    let since = token.meters().since(&before);
    assert_eq!((since.reads, since.read_sectors, since.read_bytes, since.programs, since.flushes), (1, 2, 10, 0, 1));
    assert_eq!(since.nanoseconds(&Prices::MILO_TOKEN), 75_000);
    assert_eq!(token.nanoseconds(), 375_000);
    Ok(())
}
