//! How far a mirror has come.

use counterfoil_proof::bytes::{Reader, Writer};
use counterfoil_proof::{Digest, Malformed};

/// A place in all that an owner ever sends; places are ordered, and a mirror's only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Progress {
    /// How many times the table was begun anew.
    pub generation: u64,
    /// The owner's commit whose changes are told.
    pub number: u64,
    /// Of that commit, records up to this number are told.
    pub rid: u64,
    /// The first period whose summary is not told.
    pub periods: u64,
}

impl Progress {
    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.number(self.generation).number(self.number).number(self.rid).number(self.periods);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (generation, number) = (reader.number()?, reader.number()?);
        Ok(Self { generation, number, rid: reader.number()?, periods: reader.number()? })
    }
}

/// What a mirror has, so that its owner sends the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// How far it has come; all zeros where it has nothing.
    pub progress: Progress,
    /// The mark of the owner's last commit when it was told: an owner that does not know it was put back since.
    pub mark: Digest,
    /// The mark of the commit when the mirror was whole last, or began anew: what went since then is told.
    pub base: Digest,
    /// The digest of the last summary; zeros where there is none.
    pub last_summary: Digest,
    /// Whether nothing of a load is missing, so that questions are answered.
    pub is_whole: bool,
}

impl State {
    /// Its bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.byte(1);
        self.write(&mut writer);
        writer.0
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, "the state of a mirror");
        if reader.byte()? != 1 {
            return Err(Malformed("the state of a mirror of a version that is not known"));
        }
        let state = Self::read(&mut reader)?;
        reader.end()?;
        Ok(state)
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        self.progress.write(writer);
        writer.raw(&self.mark).raw(&self.base).raw(&self.last_summary).byte(u8::from(self.is_whole));
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let progress = Progress::read(reader)?;
        let (mark, base, last_summary) = (reader.array()?, reader.array()?, reader.array()?);
        let is_whole = flag(reader)?;
        Ok(Self { progress, mark, base, last_summary, is_whole })
    }
}

pub(super) fn flag(reader: &mut Reader<'_>) -> Result<bool, Malformed> {
    match reader.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(reader.malformed()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, State};
    use crate::wire::Standing;

    /// The vector of SPEC.md.
    #[test]
    fn a_state_and_a_head_have_their_bytes() {
        let progress = Progress { generation: 1, number: 300, rid: u64::MAX, periods: 3 };
        let state = State { progress, mark: [7; 32], base: [6; 32], last_summary: [5; 32], is_whole: true };
        let numbers: &[u8] = &[1, 1, 0xac, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 3];
        assert_eq!(state.to_bytes(), [numbers, &[7; 32], &[6; 32], &[5; 32], &[1]].concat());
        assert_eq!(State::from_bytes(&state.to_bytes()), Ok(state));
        assert_eq!(Standing { last: 200, first: 0 }.to_bytes(), [2, 0xc8, 1, 0]);
        assert!(Standing::from_bytes(&[2, 1, 2]).is_err() && Standing::from_bytes(&[1, 1, 0]).is_err());
    }
}
