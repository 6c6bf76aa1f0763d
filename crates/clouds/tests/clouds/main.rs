//! Clouds over a network answer as one in memory does, and a dispersed table lies at them.

mod postgres;
mod questions;
mod stores;
