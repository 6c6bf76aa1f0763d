//! What a reader has seen of an owner's table, as it is kept between two questions.

use counterfoil_proof::bytes::{Reader, Writer};
use counterfoil_proof::{Chain, Malformed, PublicKey, Refusal, Seen, TrustedManifest};
use sha2::{Digest as _, Sha256};

const VERSION: u8 = 2;
/// The one before, which is read: without a sum.
const VERSION_BEFORE: u8 = 1;
const SUM_BYTES: usize = 8;

/// What a reader has seen of an owner's table of one name: no mirror can show it anything older afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// The table's number: one of the same name that is published anew has another one.
    table: [u8; 16],
    /// When its newest manifest was made, by the owner's clock (milliseconds since 1970).
    issued: u64,
    seen: Seen,
}

impl Memory {
    /// What is to be remembered after a chain of summaries was checked, if it goes on from what was seen `before`.
    ///
    /// # Errors
    /// Those of [`Seen::check`]; [`Refusal::Stale`]: an older table of this name.
    pub(crate) fn after(before: Option<&Self>, manifest: &TrustedManifest, chain: &Chain) -> Result<Self, Refusal> {
        let (table, issued) = (manifest.manifest().definition.table, manifest.manifest().issued);
        match before {
            Some(before) if before.table == table => before.seen.check(manifest, chain)?,
            Some(before) if before.issued >= issued => {
                return Err(Refusal::Stale("an older table of this name than one that was seen already"));
            }
            _ => {}
        }
        Ok(Self { table, issued, seen: Seen::of(manifest, chain)? })
    }

    /// Whether a manifest is none of before. It is asked before its chain is: what a later key signed looks forged under it.
    ///
    /// # Errors
    /// [`Refusal::Stale`].
    pub(crate) fn allows(&self, manifest: &TrustedManifest) -> Result<(), Refusal> {
        let manifest = manifest.manifest();
        if self.table == manifest.definition.table && manifest.serial < self.seen.serial {
            return Err(Refusal::Stale("an older manifest than one that was seen already"));
        }
        Ok(())
    }

    /// The last period that was seen of this table.
    pub(crate) fn period_of(&self, table: &[u8; 16]) -> Option<u64> {
        (self.table == *table).then_some(self.seen.period)
    }

    /// Whether it was seen no earlier than `other`: of two questions asked at once the one that ends last may have seen less.
    #[must_use]
    pub fn is_as_new_as(&self, other: &Self) -> bool {
        if self.table == other.table {
            (self.seen.serial, self.seen.period) >= (other.seen.serial, other.seen.period)
        } else {
            self.issued > other.issued
        }
    }

    /// As it is kept.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.byte(VERSION).raw(&self.table).number(self.issued).number(self.seen.serial).raw(&self.seen.manifest);
        writer.number(self.seen.period).raw(&self.seen.head).raw(&self.seen.key.to_bytes());
        let sum = sum(&writer.0);
        writer.raw(&sum);
        writer.0
    }

    /// What was kept.
    ///
    /// # Errors
    /// [`Malformed`]: something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, "what was remembered of a published table");
        let version = reader.byte()?;
        if ![VERSION_BEFORE, VERSION].contains(&version) {
            return Err(reader.malformed());
        }
        let (table, issued) = (reader.array()?, reader.number()?);
        let (serial, manifest, period, head) = (reader.number()?, reader.array()?, reader.number()?, reader.array()?);
        let key = PublicKey::from_bytes(&reader.array::<96>()?).map_err(|_| reader.malformed())?;
        if version == VERSION {
            let summed = &bytes[..bytes.len() - reader.left()];
            if sum(summed) != reader.array()? {
                return Err(reader.malformed());
            }
        }
        reader.end()?;
        Ok(Self { table, issued, seen: Seen { serial, manifest, period, head, key } })
    }
}

/// What a flipped bit is noticed by: without it an honest mirror would be called a forger. Whoever writes it on purpose can have the reader
/// begin anew as well.
fn sum(bytes: &[u8]) -> [u8; SUM_BYTES] {
    *Sha256::digest(bytes).first_chunk().expect("a digest is longer")
}
