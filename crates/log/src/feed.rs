//! The change feed: what every commit changed, for who follows from afar (publishing, incremental backup,
//! store-and-forward).
//!
//! ```text
//! follow(name) .. commit            a follower is a record: the place on the spine up to which it has read
//! changes(name) -> next_commit ..   each commit whole, in order, authenticated as recovery authenticates it
//! read_up_to(name, position) .. commit
//! ```
//! Followers are records of the settings, so a commit that acts on what it read and says how far it read is one
//! commit. A checkpoint keeps the spine from the oldest follower on, up to [`FOLLOWED_EXTENTS_MAX`] extents; a follower
//! further behind is answered [`crate::Cause::Gone`] and begins again from a snapshot. A follower never stops the writer.

use alloc::vec::Vec;

use crate::order::Order as _;
use counterfoil_vault::Epoch;

use crate::bytes::{Cursor, Put};
use crate::frame::{Element, next_element};
use crate::pool_element::PoolElement;
use crate::record_key::record_key;
use crate::root::Root;
use crate::space::{Extent, Owner, Space};
use crate::spine::{SpineEnd, Walker};
use crate::view::space::{LOG, SETTING};
use crate::volume::Recovered;
use crate::writer::Writer;
use crate::{Cause, CommitNumber, ContainerId, Error, GroupId, NamelessPage, PoolId, Snapshot};

/// The most extents of the spine that a checkpoint keeps for followers; on a small volume a sixteenth of it, and none
/// when its last extents are being granted.
pub const FOLLOWED_EXTENTS_MAX: u32 = 64;
/// Longest name of a follower.
pub const FOLLOWER_NAME_BYTES_MAX: usize = 64;
const FOLLOWERS: &[u8] = b"follower/";

/// A place on the spine: all commits up to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position(SpineEnd);

impl Position {
    /// The last commit before it.
    pub fn commit(&self) -> CommitNumber {
        CommitNumber(self.0.commit)
    }

    fn encode(&self) -> Vec<u8> {
        let end = &self.0;
        let mut out = Vec::new();
        for number in [end.commit, end.version, end.checkpoint, end.epoch.number] {
            out.put_u64(number);
        }
        for bytes in [&end.epoch.salt, &end.tag, &end.closed] {
            out.extend_from_slice(bytes);
        }
        for extent in [end.extent.unwrap_or(end.next), end.next] {
            out.put_u32(extent.number);
            out.put_u64(extent.allocation);
        }
        out.put_u32(end.position);
        out.put_u8(u8::from(end.extent.is_some()) | u8::from(end.opening) << 1);
        out
    }

    fn decode(bytes: &[u8]) -> Result<Position, Error> {
        let mut cursor = Cursor::new(bytes, "record of a follower");
        let (commit, version, checkpoint) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
        let epoch = Epoch { number: cursor.u64()?, salt: cursor.array()? };
        let (tag, closed) = (cursor.array()?, cursor.array()?);
        let extent = Extent { number: cursor.u32()?, allocation: cursor.u64()? };
        let next = Extent { number: cursor.u32()?, allocation: cursor.u64()? };
        let (position, flags) = (cursor.u32()?, cursor.u8()?);
        if flags & !3 != 0 || !cursor.is_empty() {
            return Err(cursor.corrupt());
        }
        let (extent, opening) = ((flags & 1 != 0).then_some(extent), flags & 2 != 0);
        Ok(Position(SpineEnd { extent, position, epoch, next, tag, closed, commit, version, checkpoint, opening }))
    }

    /// The first extent of the spine that is needed to go on from here.
    fn first_extent(&self) -> Extent {
        self.0.extent.unwrap_or(self.0.next)
    }

    fn is_kept(&self, space: &Space) -> bool {
        let Extent { number, allocation } = self.first_extent();
        space.owner(number) == Owner::Spine && space.allocation(number) == Some(allocation)
    }
}

/// One thing that a commit changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A record has a new value.
    RecordPut {
        /// The record's space.
        space: u8,
        /// Its name.
        name: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
    },
    /// A record is gone.
    RecordDeleted {
        /// The record's space.
        space: u8,
        /// Its name.
        name: Vec<u8>,
    },
    /// A group was made.
    GroupCreated(GroupId),
    /// A group is gone with all its containers.
    GroupDropped(GroupId),
    /// An empty container was made.
    ContainerCreated {
        /// Which one.
        id: ContainerId,
        /// The group it dies with.
        group: GroupId,
    },
    /// A container has so many bytes now; what was before stays as it was.
    Grown {
        /// Which one.
        id: ContainerId,
        /// Its bytes after the commit.
        length: u64,
    },
    /// An empty nameless pool was made.
    PoolCreated(PoolId),
    /// A pool is gone with all its pages.
    PoolDropped(PoolId),
    /// Pages of a pool were written one after the other: this one and those behind it, under the numbers behind its own.
    PagesWritten {
        /// Which pool.
        pool: PoolId,
        /// The first one.
        first: NamelessPage,
        /// How many.
        pages: u32,
    },
    /// Nobody points to a page of a pool any more; the snapshot may not have it.
    PageFreed {
        /// Which pool.
        pool: PoolId,
        /// Which page.
        page: NamelessPage,
    },
}

