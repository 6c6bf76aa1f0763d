//! A mirror that runs as a server, over real sockets: its owner, readers, strangers, cuts and damage.

mod between;
mod client;
mod court;
mod crowd;
mod cuts;
mod database;
mod deceit;
mod ended;
mod honest;
mod hostile;
mod mirrors;
mod model;
mod origins;
mod private;
mod told;
mod tricks;
mod values;
mod world;
