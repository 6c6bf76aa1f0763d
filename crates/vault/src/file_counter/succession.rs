//! The counter of a database while it is being sealed anew under another key.
//!
//! ```text
//! before           slot | old key, value n-1 | old key, value n   |
//! while it is made slot | new key, value m   | old key, value n   |   either database opens with what it finds
//! completed        slot | new key, value m   | new key, value m   |   the old one finds a counter it cannot read
//! ```
//! Between the two the new database takes the place of the old one. A cut at any step leaves one of these, and a slot
//! torn by a cut is one that nobody needs yet. Whichever of the two databases is written to next overwrites the slot of
//! the other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{FileCounter, may_step};
use crate::counter::{Counter, CounterError, CounterKind, CounterValue};
use crate::keys::Purpose;
use crate::{Tag, Vault};

/// A counter that is being handed on from one key to another. Clones are handles of one: the new database's writer has
/// one, and whoever puts it in its place completes the succession through another.
#[derive(Clone)]
pub struct Succession(Arc<Mutex<Heir>>);

struct Heir {
    counter: FileCounter,
    /// The slot that the old database does not need.
    slot: usize,
    /// What the counter holds for the old database.
    old_value: u64,
    is_completed: bool,
}

impl FileCounter {
    /// Begins to hand the counter on to the database of the same name that `vault` holds the keys of. The counter stays
    /// held, and for now it is good for either. Nothing is written before the new database adopts it.
    ///
    /// # Errors
    /// As [`FileCounter::hold`] and [`FileCounter::record`]: only a good counter has a successor.
    ///
    /// # Panics
    /// If the keys are those of a database of another name.
    pub fn hand_on(mut self, vault: &Vault) -> Result<Succession, CounterError> {
        assert!(vault.id() == self.id, "a counter is handed on within one database");
        self.hold(std::time::Duration::ZERO)?;
        let old = self.record()?;
        let slot = 1 - self.newest()?.0;
        let counter = FileCounter {
            key: vault.root.derive_fixed(Purpose::Counter),
            seen: None,
            rollbacks: Some(old.rollbacks),
            ..self
        };
        Ok(Succession(Arc::new(Mutex::new(Heir { counter, slot, old_value: old.value, is_completed: false }))))
    }
}

impl Succession {
    /// Takes the counter from the old database: it is refused from now on. To be called when the new one has durably
    /// taken its place.
    ///
    /// # Errors
    /// [`CounterError`].
    pub fn complete(&self) -> Result<(), CounterError> {
        let mut heir = self.heir();
        let record = heir.counter.record()?;
        heir.counter.adopt(record.value, &record.tag)?;
        heir.is_completed = true;
        Ok(())
    }

    fn heir(&self) -> MutexGuard<'_, Heir> {
        // What a panic can leave behind is a slot that was not read back: it is read again before it is believed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heir {
    fn write(&mut self, value: u64, tag: &Tag) -> Result<(), CounterError> {
        // A cut during this write tears a slot that only the new database needs, which nobody opens yet.
        let slot = self.counter.encode(value, tag, None);
        self.counter.medium.write(self.slot, &slot)?;
        let found = self.counter.record()?;
        if (found.value, found.tag) == (value, *tag) {
            Ok(())
        } else {
            Err(CounterError::Stuck { asked: value, found: found.value })
        }
    }
}

impl Counter for Succession {
    fn kind(&self) -> CounterKind {
        CounterKind::File
    }

    fn value(&mut self) -> Result<CounterValue, CounterError> {
        self.heir().counter.value()
    }

    /// A step of the new database; until the succession is complete it leaves the old one's slot alone.
    fn step(&mut self, to: u64, tag: &Tag) -> Result<(), CounterError> {
        let mut heir = self.heir();
        if heir.is_completed {
            return heir.counter.step(to, tag);
        }
        let present = heir.counter.value()?;
        if may_step(&present, to, tag)? { heir.write(to, tag) } else { Ok(()) }
    }

