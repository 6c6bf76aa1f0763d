//! The one writer of a volume.
//!
//! ```text
//! begin -> append, create, drop, put ... -> commit: program full pages | flush if many | frame | flush | count
//!                                        -> rollback: nothing on the medium is believed that no frame names
//! ```
//!
//! Invariants:
//! 1. nothing is shown or acknowledged before the opening root is counted, no commit before its frame is durable;
//! 2. a page position to which a write was ever tried in this opening is never written again, rolled back or not;
//! 3. after a failed write or flush every call answers [`Error::Latched`].

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec;
use alloc::vec::Vec;

use counterfoil_flash::Device;
use counterfoil_vault::{Counter, Kind, PageKey, Plain};

use crate::frame::{Element, HEAD_BYTES, Head};
use crate::layout::HEADER_EXTENTS;
use crate::opening;
use crate::pages::Pages;
use crate::pending::Pending;
use crate::root::{RecordKey, Root, Run, record_key};
use crate::snapshot::{self, Snapshot};
use crate::space::{Extent, Needs, Owner};
use crate::spine::SpineEnd;
use crate::state::State;
use crate::store::CheckpointStore;
use crate::window::HeaderKeeper;
use crate::{CommitNumber, ContainerId, Error, GroupId, View};

/// Up to this many pages are listed in the frame and made durable by its flush; more get a flush of their own.
const UNFLUSHED_MAX: usize = 16;
/// Frames after which a checkpoint is due, so that recovery stays short.
const FRAMES_BETWEEN_CHECKPOINTS: u64 = 1024;
/// Frames after which closing makes a checkpoint, so that the next open finds little to follow.
const FRAMES_BEFORE_CLOSING_CHECKPOINT: u64 = 64;
/// Spine extents after which a checkpoint is due, however few frames they hold.
const SPINE_EXTENTS_MAX: usize = 8;
/// Longest name of a record.
pub const RECORD_NAME_BYTES_MAX: usize = 255;
/// Longest value of a record.
pub const RECORD_VALUE_BYTES_MAX: usize = 1 << 20;

/// Which commits other processes still read.
pub trait Pins: Send {
    /// The lowest commit that a reader outside this process holds.
    fn oldest(&mut self) -> Option<u64>;
}

/// No other process reads.
pub struct NoPins;

impl Pins for NoPins {
    fn oldest(&mut self) -> Option<u64> {
        None
    }
}

/// Milliseconds that pass, from wherever they are counted.
pub type Clock = Box<dyn Fn() -> u64 + Send>;

/// When the counter takes its step.
pub enum Counting {
    /// With every commit, before it is acknowledged: nothing acknowledged can be undone unnoticed.
    EveryCommit,
    /// For all commits of so many milliseconds together: those of the group that is open can. A counter that holds no
    /// tag counts every commit all the same.
    Every {
        /// How long a group stays open.
        milliseconds: u64,
        /// The clock.
        clock: Clock,
    },
}

/// Everything a writer needs besides the pages.
pub struct Settings {
    /// The one-way counter; none where the database has none.
    pub counter: Option<Box<dyn Counter + Send>>,
    /// When it takes its step.
    pub counting: Counting,
    /// Who else reads.
    pub pins: Box<dyn Pins>,
    /// Who keeps the headers; without one the record store's window does not grow.
    pub headers: Option<Box<dyn HeaderKeeper>>,
}

/// The pages a container may fill next: granted to it alone, so that its runs are long.
pub(crate) struct Grant {
    extent: Extent,
    next: u32,
    end: u32,
    key: PageKey,
}

/// Where the next pages of a group come from.
struct Tip {
    extent: Extent,
    next: u32,
}

/// A point within a transaction to go back to.
#[derive(Clone)]
pub struct Savepoint {
    pending: Pending,
    /// Never used again: a savepoint of another transaction, or one that was gone back behind, is none of ours.
    number: u64,
    /// Extents that the transaction had been granted.
    granted: usize,
}

