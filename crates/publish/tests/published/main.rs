//! What an owner signs, a mirror answers and a reader checks, held against a plain list of rows and against a hostile mirror.

mod attacked;
mod honest;
mod joined;
mod keys;
mod packed;
mod renewed;
mod schemes;
mod simulated;
mod site;
mod totals;
mod world;
