//! Series: points ordered by series and time (Chronos), compressed column by column in leaves that are written once.
//!
//! - [`codec`] turns the columns of a leaf into bytes and back.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod codec;
