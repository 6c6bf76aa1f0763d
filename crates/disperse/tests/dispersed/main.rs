//! Dispersed tables at clouds of all kinds: honest, silent, forgetful and lying ones.

mod answers;
mod attacked;
mod attacker;
mod clouds;
mod codings;
mod compared;
mod facts;
mod ledger;
mod likeness;
mod noise;
mod nonces;
mod owed;
mod owner;
mod phe;
mod random;
mod routes;
mod simulated;
mod simulator;
mod stored;
mod sums;
mod traces;
mod vectors;
mod views;
mod watching;
