//! Indices: what a TPM keeps in its own memory.
//!
//! ```text
//! TPMS_NV_PUBLIC: handle u32 | name hash u16 = SHA-256 | attributes u32 | label TPM2B [32] | bytes u16
//! ```
//! 1. The label stands where a policy would. Nothing satisfies it as one, and no right is given by policy: it only says
//!    to which database an index belongs.
//! 2. Reading and writing take the index's secret; deleting it takes its owner's, and leaves nothing to be read.
//! 3. The name covers all of this. A command names what it is about, so it cannot be led to another index.

use std::vec::Vec;

use zeroize::Zeroizing;

use super::link::NO_SESSIONS;
use super::primary::name_of;
use super::session::{Command, Secrecy, framed};
use super::wire::{Reader, Writer};
use super::{Name, OWNER, Talk};
use crate::TpmError;
use crate::tpm_error::error_number;

const UNDEFINE: u32 = 0x122;
const DEFINE: u32 = 0x12A;
const INCREMENT: u32 = 0x134;
const WRITE: u32 = 0x137;
const READ: u32 = 0x14E;
const READ_PUBLIC: u32 = 0x169;

/// The answer about a handle that is not there.
const NO_SUCH_HANDLE: u32 = 0x8B;

/// Reading and writing by the index's secret; wrong ones are not counted, as it cannot be guessed.
const ATTRIBUTES: u32 = 0x0204_0004;
/// An index that only goes up.
const COUNTER: u32 = 0x10;
/// Set by the TPM at the first write.
const WRITTEN: u32 = 0x2000_0000;

/// An index as it is to be.
#[derive(Clone, Copy)]
pub(crate) struct Index {
    handle: u32,
    attributes: u32,
    bytes: u16,
    label: [u8; 32],
}

type Bytes = Vec<u8>;

/// What is at the place of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing.
    Free,
    /// An index with another label.
    Other,
    /// The index, written to or not yet.
    Whole { written: bool },
    /// One with its label, and otherwise not as it is to be.
    Spoiled,
}

impl Index {
    /// An index that only goes up, of 64 bits.
    pub(crate) fn counter(handle: u32, label: [u8; 32]) -> Index {
        Index { handle, attributes: ATTRIBUTES | COUNTER, bytes: 8, label }
    }

    /// An index of so many bytes.
    pub(crate) fn plain(handle: u32, bytes: u16, label: [u8; 32]) -> Index {
        Index { handle, attributes: ATTRIBUTES, bytes, label }
    }

    fn public(&self, written: bool) -> Zeroizing<Vec<u8>> {
        let attributes = if written { self.attributes | WRITTEN } else { self.attributes };
        Writer::new().u32(self.handle).u16(0x000B).u32(attributes).sized(&self.label).u16(self.bytes).finish()
    }

    fn name(&self, written: bool) -> Name {
        name_of(&self.public(written))
    }

    /// What is at its place, on the word of the TPM or whoever answers for it.
    pub(crate) fn find(&self, talk: &mut Talk) -> Result<Found, TpmError> {
        let Some((public, _)) = self.read_public(talk)? else { return Ok(Found::Free) };
        if let Some(written) = [false, true].into_iter().find(|written| public == **self.public(*written)) {
            return Ok(Found::Whole { written });
        }
        let mut reader = Reader::new(&public, "asked for an index");
        let _ = (reader.u32()?, reader.u16()?, reader.u32()?);
        Ok(if reader.sized()? == self.label { Found::Spoiled } else { Found::Other })
    }

    /// Public part and name of what is at its place.
    fn read_public(&self, talk: &mut Talk) -> Result<Option<(Bytes, Bytes)>, TpmError> {
        let operation = "asked for an index";
        let command = framed(NO_SESSIONS, READ_PUBLIC, &self.handle.to_be_bytes());
        let answer = match talk.link.exchange(&command, operation) {
            Err(TpmError::Refused { code, .. }) if error_number(code) == NO_SUCH_HANDLE => return Ok(None),
            answer => answer?,
        };
        let mut reader = Reader::new(&answer, operation);
        let (public, name) = (Bytes::from(reader.sized()?), Bytes::from(reader.sized()?));
        reader.end()?;
        Ok(Some((public, name)))
    }

    /// Makes it, with its secret. The talk is to be a salted one: that secret is all that makes answers authentic.
    pub(crate) fn define(&self, talk: &mut Talk, secret: &[u8; 32]) -> Result<(), TpmError> {
        let owner = talk.owner.clone();
        let parameters = Writer::new().sized(secret).sized(&self.public(false)).finish();
        let about: &[(u32, &[u8])] = &[(OWNER, &OWNER.to_be_bytes())];
        let command = Command::new(DEFINE, "given an index", about, &parameters);
        talk.run(&owner, &Command { secrecy: Secrecy::Parameter, ..command }).map(|_| ())
    }

    /// Deletes whatever is at its place.
    pub(crate) fn undefine(&self, talk: &mut Talk) -> Result<(), TpmError> {
        let owner = talk.owner.clone();
        let Some((_, name)) = self.read_public(talk)? else { return Ok(()) };
        let about: &[(u32, &[u8])] = &[(OWNER, &OWNER.to_be_bytes()), (self.handle, &name)];
        talk.run(&owner, &Command::new(UNDEFINE, "freed of an index", about, &[])).map(|_| ())
    }

    /// All its bytes. It has been written to.
    pub(crate) fn read(&self, talk: &mut Talk, secret: &[u8; 32]) -> Result<Zeroizing<Vec<u8>>, TpmError> {
        let operation = "asked for a counter";
        let name = self.name(true);
        let parameters = Writer::new().u16(self.bytes).u16(0).finish();
        let about: &[(u32, &[u8])] = &[(self.handle, &name), (self.handle, &name)];
        let answer = talk.run(secret, &Command::new(READ, operation, about, &parameters))?;
        let mut reader = Reader::new(&answer, operation);
        let bytes = Zeroizing::new(reader.sized()?.to_vec());
        reader.end()?;
        if bytes.len() == usize::from(self.bytes) { Ok(bytes) } else { Err(reader.malformed()) }
    }

    /// Writes all its bytes.
    pub(crate) fn write(
        &self,
        talk: &mut Talk,
        secret: &[u8; 32],
        written: bool,
        bytes: &[u8],
    ) -> Result<(), TpmError> {
        let name = self.name(written);
        let parameters = Writer::new().sized(bytes).u16(0).finish();
        let about: &[(u32, &[u8])] = &[(self.handle, &name), (self.handle, &name)];
        talk.run(secret, &Command::new(WRITE, "written to", about, &parameters)).map(|_| ())
    }

    /// Lets it go up by one; the first time, to one above all that any counter of this TPM ever held.
    pub(crate) fn increment(&self, talk: &mut Talk, secret: &[u8; 32], written: bool) -> Result<(), TpmError> {
        let name = self.name(written);
        let about: &[(u32, &[u8])] = &[(self.handle, &name), (self.handle, &name)];
        talk.run(secret, &Command::new(INCREMENT, "stepped", about, &[])).map(|_| ())
    }
}
