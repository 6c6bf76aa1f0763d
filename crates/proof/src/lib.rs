//! Answers that a reader checks: what an owner signs, how it is laid out, how it is verified (Scalable Verification).
//!
//! - [`Owner`] is who a reader trusts, [`TrustedManifest`] what that owner says of a table, [`Chain`] what changed when.
//! - [`Question`] is asked by a reader, [`Answer`] is what a mirror sends, [`check`] the only way from one to [`Verified`] rows.
//! - [`Points`] asks for the rows of many values, for a join; [`Found`] answers and [`check_points`] checks it. A [`Filter`]
//!   says which values are not there.
//! - [`TotalsQuestion`] asks for counts, sums, least and largest values, which [`check_totals`] takes from signed [`Node`]s.
//! - [`Seen`] is what a reader remembers, so that no mirror leads it back.
//! - [`SecretKey`], [`Manifest`], [`Summary`] and [`record::message`] are what an owner signs.
//!
//! No engine, no network and no clock: whoever calls brings bytes and the time of day. Bytes from outside end in a
//! [`Refusal`], never in a panic, and allocate no more than a small multiple of their length.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(any(feature = "threads", test))]
extern crate std;

mod answer;
pub mod attributes;
pub mod bytes;
mod changed;
mod check;
mod check_points;
mod check_totals;
mod covered;
mod curve;
mod definition;
mod digest;
mod error;
mod filter;
mod found;
mod manifest;
mod members;
mod node;
mod owner;
mod partition;
mod points;
mod position;
mod question;
pub mod record;
mod refusal;
mod seen;
mod signature;
mod sparse_set;
mod summary;
mod totals;
mod totals_answer;
mod totals_question;
mod value;
mod wide;

pub use answer::{Answer, Boundary, End, Row, Run, Salts};
pub use check::{Trust, Verified, check};
pub use check_points::check_points;
pub use check_totals::{TotalsOf, VerifiedTotals, check_totals};
pub use definition::{
    COLUMNS_MAX, Column, Definition, FIRST_RID, GROUP_ROWS, GROUP_ROWS_MAX, GROUP_ROWS_MIN, ORDERS_MAX, Scheme,
};
pub use digest::Digest;
pub use error::Malformed;
pub use filter::FilterBits;
pub use found::{Found, Item, Mark, Stretch};
pub use manifest::{MANIFEST_BYTES_MAX, Manifest, SigningKey, TrustedManifest};
pub use members::{FIRST_GROUP, Member, Members, group_message, is_group, member, member_stamp};
pub use node::{FIRST_NODE, NODE_COLUMNS_MAX, Node, NodesOf, is_node};
pub use owner::{NoOwner, Owner};
pub use partition::{FIRST_FILTER, Filter};
pub use points::{POINTS_BYTES_MAX, POINTS_MAX, Points};
pub use position::{Edge, Interval, KEY_BYTES_MAX, POSITION_BYTES_MAX, Position};
pub use question::{Direction, Question};
pub use refusal::Refusal;
pub use seen::Seen;
pub use signature::{
    GROUPS_MAX, Group, Hint, KeyError, Message, PublicKey, SecretKey, Signature, SignatureError, SignatureSum, verify,
    verify_groups,
};
pub use sparse_set::SparseSet;
pub use summary::{CHANGES_MAX, Chain, SUMMARY_BYTES_MAX, Summary, contents_root};
pub use totals::{ColumnTotals, Totals};
pub use totals_answer::{Span, Tile, TotalsAnswer};
pub use totals_question::TotalsQuestion;
pub use value::{Type, Value, WrongType};
pub use wide::Wide;
