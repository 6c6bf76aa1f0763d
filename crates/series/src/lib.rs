//! Series: points ordered by series and time (Chronos), compressed column by column in leaves that are written once.
//!
//! - [`codec`] turns the values of a column into bytes and back.
//! - [`Points`] are points of one series in memory, [`LeafWriter`] and [`Leaf`] what becomes of them in a page.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod codec;
mod column;
mod leaf;

pub use column::{Column, Kind, Values};
pub use leaf::{Leaf, LeafWriter, Points, Segment};
