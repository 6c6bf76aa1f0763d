//! A signed group of records as it is kept.
//!
//! ```text
//! number, version, period; low string; count and members (record's number, digest); signature (96); hint (96)
//! ```
//! `low` is where its part of the first order begins: the group of a record is the last one that begins where the record
//! stands, or before. It is not signed, since readers do not need it.

use std::collections::{BTreeMap, HashMap};

use counterfoil_proof::bytes::{Reader, Writer};
use counterfoil_proof::record::Stamp;
use counterfoil_proof::{Definition, Digest, Hint, Malformed, POSITION_BYTES_MAX, Scheme, Signature, is_group};

/// A signed group. Its bytes stand where those of records do: its number tells which it is.
#[derive(Clone, PartialEq)]
pub struct SignedGroup {
    /// Its number, and when it was signed.
    pub stamp: Stamp,
    /// Where it begins, in the first order.
    pub low: Vec<u8>,
    /// Its records as they stand there: their numbers, and what the signature holds of each.
    pub members: Vec<(u64, Digest)>,
    /// The owner's signature.
    pub signature: Signature,
    /// What makes checking fast.
    pub hint: Hint,
}

impl SignedGroup {
    /// Whether bytes of something kept are those of a group.
    #[must_use]
    pub fn are(bytes: &[u8]) -> bool {
        Reader::new(bytes, "").number().is_ok_and(is_group)
    }

    /// What the signature holds of each record.
    #[must_use]
    pub fn digests(&self) -> Vec<Digest> {
        self.members.iter().map(|(_, digest)| *digest).collect()
    }

    /// Whether a record is in it.
    #[must_use]
    pub fn holds(&self, rid: u64) -> bool {
        self.members.iter().any(|(member, _)| *member == rid)
    }

    /// As bytes, to be kept.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        self.stamp.write(&mut writer);
        writer.string(&self.low).number(self.members.len() as u64);
        for (rid, digest) in &self.members {
            writer.number(*rid).raw(digest);
        }
        writer.raw(&self.signature.to_uncompressed()).raw(&self.hint.0);
        writer.0
    }

    /// Reads one of them.
    ///
    /// # Errors
    /// [`Malformed`]: no group, or one of a table that has none.
    pub fn from_bytes(bytes: &[u8], definition: &Definition) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, "a signed group");
        let stamp = Stamp::read(&mut reader)?;
        let Scheme::Group(rows_max) = definition.scheme else {
            return Err(Malformed("a group of a table that has none"));
        };
        let low = reader.string()?.to_vec();
        let count = reader.count()?;
        let is_place = low.first() == Some(&1) && low.len() <= POSITION_BYTES_MAX;
        if !is_group(stamp.rid) || !is_place || count > usize::from(rows_max) {
            return Err(reader.malformed());
        }
        let members = (0..count).map(|_| Ok((reader.number()?, reader.array()?))).collect::<Result<_, Malformed>>()?;
        let signature = Signature::from_bytes(reader.raw(96)?).map_err(|_| Malformed("the signature of a group"))?;
        let hint = Hint(reader.array()?);
        reader.end()?;
        Ok(Self { stamp, low, members, signature, hint })
    }
}

/// The number under which stores keep a table's groups, as if they were an order of entries.
pub const GROUPS: u8 = 0x20;

/// The groups of a table in memory.
#[derive(Clone, Default)]
pub struct Groups {
    places: BTreeMap<Vec<u8>, u64>,
    by_number: HashMap<u64, SignedGroup>,
}

impl Groups {
    /// Puts a group in the place of the one with its number.
    pub fn put(&mut self, group: SignedGroup) {
        self.remove(group.stamp.rid);
        self.places.insert(group.low.clone(), group.stamp.rid);
        self.by_number.insert(group.stamp.rid, group);
    }

    /// Takes the group with this number away.
    pub fn remove(&mut self, rid: u64) -> Option<SignedGroup> {
        let group = self.by_number.remove(&rid)?;
        // Another one may begin there by now.
        if self.places.get(&group.low) == Some(&rid) {
            self.places.remove(&group.low);
        }
        Some(group)
    }

    /// The group with this number.
    #[must_use]
    pub fn of_number(&self, rid: u64) -> Option<&SignedGroup> {
        self.by_number.get(&rid)
    }

    /// The last group that begins at a place of the first order, or before.
    #[must_use]
    pub fn at(&self, place: &[u8]) -> Option<&SignedGroup> {
        let (_, rid) = self.places.range(..=place.to_vec()).next_back()?;
        self.by_number.get(rid)
    }

    /// The last group that begins before a place.
    #[must_use]
    pub fn before(&self, place: &[u8]) -> Option<&SignedGroup> {
        let (_, rid) = self.places.range(..place.to_vec()).next_back()?;
        self.by_number.get(rid)
    }

    /// The groups that begin at a place or behind it, ascending.
    pub fn from(&self, place: &[u8]) -> impl Iterator<Item = &SignedGroup> {
        self.places.range(place.to_vec()..).filter_map(|(_, rid)| self.by_number.get(rid))
    }
}
