//! The store that stands alone, held against a map, power cuts, and an attacker.

mod attack;
mod chip;
mod counter;
mod drm;
mod histories;
mod model;
mod power;
mod regressions;
mod vector;
mod walk;
