//! The named test vector of SPEC.md, section "record": code and document are held together here.

use counterfoil_flash::Read;
use counterfoil_record::{RecordId, Store, Which, Window};
use counterfoil_vault::{DatabaseId, Epoch, Suite, Vault, VolumeKey};

use crate::bench::Memory;
use crate::part::Part;

const SPEC: &str = include_str!("../../../../SPEC.md");

fn hex(page: &[u8]) -> String {
    let lines = page.chunks(64).map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n");
    lines.collect()
}

#[test]
fn the_pages_of_the_vector_are_those_of_the_specification() {
    let mut key = [0; 32];
    (0..).zip(&mut key).for_each(|(place, byte)| *byte = place);
    let vault = Vault::new(&VolumeKey::from_bytes(&key), DatabaseId([0x11; 32]), Suite::Aes256GcmSiv);
    let mut part = Part::new(256, 8, 8, false);
    let window = Window { first_block: 0, block_count: 8, doubled: false };
    let mut memory = Memory::new(&part.geometry(), &window, 8);
    let epoch = Epoch { number: 1, salt: [0x22; 16] };
    let mut store = Store::format(&mut part, &vault, window, epoch, memory.buffers()).unwrap();
    assert_eq!(store.version(), 40);
    store.commit(&[(RecordId(0), Some(b"counterfoil")), (RecordId(3), None)]).unwrap();
    assert_eq!(store.version(), 41);
    let pages = [("page 0", 0), ("page 1", 1), ("page 40", 40)];
    let text: String = pages.iter().map(|(name, page)| format!("{name}\n{}", hex(&part.pages[*page]))).collect();
    assert!(SPEC.contains(&text), "the vector is\n{text}");
    let opened = Store::open(&mut part, &vault, window, Which::Newest, None, memory.buffers()).unwrap();
    assert_eq!((opened.version(), opened.count()), (41, 1));
}
