//! What codings take for a million values, beside what StealthDB (Spillner and others, 2015) took: its table III, on a notebook, with
//! values encrypted in memory.
//!
//! `cargo run --release -p counterfoil-disperse --example codings [ROWS]`
//!
//! One thread. What is slow is measured for fewer values (`of`) and told for a million. Each is done in ten parts, of which the fastest
//! counts: what else a machine does meanwhile is not the coding's. Nothing is asserted: these are times of one machine.

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use counterfoil_disperse::Secret;
use counterfoil_disperse::coding::boldyreva::DangerOrders;
use counterfoil_disperse::coding::cells::Cells;
use counterfoil_disperse::coding::convergent::DangerConvergent;
use counterfoil_disperse::coding::erasure::Pieces;
use counterfoil_disperse::coding::orders::{Orders, compare};
use counterfoil_disperse::coding::pads::{self, Pads};
use counterfoil_disperse::coding::paillier::{Adding, Ciphertext, Encryptor, Exponents, PrivateKey, Slots};

const MILLION: u64 = 1_000_000;
const PARTS: u64 = 10;

fn main() {
    let rows = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(MILLION).clamp(64, 100 * MILLION);
    println!("{:<52} {:>12} {:>12}  {:>18}", "", "of", "a million", "StealthDB, 2015");
    padded(rows);
    for bits in [2048, 3072] {
        encrypted(bits, rows);
    }
    revealed(rows.min(100_000));
    in_order(rows.min(20_000));
    texts(rows.min(100_000));
}

/// Does something for as many values, a part of them at a time, and prints what a million take at the pace of the fastest part.
fn told(what: &str, of: u64, paper: &str, mut part: impl FnMut(Range<u64>)) {
    let size = (of / PARTS).max(1);
    let mut fastest = f64::MAX;
    for at in 0..of / size {
        let started = Instant::now();
        part(at * size..(at + 1) * size);
        fastest = fastest.min(started.elapsed().as_secs_f64());
    }
    println!("{what:<52} {:>12} {:>10.4} s  {paper:>18}", of / size * size, fastest * MILLION as f64 / size as f64);
}

/// Prints what one thing took.
fn once(what: &str, started: Instant) {
    println!("{what:<52} {:>12} {:>9.3} ms", "once", started.elapsed().as_secs_f64() * 1000.0);
}

fn padded(rows: u64) {
    let values: Vec<i128> = (1..=i128::from(rows)).collect();
    let pads = Pads::<u64>::new(&Secret::new([1; 32]), 34, rows).expect("room");
    let mut codes = Vec::with_capacity(values.len());
    told("pads: INSERT", rows, "65,685 s", |part| {
        pads.seal(part.start, &values[part.start as usize..part.end as usize], &mut codes).expect("values");
    });
    let mut sum = 0_u64;
    told("pads: SUM at the provider", codes.len() as u64, "110.7 s", |part| {
        sum = sum.wrapping_add(pads::add(black_box(&codes[part.start as usize..part.end as usize])));
    });
    let started = Instant::now();
    let sum = pads.open_sum(sum, std::slice::from_ref(&(0..codes.len() as u64)));
    once("pads: the sum is opened", started);
    println!("    SUM(id) = {}", sum.expect("a sum"));
}

fn encrypted(bits: usize, rows: u64) {
    let started = Instant::now();
    let key = Arc::new(PrivateKey::generate(&Secret::new([2; 32]), bits).expect("a key"));
    once(&format!("Paillier {bits}: a key"), started);
    for (exponents, name) in [(Exponents::Full, "full"), (Exponents::Short, "short")] {
        let started = Instant::now();
        let encryptor = Encryptor::new(key.clone(), &Secret::new([3; 32]), exponents).expect("exponents");
        once(&format!("Paillier {bits}, {name}: powers of h"), started);
        let one = |row| encryptor.encrypt(row, i128::from(row)).expect("a number");
        let encrypted = numbers(&format!("Paillier {bits}, {name}"), rows.min(1000), one);
        if exponents == Exponents::Full {
            summed(&format!("Paillier {bits}"), &key, &encrypted, rows.min(50_000));
        }
        let slots = Slots::new(34, MILLION, bits).expect("slots");
        let values: Vec<i128> = (0..slots.count() as i128).collect();
        let some = |row| encryptor.encrypt_packed(row, &slots, &values).expect("values");
        packed(&format!("Paillier {bits}, {name}, {} in one", values.len()), &key, values.len() as u64, some);
    }
}

fn numbers(what: &str, rows: u64, encrypt: impl Fn(u64) -> Ciphertext) -> Vec<Ciphertext> {
    let mut encrypted = Vec::new();
    told(&format!("{what}: INSERT"), rows, "65,685 s", |part| encrypted.extend(part.map(&encrypt)));
    encrypted
}