/// The one writer of a volume.
pub struct Writer {
    pub(crate) pages: Arc<Pages>,
    pub(crate) device: Box<dyn Device + Send>,
    pub(crate) store: CheckpointStore,
    pub(crate) settings: Settings,
    pub(crate) state: State,
    pub(crate) end: SpineEnd,
    /// The end of the spine as the last checkpoint has it: recovery begins there.
    pub(crate) base: SpineEnd,
    /// The value of the counter.
    pub(crate) counted: u64,
    pub(crate) spine_key: PageKey,
    pending: Option<Pending>,
    /// The savepoints of the commit under way, and the number of the next one.
    savepoints: Vec<u64>,
    next_savepoint: u64,
    /// Extents that the commit under way was granted, in order.
    granted: Vec<(Extent, GroupId)>,
    tips: BTreeMap<GroupId, Tip>,
    pub(crate) grants: BTreeMap<ContainerId, Grant>,
    readers: Vec<(u64, Weak<Root>)>,
    /// Those of the readers that see a commit in the making.
    previews: Vec<Weak<Root>>,
    /// Bytes that the records of the last commit need in the record store.
    pub(crate) record_bytes: u64,
    /// Whether the commit under way is to give space back.
    frees: bool,
    group_opened: Option<u64>,
    /// Whether frames were written behind the last flush.
    unflushed: bool,
    frames_since_checkpoint: u64,
    /// While the record store moves, nothing is written to the window it leaves.
    pub(crate) window_moves: bool,
    pub(crate) failed: bool,
    /// Pages of the checkpoint that this opening made good.
    pub(crate) mended: u32,
}

impl Writer {
    /// A writer over a volume whose opening root is durable and counted.
    pub(crate) fn new(
        pages: Arc<Pages>,
        device: Box<dyn Device + Send>,
        store: CheckpointStore,
        settings: Settings,
        state: State,
        (base, end): (SpineEnd, SpineEnd),
    ) -> Result<Writer, Error> {
        let extent = end.extent.ok_or(Error::Misuse("a writer needs an opening root"))?;
        let spine_key = pages.vault.page_key(Kind::Frame, extent.allocation, &end.epoch);
        let size = |(key, value): (&RecordKey, &Arc<[u8]>)| store.bytes_of(key.len(), value.len());
        let record_bytes = state.root.records.iter().map(size).sum();
        Ok(Writer {
            record_bytes,
            counted: end.version,
            pages,
            device,
            store,
            settings,
            state,
            frames_since_checkpoint: end.commit.saturating_sub(base.commit),
            end,
            base,
            spine_key,
            pending: None,
            savepoints: Vec::new(),
            next_savepoint: 0,
            granted: Vec::new(),
            tips: BTreeMap::new(),
            grants: BTreeMap::new(),
            readers: Vec::new(),
            previews: Vec::new(),
            frees: false,
            group_opened: None,
            unflushed: false,
            window_moves: false,
            failed: false,
            mended: 0,
        })
    }

    /// Begins a commit.
    ///
    /// # Errors
    /// [`Error::Misuse`] if one was begun already, [`Error::Latched`].
    pub fn begin(&mut self) -> Result<(), Error> {
        self.require_sound()?;
        if self.pending.is_some() {
            return Err(Error::Misuse("a commit was begun already"));
        }
        self.pending = Some(Pending::new(self.state.root.clone()));
        self.frees = false;
        Ok(())
    }

    /// Begins a commit that is to give space back, so that its containers may be granted what is kept for such:
    /// deletions, and what comes of them.
    ///
    /// # Errors
    /// As [`Writer::begin`].
    pub fn begin_to_free(&mut self) -> Result<(), Error> {
        self.begin()?;
        self.frees = true;
        Ok(())
    }

    /// The commit that was begun does more than give space back: what is kept for deletions is not granted to it from
    /// here on.
    pub fn no_longer_only_frees(&mut self) {
        self.frees = false;
    }

    /// Whether the commit begun last was one that only gives space back.
    pub fn only_frees(&self) -> bool {
        self.frees
    }

    /// Whether a commit was begun.
    pub fn is_active(&self) -> bool {
        self.pending.is_some()
    }

    pub(crate) fn require_sound(&self) -> Result<(), Error> {
        self.pages.require_same_process()?;
        self.require_no_failure()
    }

    fn require_no_failure(&self) -> Result<(), Error> {
        if self.failed { Err(Error::Latched) } else { Ok(()) }
    }

    pub(crate) fn pending_mut(&mut self) -> Result<&mut Pending, Error> {
        self.require_no_failure()?;
        self.pending.as_mut().ok_or(Error::Misuse("no commit was begun"))
    }

    fn current(&self) -> &Root {
        self.pending.as_ref().map_or(&self.state.root, |pending| &pending.root)
    }

    /// Makes a reclaim group: containers that die together.
    ///
    /// # Errors
    /// [`Error::Misuse`] outside a commit, [`Error::Latched`].
    pub fn create_group(&mut self) -> Result<GroupId, Error> {
        self.pending_mut()?.create_group()
    }

    /// Drops a group with all its containers.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is none, [`Error::Misuse`] outside a commit, [`Error::Latched`].
    pub fn drop_group(&mut self, group: GroupId) -> Result<(), Error> {
        self.pending_mut()?.drop_group(group)
    }

    /// Makes an empty container in a group.
    ///
    /// # Errors
    /// As [`Writer::drop_group`].
    pub fn create_container(&mut self, group: GroupId) -> Result<ContainerId, Error> {
        self.pending_mut()?.create_container(group)
    }

