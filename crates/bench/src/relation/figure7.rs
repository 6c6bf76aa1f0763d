//! The database of the paper's section 7: T0 references T1 and T3, T1 references T2, T3 references T4 and T5. Every table has ID, DUP10
//! and DUP100 (10 and 100 rows for a value), MS1 and MS10 (1 % and 10 % of the rows for a value), all indexed, and 160 bytes a row.

extern crate alloc; // a device has no more

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Rows of T0 for which the other tables have the rows below.
pub const ROWS: u64 = 1_000_000;

/// A table.
pub struct Table {
    pub name: &'static str,
    /// Rows where T0 has [`ROWS`]. The counts of the paper's Table 1 follow from these.
    full: u64,
    pub references: &'static [&'static str],
}

/// Those that are referenced before those that reference them.
pub const TABLES: [Table; 6] = [
    Table { name: "t2", full: 10_000, references: &[] },
    Table { name: "t4", full: 1_670, references: &[] },
    Table { name: "t5", full: 33_400, references: &[] },
    Table { name: "t1", full: 100_000, references: &["t2"] },
    Table { name: "t3", full: 125_000, references: &["t4", "t5"] },
    Table { name: "t0", full: ROWS, references: &["t1", "t3"] },
];

/// The attributes that are indexed beside ID.
pub const INDEXED: [&str; 4] = ["dup10", "dup100", "ms1", "ms10"];

/// Multipliers that spread rows over values: primes that divide none of the sizes.
const SPREAD: [u64; 6] = [7_919, 104_729, 15_485_863, 32_452_843, 49_979_687, 67_867_967];

/// A prime above all sizes, over which the values of MS1 and MS10 are spread: those of rows that are joined have nothing to do with each
/// other then, so that two conditions meet in as many rows as the paper's Table 1 says. Sizes all have divisors in common.
const PRIME: u64 = 1_000_003;

/// Where T0 has fewer rows, remainders do: other tables have a dozen rows then, of which no two conditions meet, and it is with these
/// values that a chip's image is a kilobyte below its 64.
const PRIME_FROM: u64 = 10_000;

impl Table {
    /// Rows it has where T0 has `rows`.
    pub fn rows(&self, rows: u64) -> u64 {
        (self.full * rows / ROWS).max(1)
    }

    pub fn columns(&self) -> Vec<String> {
        let own = ["id"].into_iter().chain(self.references.iter().copied()).chain(INDEXED).chain(["a1"]);
        own.map(String::from).collect()
    }

    /// Bytes of the attribute that fills a row up to 160.
    pub fn a1_bytes(&self) -> usize {
        160 - 8 - 8 * self.references.len() - 4 * 10
    }

    /// A row of the table in a database whose T0 has `rows`: its references, its indexed attributes, and what fills it up.
    pub fn row(&self, id: u64, rows: u64) -> Row {
        let count = self.rows(rows);
        let spread = |way: usize| id * SPREAD[way] % count;
        let part = |way: usize, parts: u64| match rows < PRIME_FROM {
            true => spread(way) % parts,
            false => id * SPREAD[way] % PRIME * parts / PRIME,
        };
        let parent = |(place, name): (usize, &&str)| {
            let parent = TABLES.iter().find(|table| table.name == *name).map_or(1, |table| table.rows(rows));
            (id * SPREAD[4 + place] % count % parent) as i64
        };
        let references = self.references.iter().enumerate().map(parent).collect::<Vec<_>>();
        let values = [spread(0) / 10, spread(1) / 100, part(2, 100), part(3, 10)].map(value);
        let filled = self.a1_bytes();
        let a1 = format!("{:016x}", id.wrapping_mul(0x9E37_79B9_7F4A_7C15)).repeat(filled / 16 + 1);
        Row { id: id as i64, references, values, a1: a1[..filled].to_owned() }
    }
}

/// A row: shown to each database in its own way.
pub struct Row {
    pub id: i64,
    pub references: Vec<i64>,
    pub values: [String; 4],
    pub a1: String,
}

/// A value of an indexed attribute: their order is that of their numbers.
pub fn value(number: u64) -> String {
    format!("VAL_{number:06}")
}
