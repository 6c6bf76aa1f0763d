//! What happened in the open period, and what its summary will say.

use std::collections::BTreeMap;

use counterfoil_proof::bytes::{Reader, Writer};
use counterfoil_proof::{Digest, Summary, contents_root};

use crate::error::Error;

/// What became of a record in the open period.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Noted {
    /// Signatures made for it, counted up to two.
    pub signed: u8,
    /// Whether its values or neighbours changed.
    pub changed: bool,
    /// Its version, or none once it is gone.
    pub version: Option<u64>,
}

impl Noted {
    pub fn to_bytes(self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.byte(self.signed).byte(u8::from(self.changed)).number(self.version.map_or(0, |version| version + 1));
        writer.0
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let corrupt = |_| Error::Corrupt("a change of the open period");
        let mut reader = Reader::new(bytes, "");
        let (signed, changed) = (reader.byte().map_err(corrupt)?, reader.byte().map_err(corrupt)? == 1);
        Ok(Self { signed, changed, version: reader.number().map_err(corrupt)?.checked_sub(1) })
    }
}

/// The open period.
#[derive(Clone, Default)]
pub(crate) struct Period {
    pub number: u64,
    pub noted: BTreeMap<u64, Noted>,
    pub messages: Vec<Digest>,
}

impl Period {
    /// Notes a signature; what is noted goes into the ledger before the signature leaves.
    pub fn sign(&mut self, rid: u64, version: u64, changed: bool, message: Digest) -> Noted {
        let noted = self.noted.entry(rid).or_insert(Noted { signed: 0, changed: false, version: None });
        *noted = Noted { signed: (noted.signed + 1).min(2), changed: noted.changed || changed, version: Some(version) };
        self.messages.push(message);
        *noted
    }

    /// Notes that a record is gone.
    pub fn delete(&mut self, rid: u64) -> Noted {
        let noted = self.noted.entry(rid).or_insert(Noted { signed: 0, changed: true, version: None });
        *noted = Noted { signed: noted.signed, changed: true, version: None };
        *noted
    }

    /// What readers are told: which signatures of before do not count any more, and which of this period's do.
    pub fn summary(&self, definition: Digest, before: Digest, ended: u64) -> Summary {
        let is_load = self.number == 0;
        let changed = self.noted.iter().filter(|(_, noted)| noted.changed && !is_load).map(|(rid, _)| *rid).collect();
        // A signature of this period counts unless it is told here that another one, or none, does.
        let told = |noted: &Noted| noted.signed > 1 || (noted.signed == 1 && noted.version.is_none());
        let finals =
            self.noted.iter().filter(|(_, noted)| told(noted)).map(|(rid, noted)| (*rid, noted.version)).collect();
        let contents = contents_root(self.messages.clone());
        Summary { definition, period: self.number, before, ended, contents, changed, finals }
    }
}

#[cfg(test)]
mod tests {
    use super::Period;

    #[test]
    fn what_was_signed_and_deleted_in_one_period_is_told_to_be_gone() {
        let mut period = Period { number: 3, ..Period::default() };
        period.sign(40, 1, true, [1; 32]);
        period.sign(41, 5, true, [2; 32]);
        period.sign(41, 6, true, [3; 32]);
        period.sign(42, 2, true, [4; 32]);
        period.delete(40);
        period.delete(43);
        let summary = period.summary([0; 32], [0; 32], 9);
        assert_eq!(summary.changed, [40, 41, 42, 43]);
        // One version of 42 was signed: it needs no telling. None of 43 was.
        assert_eq!(summary.finals.into_iter().collect::<Vec<_>>(), [(40, None), (41, Some(6))]);
    }
}
