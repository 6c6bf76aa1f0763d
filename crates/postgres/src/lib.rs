//! A server that speaks to clients of PostgreSQL (protocol 3.0), over a Counterfoil database.
//!
//! ```text
//! socket, tls -> wire: messages -> greeting: who is there -> session -> Connection of the facade
//!                                                              |
//!                request: what clients send      portal, rows, copy: what they are answered
//! ```
//!
//! - [`Listener`] takes clients, a thread for each. Nobody is let in without a name and a password (SCRAM-SHA-256), unless a
//!   loopback address is served without ([`Settings::danger_no_authentication`]).
//! - Other addresses than those of loopback are served with TLS alone ([`Settings::tls`]), and whoever comes from another
//!   machine uses it.
//! - A reader changes nothing, and nobody reaches files of the machine ([`counterfoil::Database::connect_as`]).
//! - What a client asked for ends within a second or two of the client.
//! - Nothing that a client sends makes memory grow beyond [`Limits`].
#![forbid(unsafe_code)]

mod array;
mod binary;
mod body;
mod budget;
mod cancel;
mod copy;
mod end_point;
mod first_words;
mod greeting;
mod limits;
mod listener;
mod parameter;
mod pass;
mod portal;
mod request;
mod rows;
mod scram;
mod session;
mod socket;
mod sqlstate;
mod tls;
mod types;
mod watch;
mod wire;

pub use limits::Limits;
pub use listener::{Listener, Settings};
pub use tls::Tls;
