//! Banks of banks.

use counterfoil_flash::Banks;

use super::*;

const BANK: BlockNumber = BlockNumber(1);

fn read<const N: usize>(banks: &SimulatedBanks, offset: u32) -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    banks.read(BANK, offset, &mut bytes).map(|()| bytes)
}

fn scenario(id: &str) -> Scenario {
    id.parse().expect("a scenario")
}

#[test]
fn bits_are_cleared_and_banks_erased() {
    let mut banks = SimulatedBanks::nor(64, scenario("seed1"));
    banks.program(BANK, 3, &[0b1010]).expect("calm");
    banks.program(BANK, 3, &[0b0110]).expect("calm");
    assert_eq!(read(&banks, 2), Ok([0xFF, 0b0010, 0xFF]));
    assert_eq!(read::<2>(&banks, 63), Err(Error::OutOfRange { page: PageNumber(1), page_count: 2 }));
    banks.erase(BANK).expect("calm");
    assert_eq!((read(&banks, 3), banks.writes(), banks.erases()), (Ok([0xFF]), 3, 1));
}

#[test]
fn a_word_programmed_twice_is_lost() {
    let mut banks = SimulatedBanks::ecc_words(64, 8, scenario("seed1"));
    banks.program(BANK, 8, &[3; 8]).expect("calm");
    assert!(matches!(banks.program(BANK, 8, &[1; 8]), Err(Error::NotErased { .. })));
    assert!(matches!(read::<8>(&banks, 8), Err(Error::Device { code: UNCORRECTABLE, .. })));
    assert_eq!(read(&banks, 16), Ok([0xFF; 8]));
    banks.erase(BANK).expect("calm");
    banks.program(BANK, 8, &[1; 8]).expect("erased");
    assert_eq!(read(&banks, 8), Ok([1; 8]));
}

#[test]
fn an_unstable_bit_reads_both_ways_until_it_is_cleared_again() {
    let mut banks = SimulatedBanks::nor(64, scenario("seed1+cut2-fickle-all"));
    banks.program(BANK, 0, &[0b0111_1111]).expect("calm");
    assert!(banks.program(BANK, 0, &[0b0011_1111]).is_err() && banks.is_cut());
    assert!(matches!(read::<1>(&banks, 0), Err(Error::Device { code: POWER_CUT, .. })));
    banks.power_on();
    let seen: std::collections::BTreeSet<u8> = (0..40).map(|_| read::<1>(&banks, 0).expect("reads")[0]).collect();
    assert_eq!(Vec::from_iter(seen), [0b0011_1111, 0b0111_1111]);
    banks.program(BANK, 0, &[0b0011_1111]).expect("calm");
    assert!((0..40).all(|_| read(&banks, 0) == Ok([0b0011_1111])));
}

#[test]
fn a_torn_word_reads_as_anything_or_as_an_error() {
    let (mut errors, mut blank, mut other) = (0, 0, 0);
    for seed in 0..100 {
        let mut banks = SimulatedBanks::ecc_words(64, 8, scenario(&format!("seed{seed}+cut1-bits-all")));
        assert!(banks.program(BANK, 0, &[5; 8]).is_err());
        banks.power_on();
        match read::<8>(&banks, 0) {
            Err(_) => errors += 1,
            Ok([0xFF, 0xFF, ..]) => {
                blank += 1;
                assert!(banks.program(BANK, 0, &[5; 8]).is_err(), "begun is begun");
            }
            Ok(bytes) => other += u64::from(bytes != [5; 8]),
        }
    }
    assert!(errors > 10 && blank > 10 && other > 10, "{errors} errors, {blank} blank, {other} other");
}

#[test]
fn an_erase_cut_short_leaves_anything() {
    for mut banks in [SimulatedBanks::nor(64, scenario("seed1+cut2-fickle-all")), {
        SimulatedBanks::ecc_words(64, 8, scenario("seed1+cut2-fickle-all"))
    }] {
        let word = vec![0x0F; banks.shape().word_bytes as usize];
        banks.program(BANK, 0, &word).expect("calm");
        assert!(banks.erase(BANK).is_err());
        banks.power_on();
        banks.erase(BANK).expect("repeated");
        assert!((0..20).all(|_| read(&banks, 0) == Ok([0xFF; 64])));
    }
}
