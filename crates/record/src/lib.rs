//! GnatDb: a sealed, replay-proof record store on a window of a medium.
//!
//! Records are numbered byte strings of at most a page. [`Store::commit`] writes many of them atomically and durably.
//! All pages go round robin into two rings, sealed under the sequence that arithmetic predicts for them, so that no
//! page can be forged, moved or put back unnoticed, and no tree of hashes is needed (section 5 of the GnatDb paper).
//!
//! On a volume the store is the checkpoint: whoever names its commits (version and tag, [`Name`]) in an anchored
//! frame says with [`Store::release`] when the commit before may go. The store has no counter of its own there.
//!
//! On a small device the store stands alone and has a counter of its own: [`alone`].
//!
//! It needs no allocator: working memory comes from the caller as [`Buffers`], sized by [`BufferSizes`]. Bytes from
//! the medium end in typed errors, in bounded time.
//!
//! ```
//! use counterfoil_flash::{Geometry, MemoryDevice, Read};
//! use counterfoil_record::{BufferSizes, Buffers, Run, Store, Which, Window};
//! use counterfoil_vault::{DangerFixedEntropy, DatabaseId, Epoch, Suite, Vault, VolumeKey};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let shape = Geometry { page_bytes: 512, block_pages: 8, block_count: 16, erase_before_program: true, grows: false };
//! let mut device = MemoryDevice::new(shape)?;
//! let key = VolumeKey::from_bytes(&[7; 32]);
//! let vault = Vault::new(&key, DatabaseId([1; 32]), Suite::Aes256GcmSiv);
//! let window = Window { first_block: 0, block_count: 16, doubled: false };
//!
//! let sizes = BufferSizes::of(&device.geometry(), &window)?;
//! let (mut index, mut runs) = (vec![0; 100], vec![Run::EMPTY; sizes.runs]);
//! let (mut page, mut scratch) = (vec![0; sizes.page_bytes], vec![0; sizes.page_bytes]);
//! let buffers = Buffers { index: &mut index, runs: &mut runs, page: &mut page, scratch: &mut scratch };
//!
//! let epoch = Epoch { number: 1, salt: [9; 16] };
//! let mut store = Store::format(&mut device, &vault, window, epoch, buffers)?;
//! let id = store.allocate()?;
//! let version = store.commit(&[(id, Some(b"seven plays left"))])?;
//! store.release(version);
//!
//! let mut record = [0; 64];
//! let length = store.read(id, &mut record)?;
//! assert_eq!(&record[..length], b"seven plays left");
//! # Ok(())
//! # }
//! ```
#![no_std]
#![forbid(unsafe_code)]
#[cfg(any(test, feature = "std"))]
extern crate std;

pub mod alone;
mod bytes;
mod commit;
mod copies;
mod data_page;
mod error;
mod head;
mod index;
mod live;
mod reader;
mod recovery;
mod ring_io;
mod root;
mod run;
mod space;
mod state;
mod store;
mod view;
mod window;

pub use error::Error;
pub use reader::Reader;
pub use recovery::Which;
pub use run::Run;
pub use space::{Change, Changes, EachChange};
pub use state::{BufferSizes, Buffers, Name, RecordId, Suspended};
pub use store::Store;
pub use window::Window;
