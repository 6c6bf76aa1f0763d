//! An HTTP server that collectors and loaders of InfluxDB write to.
//!
//! ```text
//! connections -> requests -> read and gather -> queue -> one thread -> Sink
//!      256          |        16 threads           8      commits what waits
//!                   `-- authorize, schema: 4 at once
//! ```
//!
//! 1. 204 is answered when the sink has said that all lines are durable.
//! 2. Nothing that a client sends makes memory grow beyond what [`Limits`] says, and no client is waited for without end.
//! 3. Credentials are checked before a body is read.
//! 4. A write that was answered "come again" because it waited too long was not begun.

mod answer;
mod body;
mod credentials;
mod influxql;
mod limits;
mod parameters;
mod patient;
mod query;
mod queue;
mod route;
mod server;
mod shared;
mod sink;
mod write;

pub use credentials::{Credentials, Secret};
pub use limits::Limits;
pub use server::{Listener, Settings};
pub use sink::{Access, Sink, SinkError, Write, Written};
