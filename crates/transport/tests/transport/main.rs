//! What is brought over a network, against servers that the tests start: honest ones, and others.

mod bucket;
mod buckets;
mod certificates;
mod patience;
mod private;
mod refusals;
mod server;
