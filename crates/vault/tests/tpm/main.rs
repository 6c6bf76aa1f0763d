//! Counters and key slots of a TPM, against an emulator.

mod counter;
mod slot;
mod swtpm;
