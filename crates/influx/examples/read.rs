//! How fast lines are read into batches, on one core and without a network.
//!
//! ```sh
//! cargo run --release -p counterfoil-influx --example read -- FILE
//! ```

use std::error::Error;
use std::fs::File;
use std::time::Instant;

use counterfoil_influx::{NoSchema, Reading, gather};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: read FILE")?;
    let bytes = std::fs::metadata(&path)?.len();
    let begun = Instant::now();
    let (mut rows, mut values, mut batches) = (0, 0, 0);
    let gathered = gather(File::open(&path)?, &Reading::default(), &NoSchema, 2 << 20, |batch| {
        rows += batch.rows();
        batches += 1;
        let tables = batch.into_tables();
        values += tables.iter().flat_map(|table| &table.fields).map(|field| field.values.len()).sum::<usize>();
        Ok::<(), std::convert::Infallible>(())
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{rows} rows, {values} values, {batches} batches, {} lines rejected", gathered.rejects.count());
    println!("{:.0} MB/s, {:.2} M values/s", bytes as f64 / 1e6 / seconds, values as f64 / 1e6 / seconds);
    Ok(())
}
