//! Key slots that one TPM opens.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use counterfoil_flash::{Device, Geometry, MemoryDevice};
use counterfoil_vault::{
    ArgonCost, CounterKind, DangerFixedEntropy, DatabaseId, Header, HeaderCopy, HeaderError, KeyFile, Secret, SlotKind,
    Suite, Tpm, TpmError, VolumeKey, VolumeLayout, read_headers,
};

use crate::swtpm::{Interposer, Swtpm};

const SHAPE: Geometry =
    Geometry { page_bytes: 512, block_pages: 8, block_count: 8, erase_before_program: false, grows: true };
const LAYOUT: VolumeLayout =
    VolumeLayout { page_bytes: 512, extent_pages: 8, record_first_extent: 2, record_extents: 1, size_limit: 0 };

fn volume_key() -> VolumeKey {
    VolumeKey::from_bytes(&[7; 32])
}

fn key_file() -> KeyFile {
    KeyFile::parse(&[9; 32]).unwrap()
}

/// A header that a key file and a TPM open.
fn header(id: u8, tpm: &Tpm) -> Result<Header, HeaderError> {
    let mut header = Header::new(DatabaseId([id; 32]), Suite::Aes256GcmSiv, CounterKind::None, LAYOUT, 0)?;
    for secret in [Secret::KeyFile(&key_file()), Secret::Tpm(tpm)] {
        header.add_slot(&secret, &ArgonCost::HOST, &volume_key(), 0, &mut DangerFixedEntropy::seeded(id.into()))?;
    }
    Ok(header)
}

fn medium(header: &Header) -> MemoryDevice {
    let mut device = MemoryDevice::new(SHAPE).unwrap();
    for copy in HeaderCopy::BOTH {
        device.program(copy.first_page(&LAYOUT), &header.encode(&volume_key())).unwrap();
    }
    device
}

/// Whether the TPM opens it.
fn opens(header: &Header, tpm: &Tpm) -> Result<(), HeaderError> {
    let unlocked = read_headers(&medium(header))?.unlock(&[Secret::Tpm(tpm)], &ArgonCost::HOST)?;
    assert_eq!(unlocked.volume_key.expose(), volume_key().expose());
    assert_eq!(unlocked.slot_in(header), Some(1));
    Ok(())
}

const WRONG_KEY: Result<(), HeaderError> = Err(HeaderError::WrongKey { certain: true });

#[test]
fn a_slot_opens_with_its_tpm_alone() {
    let (Some(mut swtpm), Some(other)) = (Swtpm::new(), Swtpm::new()) else { return };
    let header = header(2, &swtpm.tpm()).unwrap();
    let kinds: Vec<SlotKind> = header.slots().map(|(_, slot)| slot.kind()).collect();
    assert_eq!(kinds, [SlotKind::KeyFile, SlotKind::Tpm]);
    for _ in 0..5 {
        assert_eq!(opens(&header, &swtpm.tpm()), Ok(()));
        swtpm.restart();
    }
    assert_eq!(opens(&header, &other.tpm()), WRONG_KEY);
    assert_eq!(opens(&header, &Tpm::at(Path::new("/nowhere/tpm"))), Err(HeaderError::Tpm(TpmError::Absent)));
    // Cleared, as by its owner: for ever.
    swtpm.kill();
    std::fs::remove_dir_all(swtpm.state()).unwrap();
    swtpm.start();
    assert_eq!(opens(&header, &swtpm.tpm()), WRONG_KEY);
    let by_file = read_headers(&medium(&header)).unwrap();
    assert!(by_file.unlock(&[Secret::Tpm(&other.tpm()), Secret::KeyFile(&key_file())], &ArgonCost::HOST).is_ok());
}

#[test]
fn a_slot_carried_to_another_database_does_not_open() {
    let Some(swtpm) = Swtpm::new() else { return };
    let tpm = swtpm.tpm();
    let (one, two) = (header(2, &tpm).unwrap(), header(3, &tpm).unwrap());
    let slot_at = 128 + 224;
    let mut spliced = two.encode(&volume_key());
    let others = one.encode(&volume_key());
    spliced[slot_at..slot_at + 224].copy_from_slice(&others[slot_at..slot_at + 224]);
    let mut device = MemoryDevice::new(SHAPE).unwrap();
    for copy in HeaderCopy::BOTH {
        device.program(copy.first_page(&LAYOUT), &spliced).unwrap();
    }
    let opened = read_headers(&device).unwrap().unlock(&[Secret::Tpm(&tpm)], &ArgonCost::HOST);
    assert_eq!(opened.err(), Some(HeaderError::WrongKey { certain: true }));
}

