//! The header opens for its keys, says what is wrong with it, and never panics.

use counterfoil_vault::{
    ArgonCost, CopyFault, DangerFixedEntropy, HEADER_BYTES, HeaderCopy, HeaderError, KeyFile, Kind, Place, Plain,
    RecoveryCode, RootDigests, SLOTS, Sealed, Secret, Settled, SlotKind, Suite, Unlocked, Vault, VolumeLayout,
    read_headers,
};
use proptest::prelude::*;

use crate::medium::{Bytes, LAYOUT, Made, made, made_with};

/// Small enough for tests; what hosts accept is tested where it matters.
const CHEAP: ArgonCost = ArgonCost { memory_kib: 64, passes: 1, lanes: 1 };

fn unlock(made: &Made, secrets: &[Secret<'_>]) -> Result<Unlocked, HeaderError> {
    read_headers(&made.medium)?.unlock(secrets, &ArgonCost::MINIMUM)
}

fn open(made: &Made) -> Result<(Unlocked, Settled), HeaderError> {
    let unlocked = unlock(made, &[Secret::KeyFile(&made.key_file)])?;
    let settled = unlocked.settle(&made.root())?;
    Ok((unlocked, settled))
}

#[test]
fn every_kind_of_secret_opens_its_slot() {
    let mut made = made();
    let code = RecoveryCode::generate(&mut made.entropy).unwrap();
    let passphrase = Secret::Passphrase(b"correct horse");
    for secret in [passphrase, Secret::Recovery(&code)] {
        made.header.add_slot(&secret, &CHEAP, &made.volume_key, 2, &mut made.entropy).unwrap();
    }
    made.put_both();
    let text = code.text();
    let typed = Secret::Passphrase(text.as_bytes());
    for (secret, slot) in
        [(Secret::KeyFile(&made.key_file), 0), (passphrase, 1), (Secret::Recovery(&code), 2), (typed, 2)]
    {
        let unlocked = unlock(&made, &[secret]).unwrap();
        assert!(unlocked.volume_key.expose() == made.volume_key.expose());
        let settled = unlocked.settle(&made.root()).unwrap();
        assert_eq!((settled.slot, settled.fault), (Some(slot), None));
        assert!(settled.unfinished.is_none() && settled.header == made.header);
    }
    let kinds: Vec<_> = made.header.slots().map(|(number, slot)| (number, slot.kind(), slot.created())).collect();
    assert_eq!(kinds, [(0, SlotKind::KeyFile, 1), (1, SlotKind::Passphrase, 2), (2, SlotKind::Recovery, 2)]);
}

#[test]
fn a_wrong_key_is_called_that() {
    let made = made();
    let other = KeyFile::generate(&mut DangerFixedEntropy::seeded(99)).unwrap();
    let wrong = [Secret::KeyFile(&other), Secret::Passphrase(b"x"), Secret::Passphrase(b"")];
    assert_eq!(unlock(&made, &wrong).err(), Some(HeaderError::WrongKey { certain: true }));
    assert_eq!(unlock(&made, &[]).err(), Some(HeaderError::WrongKey { certain: true }));
    assert!(unlock(&made, &[wrong[0], Secret::KeyFile(&made.key_file)]).is_ok());
}

#[test]
fn what_is_not_a_database_is_called_that() {
    for bytes in [vec![], vec![0; 100], vec![0; 1 << 20], vec![0x5a; 1 << 20], b"SQLite format 3\0".repeat(1000)] {
        let medium = Bytes { page_bytes: 512, bytes };
        assert_eq!(read_headers(&medium).err(), Some(HeaderError::NotADatabase));
    }
    let mut later = made();
    HeaderCopy::BOTH.into_iter().for_each(|copy| later.copy_bytes(copy)[8] = 2);
    assert_eq!(read_headers(&later.medium).err(), Some(HeaderError::Format { found: 2 }));
}

#[test]
fn any_flipped_bit_of_one_copy_is_noted_and_the_other_copy_opens() {
    let mut made = made();
    for copy in HeaderCopy::BOTH {
        for bit in 0..HEADER_BYTES * 8 {
            made.copy_bytes(copy)[bit / 8] ^= 1 << (bit % 8);
            let (unlocked, settled) = open(&made).unwrap_or_else(|error| panic!("{copy} bit {bit}: {error}"));
            assert_eq!(settled.fault, Some((copy, CopyFault::Damaged)), "{copy} bit {bit}");
            assert_eq!(unlocked.damaged(), Some(copy));
            assert!(settled.header == made.header);
            made.copy_bytes(copy)[bit / 8] ^= 1 << (bit % 8);
        }
    }
    assert_eq!(open(&made).unwrap().1.fault, None);
}

#[test]
fn the_same_flipped_bit_in_both_copies_is_a_typed_error() {
    let mut made = made();
    for bit in 0..HEADER_BYTES * 8 {
        let flip = |made: &mut Made| {
            HeaderCopy::BOTH.into_iter().for_each(|copy| made.copy_bytes(copy)[bit / 8] ^= 1 << (bit % 8))
        };
        flip(&mut made);
        assert!(open(&made).is_err(), "bit {bit}");
        flip(&mut made);
    }
}

#[test]
fn a_changed_suite_is_tampering() {
    let mut made = made();
    HeaderCopy::BOTH.into_iter().for_each(|copy| made.copy_bytes(copy)[12] = Suite::Aes256Gcm.number());
    assert!(matches!(open(&made).err(), Some(HeaderError::Tampered { .. })));
}

#[test]
fn a_damaged_copy_is_found_at_any_page_and_extent_size() {
    for (page_bytes, extent_pages) in [(128, 16), (512, 4), (512, 256), (2048, 1), (4096, 64), (65536, 1)] {
        let mut made = made_with(VolumeLayout { page_bytes, extent_pages, ..LAYOUT }, 5);
        assert_eq!(made.header.layout.header_pages() * page_bytes % page_bytes, 0);
        // The first copy may be gone, or lie about where the second one is.
        for damage in
            [|bytes: &mut [u8]| bytes.fill(0), |bytes: &mut [u8]| bytes[52..56].copy_from_slice(&[0, 0, 1, 0])]
        {
            damage(made.copy_bytes(HeaderCopy::A));
            assert_eq!(open(&made).unwrap().1.fault, Some((HeaderCopy::A, CopyFault::Damaged)));
            made.put(HeaderCopy::A);
        }
        made.copy_bytes(HeaderCopy::B).fill(0xff);
        assert_eq!(open(&made).unwrap().1.fault, Some((HeaderCopy::B, CopyFault::Damaged)));
        // And the medium may be opened with another page size than the database's.
        made.medium.page_bytes = 512;
        assert!(open(&made).is_ok());
    }
}

#[test]
fn last_months_slot_is_noticed() {
    let mut made = made();
    let old = made.medium.bytes.clone();
    let stolen = made.key_file;
    made.key_file = KeyFile::generate(&mut made.entropy).unwrap();
    let secret = Secret::KeyFile(&made.key_file);
    made.header.change_slot(0, &secret, &CHEAP, &made.volume_key, 2, &mut made.entropy).unwrap();
    made.put_both();
    let new = made.medium.bytes.clone();
    assert_eq!(unlock(&made, &[Secret::KeyFile(&stolen)]).err(), Some(HeaderError::WrongKey { certain: true }));

    // Whole: the old key opens it, and the root says no.
    made.medium.bytes.copy_from_slice(&old);
    let unlocked = unlock(&made, &[Secret::KeyFile(&stolen)]).unwrap();
    assert!(matches!(unlocked.settle(&made.root()).err(), Some(HeaderError::Tampered { .. })));

    // One copy of two: the new key opens the other one and says which is old; the old key opens nothing.
    for copy in HeaderCopy::BOTH {
        made.medium.bytes.copy_from_slice(&new);
        let start = made.start(copy);
        made.copy_bytes(copy).copy_from_slice(&old[start..start + HEADER_BYTES]);
        assert_eq!(open(&made).unwrap().1.fault, Some((copy, CopyFault::Old)));
        let unlocked = unlock(&made, &[Secret::KeyFile(&stolen)]).unwrap();
        assert!(matches!(unlocked.settle(&made.root()).err(), Some(HeaderError::Tampered { .. })));
    }

    // The old slot alone, put into one copy of the new header: it opens, and stands in no copy whose check holds.
    let old_slot = old[128..352].to_vec();
    for copy in HeaderCopy::BOTH {
        made.medium.bytes.copy_from_slice(&new);
        made.copy_bytes(copy)[128..352].copy_from_slice(&old_slot);
        assert_eq!(open(&made).unwrap().1.fault, Some((copy, CopyFault::Damaged)));
        let refused = unlock(&made, &[Secret::KeyFile(&stolen)]).err();
        assert!(matches!(refused, Some(HeaderError::Tampered { .. })));
    }

    // And put into both.
    made.medium.bytes.copy_from_slice(&new);
    for copy in HeaderCopy::BOTH {
        let start = made.start(copy) + 128;
        made.copy_bytes(copy)[128..352].copy_from_slice(&old[start..start + 224]);
    }
    let refused = unlock(&made, &[Secret::KeyFile(&stolen)]).err();
    assert!(matches!(refused, Some(HeaderError::Tampered { .. })));
}

#[test]
fn a_header_that_asks_for_too_much_or_too_little_is_refused_unheard() {
    let mut made = made();
    let secret = Secret::Passphrase(b"correct horse");
    made.header.add_slot(&secret, &CHEAP, &made.volume_key, 2, &mut made.entropy).unwrap();
    made.put_both();
    let slot = 128 + 224;
    let costs: [[u32; 3]; 9] = [
        [4 << 20, 3, 1],
        [u32::MAX, 1, 1],
        [(1 << 20) + 1, 3, 1],
        [64 << 10, 17, 1],
        [64 << 10, u32::MAX, 1],
        [64 << 10, 3, 9],
        [64 << 10, 3, u32::MAX],
        [64 << 10, 3, 0],
        [63, 1, 8],
    ];
    for cost in costs {
        for copy in HeaderCopy::BOTH {
            for (index, number) in cost.into_iter().enumerate() {
                let at = slot + 4 + 4 * index;
                made.copy_bytes(copy)[at..at + 4].copy_from_slice(&number.to_le_bytes());
            }
        }
        let refused = unlock(&made, &[secret]).err();
        assert!(matches!(refused, Some(HeaderError::Cost { cost: found }) if found.memory_kib == cost[0]), "{cost:?}");
    }
    // One copy asks, the other does not: the honest one opens.
    made.put(HeaderCopy::B);
    assert_eq!(
        unlock(&made, &[secret]).unwrap().settle(&made.root()).unwrap().fault,
        Some((HeaderCopy::A, CopyFault::Damaged))
    );
    // Hosts refuse what is cheaper than 64 MiB and 3 passes.
    made.put(HeaderCopy::A);
    let copies = read_headers(&made.medium).unwrap();
    assert_eq!(copies.unlock(&[secret], &ArgonCost::HOST).err(), Some(HeaderError::Cost { cost: CHEAP }));
}

#[test]
fn a_hosts_passphrase_slot_opens_on_a_host() {
    let mut made = made();
    let secret = Secret::Passphrase(b"correct horse");
    made.header.add_slot(&secret, &ArgonCost::HOST, &made.volume_key, 2, &mut made.entropy).unwrap();
    made.put_both();
    assert!(read_headers(&made.medium).unwrap().unlock(&[secret], &ArgonCost::HOST).is_ok());
}

#[test]
fn slots_are_added_until_eight_and_the_last_one_stays() {
    let Made { mut header, volume_key, key_file, mut entropy, .. } = made();
    let secret = Secret::KeyFile(&key_file);
    for number in 1..SLOTS {
        assert_eq!(header.add_slot(&secret, &CHEAP, &volume_key, 3, &mut entropy), Ok(number));
    }
    assert_eq!(header.add_slot(&secret, &CHEAP, &volume_key, 3, &mut entropy), Err(HeaderError::NoFreeSlot));
    assert_eq!(header.remove_slot(8), Err(HeaderError::NoSuchSlot { slot: 8 }));
    for number in 1..SLOTS {
        header.remove_slot(number).unwrap();
    }
    assert_eq!(header.remove_slot(3), Err(HeaderError::NoSuchSlot { slot: 3 }));
    assert_eq!(header.remove_slot(0), Err(HeaderError::LastSlot));
    assert_eq!(header.generation, 1 + 14);
    let empty = Secret::Passphrase(b"");
    assert_eq!(header.add_slot(&empty, &CHEAP, &volume_key, 3, &mut entropy), Err(HeaderError::EmptyPassphrase));
    let change = header.change_slot(5, &secret, &CHEAP, &volume_key, 3, &mut entropy);
    assert_eq!(change, Err(HeaderError::NoSuchSlot { slot: 5 }));
}

#[test]
fn a_slot_does_not_open_in_another_database() {
    let mut ours = made();
    let mut theirs = made_with(LAYOUT, 2);
    for copy in HeaderCopy::BOTH {
        let slot = ours.copy_bytes(copy)[128..352].to_vec();
        theirs.copy_bytes(copy)[128..352].copy_from_slice(&slot);
    }
    theirs.key_file = ours.key_file;
    assert_eq!(open(&theirs).err(), Some(HeaderError::WrongKey { certain: true }));
}

#[test]
fn two_databases_made_with_one_key_file_share_no_page_key() {
    let one = made();
    let mut two = made_with(LAYOUT, 2);
    let secret = Secret::KeyFile(&one.key_file);
    two.header.change_slot(0, &secret, &CHEAP, &two.volume_key, 3, &mut two.entropy).unwrap();
    let vault = |made: &Made| Vault::new(&made.volume_key, made.header.id, made.header.suite);
    let epoch = counterfoil_vault::Epoch { number: 2, salt: [0; 16] };
    let place = Place { kind: Kind::Frame, allocation: 1, position: 0, epoch };
    let mut page = vec![0; 512];
    vault(&one).seal(&place, Plain::new(&mut page));
    assert!(vault(&two).open(&place, Sealed::from_medium(&mut page.clone())).is_err());
    assert!(vault(&one).open(&place, Sealed::from_medium(&mut page)).is_ok());
}

#[test]
fn layouts_that_cannot_be_are_refused() {
    let refused = [
        VolumeLayout { page_bytes: 0, ..LAYOUT },
        VolumeLayout { page_bytes: 64, ..LAYOUT },
        VolumeLayout { page_bytes: 5000, ..LAYOUT },
        VolumeLayout { page_bytes: 1 << 17, ..LAYOUT },
        VolumeLayout { extent_pages: 0, ..LAYOUT },
        VolumeLayout { extent_pages: 3, ..LAYOUT },
        VolumeLayout { page_bytes: 128, extent_pages: 8, ..LAYOUT },
        VolumeLayout { extent_pages: 1 << 19, ..LAYOUT },
        VolumeLayout { record_first_extent: 1, ..LAYOUT },
        VolumeLayout { record_extents: 0, ..LAYOUT },
        VolumeLayout { record_first_extent: u64::MAX, ..LAYOUT },
        VolumeLayout { record_extents: u64::MAX / 4, ..LAYOUT },
    ];
    for layout in refused {
        assert!(matches!(layout.check(), Err(HeaderError::Corrupt { .. })), "{layout:?}");
    }
    assert_eq!(LAYOUT.check(), Ok(()));
}

#[test]
fn what_a_root_says_survives_being_written_down() {
    let root = made().root();
    let changing = RootDigests { next: Some(root.current), ..root };
    assert_eq!(RootDigests::decode(&root.encode()), root);
    assert_eq!(RootDigests::decode(&changing.encode()), changing);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Bytes overwritten anywhere, in one copy or both: the database opens as it was, or the error has a type.
    #[test]
    fn noise_never_panics(both: bool, patches in prop::collection::vec((0..HEADER_BYTES, prop::collection::vec(any::<u8>(), 1..40)), 1..6)) {
        let mut made = made();
        for copy in if both { &HeaderCopy::BOTH[..] } else { &HeaderCopy::BOTH[..1] } {
            for (at, noise) in &patches {
                let end = HEADER_BYTES.min(at + noise.len());
                made.copy_bytes(*copy)[*at..end].copy_from_slice(&noise[..end - at]);
            }
        }
        match open(&made) {
            Ok((_, settled)) => prop_assert!(settled.header == made.header),
            Err(_) => prop_assert!(both),
        }
    }
}
