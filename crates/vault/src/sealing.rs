//! Sealing and opening pages: [`Vault`] for one page, [`PageKey`] for the pages of one allocation.
//!
//! ```text
//! page:  0 ............ payload ............ page-16 | tag [16]
//! nonce: position u32 as u64 (nameless: write number u64), zeros to the suite's length
//! associated data: kind u8, zero [3], position u32, allocation u64, epoch number u64
//! ```
//! 1. A page opens at the place it was sealed at, under the key of its database, or not at all.
//! 2. Sealing and opening work in place and need no allocator.
//! 3. Whoever calls `seal` has never tried to write other bytes at this place in this epoch; `vault` cannot know.

use crate::cipher::Cipher;
use crate::keys::{Purpose, Root};
use crate::page::{Opened, Plain, Sealed, TAG_BYTES, Tag, unsealable};
use crate::place::associated_data;
use crate::{DatabaseId, Epoch, Kind, Place, Suite, Tampered, VolumeKey};

/// The keys of one database. Shared by every reader and the writer; holds no buffer and takes no lock.
///
/// ```compile_fail
/// fn needs_debug<T: core::fmt::Debug>() {}
/// needs_debug::<counterfoil_vault::Vault>();
/// ```
pub struct Vault {
    pub(crate) root: Root,
    id: DatabaseId,
    #[cfg(feature = "std")]
    process: u32,
}

/// The key of the pages of one kind in one allocation and epoch: derive once, seal and open many.
///
/// ```compile_fail
/// fn needs_debug<T: core::fmt::Debug>() {}
/// needs_debug::<counterfoil_vault::PageKey>();
/// ```
pub struct PageKey {
    cipher: Cipher,
    kind: Kind,
    allocation: u64,
    epoch: u64,
    #[cfg(feature = "witness")]
    witness: crate::witness::KeyDigest,
}

impl Vault {
    /// The keys of the database `id`, whose pages are sealed with `suite`.
    pub fn new(volume_key: &VolumeKey, id: DatabaseId, suite: Suite) -> Vault {
        Vault {
            root: Root::new(volume_key, id, suite),
            id,
            #[cfg(feature = "std")]
            process: std::process::id(),
        }
    }

    /// The database these keys are for.
    pub fn id(&self) -> DatabaseId {
        self.id
    }

    /// The page cipher.
    pub fn suite(&self) -> Suite {
        self.root.suite()
    }

    /// Whether this process made the vault. A forked child holds the same keys and the same idea of what was
    /// written where, so it must be refused before it seals anything. Always so where there are no processes.
    pub fn same_process(&self) -> bool {
        #[cfg(feature = "std")]
        let same = self.process == std::process::id();
        #[cfg(not(feature = "std"))]
        let same = true;
        same
    }

    /// The key of the pages of `kind` in this allocation and epoch.
    pub fn page_key(&self, kind: Kind, allocation: u64, epoch: &Epoch) -> PageKey {
        let key = self.root.derive(Purpose::Page(kind), allocation, epoch);
        PageKey {
            cipher: Cipher::new(self.suite(), &key),
            kind,
            allocation,
            epoch: epoch.number,
            #[cfg(feature = "witness")]
            witness: crate::witness::key_digest(&*key),
        }
    }

    /// Seals one page at `place`.
    ///
    /// # Panics
    /// As [`PageKey::seal`].
    pub fn seal<'a>(&self, place: &Place, page: Plain<'a>) -> Sealed<'a> {
        self.page_key(place.kind, place.allocation, &place.epoch).seal(place.position, page)
    }

    /// Opens one page that should have been sealed at `place`.
    ///
    /// # Errors
    /// [`Tampered`] if it was not.
    pub fn open<'a>(&self, place: &Place, page: Sealed<'a>) -> Result<Opened<'a>, Tampered> {
        self.page_key(place.kind, place.allocation, &place.epoch).open(place.position, page)
    }
}

impl PageKey {
    /// Seals one page at `position`, which is also its nonce.
    ///
    /// # Panics
    /// With `std` (without it the page is wiped) on a page without room for a tag, and on the kinds that have sealing of their own
    /// ([`Vault::seal_opening`], [`PageKey::seal_nameless`]).
    pub fn seal<'a>(&self, position: u32, page: Plain<'a>) -> Sealed<'a> {
        if matches!(self.kind, Kind::Opening | Kind::Nameless) {
            return unsealable(page, "this kind of page is sealed by its own function");
        }
        self.seal_numbered(position, u64::from(position), page)
    }

    /// Opens one page that should have been sealed at `position`.
    ///
    /// # Errors
    /// [`Tampered`] if it was not.
    pub fn open<'a>(&self, position: u32, page: Sealed<'a>) -> Result<Opened<'a>, Tampered> {
        if matches!(self.kind, Kind::Opening | Kind::Nameless) {
            return Err(self.tampered(position));
        }
        self.open_numbered(position, u64::from(position), page)
    }

    /// Seals a nameless page: its place is programmed again and again, so the nonce is the number of the write.
    ///
    /// # Panics
    /// With `std` (without it the page is wiped) on a page without room for a tag, and on any kind but [`Kind::Nameless`].
    pub fn seal_nameless<'a>(&self, position: u32, write: u64, page: Plain<'a>) -> Sealed<'a> {
        if self.kind != Kind::Nameless {
            return unsealable(page, "only nameless pages are sealed by write number");
        }
        self.seal_numbered(position, write, page)
    }

    /// Opens a nameless page that should be the write with this number.
    ///
    /// # Errors
    /// [`Tampered`] if it is not.
    pub fn open_nameless<'a>(&self, position: u32, write: u64, page: Sealed<'a>) -> Result<Opened<'a>, Tampered> {
        if self.kind != Kind::Nameless {
            return Err(self.tampered(position));
        }
        self.open_numbered(position, write, page)
    }

    fn seal_numbered<'a>(&self, position: u32, number: u64, page: Plain<'a>) -> Sealed<'a> {
        let Some((payload, place_of_tag)) = page.0.split_last_chunk_mut::<TAG_BYTES>() else {
            return unsealable(page, "a page has room for its tag");
        };
        let associated = associated_data(self.kind, self.allocation, position, self.epoch);
        #[cfg(feature = "witness")]
        crate::witness::observe(self.witness, &number.to_le_bytes());
        *place_of_tag = self.cipher.seal(number, &associated, payload);
        Sealed(page.0)
    }

    fn open_numbered<'a>(&self, position: u32, number: u64, page: Sealed<'a>) -> Result<Opened<'a>, Tampered> {
        let page = page.0;
        let Some((payload, tag)) = page.split_last_chunk_mut::<TAG_BYTES>() else {
            return Err(self.tampered(position));
        };
        let associated = associated_data(self.kind, self.allocation, position, self.epoch);
        let tag: Tag = *tag;
        if !self.cipher.open(number, &associated, payload, &tag) {
            return Err(self.tampered(position));
        }
        let payload_bytes = page.len() - TAG_BYTES;
        Ok(Opened { page, payload_bytes })
    }

    fn tampered(&self, position: u32) -> Tampered {
        Tampered { kind: self.kind, allocation: self.allocation, position }
    }
}
