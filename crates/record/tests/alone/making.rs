//! A store that is made where another one was.

use counterfoil_flash::{Geometry, MemoryDevice};
use counterfoil_record::RecordId;
use counterfoil_record::alone::{Memory, Moved, Opening, Shape, Standalone, Surroundings};
use counterfoil_vault::{DatabaseId, Suite, Vault, VolumeKey};

/// "Whatever the blocks held is gone": without a counter, on a medium that is not erased.
#[test]
fn a_store_that_is_made_anew_is_empty() {
    let geometry =
        Geometry { page_bytes: 512, block_pages: 8, block_count: 12, erase_before_program: false, grows: false };
    let shape =
        Shape { first_block: 0, block_count: 12, index_blocks: 3, page_entries: 17, names: 0, is_salted: false };
    let mut device = MemoryDevice::new(geometry).expect("a shape");
    let vault = Vault::new(&VolumeKey::from_bytes(&[7; 32]), DatabaseId([1; 32]), Suite::Aes256GcmSiv);
    for turn in 0..4 {
        let (mut pending, mut leaves, mut openings) = ([Moved::<u16>::EMPTY; 60], [0; 4], [Opening::EMPTY; 8]);
        let (mut blocks, mut live, mut page, mut scratch) = ([0; 12], [0; 200], [0; 512], [0; 512]);
        let memory = Memory {
            pending: &mut pending,
            leaves: &mut leaves,
            blocks: &mut blocks,
            live: &mut live,
            openings: &mut openings,
            page: &mut page,
            scratch: &mut scratch,
        };
        let around = Surroundings { device: &mut device, vault: &vault, counter: None, entropy: None };
        if turn % 2 == 0 {
            let mut store = Standalone::format(around, shape, memory).expect("made");
            for id in 0..if turn == 0 { 10 } else { 1 } {
                store.commit(&[(RecordId(id), Some(&[turn; 9]))]).expect("commits");
            }
        } else {
            let mut store = Standalone::open(around, shape, memory).expect("opens");
            let found = (0..12).filter(|id| store.read(RecordId(*id), &mut [0; 64]).is_ok()).count();
            assert_eq!(found, if turn == 1 { 10 } else { 1 }, "turn {turn}");
        }
    }
}
