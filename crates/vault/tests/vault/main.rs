//! The laws of the vault, seen from outside.

mod chip_counters;
mod counter_model;
mod counters;
mod headers;
mod key_changes;
mod lying_banks;
mod medium;
mod pages;
mod vectors;
