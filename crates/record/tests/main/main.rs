//! The store held against a map, against power cuts, against an attacker and against noise.

mod attack;
mod bench;
mod copies;
mod model;
mod part;
mod power;
mod simulated;
mod vector;
