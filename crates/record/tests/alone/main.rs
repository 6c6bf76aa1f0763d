//! The store that stands alone, held against a map, power cuts, and an attacker.

mod attack;
mod chip;
mod counter;
mod cuts;
mod drm;
mod forged;
mod groups;
mod histories;
mod images;
mod making;
mod model;
mod names;
mod noise;
mod on_chip;
mod power;
mod promises;
mod regressions;
mod rollback;
mod script;
mod superblock;
mod tampered;
mod upkeep;
mod vector;
mod walk;
mod wear;
