//! The store that stands alone: GnatDb on a small device, the whole database.
//!
//! ```text
//! data ring:   | commit | commit | ... each: pages of records with a directory, the last one with the root
//! index ring:  | leaf | map | leaf | ...
//! memory:      map of the leaves, changes that no leaf knows yet, a bit for every entry that may be current
//! ```
//! 1. A small commit is one page of the data ring: records, what changed in the index (the directory), and the root.
//! 2. A leaf is written when the list of changes is full, and the directory of the commit tells where.
//! 3. Survivors of the oldest pages ride in the commit pages, at the pace at which the ring fills.
//! 4. The root is bound by the counter, one step for each commit.
//!
//! ```
//! use counterfoil_flash::{Geometry, MemoryDevice};
//! use counterfoil_record::alone::{Memory, Moved, Opening, Shape, Standalone, Surroundings};
//! use counterfoil_vault::{DatabaseId, MemoryCounter, Suite, Vault, VolumeKey};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let part = Geometry { page_bytes: 512, block_pages: 16, block_count: 16, erase_before_program: true, grows: false };
//! let (mut device, mut counter) = (MemoryDevice::new(part)?, MemoryCounter::at(0, None));
//! let vault = Vault::new(&VolumeKey::from_bytes(&[7; 32]), DatabaseId([1; 32]), Suite::AsconAead128);
//! let shape = Shape { first_block: 0, block_count: 16, index_blocks: 3, page_entries: 17, names: 0, is_salted: false };
//!
//! let (mut pending, mut leaves, mut openings) = ([Moved::<u16>::EMPTY; 120], [0; 16], [Opening::EMPTY; 8]);
//! let (mut blocks, mut live, mut page, mut scratch) = ([0; 16], [0; 442], [0; 512], [0; 512]);
//! let memory = Memory {
//!     pending: &mut pending,
//!     leaves: &mut leaves,
//!     blocks: &mut blocks,
//!     live: &mut live,
//!     openings: &mut openings,
//!     page: &mut page,
//!     scratch: &mut scratch,
//! };
//! let around = Surroundings { device: &mut device, vault: &vault, counter: Some(&mut counter), entropy: None };
//! let mut store = Standalone::format(around, shape, memory)?;
//! let id = store.allocate()?;
//! store.commit(&[(id, Some(b"seven plays left"))])?;
//!
//! let mut record = [0; 64];
//! let length = store.read(id, &mut record)?;
//! assert_eq!(&record[..length], b"seven plays left");
//! # Ok(())
//! # }
//! ```

mod cleaning;
mod commit;
mod entering;
mod error;
mod form;
mod leaf;
mod live;
mod map;
mod memory;
mod names;
mod open;
mod opening;
mod page;
mod pages;
mod pending;
mod purge;
mod recovery;
mod retire;
mod room;
mod root;
mod sequence;
mod state;
mod store;
mod superblock;
mod upkeep;
mod word;
mod writing;

pub use error::Error;
pub use memory::{Memory, Shape, Sizes};
pub use names::Named;
pub use open::Surroundings;
pub use opening::Opening;
pub use pending::Moved;
pub use purge::Purged;
pub use store::Standalone;
pub use superblock::Superblock;
pub use word::Word;
