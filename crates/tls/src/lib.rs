//! Encrypted connections to servers for which somebody vouches: whom this machine trusts, or a file says.
//!
//! - [`tls`] says how connections are encrypted, and whom is believed.
//! - [`postgres`] reads addresses of databases, and encrypts connections to them.
#![forbid(unsafe_code)]

mod authorities;
pub mod postgres;

pub use authorities::tls;
