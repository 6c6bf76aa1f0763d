//! Dispersed tables at clouds of all kinds: honest, silent, forgetful and lying ones.

mod answers;
mod clouds;
mod codings;
mod phe;
mod stored;
mod sums;
mod vectors;
mod views;
mod watching;
