//! What a coalition's view is to somebody who has the keys: no nonce hides two things.

use std::collections::{BTreeMap, BTreeSet};

use aead::{AeadInOut as _, KeyInit as _};
use aes_gcm_siv::{Aes256GcmSiv, Nonce, Tag};
use counterfoil_disperse::fragments::{Data, Fragments, Name};
use counterfoil_disperse::{Coding, Purpose, Scope, Secret};

use crate::ledger::{drawn, ledger};
use crate::owner::Owner;
use crate::random::Random;
use crate::watching::Event;

/// An owner who wrote twice, under two epochs.
fn written() -> Owner {
    let (mut owner, mut random) = (Owner::new(3, ledger((3, 1, 1))), Random(3));
    let copy = owner.copy();
    owner.insert(&drawn(&mut random, 40));
    owner.put_back(copy);
    owner.insert(&drawn(&mut random, 40));
    owner
}

/// What was put at a cloud.
fn put(owner: &Owner, cloud: usize) -> Vec<(Name, Fragments)> {
    let seen = owner.seen(&owner.kept.declaration().clouds[cloud]);
    let put = seen.events.into_iter().filter_map(|event| match event {
        Event::Put(table, put) => Some((table, put)),
        _ => None,
    });
    put.collect()
}

/// Whether a cell opens under a nonce, with what it must name.
fn opens(key: &Secret, table: &[u8; 16], (column, row): (u16, u64), nonce: u64, cell: &[u8]) -> bool {
    let associated = [&table[..], &column.to_be_bytes(), &row.to_be_bytes()].concat();
    let (sealed, tag) = cell.split_last_chunk::<16>().expect("a tag");
    let mut of_twelve = Nonce::default();
    of_twelve[4..].copy_from_slice(&nonce.to_be_bytes());
    let mut opened = sealed.to_vec();
    let cipher = Aes256GcmSiv::new(key.expose().into());
    cipher.decrypt_inout_detached(&of_twelve, &associated, opened.as_mut_slice().into(), &Tag::from(*tag)).is_ok()
}

#[test]
fn each_cell_is_sealed_under_a_nonce_of_its_own() {
    let owner = written();
    let layout = owner.kept.current();
    let coder = layout.coder().expect("a placement");
    // Keys and nonces under which something was sealed, and what.
    let mut sealed: BTreeMap<([u8; 32], u64), BTreeSet<Vec<u8>>> = BTreeMap::new();
    for cloud in 0..layout.declaration.clouds.len() {
        for (at, (_, put)) in put(&owner, cloud).into_iter().enumerate() {
            let epoch = owner.epoch(at);
            for column in &layout.declaration.columns {
                let Some(Data::Strings(cells)) = put.column(&coder.column_name(cloud, column.id, Coding::Cell)) else {
                    continue;
                };
                let key = layout.secret.derive(Purpose::Seal, &Scope { epoch, ..Scope::column(column.id) });
                for (place, cell) in put.places.iter().zip(cells.iter()) {
                    let row = owner.labels[&(layout.declaration.clouds[cloud].clone(), coder.table_name(cloud))][place];
                    let row = row & ((1 << 40) - 1);
                    let opens = |nonce| opens(&key, &layout.declaration.table, (column.id, row), nonce, cell);
                    // A nonce that others could have as well: any row's.
                    let nonce =
                        [row].into_iter().chain(0..40).find(|nonce| opens(*nonce)).expect("a nonce of some row");
                    sealed.entry((*key.expose(), nonce)).or_default().insert(cell.to_vec());
                }
            }
        }
    }
    assert!(sealed.values().all(|cells| cells.len() == 1), "two cells under one key and nonce");
    assert!(sealed.len() > 500);
}

#[test]
fn codes_of_an_order_have_nonces_of_their_own() {
    let owner = written();
    let layout = owner.kept.current();
    let coder = layout.coder().expect("a placement");
    for column in &layout.declaration.columns {
        let mut nonces: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>> = BTreeMap::new();
        for cloud in 0..layout.declaration.clouds.len() {
            let name = coder.column_name(cloud, column.id, Coding::Order);
            for (_, put) in put(&owner, cloud) {
                let Some(Data::Strings(codes)) = put.column(&name) else { continue };
                for code in codes.iter().filter(|code| !code.is_empty()) {
                    nonces.entry(code[..16].to_vec()).or_default().insert(code.to_vec());
                }
            }
        }
        assert!(nonces.values().all(|codes| codes.len() == 1), "two codes of {} under one nonce", column.name);
        let has_order = coder.placement().fragment(column.id, Coding::Order).is_some();
        assert!(!has_order || nonces.len() > 40, "{}", nonces.len());
    }
}
