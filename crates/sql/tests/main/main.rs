//! The SQL floor over a real log in memory: statements in, rows and errors out.

mod append;
mod basics;
mod catalog;
mod changes;
mod commit_every;
mod constraints;
mod copying;
mod database;
mod date_bin;
mod dialect;
mod historian;
mod historian_document;
mod historian_model;
mod last_sample;
mod memory;
mod noise;
mod postgresql;
mod retention;
mod series;
mod series_bulk;
mod series_options;
mod series_order;
mod summaries;
mod swinging_door;
mod times;
mod transactions;
