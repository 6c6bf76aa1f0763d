//! A mirror that runs as a server, over real sockets: its owner, readers, strangers, cuts and damage.

mod between;
mod client;
mod court;
mod crowd;
mod cuts;
mod database;
mod deceit;
mod ended;
mod files;
mod folders;
mod honest;
mod hostile;
mod mirrors;
mod mixed;
mod model;
mod origins;
mod part;
mod private;
mod spoiled;
mod states;
mod stock;
mod summed;
mod told;
mod tricks;
mod values;
mod world;
