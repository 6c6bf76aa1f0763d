//! Records by name, against a map.

use std::collections::BTreeMap;

use counterfoil_flash_sim::{Dice, Part, SimulatedDevice};
use counterfoil_record::RecordId;
use counterfoil_record::alone::{Error, Standalone};

use crate::chip::*;

type Names = BTreeMap<Vec<u8>, Vec<u8>>;

fn named(names: u32) -> Chip {
    let mut chip = Chip::new(Part::gnatdb_board(16), 3);
    chip.shape.names = names;
    chip
}

/// All names, by listing them.
fn listed(store: &mut Standalone<'_, SimulatedDevice, u16>) -> Names {
    let mut buffer = [0; 512];
    let mut found = Names::new();
    for id in 0..store.names() {
        if let Some((name, value)) = store.named_at(id, &mut buffer).expect("reads") {
            assert!(found.insert(name.to_vec(), value.to_vec()).is_none(), "a name stands twice");
        }
    }
    found
}

#[test]
fn names_hold_what_a_map_holds() {
    for seed in 0..20 {
        let (mut chip, mut dice, mut truth) = (named(24), Dice::new(seed), Names::new());
        chip.with(true, |_| ()).expect("made");
        for _ in 0..5 {
            let played = chip.with(false, |store| {
                let mut buffer = [0; 512];
                for turn in 0..120 {
                    let name = format!("name {}", dice.below(30)).into_bytes();
                    if dice.once_in(2) {
                        let value = vec![turn; dice.below(50) as usize];
                        match store.put_named(&name, &value, &mut buffer) {
                            Ok(_) => drop(truth.insert(name.clone(), value)),
                            Err(error) => assert!(error == Error::IdsExhausted && truth.len() == 24, "{error}"),
                        }
                    } else {
                        let outcome = store.delete_named(&name, &mut buffer);
                        assert_eq!(outcome.is_ok(), truth.remove(&name).is_some(), "seed {seed}: {outcome:?}");
                    }
                    let found = store.read_named(&name, &mut buffer).map(|bytes| buffer[..bytes].to_vec());
                    assert_eq!(found.ok().as_ref(), truth.get(&name), "seed {seed}");
                }
                assert_eq!(listed(store), truth, "seed {seed}");
            });
            played.expect("opens");
        }
    }
}

/// Else every search would in the end look at every id.
#[test]
fn marks_of_deleted_names_go_when_nothing_stands_behind_them() {
    let mut chip = named(60);
    let played = chip.with(true, |store| {
        let mut buffer = [0; 64];
        for turn in 0..200u32 {
            let name = turn.to_le_bytes();
            store.put_named(&name, b"value", &mut buffer).expect("commits");
            store.delete_named(&name, &mut buffer).expect("commits");
        }
        let mut names = 0;
        for turn in 0..30u32 {
            store.put_named(&turn.to_le_bytes(), b"value", &mut buffer).expect("commits");
            names += 1;
        }
        for turn in 0..30u32 {
            store.delete_named(&turn.to_le_bytes(), &mut buffer).expect("commits");
            names -= 1;
        }
        assert_eq!(names, 0);
        (0..60).filter(|id| store.read(RecordId(*id), &mut buffer).is_ok()).count()
    });
    let marks = played.expect("made");
    assert!(marks < 15, "{marks} marks were left");
}

#[test]
fn ids_of_names_are_not_handed_out() {
    let mut chip = named(10);
    let first = chip.with(true, |store| store.allocate().expect("there are some"));
    assert_eq!(first, Ok(RecordId(10)));
    let refused = chip.with(false, |store| {
        let mut buffer = [0; 300];
        [b"".as_slice(), &[b'n'; 256]].map(|name| store.put_named(name, b"", &mut buffer))
    });
    assert_eq!(refused, Ok([Err(Error::Name), Err(Error::Name)]));
    let none = named(0).with(true, |store| store.put_named(b"name", b"", &mut [0; 64]));
    assert_eq!(none, Ok(Err(Error::Name)));
}