/// What one commit changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its number.
    pub number: CommitNumber,
    /// What it changed, in an order that can be repeated.
    pub changes: Vec<Change>,
}

/// The commits from a position up to a snapshot, one after the other. What they wrote to containers is read from the
/// snapshot, unless a later commit dropped it.
pub struct Changes {
    snapshot: Snapshot,
    walker: Walker,
    last: SpineEnd,
}

impl Changes {
    fn new(snapshot: Snapshot, from: &Position, last: &SpineEnd) -> Changes {
        let walker = Walker::new(&snapshot.pages, from.0.clone());
        Changes { snapshot, walker, last: last.clone() }
    }

    /// The next commit that changed something, or none when all are told.
    ///
    /// # Errors
    /// [`Error::tampered`] and [`Error::corrupt`] if the spine is not what it must be, [`crate::Cause::Device`].
    pub fn next_commit(&mut self) -> Result<Option<Commit>, Error> {
        while self.walker.end.commit < self.last.commit {
            let elements = self.walker.elements()?;
            if self.walker.end.commit == self.last.commit && self.walker.end.tag != self.last.tag {
                return Err(self.walker.lost());
            }
            let changes = changes_of(&elements.unwrap_or_default())?;
            if !changes.is_empty() {
                return Ok(Some(Commit { number: CommitNumber(self.walker.end.commit), changes }));
            }
        }
        Ok(None)
    }

    /// The place behind the last commit told.
    pub fn position(&self) -> Position {
        Position(self.walker.end.clone())
    }

    /// The commit up to which changes are told.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }
}

fn changes_of(elements: &[u8]) -> Result<Vec<Change>, Error> {
    let mut cursor = Cursor::new(elements, "commit frame");
    let mut changes = Vec::new();
    while let Some(element) = next_element(&mut cursor)? {
        changes.extend(change_of(&element));
    }
    Ok(changes)
}

/// An element as a follower sees it: not where things lie, and not how far followers have read.
fn change_of(element: &Element<'_>) -> Option<Change> {
    let named = |key: &[u8]| {
        let (space, name) = key.split_first()?;
        let is_own = *space == LOG || (*space == SETTING && name.starts_with(FOLLOWERS));
        (!is_own).then(|| (*space, name.to_vec()))
    };
    match element {
        Element::RecordPut { key, value } => {
            named(key).map(|(space, name)| Change::RecordPut { space, name, value: value.to_vec() })
        }
        Element::RecordDeleted { key } => named(key).map(|(space, name)| Change::RecordDeleted { space, name }),
        Element::GroupCreated(id) => Some(Change::GroupCreated(*id)),
        Element::GroupDropped(id) => Some(Change::GroupDropped(*id)),
        Element::ContainerCreated { id, group, .. } => Some(Change::ContainerCreated { id: *id, group: *group }),
        Element::TailAppended { id, offset, bytes } | Element::TailReplaced { id, offset, bytes } => {
            Some(Change::Grown { id: *id, length: offset.saturating_add(bytes.len() as u64) })
        }
        Element::Pool(element) => change_of_pool(element),
        Element::Pages { .. } | Element::ExtentGranted { .. } | Element::ExtentFreed(_) | Element::Unflushed { .. } => {
            None
        }
    }
}

fn change_of_pool(element: &PoolElement) -> Option<Change> {
    Some(match element {
        PoolElement::Created { id, .. } => Change::PoolCreated(*id),
        PoolElement::Dropped(id) => Change::PoolDropped(*id),
        PoolElement::Written { id, page, pages } => Change::PagesWritten { pool: *id, first: *page, pages: *pages },
        PoolElement::Freed { id, page } => Change::PageFreed { pool: *id, page: *page },
        PoolElement::Grown { .. } | PoolElement::Shrunk { .. } | PoolElement::Unflushed { .. } => return None,
    })
}

fn follower_name(name: &[u8]) -> Result<Vec<u8>, Error> {
    if name.is_empty() || name.len() > FOLLOWER_NAME_BYTES_MAX {
        return Err(Error::misuse("a follower has a name of at most 64 bytes"));
    }
    Ok([FOLLOWERS, name].concat())
}

fn position_of(root: &Root, name: &[u8]) -> Result<Position, Error> {
    let key = record_key(SETTING, &follower_name(name)?);
    Position::decode(root.records.get(&key).ok_or_else(|| Error::misuse("nobody follows under this name"))?)
}

/// Names and positions of all followers; a record that makes no sense is none.
fn followers_of(root: &Root) -> impl Iterator<Item = (Vec<u8>, Position)> + '_ {
    let prefix = record_key(SETTING, FOLLOWERS);
    let found = root.records.range_from(&prefix);
    found
        .map_while(move |(key, value)| Some((key.strip_prefix(&*prefix)?.to_vec(), value)))
        .filter_map(|(name, value)| Position::decode(value).ok().map(|position| (name, position)))
}

/// Whether a record says where a follower is: such do not leave their volume.
pub(crate) fn is_follower(space: u8, name: &[u8]) -> bool {
    space == SETTING && name.starts_with(FOLLOWERS)
}

