//! The witness sees every seal, and tells a repeated pair from a repeated opening.
//!
//! One test in a binary of its own: what the witness remembers belongs to the process.

use counterfoil_vault::{
    ArgonCost, CounterKind, DangerFixedEntropy, DatabaseId, Epoch, Header, KeyFile, Kind, Place, Plain, Secret,
    SpillKey, Suite, Vault, VolumeKey, VolumeLayout, witness,
};

const EPOCH: Epoch = Epoch { number: 7, salt: [3; 16] };

fn place(allocation: u64, position: u32, epoch: Epoch) -> Place {
    Place { kind: Kind::Container, allocation, position, epoch }
}

#[test]
fn the_witness_sees_every_seal() {
    let mut entropy = DangerFixedEntropy::seeded(1);
    let volume_key = VolumeKey::generate(&mut entropy).unwrap();
    let mut seals = 0;
    // Two databases with one key, two lives of each, several allocations, positions and kinds: no pair twice.
    for database in 0..2 {
        let vault = Vault::new(&volume_key, DatabaseId([database; 32]), Suite::Aes256Gcm);
        for epoch in [EPOCH, Epoch { salt: [4; 16], ..EPOCH }, Epoch { number: 8, ..EPOCH }] {
            let cells = vault.cell_key(&epoch);
            for allocation in 0..4 {
                for position in 0..4 {
                    vault.seal(&place(allocation, position, epoch), Plain::new(&mut [0; 64]));
                    cells.page(allocation, position).seal(1, b"cell");
                    seals += 2;
                }
                let nameless = vault.page_key(Kind::Nameless, allocation, &epoch);
                nameless.seal_nameless(0, 1 << 40, Plain::new(&mut [0; 64]));
                nameless.seal_nameless(0, 2 << 40, Plain::new(&mut [0; 64]));
                seals += 2;
            }
        }
        for text in [[1; 64], [2; 64], [1; 64]] {
            vault.seal_opening(9, 0, 77, Plain::new(&mut text.clone()));
        }
        seals += 2;
    }
    let spill = SpillKey::generate(&mut entropy).unwrap();
    for _ in 0..2 {
        let (mut sealer, _) = spill.stream();
        sealer.seal(b"one", false, &mut Vec::new());
        sealer.seal(b"two", true, &mut Vec::new());
        seals += 2;
    }
    let layout =
        VolumeLayout { page_bytes: 4096, extent_pages: 4, record_first_extent: 2, record_extents: 1, size_limit: 0 };
    let mut header = Header::new(DatabaseId([0; 32]), Suite::Aes256Gcm, CounterKind::None, layout, 0).unwrap();
    let key_file = KeyFile::generate(&mut entropy).unwrap();
    for _ in 0..2 {
        let secret = Secret::KeyFile(&key_file);
        header.add_slot(&secret, &ArgonCost::HOST, &volume_key, 0, &mut entropy).unwrap();
        seals += 1;
    }
    assert_eq!(witness::distinct(), seals);
    assert!(witness::duplicates().is_empty());

    // The same place again: seen, whatever the bytes.
    let vault = Vault::new(&volume_key, DatabaseId([0; 32]), Suite::Aes256Gcm);
    vault.seal(&place(1, 1, EPOCH), Plain::new(&mut [0; 64]));
    vault.cell_key(&EPOCH).page(1, 1).seal(1, b"cell");
    let twice = witness::duplicates();
    assert_eq!(twice.len(), 2);
    assert!(twice.iter().all(|duplicate| duplicate.uses == 2));
    witness::reset();
    assert_eq!(witness::distinct(), 0);
}
