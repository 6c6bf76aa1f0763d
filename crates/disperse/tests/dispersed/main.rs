//! Dispersed tables at clouds of all kinds: honest, silent, forgetful and lying ones.

mod answers;
mod clouds;
mod stored;
mod sums;
mod vectors;
mod views;
