//! The laws of the vault, seen from outside.

mod pages;
