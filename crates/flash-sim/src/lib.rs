//! Simulated parts, with everything that can go wrong with real ones: power cuts, torn and reordered writes, flushes
//! that lie, pages that fade, and an attacker who keeps every image ever written and puts any of them back.
//!
//! A [`SimulatedDevice`] is a medium whose every program, erase and flush has a number, counted from 1. A [`Scenario`]
//! says what happens at which number, under one seed; it is printed as an id, and the id replays it. After a cut every
//! call fails until [`SimulatedDevice::power_on`].
//!
//! There are NAND and NOR flash, flash whose words have error correction of their own, files, and sticks with a
//! translation layer ([`Part`]); and banks of cells for counters ([`SimulatedBanks`]).
//!
//! ```
//! use counterfoil_flash::{Device, PageNumber, Read};
//! use counterfoil_flash_sim::{Part, Scenario, SimulatedDevice};
//!
//! let scenario: Scenario = "seed7+cut2-byte100-none".parse()?;
//! let mut device = SimulatedDevice::new(Part::file(512, 8, 1 << 20), scenario);
//! device.program(PageNumber(0), &[1; 512])?;
//! assert!(device.program(PageNumber(1), &[2; 512]).is_err());
//! device.power_on();
//! let mut bytes = [9; 512];
//! device.read(PageNumber(0), 0, &mut bytes)?;
//! assert_eq!(bytes, [0; 512], "page 0 was never flushed, and nothing unflushed survives here");
//! device.read(PageNumber(1), 0, &mut bytes)?;
//! assert_eq!((bytes[99], bytes[100]), (2, 0), "page 1 is torn");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod attacker;
mod banks;
mod device;
mod dice;
mod image;
mod medium;
mod meters;
mod part;
mod scenario;
mod tear;

pub use attacker::Attacker;
pub use banks::SimulatedBanks;
pub use device::SimulatedDevice;
pub use dice::Dice;
pub use image::Image;
pub use medium::{BAD_BLOCK, FAULT, OUT_OF_ORDER, POWER_CUT, UNCORRECTABLE};
pub use meters::{Meters, Prices};
pub use part::{Again, Part, Programming};
pub use scenario::{Fault, Scenario, ScenarioError, Survivors, Tearing};

#[cfg(test)]
mod tests;
