//! The facade, by itself and against models: one binary, because every one of them links DataFusion.

mod against_sqlite;
mod api;
mod forked;
mod full;
mod level;
mod lines;
mod lost_pages;
mod pairs;
mod published;
mod published_engine;
mod rollback;
mod series_native;
mod tidied;
mod trees;

/// What is allocated is counted, for level.rs.
#[global_allocator]
static MEMORY: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;
