//! The yardstick: the design of the MILo-DB paper (sections 3 to 6), rebuilt to count what it does.
//!
//! ```text
//! KEY   | 204 keys | 204 keys | ...            a page for each 204 rows: (8 bytes of the key under the page's secret, place in the page)
//! BF    | 5 filters | 5 filters | ...          a filter for each page of KEY: 16 bits a key, 4 hashes
//! PTR   | 128 cells | 128 cells | ...          how far back the row before with the same key is; 10 bytes of a cell of 16 are its own
//! BUF   | rows 0.. | rows .. |                 what fills no page of those yet, of all indexes of a table together
//! ```
//! 1. Pages of a container are programmed once, in order, and never moved; a container goes block by block (section 3).
//! 2. A row's number is its place; all that is kept of it in an index stands in the order of numbers.
//! 3. A chain reaches back over the filter page of its own page of KEY and the `n` before it: where it ends there is none
//!    nearer, and the search goes on before those (4.3.1).
//!
//! What the paper leaves open is taken in its favour:
//! - A commit programs one page for all it changed, and BUF is dense nevertheless: the page in the making stays in memory.
//! - Rows take their 160 bytes, tables of joins four bytes an identifier: seals of them take no room.
//! - A pointer has as many bits as the bound wants, so that a cell of PTR holds seven of them where `n` is 1.
//! - The co-processor goes once over what is read or written, and over cells and rows only as far as they are looked at. A
//!   searched key is enciphered and compared; the page of KEY is deciphered where the key is not there (6.3). Of a filter four cells
//!   are deciphered, although what is "not here" then rests on nobody having changed the others.
//! - 8 KB of sectors that were read stay in memory, while rows are inserted the newest 16 pages of BUF, and while a query runs 16 KB
//!   of values. What says which rows were updated or deleted is in memory, and nothing is read where it says that none was.
//! - Finding no key in BUF needs no seal of the whole page, and a row that is updated or deleted is touched once.
//! - Nothing is recovered: a database lives as long as its run.

mod bloom;
mod buffer;
mod changes;
mod container;
mod database;
mod fresh;
mod nand;
mod pointers;
mod query;
mod ranges;
mod records;
mod reorganize;
mod sorted;

pub use bloom::Key;
pub use container::Container;
pub use database::Database;
pub use fresh::{Fresh, Scheme};
pub use nand::{Nand, PAGE_BYTES};

#[cfg(test)]
mod database_tests;
#[cfg(test)]
mod tests;