fn gone(position: &Position, oldest: u64) -> Error {
    Error::from(Cause::Gone { commit: position.0.commit, oldest })
}

impl Writer {
    /// Registers a follower, or an old one anew: it is told of every commit after the last one, this one included.
    ///
    /// # Errors
    /// [`Error::misuse`] outside a commit or for a name that is none, [`Error::latched`].
    pub fn follow(&mut self, name: &[u8]) -> Result<(), Error> {
        let key = follower_name(name)?;
        let position = Position(self.end.clone());
        self.put_record(SETTING, &key, &position.encode())
    }

    /// Says that a follower needs nothing before `position` any more.
    ///
    /// # Errors
    /// [`Error::misuse`] outside a commit, for a follower that is not registered, or for a position before the one it
    /// has; [`Error::latched`].
    pub fn read_up_to(&mut self, name: &[u8], position: &Position) -> Result<(), Error> {
        let before = position_of(&self.pending_mut()?.root, name)?;
        let in_order = (before.0.commit..=self.end.commit).contains(&position.0.commit);
        if !in_order {
            return Err(Error::misuse("a follower reads forward"));
        }
        self.put_record(SETTING, &follower_name(name)?, &position.encode())
    }

    /// Forgets a follower.
    ///
    /// # Errors
    /// [`Error::misuse`] outside a commit, [`Error::latched`].
    pub fn unfollow(&mut self, name: &[u8]) -> Result<(), Error> {
        self.delete_record(SETTING, &follower_name(name)?)
    }

    /// Names of the followers, and the commit up to which each has read.
    pub fn followers(&self) -> Vec<(Vec<u8>, CommitNumber)> {
        followers_of(&self.state.root).map(|(name, position)| (name, position.commit())).collect()
    }

    /// What the commits changed that a follower has not read, up to the last one. While it is held, nothing that it
    /// tells of is reclaimed.
    ///
    /// # Errors
    /// [`crate::Cause::Gone`] if the follower is too far behind, [`Error::misuse`] if it is not registered.
    pub fn changes(&mut self, name: &[u8]) -> Result<Changes, Error> {
        let position = position_of(&self.state.root, name)?;
        self.changes_from(&position)
    }

    /// What the commits after `since` changed, whoever asks, as far back as the spine is kept.
    ///
    /// # Errors
    /// [`crate::Cause::Gone`] if it is not kept that far back; as [`Changes::next_commit`].
    pub fn changes_since(&mut self, since: CommitNumber) -> Result<Changes, Error> {
        let followers: Vec<Position> = followers_of(&self.state.root).map(|(_, position)| position).collect();
        let kept = followers.into_iter().filter(|position| position.is_kept(&self.state.space));
        let mut starts: Vec<Position> = kept.chain([Position(self.base.clone())]).collect();
        starts.order_stably_by_key(|position| position.0.commit);
        let oldest = starts.first().map_or(0, |position| position.0.commit);
        let start = starts.into_iter().rfind(|position| position.0.commit <= since.0);
        let start = start.ok_or_else(|| Error::from(Cause::Gone { commit: since.0, oldest }))?;
        let mut changes = self.changes_from(&start)?;
        while changes.walker.end.commit < since.0.min(self.end.commit) {
            changes.walker.elements()?;
        }
        Ok(changes)
    }

    fn changes_from(&mut self, position: &Position) -> Result<Changes, Error> {
        if !position.is_kept(&self.state.space) || position.0.commit > self.end.commit {
            return Err(gone(position, self.base.commit));
        }
        let last = self.end.clone();
        Ok(Changes::new(self.snapshot(), position, &last))
    }

    /// Of the spine before a checkpoint what followers still read: the allocation from which on it is kept.
    pub(crate) fn followed_from(&mut self, before: &[Extent]) -> u64 {
        let positions = followers_of(&self.state.root).map(|(_, position)| position);
        let kept = positions.filter(|position| position.is_kept(&self.state.space));
        let Some(oldest) = kept.map(|position| position.first_extent().allocation).min() else { return u64::MAX };
        let bound = FOLLOWED_EXTENTS_MAX.min(self.pages.layout.extents_max / 16);
        let bound = if self.space_is_low() { 0 } else { bound as usize };
        let within = before.get(before.len().saturating_sub(bound)..).unwrap_or_default();
        within.iter().map(|extent| extent.allocation).find(|allocation| *allocation >= oldest).unwrap_or(u64::MAX)
    }
}

impl Recovered {
    /// What the commits changed that a follower has not read, for whoever reads beside a writer. The caller has held a
    /// pin at or below [`Recovered::commit`] since before it was recovered.
    ///
    /// # Errors
    /// As [`Writer::changes`].
    pub fn changes(&self, name: &[u8]) -> Result<Changes, Error> {
        let position = position_of(&self.state.root, name)?;
        if !position.is_kept(&self.state.space) || position.0.commit > self.end.commit {
            return Err(gone(&position, self.base.commit));
        }
        Ok(Changes::new(self.snapshot(), &position, &self.end))
    }
}
