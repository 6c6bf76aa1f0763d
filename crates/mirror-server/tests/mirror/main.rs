//! A mirror that runs as a server, over real sockets: its owner, readers, strangers, cuts and damage.

mod client;
mod cuts;
mod database;
mod honest;
mod hostile;
mod origins;
mod private;
mod values;
mod world;
