//! The same statements to SQLite and to us: the same rows, or an error on both sides.

mod cell;
mod flights;
mod linked;
mod milo;
mod queries;
mod scripts;
mod subqueries;
mod trees;
