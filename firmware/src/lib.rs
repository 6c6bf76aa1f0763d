//! What the images share: buffers for a store, a counter, a NAND chip that the debugger's host keeps, a meter for the
//! stack, and what to do when something goes wrong.
//!
//! The images run on a Cortex-M3 with 64 KB of RAM and print through the debugger ("semihosting"). `scripts/run-firmware`
//! builds them, runs them in QEMU and checks what they print. Nothing here allocates but what belongs to the relational
//! engine (feature `relation`).
//!
//! Unsafe code stands in [`stack`], which looks at memory that belongs to nobody, in [`host`], which asks the debugger
//! for a file, and in `heap`, which passes memory on. Prices and dice are those of `flash-sim`, so that a count here is a count there.
#![no_std]

mod account;
mod buffers;
mod counter;
#[path = "../../crates/flash-sim/src/dice.rs"]
mod dice;
#[cfg(feature = "relation")]
pub mod heap;
pub mod host;
#[path = "../../crates/flash-sim/src/meters.rs"]
mod meters;
mod nand;
pub mod stack;
#[cfg(feature = "relation")]
pub mod token;

pub use account::Account;
pub use buffers::Buffers;
#[cfg(feature = "relation")]
pub use counter::ChipCounter;
pub use counter::RamCounter;
pub use dice::Dice;
pub use meters::{Meters, Prices};
pub use nand::HostedNand;

use core::panic::PanicInfo;

use cortex_m_rt::{ExceptionFrame, exception};
use cortex_m_semihosting::{debug, hprintln};

/// Ends the run as failed, and says why if that was asked for (feature `told`).
///
/// Where nobody reads it, each place that may panic has no text, no name of its file and no number of its line in the image: 30 KB
/// with the relational engine.
#[panic_handler]
fn fail(info: &PanicInfo<'_>) -> ! {
    match cfg!(feature = "told") {
        true => hprintln!("{}", info),
        false => hprintln!("a panic: built with the feature `told`, the image says where"),
    }
    loop {
        debug::exit(debug::EXIT_FAILURE);
    }
}

/// Says where it happened and ends the run as failed.
///
/// # Safety
/// The processor calls it.
#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    hprintln!("hard fault at {}", frame.pc());
    loop {
        debug::exit(debug::EXIT_FAILURE);
    }
}