    /// Appends bytes to a container and tells the offset at which they begin.
    ///
    /// # Errors
    /// [`Error::Full`], after which the caller rolls back; [`Error::Corrupt`] if there is no such container;
    /// [`Error::Misuse`], [`Error::Latched`], [`Error::Device`].
    pub fn append(&mut self, id: ContainerId, bytes: &[u8]) -> Result<u64, Error> {
        let payload = self.pages.layout.payload();
        let container = self.pending_mut()?.touch(id)?;
        let offset = container.pages * payload as u64 + container.tail.len() as u64;
        let mut rest = bytes;
        loop {
            let page_bytes = self.pages.layout.page_bytes as usize;
            let tail = &mut self.pending_mut()?.root.container_mut(id)?.tail;
            let room = payload - tail.len();
            if rest.len() < room {
                tail.extend_from_slice(rest);
                return Ok(offset);
            }
            let mut page = vec![0; page_bytes];
            let filled = tail.len();
            page[..filled].copy_from_slice(tail);
            page[filled..payload].copy_from_slice(&rest[..room]);
            rest = &rest[room..];
            self.program_page(id, &mut page)?;
        }
    }

    /// Seals and programs the next page of a container, whose tail it takes with it.
    fn program_page(&mut self, id: ContainerId, page: &mut [u8]) -> Result<(), Error> {
        let (extent, position, tag) = self.place_page(id, page)?;
        let pending = self.pending.as_mut().ok_or(Error::Misuse("no commit was begun"))?;
        let container = pending.root.container_mut(id)?;
        let number = container.pages;
        container.add_pages(Run {
            first: number,
            extent: extent.number,
            position,
            pages: 1,
            allocation: extent.allocation,
            epoch: self.end.epoch.number,
        });
        container.tail.clear();
        pending.programmed(id, number, tag);
        Ok(())
    }

    fn place_page(&mut self, id: ContainerId, page: &mut [u8]) -> Result<(Extent, u32, counterfoil_vault::Tag), Error> {
        self.require_sound()?;
        if self.grants.get(&id).is_none_or(|grant| grant.next == grant.end) {
            let grant = self.grant_pages(id)?;
            self.grants.insert(id, grant);
        }
        let grant = self.grants.get_mut(&id).ok_or(Error::Misuse("a container without pages"))?;
        let position = grant.next;
        // From here on the position counts as tried, whatever becomes of the write.
        grant.next += 1;
        let sealed = grant.key.seal(position, Plain::new(page));
        let address = self.pages.layout.page(grant.extent.number, position);
        let tag = sealed.tag();
        let written = self.device.program(address, sealed.bytes());
        let extent = grant.extent;
        self.latch_on_error(written)?;
        Ok((extent, position, tag))
    }

    /// Pages for a container: the more it has, the more at once, up to a whole extent.
    fn grant_pages(&mut self, id: ContainerId) -> Result<Grant, Error> {
        let (group, pages) = self.current().container(id).map(|container| (container.group, container.pages))?;
        let extent_pages = self.pages.layout.extent_pages;
        if !self.tips.contains_key(&group) {
            let none = Tip { extent: Extent { number: 0, allocation: 0 }, next: extent_pages };
            let tip = self.resume_tip(group).unwrap_or(none);
            self.tips.insert(group, tip);
        }
        if self.tips.get(&group).is_none_or(|tip| tip.next >= extent_pages) {
            let extent = self.grant_extent(Owner::Group(group))?;
            self.granted.push((extent, group));
            self.tips.insert(group, Tip { extent, next: 0 });
        }
        let in_order = self.device.geometry().erase_before_program;
        let wanted = if in_order { 1 } else { (pages / 4).clamp(1, u64::from(extent_pages)) as u32 };
        let epoch = self.end.epoch;
        let tip = self.tips.get_mut(&group).ok_or(Error::Misuse("a group without extents"))?;
        let (next, end) = (tip.next, extent_pages.min(tip.next + wanted));
        tip.next = end;
        let key = self.pages.vault.page_key(Kind::Container, tip.extent.allocation, &epoch);
        Ok(Grant { extent: tip.extent, next, end, key })
    }

    /// Where an earlier opening left off in a group. Its pages carry that opening's epoch and the new ones ours, so
    /// no key meets a position twice; media that need an erase first begin a fresh extent instead.
    fn resume_tip(&self, group: GroupId) -> Option<Tip> {
        if self.device.geometry().erase_before_program {
            return None;
        }
        let containers = self.state.root.containers.values().filter(|container| container.group == group);
        let runs = containers.flat_map(|container| container.runs.iter());
        let last = runs.max_by_key(|run| (run.allocation, run.position))?;
        let extent = Extent { number: last.extent, allocation: last.allocation };
        Some(Tip { extent, next: last.position + last.pages })
    }

