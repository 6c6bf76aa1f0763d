//! The named test vector of SPEC.md, section "record: the store that stands alone".

use counterfoil_flash::{Geometry, MemoryDevice, PageNumber, Read};
use counterfoil_record::RecordId;
use counterfoil_record::alone::{Memory, Moved, Opening, Shape, Standalone, Surroundings};
use counterfoil_vault::{DatabaseId, MemoryCounter, Suite, Vault, VolumeKey};

const SPEC: &str = include_str!("../../../../SPEC.md");

fn hex(page: &[u8]) -> String {
    let lines = page.chunks(64).map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n");
    lines.collect()
}

#[test]
fn the_pages_of_the_vector_are_those_of_the_specification() {
    let key = VolumeKey::from_bytes(&core::array::from_fn(|place| place as u8));
    let vault = Vault::new(&key, DatabaseId([0x11; 32]), Suite::AsconAead128);
    let geometry =
        Geometry { page_bytes: 256, block_pages: 8, block_count: 8, erase_before_program: true, grows: false };
    let mut device = MemoryDevice::new(geometry).expect("a device");
    let shape = Shape { first_block: 0, block_count: 8, index_blocks: 2, page_entries: 16, names: 0, is_salted: false };
    let mut counter = MemoryCounter::at(0, None);
    let (mut pending, mut leaves, mut openings) = ([Moved::<u16>::EMPTY; 32], [0; 2], [Opening::EMPTY; 4]);
    let (mut page, mut scratch) = ([0; 256], [0; 256]);
    let memory = Memory {
        pending: &mut pending,
        leaves: &mut leaves,
        blocks: &mut [0; 8],
        live: &mut [],
        openings: &mut openings,
        page: &mut page,
        scratch: &mut scratch,
    };
    let around = Surroundings { device: &mut device, vault: &vault, counter: Some(&mut counter), entropy: None };
    let mut store = Standalone::format(around, shape, memory).expect("made");
    assert_eq!(store.counted(), 3);
    store.commit(&[(RecordId(0), Some(b"counterfoil")), (RecordId(3), None)]).expect("commits");
    assert_eq!(store.counted(), 4);
    let mut text = String::new();
    for (name, number) in
        [("page 0, superblock", 0), ("page 1, map", 1), ("page 8, opening root", 8), ("page 9, commit", 9)]
    {
        let mut page = [0; 256];
        device.read(PageNumber(number), 0, &mut page).expect("reads");
        text += &format!("{name}\n{}", hex(&page));
    }
    assert!(SPEC.contains(&text), "the vector is\n{text}");
}