fn summed(what: &str, key: &PrivateKey, encrypted: &[Ciphertext], rows: u64) {
    let mut adding = Adding::new(key.public());
    told(&format!("{what}: SUM at the provider"), rows, "110.7 s", |part| {
        part.for_each(|row| adding.add(&encrypted[row as usize % encrypted.len()]).expect("a ciphertext"));
    });
    let sum = adding.finish();
    let started = Instant::now();
    key.open(&sum, sum.additions()).expect("a sum");
    once(&format!("{what}: the sum is opened"), started);
}

/// The same, of values that share numbers.
fn packed(what: &str, key: &PrivateKey, count: u64, encrypt: impl Fn(u64) -> Ciphertext) {
    let mut encrypted = Vec::new();
    told(&format!("{what}: INSERT"), 500 * count, "65,685 s", |part| {
        encrypted.extend((part.start / count..part.end / count).map(&encrypt));
    });
    let mut adding = Adding::new(key.public());
    told(&format!("{what}: SUM at the provider"), MILLION / count * count, "110.7 s", |part| {
        let numbers = (part.start / count..part.end / count).map(|at| &encrypted[at as usize % encrypted.len()]);
        numbers.for_each(|number| adding.add(number).expect("a ciphertext"));
    });
}

fn revealed(rows: u64) {
    let orders = Orders::new(&Secret::new([7; 32]));
    let mut codes = Vec::new();
    told("order-revealing codes: INSERT", rows, "65,685 s", |part| {
        codes.extend(part.map(|row| orders.stored(row, row.wrapping_mul(0x9E37_79B9_7F4A_7C15))));
    });
    let asked = orders.asked(1 << 63);
    let mut less = 0_usize;
    told("order-revealing codes: compared at the provider", rows, "", |part| {
        let codes = &codes[part.start as usize..part.end as usize];
        less += codes.iter().filter(|stored| compare(&asked, stored).is_lt()).count();
    });
    println!("    {less} of them are above");
}

fn in_order(rows: u64) {
    let orders = DangerOrders::new(&Secret::new([4; 32]));
    let mut codes = Vec::new();
    told("order-preserving codes (danger): INSERT", rows, "65,685 s", |part| {
        codes.extend(part.map(|row| orders.code(row.wrapping_mul(0x9E37_79B9_7F4A_7C15))));
    });
    let started = Instant::now();
    codes.sort_unstable();
    once(&format!("order-preserving codes: {rows} in order"), started);
}

fn texts(rows: u64) {
    let text = [b'x'; 100];
    let (cells, convergent) =
        (Cells::new(&Secret::new([5; 32]), &[0; 16], 1), DangerConvergent::new(Secret::new([6; 32])));
    let mut cell = Vec::new();
    told("cells of 100 bytes: INSERT", rows, "65,685 s", |part| {
        part.for_each(|row| {
            cell.clear();
            cells.seal(row, Some(&text), &mut cell);
        });
    });
    let pieces = Pieces::new(4, 2).expect("pieces");
    told("pieces of such a cell, 4 + 2", rows, "", |part| {
        part.for_each(|_| drop(black_box(pieces.cut(&cell))));
    });
    let cut = pieces.cut(&cell).expect("a cell");
    let there: Vec<Option<&[u8]>> = (0..6).map(|at| Some(&cut[at][..]).filter(|_| at > 1)).collect();
    let open = |joined: &[u8]| (joined == cell).then_some(());
    told("such cells, two pieces missing: each by itself", rows.min(20_000), "", |part| {
        part.for_each(|_| drop(pieces.joiner().join(&there, 0, open).expect("a cell")));
    });
    let mut joiner = pieces.joiner();
    told("such cells, two pieces missing: one after another", rows, "", |part| {
        part.for_each(|_| drop(joiner.join(&there, 0, open).expect("a cell")));
    });
    told("convergent cells (danger) of 100 bytes", rows, "65,685 s", |part| {
        part.for_each(|row| {
            cell.clear();
            let mut text = text;
            text[..8].copy_from_slice(&row.to_be_bytes());
            convergent.seal(&text, &mut cell);
        });
    });
    let blob = vec![7; 16 << 20];
    let started = Instant::now();
    let cut = pieces.cut(&blob).expect("a cell");
    once("pieces of 16 MiB, 4 + 2: cut", started);
    let there: Vec<Option<&[u8]>> =
        cut.iter().enumerate().map(|(at, piece)| Some(&piece[..]).filter(|_| at > 1)).collect();
    let started = Instant::now();
    pieces.joiner().join(&there, 0, |cell| (cell.len() == blob.len()).then_some(())).expect("a cell");
    once("pieces of 16 MiB, two are missing: joined", started);
}