    fn adopt(&mut self, value: u64, tag: &Tag) -> Result<(), CounterError> {
        let mut heir = self.heir();
        if heir.is_completed {
            return heir.counter.adopt(value, tag);
        }
        // Keys tell the two apart; but to people, too, a counter only goes up.
        if value <= heir.old_value {
            return Err(CounterError::Lower { present: heir.old_value, asked: value });
        }
        heir.counter.seen = None;
        heir.write(value, tag)
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;
    use std::path::Path;

    use super::super::SLOT_BYTES;
    use super::super::tests::{Liar, vault};
    use super::*;
    use crate::{DatabaseId, Suite, VolumeKey};

    fn other_key() -> Vault {
        Vault::new(&VolumeKey::from_bytes(&[9; 32]), DatabaseId([2; 32]), Suite::Aes256GcmSiv)
    }

    fn counter(medium: &Liar, vault: &Vault) -> FileCounter {
        FileCounter::on(Box::new(medium.clone()), Path::new("/data/plant.db"), vault)
    }

    /// What the two databases read, the old one first.
    fn seen(medium: &Liar) -> [Result<u64, CounterError>; 2] {
        [vault(2), other_key()].map(|vault| counter(medium, &vault).record().map(|record| record.value))
    }

    fn standing_at(steps: u64) -> (Liar, FileCounter) {
        let medium = Liar::default();
        let mut old = counter(&medium, &vault(2));
        old.adopt(5, &[5; 16]).unwrap();
        (1..=steps).for_each(|step| old.step(5 + step, &[6; 16]).unwrap());
        (medium, old)
    }

    #[test]
    fn either_database_opens_until_the_succession_is_complete() {
        for steps in 0..3 {
            let (medium, old) = standing_at(steps);
            let mut heir = old.hand_on(&other_key()).unwrap();
            assert_eq!(seen(&medium), [Ok(5 + steps), Err(CounterError::Damaged)]);
            let lower = CounterError::Lower { present: 5 + steps, asked: 5 };
            assert_eq!(heir.adopt(5, &[7; 16]), Err(lower));
            heir.adopt(20, &[7; 16]).unwrap();
            assert_eq!(seen(&medium), [Ok(5 + steps), Ok(20)]);
            heir.step(21, &[8; 16]).unwrap();
            assert_eq!(heir.step(23, &[8; 16]), Err(CounterError::Skipped { present: 21, asked: 23 }));
            assert_eq!(seen(&medium), [Ok(5 + steps), Ok(21)]);
            heir.clone().complete().unwrap();
            assert_eq!(seen(&medium), [Err(CounterError::Damaged), Ok(21)]);
            heir.step(22, &[9; 16]).unwrap();
            assert_eq!(heir.value().unwrap().value, 22);
        }
    }

    #[test]
    fn a_cut_at_any_byte_leaves_the_old_database_its_counter() {
        for reach in 0..=SLOT_BYTES {
            let (medium, old) = standing_at(2);
            let mut heir = old.hand_on(&other_key()).unwrap();
            medium.cut_next(reach);
            assert!(heir.adopt(20, &[7; 16]).is_err());
            assert_eq!(seen(&medium)[0], Ok(7));
            heir.adopt(20, &[7; 16]).unwrap();
            medium.cut_next(reach);
            assert!(heir.step(21, &[8; 16]).is_err());
            assert_eq!(seen(&medium)[0], Ok(7));
        }
    }

    #[test]
    fn whoever_goes_on_takes_the_counter_along() {
        for (heir_goes_on, expected) in
            [(false, [Ok(8), Err(CounterError::Damaged)]), (true, [Err(CounterError::Damaged), Ok(21)])]
        {
            let (medium, old) = standing_at(2);
            old.hand_on(&other_key()).unwrap().adopt(20, &[7; 16]).unwrap();
            match heir_goes_on {
                false => counter(&medium, &vault(2)).step(8, &[8; 16]).unwrap(),
                true => counter(&medium, &other_key()).step(21, &[8; 16]).unwrap(),
            }
            assert_eq!(seen(&medium), expected);
        }
    }

    #[test]
    fn only_a_good_counter_is_handed_on() {
        let medium = Liar::default();
        let absent = counter(&medium, &vault(2)).hand_on(&other_key());
        assert_eq!(absent.err(), Some(CounterError::Absent));
        counter(&medium, &other_key()).adopt(1, &[1; 16]).unwrap();
        assert_eq!(counter(&medium, &vault(2)).hand_on(&other_key()).err(), Some(CounterError::Damaged));
    }
}
