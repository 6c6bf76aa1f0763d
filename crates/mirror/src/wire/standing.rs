//! The head of a mirror that answers questions itself.

use counterfoil_proof::Malformed;
use counterfoil_proof::bytes::{Reader, Writer};

/// Where a mirror stands. Its first byte is 2, where the head of a folder of files has 1: a reader asks this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The last period whose summary is here.
    pub last: u64,
    /// That of the oldest signature here: from there on it takes all summaries to check an answer.
    pub first: u64,
}

impl Standing {
    /// Its bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.byte(2).number(self.last).number(self.first);
        writer.0
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, "the head of a mirror");
        if reader.byte()? != 2 {
            return Err(Malformed("the head of a mirror of a version that is not known"));
        }
        let standing = Self { last: reader.number()?, first: reader.number()? };
        reader.end()?;
        if standing.first > standing.last { Err(Malformed("the head of a mirror")) } else { Ok(standing) }
    }
}
