//! Sticks and cards with a translation layer of their own.

use super::*;

fn stick(bend: impl FnOnce(&mut Part), scenario: &str) -> SimulatedDevice {
    let mut part = Part::stick(PAGE as u32, 4, 64, 16);
    bend(&mut part);
    SimulatedDevice::new(part, scenario.parse().expect("a scenario"))
}

#[test]
fn sectors_are_rewritten_at_will() {
    let device = stick(|_| (), "seed1");
    for byte in 1..5 {
        program(&device, 5, byte).expect("calm");
    }
    assert_eq!((page(&device, 5), page(&device, 6)), (vec![4; PAGE], vec![0; PAGE]));
}

#[test]
fn a_cut_damages_sectors_of_the_same_erase_unit_only() {
    let (mut damaged, mut unreadable) = (0, 0);
    for seed in 0..60 {
        let device = stick(|part| part.lying_flushes = None, &format!("seed{seed}+cut34-complete-all"));
        for number in 0..32 {
            program(&device, number, 1 + number as u8).expect("calm");
        }
        flush(&device).expect("calm");
        assert!(is_power_cut(program(&device, 20, 99)));
        device.power_on();
        let whole = |number: u64| {
            let mut bytes = vec![0; PAGE];
            device.read(PageNumber(number), 0, &mut bytes).map(|()| bytes == [1 + number as u8; PAGE])
        };
        assert!((0..16).all(|number| whole(number) == Ok(true)), "another erase unit");
        assert_eq!(page(&device, 20), [99; PAGE], "this one was written");
        let outcomes: Vec<_> = (16..32).filter(|number| *number != 20).map(whole).collect();
        damaged += u64::from(outcomes.contains(&Ok(false)));
        unreadable += u64::from(outcomes.iter().any(Result::is_err));
    }
    assert!(damaged > 10 && unreadable > 10, "{damaged} with damaged sectors, {unreadable} with unreadable ones");
    let calm = stick(|part| part.unit_pages = None, "seed1+cut3-complete-all");
    for number in 0..2 {
        program(&calm, number, 1).expect("calm");
    }
    assert!(is_power_cut(program(&calm, 2, 1)));
    calm.power_on();
    assert_eq!((page(&calm, 0), page(&calm, 1)), (vec![1; PAGE], vec![1; PAGE]));
}

#[test]
fn a_flush_lies_now_and_then() {
    let lost = |bend: fn(&mut Part)| {
        let lost = |seed: &u64| {
            let device = stick(bend, &format!("seed{seed}+cut3-untouched-none"));
            program(&device, 0, 5).expect("calm");
            flush(&device).expect("acknowledged");
            assert!(is_power_cut(program(&device, 1, 6)));
            device.power_on();
            page(&device, 0) != [5; PAGE]
        };
        (0..320).filter(lost).count()
    };
    let lies = lost(|_| ());
    assert!((8..40).contains(&lies), "{lies} of 320 flushes lied");
    assert_eq!(lost(|part| part.lying_flushes = None), 0);
}

#[test]
fn scattered_writes_are_dear() {
    let device = stick(|_| (), "seed1");
    for number in [0, 1, 5, 15, 16, 17, 40, 3] {
        program(&device, number, 1).expect("calm");
    }
    assert_eq!(device.meters().scattered_programs, 2, "from 17 to 40 and back");
    assert_eq!(device.nanoseconds(), 8 * 104_000 + 2 * 135_000_000);
}
