//! A cloud for whoever has a machine and no cloud: it holds fragments of dispersed tables, answers questions where they lie, and knows no
//! key of theirs.
//!
//! ```text
//! owner: Remote --TLS 1.3, the server's key pinned--> Server: token --> a folder of Parquet files for each client --> parts of an answer
//! ```
//! - [`serve`] is the server, [`Remote`] the owner's side: a [`counterfoil_disperse::Provider`] like any other.
//! - [`Identity`] is the server's key, whose [`Pin`] stands in the cloud's address. No authority vouches for anybody.
//! - [`Tokens`] say who may come in, and until when.
//! - [`wire`] is what the two say to one another.
//!
//! The owner believes nothing that is answered here (`counterfoil_disperse::Table`): pin and token see to it that strangers
//! neither watch what is asked nor use up the disk.
#![forbid(unsafe_code)]

mod address;
mod client;
mod identity;
mod server;
mod stream;
mod tokens;
pub mod wire;

pub use address::Address;
pub use client::Remote;
pub use identity::{Identity, Pin};
pub use server::{Limits, Options, ServeError, serve};
pub use tokens::{TokenError, Tokens};
