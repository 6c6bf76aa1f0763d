//! The one writer of a volume.
//!
//! ```text
//! begin -> append, create, drop, put ... -> commit: program full pages | flush if many | frame | flush | count
//!                                        -> rollback: nothing on the medium is believed that no frame names
//! ```
//!
//! Invariants:
//! 1. nothing is shown or acknowledged before the opening root is counted, no commit before its frame is durable;
//! 2. a page position of spine or container to which a write was ever tried in this opening is never written again,
//!    rolled back or not; a nameless page is, but never under a write number that was tried in this opening;
//! 3. after a failed write or flush every call answers [`Error::latched`], after a step that the counter did not take
//!    what that answered.
//!
//! What a caller does is here; where pages go (`placing`), how frames are written (`framing`), when the counter steps
//! (`counting`) and how checkpoints are made (`folding`) is in files of their own.

mod counting;
mod folding;
mod framing;
mod nameless;
mod placing;

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use counterfoil_flash::Device;
use counterfoil_vault::{Counter, Kind, PageKey};

use crate::checkpoint;
use crate::frame::Each;
use crate::maps::{Map, Set};
use crate::pages::Pages;
use crate::pending::{Granted, Pending};
use crate::pool::{NamelessPage, PoolId};
use crate::recent_keys::RecentKeys;
use crate::record_key::{RecordKey, record_key};
use crate::root::Root;
use crate::snapshot::{self, Snapshot};
use crate::space::{Extent, Owner};
use crate::spare::Spare;
use crate::spine::SpineEnd;
use crate::state::State;
use crate::store::CheckpointStore;
use crate::unflushed::UNFLUSHED_MAX;
use crate::window::HeaderKeeper;
use crate::{Cause, CommitNumber, ContainerId, Error, GroupId, Piece, Sealing, View};

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
    /// Extents that the transaction had been granted, and nameless pages that it had tried.
    granted: usize,
    tried: usize,
}

/// A savepoint that may be gone back to.
#[derive(Clone, Copy)]
struct Mark {
    number: u64,
    /// As in [`Savepoint`].
    granted: usize,
}

/// What a reader was shown of the commit under way.
struct Preview {
    root: Weak<Root>,
    /// Extents that the commit had been granted then: it sees no others.
    granted: usize,
}

impl Preview {
    fn is_held(&self) -> bool {
        self.root.strong_count() > 0
    }
}

/// The one writer of a volume.
pub struct Writer {
    pub(crate) pages: Arc<Pages>,
    pub(crate) device: Box<dyn Device + Send>,
    pub(crate) store: Box<CheckpointStore>,
    pub(crate) settings: Settings,
    pub(crate) state: Box<State>,
    pub(crate) end: SpineEnd,
    /// The end of the spine as the last checkpoint has it: recovery begins there.
    pub(crate) base: SpineEnd,
    /// The value of the counter.
    pub(crate) counted: u64,
    pub(crate) spine_key: PageKey,
    pub(crate) pending: Option<Pending>,
    /// The savepoints of the commit under way, and the number of the next one.
    savepoints: Vec<Mark>,
    /// Groups that the commit under way made and dropped while a savepoint might bring them back.
    held_back: Set<GroupId>,
    next_savepoint: u64,
    /// Extents that the commit under way was granted, in order.
    pub(crate) granted: Vec<Granted>,
    /// Nameless pages to which the commit under way tried a write, in order.
    tried: Vec<(PoolId, u64)>,
    /// What is known of the pools that this opening has written to.
    pub(crate) spares: Map<PoolId, Spare>,
    /// Readers of commits before this one hold all that is free in pools.
    held_since: u64,
    tips: Map<GroupId, Tip>,
    /// Those of containers that have extents for themselves.
    own_tips: Map<ContainerId, Tip>,
    pub(crate) grants: Map<ContainerId, Grant>,
    container_keys: RecentKeys,
    readers: Vec<(u64, Weak<Root>)>,
    /// Those of the readers that see a commit in the making.
    previews: Vec<Preview>,
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
    /// Why the counter could not take its step, where it was that.
    lost: Option<Error>,
    /// Pages of the checkpoint that this opening made good.
    pub(crate) mended: u32,
}

