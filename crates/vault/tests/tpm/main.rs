//! Counters in a TPM, against an emulator.

mod counter;
mod swtpm;
