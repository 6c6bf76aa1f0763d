//! Flash whose words have error correction of their own.

use super::*;

const WORD: usize = 16;

fn words(scenario: &str) -> SimulatedDevice {
    SimulatedDevice::new(Part::ecc_words(PAGE as u32, 4, 16, WORD as u32), scenario.parse().expect("a scenario"))
}

/// What the words of a page read as: `None` for an error.
fn read_words(device: &SimulatedDevice, number: u64) -> Vec<Option<Vec<u8>>> {
    let read = |word: usize| {
        let mut bytes = vec![0; WORD];
        device.read(PageNumber(number), (word * WORD) as u32, &mut bytes).ok().map(|()| bytes)
    };
    (0..PAGE / WORD).map(read).collect()
}

#[test]
fn a_word_is_programmed_once() {
    let device = words("seed1");
    program(&device, 3, 1).expect("calm");
    program(&device, 0, 1).expect("in any order");
    assert_eq!(program(&device, 3, 0), Err(Error::NotErased { page: PageNumber(3) }), "even to clear bits");
}

#[test]
fn a_cut_tears_a_word_and_leaves_those_before_and_behind_it() {
    let (mut errors, mut anything) = (0, 0);
    for seed in 0..40 {
        let device = words(&format!("seed{seed}+cut1-byte100-all"));
        assert!(is_power_cut(program(&device, 0, 7)));
        device.power_on();
        let found = read_words(&device, 0);
        assert!(found[..6].iter().all(|word| word.as_deref() == Some(&[7; WORD])), "whole words before byte 100");
        assert!(found[7..].iter().all(|word| word.as_deref() == Some(&[0xFF; WORD])));
        match &found[6] {
            None => errors += 1,
            Some(bytes) => anything += u64::from(bytes[..] != [7; WORD] && bytes[..] != [0xFF; WORD]),
        }
        assert_eq!(device.read(PageNumber(0), 0, &mut [0; PAGE]).is_err(), found[6].is_none());
        assert!(matches!(program(&device, 0, 7), Err(Error::NotErased { .. })));
        erase(&device, 0).expect("calm");
        assert_eq!(page(&device, 0), [0xFF; PAGE]);
    }
    assert!(errors > 8 && anything > 8, "{errors} read as errors, {anything} as anything");
}

#[test]
fn torn_words_can_all_be_errors() {
    let device = words("seed3+cut1-unreadable-all");
    assert!(is_power_cut(program(&device, 0, 7)));
    device.power_on();
    let found = read_words(&device, 0);
    let [whole, blank] =
        [[7; WORD], [0xFF; WORD]].map(|bytes| found.iter().flatten().filter(|w| w[..] == bytes).count());
    let errors = found.iter().filter(|word| word.is_none()).count();
    assert_eq!(whole + blank + errors, PAGE / WORD);
    assert!(whole > 0 && blank > 0 && errors > 0);
}

#[test]
fn an_erase_cut_short_leaves_words_that_nobody_programmed() {
    let device = words("seed3+cut3-bits-all");
    program(&device, 0, 7).expect("calm");
    program(&device, 2, 7).expect("calm");
    assert!(is_power_cut(erase(&device, 0)));
    device.power_on();
    let found: Vec<_> = (0..4).flat_map(|number| read_words(&device, number)).collect();
    assert!(found.iter().any(Option::is_none));
    assert!(found.iter().flatten().any(|word| word[..] != [7; WORD] && word[..] != [0xFF; WORD]));
    erase(&device, 0).expect("repeated");
    device.clone().program(PageNumber(0), &[9; 4 * PAGE]).expect("erased");
}
