//! A reader of published tables for a browser: the module inside of the verifier's page (`page/`, `scripts/build-verifier`).
//!
//! - [`Session`] is a question: it says what is to be fetched, takes it, and ends in rows with a verdict or in a refusal.
//! - [`Corruption`] plays a dishonest mirror with what was fetched, so that people see it caught.
//! - [`call()`] is the same as bytes in, bytes out, for the page.
//!
//! ```text
//! page: SQL -> call -> "fetch these" -> the network -> call -> ... -> rows and verdict, or why not
//! ```
//! No network and no clock: the page brings bytes and the time of day. Everything is checked by [`counterfoil_reader`], as the
//! program `counterfoil ask` does it; nothing here decides what is believed.
#![cfg_attr(not(target_family = "wasm"), forbid(unsafe_code))]

mod call;
mod corrupted_totals;
mod corruption;
#[cfg(target_family = "wasm")]
mod exports;
mod fetched;
mod session;
mod told;

pub use call::call;
pub use corruption::{Corrupted, Corruption, Same};
pub use fetched::{BYTES_MAX, Brought, FILES_MAX, Wanted};
pub use session::{Effort, ROUNDS_MAX, Session, Step};
