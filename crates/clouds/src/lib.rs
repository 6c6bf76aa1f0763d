//! Clouds that are reached over a network.
//!
//! | address | what it is |
//! |---|---|
//! | `postgres://user@example.com/database` | [`Postgres`]: fragments are ordinary tables, questions run as its SQL |
//!
//! A cloud is a `counterfoil_disperse::Provider`: it needs no key, and nothing that it says is believed here; what comes back is
//! checked by whoever asks.
#![forbid(unsafe_code)]

mod postgres;

pub use postgres::Postgres;
