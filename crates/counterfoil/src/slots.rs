//! The key slots: who may open the database.

use counterfoil_vault::{self as vault, ArgonCost, Header, SlotKind, SystemEntropy};
use zeroize::Zeroizing;

use crate::database::Database;
use crate::error::{Error, Kind, Result};
use crate::key::Key;

/// A key slot. Nothing in it is a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotInfo {
    /// Its number.
    pub number: usize,
    /// What opens it: `passphrase`, `key file`, `recovery code`, `TPM`.
    pub kind: &'static str,
    /// When it was written, in seconds since 1970.
    pub created: u64,
    /// Whether it is the one that opened the database here.
    pub is_ours: bool,
}

impl Database {
    /// The key slots in use.
    ///
    /// # Errors
    /// Those of reading.
    pub fn slots(&self) -> Result<Vec<SlotInfo>> {
        self.require_process()?;
        let opened = self.volume().opened();
        let ours = opened.unlocked.slot_in(&opened.header);
        let info = |(number, slot): (usize, &vault::Slot)| SlotInfo {
            number,
            kind: kind_name(slot.kind()),
            created: slot.created(),
            is_ours: ours == Some(number),
        };
        Ok(opened.header.slots().map(info).collect())
    }

    /// The number of the slot that opened the database here.
    ///
    /// # Errors
    /// Those of reading.
    pub fn own_slot(&self) -> Result<usize> {
        let slots = self.slots()?;
        slots.iter().find(|slot| slot.is_ours).map(|slot| slot.number).ok_or_else(|| {
            Error::new(Kind::Misuse, "the slot that opened the database was changed meanwhile").advise("open it again")
        })
    }

    /// Lets another key open the database too; answers the number of its slot.
    ///
    /// # Errors
    /// [`Kind::Misuse`] if all slots are in use; those of writing.
    pub fn add_slot(&self, key: &Key) -> Result<usize> {
        self.change_header(|header, volume_key| {
            Ok(header.add_slot(
                &key.offered()?,
                &ArgonCost::HOST,
                volume_key,
                crate::time::now(),
                &mut SystemEntropy,
            )?)
        })
    }

    /// Puts another key into a slot.
    ///
    /// # Errors
    /// [`Kind::NotFound`] if the slot is not in use; those of writing.
    pub fn change_slot(&self, slot: usize, key: &Key) -> Result<()> {
        self.change_header(|header, volume_key| {
            let now = crate::time::now();
            Ok(header.change_slot(slot, &key.offered()?, &ArgonCost::HOST, volume_key, now, &mut SystemEntropy)?)
        })
    }

    /// Empties a slot. Copies of the file from before still open with its key.
    ///
    /// # Errors
    /// [`Kind::NotFound`], [`Kind::Misuse`] for the last slot; those of writing.
    pub fn remove_slot(&self, slot: usize) -> Result<()> {
        self.change_header(|header, _| Ok(header.remove_slot(slot)?))
    }

    /// The key of the data in `of` shares, of which any `need` open the database: put into a folder, they are a key.
    /// Only a new key of the data ([`Database::rekey`]) ends their power, and not over copies from before.
    ///
    /// # Errors
    /// [`Kind::Misuse`] for impossible numbers.
    pub fn split_key(&self, need: u8, of: u8) -> Result<Vec<Zeroizing<String>>> {
        self.require_process()?;
        let volume = self.volume();
        let opened = volume.opened();
        let shares = vault::split(&opened.unlocked.volume_key, volume.vault.id(), need, of, &mut SystemEntropy);
        let shares = shares.map_err(|error| match error {
            vault::SplitError::NoEntropy => crate::convert::no_entropy(),
            other => Error::new(Kind::Misuse, other.to_string()),
        })?;
        Ok(shares.iter().map(vault::Share::text).collect())
    }

    /// Whether this key opens the database: what a program asks that hands an open database to one more user.
    ///
    /// # Errors
    /// [`Kind::WrongKey`] if it does not; those of reading.
    pub fn admit(&self, key: &Key) -> Result<()> {
        self.require_process()?;
        let refused = |error: Error| error.at(self.place());
        let copies = vault::read_headers(&self.volume().medium).map_err(|error| refused(error.into()))?;
        key.unlock(&copies).map(drop).map_err(refused)
    }

    fn change_header<T>(&self, change: impl FnOnce(&mut Header, &vault::VolumeKey) -> Result<T>) -> Result<T> {
        use counterfoil_sql::{Patience, Store};
        let store = &self.inner.store;
        let volume = self.volume();
        let mut lease = store.lease(Patience::of(volume.options.lock_timeout))?;
        self.inner.engine.settle(&mut lease);
        let opened = volume.opened();
        let mut header = opened.header.clone();
        let answer = change(&mut header, &opened.unlocked.volume_key)?;
        drop(opened);
        volume.change_header(&mut lease, &header)?;
        store.committed(lease.snapshot());
        Ok(answer)
    }
}

fn kind_name(kind: SlotKind) -> &'static str {
    match kind {
        SlotKind::Passphrase => "passphrase",
        SlotKind::KeyFile => "key file",
        SlotKind::Recovery => "recovery code",
        SlotKind::Tpm => "TPM",
    }
}
