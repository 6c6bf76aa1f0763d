//! A page opens at its place, under its key, unchanged; or not at all.

use counterfoil_vault::{
    DatabaseId, Epoch, Kind, OPENING_BYTES, Place, Plain, Sealed, Suite, TAG_BYTES, Vault, VolumeKey,
};

const EPOCH: Epoch = Epoch { number: 7, salt: [3; 16] };
const PLACE: Place = Place { kind: Kind::Container, allocation: 41, position: 5, epoch: EPOCH };

fn vault(suite: Suite) -> Vault {
    Vault::new(&VolumeKey::from_bytes(&[1; 32]), DatabaseId([2; 32]), suite)
}

fn payload(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index * 7) as u8).collect()
}

fn sealed(vault: &Vault, place: &Place, bytes: usize) -> Vec<u8> {
    let mut page = payload(bytes);
    vault.seal(place, Plain::new(&mut page));
    page
}

#[test]
fn what_was_sealed_opens() {
    for suite in Suite::ALL {
        for bytes in [512, 4096, 65536] {
            let vault = vault(suite);
            let mut page = payload(bytes);
            let tag = vault.seal(&PLACE, Plain::new(&mut page)).tag();
            assert_ne!(page[..64], payload(bytes)[..64]);
            let opened = vault.open(&PLACE, Sealed::from_medium(&mut page)).unwrap();
            assert_eq!(opened.tag(), tag);
            assert_eq!(opened.payload(), &payload(bytes)[..bytes - TAG_BYTES], "{suite}");
        }
    }
}

#[test]
fn another_place_does_not_open() {
    let others = [
        Place { kind: Kind::Frame, ..PLACE },
        Place { kind: Kind::Cells, ..PLACE },
        Place { kind: Kind::Opening, ..PLACE },
        Place { kind: Kind::Nameless, ..PLACE },
        Place { allocation: 42, ..PLACE },
        Place { position: 6, ..PLACE },
        Place { position: 5 | 1 << 31, ..PLACE },
        Place { epoch: Epoch { number: 8, ..EPOCH }, ..PLACE },
        Place { epoch: Epoch { salt: [4; 16], ..EPOCH }, ..PLACE },
    ];
    for suite in Suite::ALL {
        let vault = vault(suite);
        for other in others {
            let mut page = sealed(&vault, &PLACE, 512);
            assert!(vault.open(&other, Sealed::from_medium(&mut page)).is_err(), "{suite} {other:?}");
        }
    }
}

#[test]
fn another_database_key_or_suite_does_not_open() {
    for suite in Suite::ALL {
        let page = sealed(&vault(suite), &PLACE, 512);
        let mut strangers = vec![
            Vault::new(&VolumeKey::from_bytes(&[1; 32]), DatabaseId([9; 32]), suite),
            Vault::new(&VolumeKey::from_bytes(&[9; 32]), DatabaseId([2; 32]), suite),
        ];
        strangers.extend(Suite::ALL.into_iter().filter(|other| *other != suite).map(vault));
        for stranger in strangers {
            assert!(stranger.open(&PLACE, Sealed::from_medium(&mut page.clone())).is_err());
        }
    }
}

#[test]
fn every_flipped_bit_is_caught() {
    for suite in Suite::ALL {
        let vault = vault(suite);
        let page = sealed(&vault, &PLACE, 128);
        let key = vault.page_key(PLACE.kind, PLACE.allocation, &PLACE.epoch);
        for bit in 0..page.len() * 8 {
            let mut changed = page.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(key.open(PLACE.position, Sealed::from_medium(&mut changed)).is_err(), "{suite} bit {bit}");
        }
        assert!(key.open(PLACE.position, Sealed::from_medium(&mut page.clone())).is_ok());
    }
}

#[test]
fn pages_of_any_length_are_refused_without_a_panic() {
    for suite in Suite::ALL {
        for bytes in 0..100 {
            let mut page = payload(bytes);
            assert!(vault(suite).open(&PLACE, Sealed::from_medium(&mut page)).is_err());
            assert!(vault(suite).open_opening(1, 2, 3, Sealed::from_medium(&mut page)).is_err());
            assert_eq!(Sealed::from_medium(&mut page).tag() == [0; 16], bytes < TAG_BYTES);
        }
    }
}

#[test]
fn nameless_pages_are_told_apart_by_their_write() {
    let vault = vault(Suite::Aes256GcmSiv);
    let key = vault.page_key(Kind::Nameless, 3, &EPOCH);
    let mut page = payload(512);
    key.seal_nameless(1, 1 << 40, Plain::new(&mut page));
    assert!(key.open_nameless(1, 2 << 40, Sealed::from_medium(&mut page.clone())).is_err());
    assert!(key.open_nameless(2, 1 << 40, Sealed::from_medium(&mut page.clone())).is_err());
    assert!(key.open(1, Sealed::from_medium(&mut page.clone())).is_err());
    assert!(key.open_nameless(1, 1 << 40, Sealed::from_medium(&mut page)).is_ok());
}

#[test]
fn an_opening_opens_at_its_place_and_version() {
    for suite in Suite::ALL {
        let vault = vault(suite);
        let mut page = payload(512);
        vault.seal_opening(9, 2, 77, Plain::new(&mut page));
        for (allocation, position, version) in [(8, 2, 77), (9, 3, 77), (9, 2, 78)] {
            let mut copy = page.clone();
            assert!(vault.open_opening(allocation, position, version, Sealed::from_medium(&mut copy)).is_err());
        }
        for bit in 0..page.len() * 8 {
            let mut changed = page.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(vault.open_opening(9, 2, 77, Sealed::from_medium(&mut changed)).is_err(), "{suite} bit {bit}");
        }
        let opened = vault.open_opening(9, 2, 77, Sealed::from_medium(&mut page)).unwrap();
        assert_eq!(opened.payload(), &payload(512)[..512 - OPENING_BYTES]);
    }
}

#[test]
fn an_opening_written_twice_with_other_contents_shares_no_key() {
    // Under GCM an equal key and nonce would show the difference of the two texts; here the key streams differ.
    let vault = vault(Suite::Aes256Gcm);
    let (mut one, mut two) = (payload(512), payload(512));
    two[0] ^= 1;
    vault.seal_opening(9, 2, 77, Plain::new(&mut one));
    vault.seal_opening(9, 2, 77, Plain::new(&mut two));
    let equal = one[1..448].iter().zip(&two[1..448]).filter(|(one, two)| one == two).count();
    assert!(equal < 20, "{equal} of 447 bytes equal");
}

#[test]
fn two_databases_made_with_one_key_share_no_page_key() {
    let one = Vault::new(&VolumeKey::from_bytes(&[1; 32]), DatabaseId([2; 32]), Suite::Aes256Gcm);
    let two = Vault::new(&VolumeKey::from_bytes(&[1; 32]), DatabaseId([3; 32]), Suite::Aes256Gcm);
    let (mut one, mut two) = (sealed(&one, &PLACE, 512), sealed(&two, &PLACE, 512));
    let equal = one.iter_mut().zip(&mut two).filter(|(one, two)| one == two).count();
    assert!(equal < 20);
}

#[test]
fn keys_are_shared_between_threads_and_belong_to_one_process() {
    fn shared<T: Send + Sync>() {}
    shared::<Vault>();
    shared::<counterfoil_vault::PageKey>();
    shared::<counterfoil_vault::CellKey>();
    shared::<counterfoil_vault::SpillKey>();
    assert!(vault(Suite::Aes256GcmSiv).same_process());
}
