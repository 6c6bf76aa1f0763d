//! The spine of commit frames through which everything commits, the one owner of space, log containers, snapshots
//! and recovery. (MILo-DB's log-only storage and GnatDb's commit, under one root; DESIGN, "log".)
//!
//! A *container* is an append-only stream of bytes, a *group* the containers that die together, a *record* a small
//! named value. One commit spans them all: it is durable as a whole when [`Writer::commit`] returns, or it never was.
//! This crate knows nothing of tables.
//!
//! ```text
//! create / Recovered::recover -> open -> Writer -> begin .. append, put_record .. commit
//!                             -> snapshot -> Snapshot (View): any number, any thread
//!                             -> changes -> Changes: what each commit changed, for registered followers
//! ```
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

mod ahead;
mod bits;
mod bytes;
mod cache;
mod cells;
mod checkpoint;
mod copy;
mod error;
mod feed;
mod filling;
mod frame;
mod free_pages;
mod given_header;
mod layout;
mod lock;
mod maps;
#[cfg(feature = "stand-in")]
mod memory;
mod named_lists;
mod nameless;
mod names;
mod opening;
mod order;
mod pages;
mod pending;
mod pending_pools;
mod pieces;
mod pool;
mod pool_checkpoint;
mod pool_element;
mod pool_state;
mod pool_use;
mod reach;
mod recent_keys;
mod record_key;
mod relocation;
mod report;
mod root;
mod runs;
mod sealing;
#[cfg(any(feature = "small", test))]
mod search;
mod sectors;
mod shared;
mod slots;
mod snapshot;
#[cfg(any(feature = "small", test))]
mod sorted;
mod space;
mod spare;
mod spine;
mod state;
mod storage;
mod store;
mod tail;
mod unflushed;
mod view;
mod volume;
mod window;
mod writer;

pub use copy::{Captured, Progress};
pub use error::{Cause, Error};
pub use feed::{Change, Changes, Commit, FOLLOWED_EXTENTS_MAX, FOLLOWER_NAME_BYTES_MAX, Position};
pub use filling::{NoPools, PoolOwner, Visit};
pub use given_header::HEADER_RECORD;
pub use layout::{HEADER_EXTENTS, Layout};
pub use lock::Lock;
pub use maps::{Map, Set};
#[cfg(feature = "stand-in")]
pub use memory::Memory;
pub use order::Order;
pub use pieces::Piece;
pub use pool::{NamelessPage, PoolId, PoolOptions};
pub use pool_use::{PoolUse, WriteDistances};
pub use report::{ContainerUse, ExtentUse, Report, Room};
pub use sealing::{SECTOR_PAYLOAD_BYTES, Sealing};
pub use snapshot::Snapshot;
pub use space::Owner;
pub use storage::Storage;
pub use view::{CommitNumber, ContainerId, GroupId, View, space as record_space};
pub use volume::{Media, Recovered, create};
pub use window::HeaderKeeper;
pub use writer::{
    Clock, Counting, NoPins, Pins, RECORD_NAME_BYTES_MAX, RECORD_VALUE_BYTES_MAX, Savepoint, Settings, Writer,
};
