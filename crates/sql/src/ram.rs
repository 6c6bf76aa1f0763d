//! How much memory a database may take in all (`--ram`, `SET ram`), and what of it is for queries.
//!
//! ```text
//! 0                                                    3/4              7/8        15/16      1
//! | queries: what they keep of rows, and what they read | opened pages  | heads of | new rows,|
//! |                                                     |               | indexes  | changes  |
//! |                                                     |               |          |          |
//! ```

use std::fmt;

use crate::engine::{EngineOptions, LITTLE_BYTES_MIN};
use crate::error::{Error, Result};
use crate::memory;

/// Bytes of memory for what a database keeps and works with, as far as that grows with rows.
///
/// What the program takes however little is asked, and what the query library takes to plan a statement, comes on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ram(usize);

impl Ram {
    /// The least that there may be.
    pub const LEAST: Ram = Ram(64 << 10);
    /// With less than this the query library may not sort, group and join.
    pub const LIBRARY: Ram = Ram(64 << 20);

    /// So many bytes.
    ///
    /// # Errors
    /// [`Error::Misuse`] for less than [`Ram::LEAST`].
    pub fn of(bytes: u64) -> Result<Ram> {
        let ram = Ram(usize::try_from(bytes).unwrap_or(usize::MAX));
        match ram < Ram::LEAST {
            true => Err(Error::Misuse(format!("{ram} of memory is too little: {} is the least", Ram::LEAST))),
            false => Ok(ram),
        }
    }

    /// A number of bytes as SET has it: `65536`, `64K`, `64kB`, `64MB`, `1 GB`.
    pub(crate) fn parse(text: &str) -> Result<Ram> {
        let wrong = || Error::Sql("ram is a number of bytes such as 64K, 64MB or 2GB".into());
        let text = text.trim();
        let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        let shift = match text[digits.len()..].trim().to_ascii_lowercase().trim_end_matches('b') {
            "" => 0,
            "k" => 10,
            "m" => 20,
            "g" => 30,
            _ => return Err(wrong()),
        };
        Ram::of(number.checked_mul(1 << shift).ok_or_else(wrong)?)
    }

    /// Bytes of it for queries.
    #[must_use]
    pub fn queries(self) -> usize {
        self.0 / 4 * 3
    }

    /// The least number of K, a power of two, of which queries have as much as this.
    pub(crate) fn for_queries(bytes: usize) -> String {
        let kilobytes = (bytes.div_ceil(3).saturating_mul(4)).div_ceil(1 << 10).next_power_of_two().max(64);
        if kilobytes < 1 << 10 { format!("{kilobytes}K") } else { format!("{}M", kilobytes >> 10) }
    }

    /// Bytes of it for opened pages.
    #[must_use]
    pub fn pages(self) -> usize {
        self.0 / 8
    }

    /// Bytes of it for a merge of runs: as much as for opened pages, once more while one is under way.
    #[must_use]
    pub fn merges(self) -> usize {
        self.pages()
    }

    /// Bytes of it for the upper levels and filters of indexes.
    #[must_use]
    pub fn heads(self) -> usize {
        self.0 / 16
    }

    /// Bytes of it for index entries of new rows, and for what is known of deletes and updates until their segments are renewed.
    #[must_use]
    pub fn fresh(self) -> usize {
        self.0 / 16
    }

    /// How an engine runs whose queries have no more than this.
    #[must_use]
    pub fn bounds(self, options: EngineOptions) -> EngineOptions {
        let memory_bytes = self.queries().max(LITTLE_BYTES_MIN);
        let parts = (memory_bytes / memory::MEMORY_BYTES_MIN).clamp(1, options.parallelism.max(1));
        EngineOptions { memory_bytes, parallelism: parts, is_little: self < Ram::LIBRARY, ram: Some(self), ..options }
    }
}

impl fmt::Display for Ram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(30, "GB"), (20, "MB"), (10, "kB")];
        match units.iter().find(|(shift, _)| self.0 >= 1 << shift && self.0.trailing_zeros() >= *shift) {
            Some((shift, unit)) => write!(f, "{}{unit}", self.0 >> shift),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        for (text, shown) in [
            ("64K", "64kB"),
            ("65536", "64kB"),
            (" 64 kB ", "64kB"),
            ("100000", "100000 bytes"),
            ("2GB", "2GB"),
            ("1m", "1MB"),
        ] {
            assert_eq!(Ram::parse(text).unwrap().to_string(), shown);
        }
        for text in ["", "K", "63K", "64X", "-1", "1.5G", "99999999999G"] {
            assert!(Ram::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_parts_are_no_more_than_the_whole() {
        for bytes in [Ram::LEAST.0, 100_001, 64 << 20] {
            let ram = Ram(bytes);
            assert!(ram.queries() + ram.pages() + ram.heads() + ram.fresh() <= bytes);
            assert!(ram.queries() > LITTLE_BYTES_MIN);
        }
        assert!(Ram::LEAST.bounds(EngineOptions::default()).is_little);
        let enough = Ram::LIBRARY.bounds(EngineOptions::default());
        assert!(!enough.is_little && enough.memory_bytes / enough.parallelism >= memory::MEMORY_BYTES_MIN);
    }
}
