//! Reading integers out of bytes that came from outside, and writing them.

use alloc::vec::Vec;

use crate::Error;

/// Walks over bytes; every step past their end is [`Error::corrupt`].
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Cursor { rest: bytes, what }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// What is left.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn corrupt(&self) -> Error {
        Error::corrupt(self.what)
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(|| self.corrupt())?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let corrupt = self.corrupt();
        self.take(N)?.try_into().map_err(|_| corrupt)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A u32 length and as many bytes.
    pub(crate) fn sized(&mut self) -> Result<&'a [u8], Error> {
        let length = self.u32()?;
        self.take(length as usize)
    }
}

/// Appends integers and sized byte strings.
pub(crate) trait Put {
    fn put_u8(&mut self, value: u8);
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
    /// A u32 length and the bytes.
    fn put_sized(&mut self, bytes: &[u8]);
}

impl Put for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_sized(&mut self, bytes: &[u8]) {
        let length = u32::try_from(bytes.len()).expect("elements are bounded far below 4 GiB");
        self.put_u32(length);
        self.extend_from_slice(bytes);
    }
}