impl Writer {
    /// A writer over a volume whose opening root is durable, and counted unless the image is being bound anew.
    #[inline(never)]
    pub(crate) fn new(
        pages: Arc<Pages>,
        device: Box<dyn Device + Send>,
        store: Box<CheckpointStore>,
        settings: Settings,
        state: Box<State>,
        (base, end): (SpineEnd, SpineEnd),
    ) -> Result<Writer, Error> {
        let extent = end.extent.ok_or_else(|| Error::misuse("a writer needs an opening root"))?;
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
            base,
            spine_key,
            pending: None,
            savepoints: Vec::new(),
            held_back: Set::new(),
            next_savepoint: 0,
            granted: Vec::new(),
            tried: Vec::new(),
            spares: Map::new(),
            held_since: end.commit.saturating_sub(1),
            end,
            tips: Map::new(),
            own_tips: Map::new(),
            grants: Map::new(),
            container_keys: RecentKeys::default(),
            readers: Vec::new(),
            previews: Vec::new(),
            frees: false,
            group_opened: None,
            unflushed: false,
            window_moves: false,
            failed: false,
            lost: None,
            mended: 0,
        })
    }

    /// Begins a commit.
    ///
    /// # Errors
    /// [`Error::misuse`] if one was begun already, [`Error::latched`].
    pub fn begin(&mut self) -> Result<(), Error> {
        self.require_sound()?;
        if self.pending.is_some() {
            return Err(Error::misuse("a commit was begun already"));
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

    /// Whether a commit was begun and would change anything.
    pub fn has_changes(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| !pending.is_empty())
    }

    pub(crate) fn require_sound(&self) -> Result<(), Error> {
        self.pages.require_same_process()?;
        self.require_no_failure()
    }

    fn require_no_failure(&self) -> Result<(), Error> {
        match &self.lost {
            Some(lost) => Err(lost.clone()),
            None if self.failed => Err(Error::latched()),
            None => Ok(()),
        }
    }

    pub(crate) fn pending_mut(&mut self) -> Result<&mut Pending, Error> {
        self.require_no_failure()?;
        self.pending.as_mut().ok_or_else(|| Error::misuse("no commit was begun"))
    }

    pub(crate) fn current(&self) -> &Root {
        self.pending.as_ref().map_or(&self.state.root, |pending| &pending.root)
    }

    /// Makes a reclaim group: containers that die together.
    ///
    /// # Errors
    /// [`Error::misuse`] outside a commit, [`Error::latched`].
    pub fn create_group(&mut self) -> Result<GroupId, Error> {
        self.pending_mut()?.create_group()
    }

    /// Drops a group with all its containers.
    ///
    /// # Errors
    /// [`Error::corrupt`] if there is none, [`Error::misuse`] outside a commit, [`Error::latched`].
    pub fn drop_group(&mut self, group: GroupId) -> Result<(), Error> {
        if self.pending_mut()?.drop_group(group)? {
            self.give_group_back(group);
            if !self.savepoints.is_empty() {
                self.held_back.insert(group);
            }
        }
        Ok(())
    }

    /// Makes an empty container in a group, whose pages are sealed as wholes.
    ///
    /// # Errors
    /// As [`Writer::drop_group`].
    pub fn create_container(&mut self, group: GroupId) -> Result<ContainerId, Error> {
        self.create_container_sealed(group, Sealing::Whole)
    }

    /// Makes an empty container in a group, whose pages are sealed in this way.
    ///
    /// # Errors
    /// As [`Writer::drop_group`].
    pub fn create_container_sealed(&mut self, group: GroupId, sealing: Sealing) -> Result<ContainerId, Error> {
        self.pending_mut()?.create_container(group, sealing)
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
    /// [`crate::Cause::TooLarge`] beyond [`RECORD_NAME_BYTES_MAX`] and [`RECORD_VALUE_BYTES_MAX`], [`Error::misuse`],
    /// [`Error::latched`]. Whether all records fit together is asked by [`Writer::commit`].
    pub fn put_record(&mut self, space: u8, name: &[u8], value: &[u8]) -> Result<(), Error> {
        for (bytes, bytes_max) in [(name.len(), RECORD_NAME_BYTES_MAX), (value.len(), RECORD_VALUE_BYTES_MAX)] {
            if bytes > bytes_max {
                return Err(Error::from(Cause::TooLarge { bytes: bytes as u64, bytes_max: bytes_max as u64 }));
            }
        }
        if space == crate::view::space::LOG {
            return Err(Error::misuse("this record space is the log's own"));
        }
        self.pending_mut()?.change_record(record_key(space, name), Some(value));
        Ok(())
    }

    /// Removes a record; without one of that name nothing happens.
    ///
    /// # Errors
    /// [`Error::misuse`] outside a commit, [`Error::latched`].
    pub fn delete_record(&mut self, space: u8, name: &[u8]) -> Result<(), Error> {
        self.pending_mut()?.change_record(record_key(space, name), None);
        Ok(())
    }

    /// A point to go back to.
    ///
    /// # Errors
    /// [`Error::misuse`] outside a commit, [`Error::latched`].
    pub fn savepoint(&mut self) -> Result<Savepoint, Error> {
        let pending = self.pending_mut()?.clone();
        let number = self.next_savepoint;
        self.next_savepoint += 1;
        let granted = self.granted.len();
        self.savepoints.push(Mark { number, granted });
        Ok(Savepoint { pending, number, granted, tried: self.tried.len() })
    }

    /// Nobody goes back to `savepoint` any more: what was dropped since and is nobody's may be used again within this commit.
    pub fn release(&mut self, savepoint: &Savepoint) {
        self.savepoints.retain(|mark| mark.number != savepoint.number);
        let Some(pending) = &self.pending else { return };
        // One that was brought back since is somebody's.
        let gone = self.held_back.iter().filter(|group| !pending.tells_of(Owner::Group(**group)));
        let gone: Vec<GroupId> = gone.copied().collect();
        gone.iter().for_each(|group| self.give_group_back(*group));
        if self.savepoints.is_empty() {
            self.held_back.clear();
        }
    }

    /// Undoes everything since `savepoint`.
    ///
    /// # Errors
    /// As [`Writer::savepoint`]; [`Error::misuse`] also for a savepoint of another commit, or one that was made after
    /// a savepoint that was gone back to.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<(), Error> {
        self.pending_mut()?;
        let Some(place) = self.savepoints.iter().position(|mark| mark.number == savepoint.number) else {
            return Err(Error::misuse("this savepoint is of another commit, or behind one that was gone back to"));
        };
        self.savepoints.truncate(place + 1);
        self.pending = Some(savepoint.pending.clone());
        self.give_back(savepoint.granted, savepoint.tried);
        Ok(())
    }

    /// Undoes everything since [`Writer::begin`].
    pub fn rollback(&mut self) {
        if self.pending.take().is_some() {
            self.savepoints.clear();
            self.held_back.clear();
            self.give_back(0, 0);
        }
    }

    /// Takes back all extents but the first `granted` that the commit under way was granted, and what was to be written
    /// to them. The positions tried in older extents stay tried, but those of nameless pages: beyond the first `tried` of
    /// them they are free again.
    fn give_back(&mut self, granted: usize, tried: usize) {
        let commit = self.needed_before();
        self.give_pages_back(tried, commit);
        for Granted { extent, owner, slot, .. } in self.granted.split_off(granted) {
            self.state.space.cancel(extent.number, commit);
            match owner {
                Owner::Group(group) => self.leave_extent(group, extent),
                Owner::Pool(pool) => {
                    self.spares.entry(pool).and_modify(|spare| spare.forget_extent(slot, extent.number));
                }
                Owner::Free | Owner::Fixed | Owner::Spine => {}
            }
        }
        self.forget_the_gone();
    }

    /// A group that the commit under way made and dropped leaves its extents, but those that a savepoint may bring back. Whoever makes and
    /// drops groups in one commit, as a load does that merges as it goes, needs no more room than for what is there at a time.
    fn give_group_back(&mut self, group: GroupId) {
        let since = self.savepoints.last().map_or(0, |mark| mark.granted);
        let is_its = |granted: &Granted| granted.owner == Owner::Group(group);
        let its = self.granted.iter().enumerate().skip(since).filter(|(_, granted)| is_its(granted));
        let gone: Vec<(usize, Extent)> = its.map(|(place, granted)| (place, granted.extent)).collect();
        if gone.is_empty() {
            return;
        }
        // What was granted since the last preview nobody sees. (Places move down as others go: then a preview seems to see more.)
        let needed = self.needed_before();
        let seen = self.previews.iter().map(|preview| preview.granted).max().unwrap_or(0);
        let mut place = 0;
        self.granted.retain(|granted| {
            place += 1;
            place <= since || !is_its(granted)
        });
        for (place, extent) in gone {
            self.state.space.cancel(extent.number, if place < seen { needed } else { 0 });
            self.leave_extent(group, extent);
        }
    }

    /// A group's extent was taken back.
    fn leave_extent(&mut self, group: GroupId, extent: Extent) {
        for tip in self.tips.get_mut(&group).into_iter().chain(self.own_tips.values_mut()) {
            if tip.extent == extent {
                tip.next = self.pages.layout.extent_pages;
            }
        }
        self.grants.retain(|_, grant| grant.extent != extent);
    }

    /// Drops what was noted for groups and containers that are no more. A group that the commit under way drops may
    /// come back, and so may one that it made and dropped, as long as a savepoint keeps extents of it: which of their positions were
    /// tried must be known then.
    fn forget_the_gone(&mut self) {
        let (groups, containers) = (self.current().groups.clone(), self.current().containers.clone());
        let owners: Set<u64> = self.granted.iter().map(|granted| granted.owner.code()).collect();
        let owns = |owner: Owner| owners.contains(&owner.code());
        self.tips.retain(|group, _| {
            groups.contains_key(group) || self.state.root.groups.contains_key(group) || owns(Owner::Group(*group))
        });
        self.grants.retain(|id, _| containers.contains_key(id));
        self.own_tips.retain(|id, _| containers.contains_key(id) || self.state.root.containers.contains_key(id));
        let (now, before) = (self.current().pools.clone(), self.state.root.pools.clone());
        self.spares.retain(|id, _| now.contains_key(id) || before.contains_key(id) || owns(Owner::Pool(*id)));
    }

    /// Readers pinned before this commit may see what the commit under way wrote.
    fn needed_before(&mut self) -> u64 {
        self.previews.retain(Preview::is_held);
        if self.previews.is_empty() { 0 } else { self.state.root.commit + 1 }
    }

    /// Makes everything since [`Writer::begin`] durable, at once or not at all.
    ///
    /// # Errors
    /// [`Error::full`] before anything was written: the commit is still there to be rolled back.
    /// [`crate::Cause::Device`], [`crate::Cause::CounterLost`] and [`crate::Cause::CounterFailed`] latch: whether the commit stands is known
    /// after the next open.
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
        let Some(pending) = self.pending.take() else { return Err(Error::misuse("no commit was begun")) };
        let record_bytes = self.record_bytes_after(&pending);
        let shrunk = self.extents_to_give_back(&pending);
        let (granted, layout) = (core::mem::take(&mut self.granted), self.pages.layout);
        let written = self.require_room_for_records(record_bytes).and_then(|()| {
            // A frame that lists pages is flushed in any case: recovery looks for such pages of the last frame only.
            let durable = durable || pending.unflushed_count() > 0;
            let told = |each: &mut Each<'_>| pending.tell(&granted, &shrunk, &layout, each);
            self.write_frame(&told, self.end.checkpoint, durable)
        });
        self.granted = granted;
        if let Err(error) = written {
            self.pending = Some(pending);
            return Err(error);
        }
        self.adopt(pending, &shrunk)?;
        let changed = self.record_bytes != record_bytes;
        self.record_bytes = record_bytes;
        self.count_if_due()?;
        // The commit stands. What goes wrong behind it latches, and is the answer to whatever comes next: whoever hears now that it failed
        // would do it again.
        match self.tidy(changed) {
            Err(error) if !self.failed => Err(error),
            _ => Ok(CommitNumber(self.state.root.commit)),
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
    fn adopt(&mut self, mut pending: Pending, shrunk: &[(PoolId, u32)]) -> Result<(), Error> {
        let (commit, version) = (self.end.commit, self.end.version);
        self.adopt_pools(&mut pending, shrunk)?;
        let changed = &mut self.state.changed;
        changed.records.extend(pending.records_changed().iter().cloned());
        changed.containers.extend(pending.containers_touched());
        changed.groups.extend(pending.groups_created());
        for group in pending.groups_dropped() {
            let dying = self.state.root.containers.iter().filter(|(_, container)| container.group == *group);
            // Of what no checkpoint has told none has to tell that it is gone.
            let (told, untold): (Vec<_>, Vec<_>) =
                dying.map(|(id, _)| *id).partition(|id| self.store.tells_of(&checkpoint::of_container(*id)));
            changed.containers.extend(told);
            changed.containers.retain(|id| !untold.contains(id));
            changed.groups.insert(*group);
            self.state.space.release_all(Owner::Group(*group), commit, version)?;
        }
        let granted = core::mem::take(&mut self.granted).into_iter();
        for untold in granted.filter(|granted| !pending.tells_of(granted.owner)) {
            self.state.space.cancel(untold.extent.number, commit);
        }
        self.tried.clear();
        self.savepoints.clear();
        self.held_back.clear();
        let shrank = pending.root.groups.len() < self.tips.len() || !pending.groups_dropped().is_empty();
        self.state.root = Root { commit, version, ..pending.root };
        if shrank {
            self.forget_the_gone();
        }
        self.forget_tips();
        Ok(())
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
            self.previews.retain(Preview::is_held);
            self.previews.push(Preview { root: Arc::downgrade(&snapshot.root), granted: self.granted.len() });
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
        self.checkpoint_before_closing()?;
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
        self.state.root.check(&self.pages.layout);
        self.state.space.check();
        let records = self.state.root.records.iter();
        let bytes: u64 = records.map(|(key, value)| self.store.bytes_of(key.len(), value.len())).sum();
        assert_eq!(bytes, self.record_bytes, "records are measured as they change");
    }
}

impl View for Writer {
    fn length(&self, container: ContainerId) -> Result<u64, Error> {
        snapshot::length(self.current(), &self.pages.layout, container)
    }

    fn read(&self, container: ContainerId, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.pages.read(self.current(), container, offset, buffer)
    }

    fn read_pieces(&self, container: ContainerId, pieces: &[Piece], buffer: &mut [u8]) -> Result<(), Error> {
        self.pages.read_pieces(self.current(), container, pieces, buffer)
    }

    fn read_nameless(&self, pool: PoolId, page: NamelessPage, buffer: &mut [u8]) -> Result<(), Error> {
        self.pages.read_nameless(self.current(), pool, page, buffer)
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
