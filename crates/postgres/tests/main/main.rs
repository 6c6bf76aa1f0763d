//! Clients of PostgreSQL over a database in memory: one test binary, since it links the query library.

mod bounds;
mod client;
mod clients;
mod described;
mod ending;
mod hostile;
mod server;
mod soak;
mod tls;
