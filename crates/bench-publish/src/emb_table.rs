//! Table 4, the EMB- tree's half: queries and updates one at a time.

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};

use counterfoil_proof::SecretKey;

use crate::Failure;
use crate::embedded::{Embedded, RECORD, Record};
use crate::primitives::time;
use crate::random::Random;

/// Record by number; its key is twice the number.
pub fn record(number: u32) -> Record {
    let mut record = [number as u8; RECORD];
    record[..4].copy_from_slice(&(number * 2).to_be_bytes());
    record
}

/// A tree in two files without a name.
pub fn open(key: SecretKey, records: u32) -> Result<Embedded, Failure> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let file = || -> Result<File, Failure> {
        let name = format!("counterfoil-emb-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    };
    Embedded::load(file()?, file()?, key, (0..records).map(record))
}

pub fn print(records: u32) -> Result<(), Failure> {
    let key = SecretKey::from_entropy(&[3; 32])?;
    let public = key.public();
    let mut tree = open(key, records)?;
    let mut random = Random(17);
    println!("\nEMB- tree, {records} records of {RECORD} bytes; the system caches its pages, nothing is flushed");
    println!("{:<20} {:>10} {:>12} {:>12} {:>12} {:>12}", "", "query ms", "paper", "VO bytes", "paper", "verify ms");
    for (count, paper, paper_bytes) in [(1, 35.316, 440), (records.min(1000), 129.782, 720)] {
        let from = 2 * random.below((records - count + 1) as usize) as u32;
        let to = from + 2 * (count - 1);
        let query = time(50, || tree.query(from, to).map(black_box).is_ok());
        let node = tree.query(from, to)?;
        let verify = time(50, || node.check(&public, &tree.signature, from, to).map(|found| found.len()));
        node.check(&public, &tree.signature, from, to)
            .filter(|found| found.len() == count as usize)
            .ok_or("an answer is refused")?;
        println!(
            "{:<20} {query:>10.4} {paper:>12} {:>12} {paper_bytes:>12} {verify:>12.4}",
            format!("{count} records"),
            node.bytes()
        );
    }
    let mut changed = record(random.below(records as usize) as u32);
    let update = time(50, || {
        changed[9] ^= 1;
        tree.update(&changed).is_ok()
    });
    println!("{:<20} {update:>10.4} {:>12}", "update of 1", 60.206);
    Ok(())
}