#[test]
fn every_changed_byte_of_a_slot_keeps_it_shut() {
    let Some(swtpm) = Swtpm::new() else { return };
    let tpm = swtpm.tpm();
    let header = header(2, &tpm).unwrap();
    for at in 0..224 {
        let mut bytes = header.encode(&volume_key());
        bytes[128 + 224 + at] ^= 0x40;
        let mut device = MemoryDevice::new(SHAPE).unwrap();
        for copy in HeaderCopy::BOTH {
            device.program(copy.first_page(&LAYOUT), &bytes).unwrap();
        }
        let opened = read_headers(&device).and_then(|copies| copies.unlock(&[Secret::Tpm(&tpm)], &ArgonCost::HOST));
        assert!(opened.is_err(), "byte {at}");
    }
    assert_eq!(opens(&header, &tpm), Ok(()));
}

const CREATE_PRIMARY: u32 = 0x131;
const AGREE: u32 = 0x154;

#[test]
fn whoever_listens_learns_nothing_and_whoever_changes_is_noticed() {
    let Some(mut swtpm) = Swtpm::new() else { return };
    let header = header(2, &swtpm.tpm()).unwrap();
    // What is agreed on is on the bus under a cipher: the same thing asked for twice is not the same bytes.
    let heard = Arc::new(Mutex::new(vec![]));
    for _ in 0..2 {
        let heard = heard.clone();
        let listen = move |code, command: &[u8], ask: &mut dyn FnMut(&[u8]) -> Vec<u8>| {
            let answer = ask(command);
            if code == AGREE {
                heard.lock().unwrap().push(answer[14..16 + 70].to_vec());
            }
            Some(answer)
        };
        assert_eq!(opens(&header, &Interposer::before(&swtpm, Box::new(listen)).tpm()), Ok(()));
    }
    let heard = heard.lock().unwrap().clone();
    assert_eq!(heard.len(), 2);
    assert!(heard[0][2..] != heard[1][2..] && heard[0][..2] == heard[1][..2]);
    for (wanted, places) in
        [(AGREE, [14, 16, 17, 40, 80, 90, 95, 110, 130]), (CREATE_PRIMARY, [14, 18, 30, 50, 60, 75, 80, 90, 100])]
    {
        for at in places {
            let flipped = Arc::new(AtomicUsize::new(0));
            let counted = flipped.clone();
            let meddle = move |code, command: &[u8], ask: &mut dyn FnMut(&[u8]) -> Vec<u8>| {
                let mut answer = ask(command);
                if let Some(byte) = answer.get_mut(at).filter(|_| code == wanted) {
                    *byte ^= 1;
                    counted.fetch_add(1, Ordering::Relaxed);
                }
                Some(answer)
            };
            assert!(opens(&header, &Interposer::before(&swtpm, Box::new(meddle)).tpm()).is_err(), "{at}");
            assert!(flipped.load(Ordering::Relaxed) > 0, "{at}");
            // A key whose handle nobody could believe stays loaded until the TPM is started anew.
            swtpm.restart();
        }
    }
}

#[test]
fn an_impostor_is_not_asked_for_the_secret() {
    let (Some(swtpm), Some(impostor)) = (Swtpm::new(), Swtpm::new()) else { return };
    let header = header(2, &swtpm.tpm()).unwrap();
    // Somebody in between with a TPM of his own, who passes on what he cannot answer himself.
    let asked = Arc::new(AtomicUsize::new(0));
    let (counted, tpm) = (asked.clone(), swtpm.tpm());
    let count = move |code, _: &[u8], _: &mut dyn FnMut(&[u8]) -> Vec<u8>| {
        counted.fetch_add(usize::from(code == AGREE), Ordering::Relaxed);
        None
    };
    let bus = Interposer::before(&impostor, Box::new(count));
    assert_eq!(opens(&header, &bus.tpm()), WRONG_KEY);
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    assert_eq!(opens(&header, &tpm), Ok(()));
}
