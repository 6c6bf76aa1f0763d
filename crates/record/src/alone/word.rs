//! Numbers as wide as the part needs: 16 bits for parts of some 60,000 records, 32 bits for all others.

/// How wide record numbers and slots are, in memory and on the medium.
pub trait Word: Copy + Eq + sealed::Sealed {
    /// Bytes on the medium.
    const BYTES: usize;
    /// Stands for nothing.
    const NONE: Self;

    /// The number as it is counted with. [`Word::NONE`] is `u32::MAX` for every width.
    fn number(self) -> u32;

    /// The word for a number; [`Word::NONE`] for every number that it has no room for.
    fn of(number: u32) -> Self;

    /// Reads a word from its little-endian bytes.
    fn decode(bytes: &[u8]) -> Self;

    /// Writes the word to the start of `bytes`.
    fn encode(self, bytes: &mut [u8]);
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u16 {}
    impl Sealed for u32 {}
}

/// What [`Word::NONE`] counts as.
pub(crate) const NONE: u32 = u32::MAX;

impl Word for u16 {
    const BYTES: usize = 2;
    const NONE: u16 = u16::MAX;

    fn number(self) -> u32 {
        if self == u16::MAX { NONE } else { u32::from(self) }
    }

    fn of(number: u32) -> u16 {
        u16::try_from(number).unwrap_or(u16::MAX)
    }

    fn decode(bytes: &[u8]) -> u16 {
        crate::bytes::u16_at(bytes, 0)
    }

    fn encode(self, bytes: &mut [u8]) {
        crate::bytes::put(bytes, 0, &self.to_le_bytes());
    }
}

impl Word for u32 {
    const BYTES: usize = 4;
    const NONE: u32 = NONE;

    fn number(self) -> u32 {
        self
    }

    fn of(number: u32) -> u32 {
        number
    }

    fn decode(bytes: &[u8]) -> u32 {
        crate::bytes::u32_at(bytes, 0)
    }

    fn encode(self, bytes: &mut [u8]) {
        crate::bytes::put(bytes, 0, &self.to_le_bytes());
    }
}
