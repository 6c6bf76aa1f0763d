//! Clouds that are reached over a network.
//!
//! | address | what it is |
//! |---|---|
//! | `postgres://user@example.com/database` | [`Postgres`]: fragments are ordinary tables, questions run as its SQL |
//! | `s3://bucket/folder` | [`open_store`]: objects of a bucket |
//! | `webdavs://user@example.com/folder` | [`open_store`]: files of a web server |
//! | `sftp://user@example.com/folder` | [`open_store`]: files of a machine that is reached by ssh |
//!
//! A cloud is a `counterfoil_disperse::Provider`, or a `Store` under one: it needs no key, and nothing that it says is believed here;
//! what comes back is checked by whoever asks.
#![forbid(unsafe_code)]

mod account;
mod address;

mod leftovers;
mod objects;
mod pace;
mod postgres;
mod sftp;
mod stores;
mod web;
mod worker;

pub use postgres::Postgres;
pub use stores::{CloudSecret, is_store, open_store, open_store_with_patience, whole_store_url};