    /// Grants an extent and makes it writable. The last ones are for the spine, and those before them for commits that
    /// are to free others: a full volume takes deletions.
    pub(crate) fn grant_extent(&mut self, owner: Owner) -> Result<Extent, Error> {
        let reserve = self.pages.layout.reserve_extents();
        let keep = match owner {
            Owner::Group(_) if self.frees => reserve,
            Owner::Group(_) => 2 * reserve,
            _ => 0,
        };
        let needs = self.needs();
        let granted =
            opening::grant(&mut *self.device, &self.pages.layout, &mut self.state.space, owner, (needs, keep));
        self.failed |= matches!(granted, Err(Error::Device(_)));
        granted
    }

    fn needs(&mut self) -> Needs {
        Needs { counted: self.counted, oldest_pin: self.oldest_pin() }
    }

    /// Whether the last extents are being granted.
    pub(crate) fn space_is_low(&mut self) -> bool {
        let needs = self.needs();
        !self.state.space.has_left(needs, 2 * self.pages.layout.reserve_extents())
    }

    fn oldest_pin(&mut self) -> Option<u64> {
        self.readers.retain(|(_, root)| root.strong_count() > 0);
        let here = self.readers.iter().map(|(commit, _)| *commit).min();
        match (here, self.settings.pins.oldest()) {
            (Some(here), Some(there)) => Some(here.min(there)),
            (here, there) => here.or(there),
        }
    }

    pub(crate) fn latch_on_error<T>(&mut self, result: Result<T, counterfoil_flash::Error>) -> Result<T, Error> {
        result.map_err(|error| {
            self.failed = true;
            error.into()
        })
    }

    /// Gives a record a value.
    ///
    /// # Errors
    /// [`Error::TooLarge`] beyond [`RECORD_NAME_BYTES_MAX`] and [`RECORD_VALUE_BYTES_MAX`], [`Error::Misuse`],
    /// [`Error::Latched`]. Whether all records fit together is asked by [`Writer::commit`].
    pub fn put_record(&mut self, space: u8, name: &[u8], value: &[u8]) -> Result<(), Error> {
        for (bytes, bytes_max) in [(name.len(), RECORD_NAME_BYTES_MAX), (value.len(), RECORD_VALUE_BYTES_MAX)] {
            if bytes > bytes_max {
                return Err(Error::TooLarge { bytes: bytes as u64, bytes_max: bytes_max as u64 });
            }
        }
        if space == crate::view::space::LOG {
            return Err(Error::Misuse("this record space is the log's own"));
        }
        self.pending_mut()?.change_record(record_key(space, name), Some(value));
        Ok(())
    }

    /// Removes a record; without one of that name nothing happens.
    ///
    /// # Errors
    /// [`Error::Misuse`] outside a commit, [`Error::Latched`].
    pub fn delete_record(&mut self, space: u8, name: &[u8]) -> Result<(), Error> {
        self.pending_mut()?.change_record(record_key(space, name), None);
        Ok(())
    }

    /// A point to go back to.
    ///
    /// # Errors
    /// [`Error::Misuse`] outside a commit, [`Error::Latched`].
    pub fn savepoint(&mut self) -> Result<Savepoint, Error> {
        let pending = self.pending_mut()?.clone();
        let number = self.next_savepoint;
        self.next_savepoint += 1;
        self.savepoints.push(number);
        Ok(Savepoint { pending, number, granted: self.granted.len() })
    }

