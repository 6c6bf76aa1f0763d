//! A mirror that runs as a server: it keeps published tables in a store, takes their owners' updates, and answers readers'
//! questions with proofs.
//!
//! ```text
//! owner  -- update, signed --> Listener --> Store: one transaction, all of it or nothing
//! reader -- question --------> Listener --> Store: one snapshot --> answer with its proof
//! ```
//! It knows no secret, and beside its [`Store`] it has no state. Nobody has to trust it: what it gets wrong, readers refuse.
//! It bounds what strangers can take of it ([`Limits`]), and takes tables of the owners alone that it is told
//! ([`Allowed`]). It speaks [`Tls`] where it has a certificate; a web server in front of it does that too (docs/mirror.md).
//!
//! ```no_run
//! use counterfoil_mirror_server::{Allowed, Options, serve};
//! # fn main() -> Result<(), counterfoil_mirror_server::ServeError> {
//! let options = Options::new("mirror.redb", "127.0.0.1:8080".parse().expect("an address"), Allowed::Any);
//! serve(options, |address| {
//!     println!("listening at {address}");
//!     std::thread::park(); // until the program is told to end
//! })
//! # }
//! ```
#![forbid(unsafe_code)]

mod answering;
mod body;
mod embedded;
mod held;
mod limits;
mod options;
mod origins;
mod patient;
mod places;
mod postgres;
mod reply;
mod route;
mod server;
mod shelf;
mod store;
mod sums;
mod tables;
mod taking;
mod tls;
mod walked;

pub use crate::postgres::Postgres;
pub use embedded::Embedded;
pub use limits::Limits;
pub use options::{Allowed, Options, ServeError, serve};
pub use server::Listener;
pub use store::{
    Decide, Kept, Place, Placed, Reading, Refused, Store, StoreChange, StoreError, TableName, Touched, Visit,
};
pub use tls::{Tls, TlsError};
