//! What happened in the open period, and what its summary will say.

use std::collections::{BTreeMap, BTreeSet};

use counterfoil_proof::bytes::{Reader, Writer};
use counterfoil_proof::{Digest, Message, Summary, contents_root};

use crate::error::Error;

/// What became of a record in the open period.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Noted {
    /// How many times it was signed, counted up to two.
    pub signed: u8,
    /// Whether its values or neighbours changed.
    pub changed: bool,
    /// Its version, or none once it is gone.
    pub version: Option<u64>,
}

impl Noted {
    /// Whether the period's summary names it: what was merely renewed is not.
    fn may_be_told(self) -> bool {
        self.changed || self.signed > 1
    }

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
    pub messages: BTreeSet<Digest>,
    /// Of those noted, how many the summary may have to tell of.
    pub told: usize,
}

impl Period {
    /// Notes the signatures of one thing; what is noted goes into the ledger before they leave. What was signed already, and is
    /// signed again by another key, are the same messages and count once.
    pub fn sign(&mut self, rid: u64, version: u64, changed: bool, messages: &[Message]) -> Noted {
        let known = self.messages.len();
        self.messages.extend(messages.iter().map(|message| message.0));
        let is_new = self.messages.len() > known;
        let known = self.noted.get(&rid).copied();
        let before = known.unwrap_or(Noted { signed: 0, changed: false, version: None });
        let signed = (before.signed + u8::from(is_new)).min(2);
        self.note(rid, Noted { signed, changed: before.changed || changed, version: Some(version) })
    }

    /// Notes that a record is gone.
    pub fn delete(&mut self, rid: u64) -> Noted {
        let signed = self.noted.get(&rid).map_or(0, |noted| noted.signed);
        self.note(rid, Noted { signed, changed: true, version: None })
    }

    /// Puts what is known of a record in its place.
    pub fn note(&mut self, rid: u64, noted: Noted) -> Noted {
        let before = self.noted.insert(rid, noted);
        self.told += usize::from(noted.may_be_told());
        self.told -= usize::from(before.is_some_and(Noted::may_be_told));
        noted
    }

    /// What readers are told: which signatures of before do not count any more, and which of this period's do.
    pub fn summary(&self, definition: Digest, before: Digest, ended: u64) -> Summary {
        let is_load = self.number == 0;
        let changed = self.noted.iter().filter(|(_, noted)| noted.changed && !is_load).map(|(rid, _)| *rid).collect();
        // A signature of this period counts unless it is told here that another one, or none, does.
        let told = |noted: &Noted| noted.signed > 1 || (noted.signed == 1 && noted.version.is_none());
        let finals =
            self.noted.iter().filter(|(_, noted)| told(noted)).map(|(rid, noted)| (*rid, noted.version)).collect();
        let contents = contents_root(self.messages.iter().copied().collect());
        Summary { definition, period: self.number, before, ended, contents, changed, finals }
    }
}

#[cfg(test)]
mod tests {
    use counterfoil_proof::Message;

    use super::Period;

    #[test]
    fn what_was_signed_and_deleted_in_one_period_is_told_to_be_gone() {
        let mut period = Period { number: 3, ..Period::default() };
        period.sign(40, 1, true, &[Message([1; 32])]);
        period.sign(41, 5, true, &[Message([2; 32])]);
        period.sign(41, 6, true, &[Message([3; 32])]);
        period.sign(42, 2, true, &[Message([4; 32])]);
        period.delete(40);
        period.delete(43);
        let summary = period.summary([0; 32], [0; 32], 9);
        assert_eq!(summary.changed, [40, 41, 42, 43]);
        // One version of 42 was signed: it needs no telling. None of 43 was.
        assert_eq!(summary.finals.into_iter().collect::<Vec<_>>(), [(40, None), (41, Some(6))]);
    }

    #[test]
    fn what_is_renewed_is_told_only_if_it_changes_as_well() {
        let mut period = Period { number: 3, ..Period::default() };
        period.sign(40, 7, false, &[Message([1; 32])]);
        period.sign(41, 5, false, &[Message([2; 32])]);
        period.sign(41, 6, true, &[Message([3; 32])]);
        period.sign(42, 4, false, &[Message([4; 32])]);
        period.delete(42);
        // By another key, the same message.
        period.sign(40, 7, false, &[Message([1; 32])]);
        let summary = period.summary([0; 32], [0; 32], 9);
        assert_eq!((summary.changed, period.told), (vec![41, 42], 2));
        assert_eq!(summary.finals.into_iter().collect::<Vec<_>>(), [(41, Some(6)), (42, None)]);
        assert_eq!(summary.contents, counterfoil_proof::contents_root((1..5).map(|at| [at; 32]).collect()));
    }
}