    /// Undoes everything since `savepoint`.
    ///
    /// # Errors
    /// As [`Writer::savepoint`]; [`Error::Misuse`] also for a savepoint of another commit, or one that was made after
    /// a savepoint that was gone back to.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<(), Error> {
        self.pending_mut()?;
        let Some(place) = self.savepoints.iter().position(|number| *number == savepoint.number) else {
            return Err(Error::Misuse("this savepoint is of another commit, or behind one that was gone back to"));
        };
        self.savepoints.truncate(place + 1);
        self.pending = Some(savepoint.pending.clone());
        self.give_back(savepoint.granted);
        Ok(())
    }

    /// Undoes everything since [`Writer::begin`].
    pub fn rollback(&mut self) {
        if self.pending.take().is_some() {
            self.savepoints.clear();
            self.give_back(0);
        }
    }

    /// Takes back all extents but the first `keep` that the commit under way was granted, and what was to be written
    /// to them. The positions tried in older extents stay tried.
    fn give_back(&mut self, keep: usize) {
        let commit = self.needed_before();
        for (extent, group) in self.granted.split_off(keep) {
            self.state.space.cancel(extent.number, commit);
            if let Some(tip) = self.tips.get_mut(&group)
                && tip.extent == extent
            {
                tip.next = self.pages.layout.extent_pages;
            }
            self.grants.retain(|_, grant| grant.extent != extent);
        }
        self.forget_the_gone();
    }

    /// Drops what was noted for groups and containers that are no more. A group that the commit under way drops may
    /// come back, and which of its positions were tried must be known then.
    fn forget_the_gone(&mut self) {
        let (groups, containers) = (self.current().groups.clone(), self.current().containers.clone());
        self.tips.retain(|group, _| groups.contains(group) || self.state.root.groups.contains(group));
        self.grants.retain(|id, _| containers.contains_key(id));
    }

    /// Readers pinned before this commit may see what the commit under way wrote.
    fn needed_before(&mut self) -> u64 {
        self.previews.retain(|root| root.strong_count() > 0);
        if self.previews.is_empty() { 0 } else { self.state.root.commit + 1 }
    }

    /// Makes everything since [`Writer::begin`] durable, at once or not at all.
    ///
    /// # Errors
    /// [`Error::Full`] before anything was written: the commit is still there to be rolled back.
    /// [`Error::Device`] and [`Error::CounterLost`] latch: whether the commit stands is known after the next open.
    pub fn commit(&mut self) -> Result<CommitNumber, Error> {
        self.commit_as(true)
    }

    /// As [`Writer::commit`], but does not wait for the medium: the commit becomes durable with the next one that is,
    /// or with the counter's next step. A cut before that may undo the last of such commits, each as a whole.
    ///
    /// # Errors
    /// As [`Writer::commit`].
    pub fn commit_soon(&mut self) -> Result<CommitNumber, Error> {
        self.commit_as(false)
    }

    fn commit_as(&mut self, durable: bool) -> Result<CommitNumber, Error> {
        self.require_sound()?;
        let pending = self.pending_mut()?;
        if pending.is_empty() {
            self.rollback();
            return Ok(CommitNumber(self.end.commit));
        }
        if pending.unflushed_count() > UNFLUSHED_MAX {
            let flushed = self.device.flush();
            self.latch_on_error(flushed)?;
            self.pending_mut()?.flushed();
        }
        let Some(pending) = self.pending.take() else { return Err(Error::Misuse("no commit was begun")) };
        let record_bytes = self.record_bytes_after(&pending);
        let written = self
            .require_room_for_records(record_bytes)
            .and_then(|()| pending.encode(&self.granted, self.pages.layout.payload()))
            .and_then(|elements| {
                // A frame that lists pages is flushed in any case: recovery looks for such pages of the last frame only.
                let durable = durable || pending.unflushed_count() > 0;
                self.write_frame(&elements, self.end.checkpoint, durable)
            });
        if let Err(error) = written {
            self.pending = Some(pending);
            return Err(error);
        }
        self.adopt(pending)?;
        let changed = self.record_bytes != record_bytes;
        self.record_bytes = record_bytes;
        self.count_if_due()?;
        self.tidy(changed)?;
        Ok(CommitNumber(self.state.root.commit))
    }

    /// What is due now and then after a commit, which stands: where there is no room, it waits.
    fn tidy(&mut self, records_changed: bool) -> Result<(), Error> {
        if self.window_moves {
            return Ok(());
        }
        let record_bytes = self.record_bytes;
        let grows = records_changed && self.store.is_small_for(record_bytes) && self.settings.headers.is_some();
        let done = if grows && self.room_for(record_bytes) {
            self.grow_window(record_bytes)
        } else if self.checkpoint_is_due() {
            self.checkpoint()
        } else {
            Ok(())
        };
        self.unless_full(done)
    }

    /// No room for a checkpoint: the spine stays longer, until there is.
    fn unless_full(&mut self, done: Result<(), Error>) -> Result<(), Error> {
        match done {
            Err(Error::Full { .. }) if !self.failed => {
                self.frames_since_checkpoint = 0;
                Ok(())
            }
            other => other,
        }
    }

    /// Bytes that the records need in the record store when this commit is done.
    fn record_bytes_after(&self, pending: &Pending) -> u64 {
        pending.records_changed().iter().fold(self.record_bytes, |bytes, key| {
            let size =
                |root: &Root| root.records.get(key).map_or(0, |value| self.store.bytes_of(key.len(), value.len()));
            bytes + size(&pending.root) - size(&self.state.root)
        })
    }

    /// The frame is durable: what was pending is what the volume is.
    fn adopt(&mut self, pending: Pending) -> Result<(), Error> {
        let (commit, version) = (self.end.commit, self.end.version);
        let changed = &mut self.state.changed;
        changed.records.extend(pending.records_changed().iter().cloned());
        changed.containers.extend(pending.containers_touched());
        changed.groups.extend(pending.groups_created());
        for group in pending.groups_dropped() {
            let dying = self.state.root.containers.iter().filter(|(_, container)| container.group == *group);
            changed.containers.extend(dying.map(|(id, _)| *id));
            changed.groups.insert(*group);
            self.state.space.release_group(*group, commit, version)?;
        }
        let untold = core::mem::take(&mut self.granted).into_iter().filter(|(_, group)| !pending.tells_of(*group));
        for (extent, _) in untold {
            self.state.space.cancel(extent.number, commit);
        }
        self.savepoints.clear();
        let shrank = pending.root.groups.len() < self.tips.len() || !pending.groups_dropped().is_empty();
        self.state.root = Root { commit, version, ..pending.root };
        if shrank {
            self.forget_the_gone();
        }
        Ok(())
    }

    /// Writes a frame behind the last one and, if asked, makes it durable together with those before it.
    pub(crate) fn write_frame(&mut self, elements: &[u8], checkpoint: u64, durable: bool) -> Result<(), Error> {
        self.require_sound()?;
        let layout = self.pages.layout;
        let capacity = layout.payload() - HEAD_BYTES;
        let pages = elements.len().div_ceil(capacity).max(1);
        let mut reserves = self.reserve_spine(pages)?;
        let version = self.counted + 1;
        let closed = self.end.closed_for(version);
        let mut page = vec![0; layout.page_bytes as usize];
        for index in 0..pages {
            if self.end.position >= layout.extent_pages {
                let Some(reserve) = reserves.pop() else { return Err(Error::Misuse("the spine has no next extent")) };
                self.move_spine(reserve);
            }
            let part = &elements[index * capacity..elements.len().min((index + 1) * capacity)];
            let head = Head {
                commit: self.state.root.commit + 1,
                version,
                previous: self.end.tag,
                closed,
                checkpoint,
                next: self.end.next,
                last: index + 1 == pages,
                opening: false,
                used: part.len() as u32,
                index: index as u32,
            };
            self.write_spine_page(&head, part, &mut page)?;
        }
        self.unflushed = true;
        if durable {
            self.flush_frames()?;
        }
        self.frames_since_checkpoint += 1;
        (self.end.commit, self.end.version, self.end.closed) = (self.state.root.commit + 1, version, closed);
        (self.end.checkpoint, self.end.opening) = (checkpoint, false);
        self.state.root.commit = self.end.commit;
        self.state.root.version = version;
        Ok(())
    }

    /// Makes the frames durable that are not yet.
    pub(crate) fn flush_frames(&mut self) -> Result<(), Error> {
        if self.unflushed {
            let flushed = self.device.flush();
            self.latch_on_error(flushed)?;
            self.unflushed = false;
        }
        Ok(())
    }

    /// The extents that a frame of so many pages will need, the first one last.
    fn reserve_spine(&mut self, pages: usize) -> Result<Vec<Extent>, Error> {
        let extent_pages = self.pages.layout.extent_pages;
        let left = (extent_pages - self.end.position) as usize;
        let mut reserves = Vec::new();
        for _ in 0..pages.saturating_sub(left).div_ceil(extent_pages as usize) {
            match self.grant_extent(Owner::Spine) {
                Ok(extent) => reserves.push(extent),
                Err(error) => {
                    reserves.iter().for_each(|extent| self.state.space.cancel(extent.number, 0));
                    return Err(error);
                }
            }
        }
        reserves.reverse();
        Ok(reserves)
    }

    fn move_spine(&mut self, reserve: Extent) {
        let extent = self.end.next;
        self.end.extent = Some(extent);
        self.end.position = 0;
        self.end.next = reserve;
        self.spine_key = self.pages.vault.page_key(Kind::Frame, extent.allocation, &self.end.epoch);
    }

    fn write_spine_page(&mut self, head: &Head, elements: &[u8], page: &mut [u8]) -> Result<(), Error> {
        let extent = self.end.extent.ok_or(Error::Misuse("the spine has no extent"))?;
        page.fill(0);
        page[..HEAD_BYTES].copy_from_slice(&head.encode());
        page[HEAD_BYTES..HEAD_BYTES + elements.len()].copy_from_slice(elements);
        let position = self.end.position;
        let sealed = self.spine_key.seal(position, Plain::new(page));
        let tag = sealed.tag();
        let written = self.device.program(self.pages.layout.page(extent.number, position), sealed.bytes());
        self.latch_on_error(written)?;
        self.end.position += 1;
        self.end.tag = tag;
        Ok(())
    }

    /// Lets the counter take its step where it is due.
    fn count_if_due(&mut self) -> Result<(), Error> {
        match &self.settings.counting {
            Counting::EveryCommit => self.count(),
            Counting::Every { milliseconds, clock } => {
                let now = clock();
                let opened = *self.group_opened.get_or_insert(now);
                if now.saturating_sub(opened) >= *milliseconds { self.count() } else { Ok(()) }
            }
        }
    }

    /// Closes the group of commits: from now on an image without them is refused.
    ///
    /// # Errors
    /// [`Error::CounterLost`], which latches.
    pub fn count(&mut self) -> Result<(), Error> {
        self.require_sound()?;
        self.group_opened = None;
        if self.counted == self.end.version {
            return Ok(());
        }
        self.flush_frames()?;
        if let Some(counter) = &mut self.settings.counter
            && let Err(error) = counter.step(self.end.version, &self.end.tag)
        {
            self.failed = true;
            return Err(Error::CounterLost { image: self.end.version, reason: alloc::format!("{error}") });
        }
        self.counted = self.end.version;
        Ok(())
    }

    /// Takes a counter that was kept back until now, and binds it to the last commit, wherever it stood.
    pub(crate) fn bind(&mut self, mut counter: Box<dyn Counter + Send>) -> Result<(), Error> {
        self.flush_frames()?;
        self.group_opened = None;
        let end = &self.end;
        let adopted = counter.adopt(end.version, &end.tag).and_then(|()| opening::wants_every_commit(&mut *counter));
        let every_commit = adopted.map_err(|error| opening::lost(end, &error)).inspect_err(|_| self.failed = true)?;
        if every_commit {
            self.settings.counting = Counting::EveryCommit;
        }
        self.settings.counter = Some(counter);
        self.counted = self.end.version;
        Ok(())
    }

    /// Right after an opening: openings that were cut short again and again leave a long spine behind.
    pub(crate) fn shorten_spine_if_long(&mut self) -> Result<(), Error> {
        if self.spine_extents() <= 2 * SPINE_EXTENTS_MAX && (self.spine_extents() <= 3 || !self.space_is_low()) {
            return Ok(());
        }
        let done = self.checkpoint();
        self.unless_full(done)
    }

    fn checkpoint_is_due(&mut self) -> bool {
        self.frames_since_checkpoint >= FRAMES_BETWEEN_CHECKPOINTS
            || (self.spine_extents() > 3 && self.space_is_low())
            || (self.end.position >= self.pages.layout.extent_pages / 2 && self.spine_extents() > SPINE_EXTENTS_MAX)
    }

    /// Extents of the spine that recovery would go through.
    fn spine_extents(&self) -> usize {
        let space = &self.state.space;
        let first = self.base.extent.unwrap_or(self.base.next).allocation;
        let spine = space.owned_by(Owner::Spine).filter(|extent| space.allocation(*extent) >= Some(first));
        spine.count()
    }

    /// Folds everything since the last checkpoint into the record store, so that the spine before it can be reused.
    ///
    /// A cut between the record store's commit and the frame that names it leaves a checkpoint that is not named
    /// yet: it tells of the same commit as the frames before it, and either is a good beginning.
    ///
    /// # Errors
    /// [`Error::Misuse`] while a commit is under way, [`Error::Full`], [`Error::Device`], [`Error::CounterLost`].
    pub fn checkpoint(&mut self) -> Result<(), Error> {
        self.require_sound()?;
        if self.pending.is_some() {
            return Err(Error::Misuse("a commit is under way"));
        }
        if self.window_moves {
            return Err(Error::Misuse("the record store is moving"));
        }
        self.flush_frames()?;
        self.state.root.forget_epochs(self.end.epoch.number);
        loop {
            match self.write_checkpoint() {
                Ok(version) => {
                    self.base = self.end.clone();
                    return self.name_checkpoint(version);
                }
                Err(Error::Full { .. }) if self.make_room_for_checkpoint()? => {}
                Err(Error::Full { .. }) if self.settings.headers.is_some() => return self.grow_window(0),
                Err(full @ Error::Full { .. }) => return Err(full),
                Err(error) => {
                    self.failed = true;
                    return Err(error);
                }
            }
        }
    }

    /// Writes what changed since the last checkpoint to the record store. Whatever hinders it, the next one writes
    /// all of it: its spine begins where this one's would have, or later.
    fn write_checkpoint(&mut self) -> Result<u64, Error> {
        let before = (self.state.changed.clone(), self.state.space.changed());
        let changes = crate::checkpoint::encode(&mut self.state, &self.end);
        let written = self.store.commit(&mut *self.device, &self.pages.vault, self.end.epoch, &changes);
        written.inspect_err(|_| {
            self.state.changed = before.0;
            self.state.space.note_changed(before.1);
        })
    }

    /// Lets the record store move what is live together. The checkpoint that comes of it tells what the one before
    /// told, so the spine stays as it is; only the record store's own space is given back.
    fn make_room_for_checkpoint(&mut self) -> Result<bool, Error> {
        let prepared = self.store.prepare(&mut *self.device, &self.pages.vault, self.end.epoch);
        let Some(version) = prepared.inspect_err(|_| self.failed = true)? else { return Ok(false) };
        self.write_frame(&[], version, true)?;
        self.count()?;
        self.store.release(version);
        Ok(true)
    }

    /// Writes the frame that names a checkpoint and frees the spine before it.
    fn name_checkpoint(&mut self, version: u64) -> Result<(), Error> {
        let needed_from = self.end.extent.unwrap_or(self.end.next).allocation;
        let mut before = self.state.space.spine();
        before.retain(|extent| extent.allocation < needed_from);
        let followed_from = self.followed_from(&before);
        let unread = before.iter().filter(|extent| extent.allocation < followed_from);
        let freed: Vec<u32> = unread.map(|extent| extent.number).chain(self.stray_windows()).collect();
        let mut elements = Vec::new();
        freed.iter().for_each(|number| Element::ExtentFreed(*number).encode(&mut elements));
        self.write_frame(&elements, version, true)?;
        for number in freed {
            self.state.space.release(number, self.end.commit, self.end.version)?;
        }
        self.count()?;
        self.store.release(version);
        self.frames_since_checkpoint = 0;
        Ok(())
    }

    /// Extents of windows that the record store moved away from, or never moved to, because a cut came between.
    fn stray_windows(&self) -> impl Iterator<Item = u32> + '_ {
        let window = self.store.layout().window();
        let fixed = self.state.space.owned_by(Owner::Fixed);
        fixed.filter(move |extent| *extent >= HEADER_EXTENTS && !window.contains(extent))
    }

    /// The last commit, to be read for as long as anybody likes.
    pub fn snapshot(&mut self) -> Snapshot {
        let root = self.state.root.clone();
        self.hand_out(root)
    }

    /// What a reader would see if the commit under way were done now.
    pub fn pending(&mut self) -> Snapshot {
        let root = self.current().clone();
        let snapshot = self.hand_out(root);
        if self.pending.is_some() {
            self.previews.retain(|root| root.strong_count() > 0);
            self.previews.push(Arc::downgrade(&snapshot.root));
        }
        snapshot
    }

    fn hand_out(&mut self, root: Root) -> Snapshot {
        let root = Arc::new(root);
        if self.readers.len() >= 64 {
            self.readers.retain(|(_, root)| root.strong_count() > 0);
        }
        self.readers.push((root.commit, Arc::downgrade(&root)));
        Snapshot { root, pages: self.pages.clone() }
    }

    /// Leaves the volume so that the next open is quick, and closes the group of commits. What is under way is
    /// rolled back.
    ///
    /// # Errors
    /// As [`Writer::checkpoint`].
    pub fn close(&mut self) -> Result<(), Error> {
        self.rollback();
        if self.frames_since_checkpoint >= FRAMES_BEFORE_CLOSING_CHECKPOINT || self.spine_extents() > SPINE_EXTENTS_MAX
        {
            let done = self.checkpoint();
            self.unless_full(done)?;
        }
        self.count()
    }

    /// Pages of the checkpoint of which one copy was lost, and which this opening wrote again from the other one.
    pub fn mended_pages(&self) -> u32 {
        self.mended
    }

    /// Extents that the volume reaches up to.
    pub fn extents(&self) -> u32 {
        self.state.space.len()
    }

    /// Asserts the invariants of root and space.
    pub fn check(&self) {
        self.state.root.check(self.pages.layout.payload());
        self.state.space.check();
        let records = self.state.root.records.iter();
        let bytes: u64 = records.map(|(key, value)| self.store.bytes_of(key.len(), value.len())).sum();
        assert_eq!(bytes, self.record_bytes, "records are measured as they change");
    }
}

impl View for Writer {
    fn length(&self, container: ContainerId) -> Result<u64, Error> {
        snapshot::length(self.current(), self.pages.layout.payload(), container)
    }

    fn read(&self, container: ContainerId, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.pages.read(self.current(), container, offset, buffer)
    }

    fn record(&self, space: u8, name: &[u8]) -> Option<Arc<[u8]>> {
        self.current().records.get(&record_key(space, name)).cloned()
    }

    fn records(&self, space: u8, prefix: &[u8]) -> Vec<(Vec<u8>, Arc<[u8]>)> {
        snapshot::records(self.current(), space, prefix)
    }

    fn commit_number(&self) -> CommitNumber {
        CommitNumber(self.state.root.commit)
    }
}
