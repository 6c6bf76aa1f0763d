//! Clients of PostgreSQL over a database in memory: one test binary, since it links the query library.

mod client;
mod clients;
mod described;
mod hostile;
mod server;
