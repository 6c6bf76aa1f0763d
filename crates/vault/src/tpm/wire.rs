//! Numbers and sized bytes as a TPM has them: big-endian, each list of bytes after its length.

use std::vec::Vec;

use zeroize::Zeroizing;

use crate::TpmError;

/// No command or response of ours is longer.
pub(super) const BYTES_MAX: usize = 4096;

/// Bytes of a command, or of a structure in one.
pub(super) struct Writer(Zeroizing<Vec<u8>>);

impl Writer {
    pub(super) fn new() -> Writer {
        // Room enough that it never moves and leaves a secret behind.
        Writer(Zeroizing::new(Vec::with_capacity(BYTES_MAX)))
    }

    pub(super) fn u8(mut self, value: u8) -> Writer {
        self.0.push(value);
        self
    }

    pub(super) fn u16(self, value: u16) -> Writer {
        self.bytes(&value.to_be_bytes())
    }

    pub(super) fn u32(self, value: u32) -> Writer {
        self.bytes(&value.to_be_bytes())
    }

    pub(super) fn bytes(mut self, bytes: &[u8]) -> Writer {
        assert!(self.0.len() + bytes.len() <= BYTES_MAX, "a command of ours fits its buffer");
        self.0.extend_from_slice(bytes);
        self
    }

    /// Bytes after their length: a TPM2B.
    pub(super) fn sized(self, bytes: &[u8]) -> Writer {
        self.u16(bytes.len() as u16).bytes(bytes)
    }

    pub(super) fn finish(self) -> Zeroizing<Vec<u8>> {
        self.0
    }
}

/// Bytes of a response. Whatever they are, reading them ends in a value or in [`TpmError::Malformed`].
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    operation: &'static str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], operation: &'static str) -> Reader<'a> {
        Reader { bytes, operation }
    }

    pub(super) fn malformed(&self) -> TpmError {
        TpmError::Malformed { operation: self.operation }
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], TpmError> {
        let (bytes, rest) = self.bytes.split_at_checked(count).ok_or(self.malformed())?;
        self.bytes = rest;
        Ok(bytes)
    }

    fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], TpmError> {
        let (array, rest) = self.bytes.split_first_chunk().ok_or(self.malformed())?;
        self.bytes = rest;
        Ok(*array)
    }

    pub(super) fn u8(&mut self) -> Result<u8, TpmError> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, TpmError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, TpmError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Bytes after their length: a TPM2B.
    pub(super) fn sized(&mut self) -> Result<&'a [u8], TpmError> {
        let count = self.u16()?;
        self.bytes(usize::from(count))
    }

    /// That nothing is left.
    pub(super) fn end(&self) -> Result<(), TpmError> {
        if self.bytes.is_empty() { Ok(()) } else { Err(self.malformed()) }
    }
}
