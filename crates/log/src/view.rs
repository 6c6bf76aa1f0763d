//! What a reader sees: containers and records as of one commit.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::{Error, NamelessPage, Piece, PoolId};

/// The number of a container: an append-only stream of bytes. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerId(pub u64);

/// The number of a reclaim group: the containers that die together. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u64);

/// The number of a commit frame, from 1; every commit has a larger one than those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitNumber(pub u64);

/// The records (small named values) are kept apart by what they are for.
pub mod space {
    /// The log's own: the root, the map of extents, containers, groups.
    pub const LOG: u8 = 0;
    /// The catalog of `relation` and its kin.
    pub const CATALOG: u8 = 1;
    /// The users' own records (`counterfoil kv`).
    pub const USER: u8 = 2;
    /// What the owner must be told of: adopted counters, restored backups, older images gone on from.
    pub const INCIDENT: u8 = 3;
    /// Settings of this database, and its users.
    pub const SETTING: u8 = 4;
}

/// Containers and records as of one commit, or as of a commit in the making.
pub trait View {
    /// Bytes in container `container`.
    ///
    /// # Errors
    /// [`Error::corrupt`] if there is no such container.
    fn length(&self, container: ContainerId) -> Result<u64, Error>;

    /// Reads `buffer.len()` bytes of a container from `offset` on.
    ///
    /// # Errors
    /// [`Error::corrupt`] past the container's end, [`Error::tampered`] for a page that is not what it must be,
    /// [`crate::Cause::Device`].
    fn read(&self, container: ContainerId, offset: u64, buffer: &mut [u8]) -> Result<(), Error>;

    /// Reads pieces of a container, each into its part of `buffer`: fastest in the order in which they lie there.
    ///
    /// # Errors
    /// As [`View::read`], and [`Error::misuse`] for a piece that has no part of the buffer.
    fn read_pieces(&self, container: ContainerId, pieces: &[Piece], buffer: &mut [u8]) -> Result<(), Error> {
        pieces.iter().try_for_each(|piece| self.read(container, piece.offset, piece.of(buffer)?))
    }

    /// Reads a nameless page, or its first `buffer.len()` bytes.
    ///
    /// # Errors
    /// [`Error::tampered`] for a page that is not the one written under this number, or that is not the pool's or was
    /// freed; [`Error::corrupt`] if there is no such pool, [`Error::misuse`] if a page has fewer bytes, [`crate::Cause::Device`].
    fn read_nameless(&self, pool: PoolId, page: NamelessPage, buffer: &mut [u8]) -> Result<(), Error>;

    /// The value of a record.
    fn record(&self, space: u8, name: &[u8]) -> Option<Arc<[u8]>>;

    /// Names and values of the records of a space whose names begin with `prefix`, in the order of their names.
    fn records(&self, space: u8, prefix: &[u8]) -> Vec<(Vec<u8>, Arc<[u8]>)>;

    /// The commit this view shows; of a commit in the making, the one before it.
    fn commit_number(&self) -> CommitNumber;
}

impl<V: View + ?Sized> View for &V {
    fn length(&self, container: ContainerId) -> Result<u64, Error> {
        (**self).length(container)
    }

    fn read(&self, container: ContainerId, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        (**self).read(container, offset, buffer)
    }

    fn read_pieces(&self, container: ContainerId, pieces: &[Piece], buffer: &mut [u8]) -> Result<(), Error> {
        (**self).read_pieces(container, pieces, buffer)
    }

    fn read_nameless(&self, pool: PoolId, page: NamelessPage, buffer: &mut [u8]) -> Result<(), Error> {
        (**self).read_nameless(pool, page, buffer)
    }

    fn record(&self, space: u8, name: &[u8]) -> Option<Arc<[u8]>> {
        (**self).record(space, name)
    }

    fn records(&self, space: u8, prefix: &[u8]) -> Vec<(Vec<u8>, Arc<[u8]>)> {
        (**self).records(space, prefix)
    }

    fn commit_number(&self) -> CommitNumber {
        (**self).commit_number()
    }
}
