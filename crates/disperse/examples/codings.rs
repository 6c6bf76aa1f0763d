//! What codings take for a million values, beside what StealthDB (Spillner and others, 2015) took: its table III, on a notebook, with
//! values encrypted in memory.
//!
//! `cargo run --release -p counterfoil-disperse --example codings [ROWS]`
//!
//! One thread. What is slow is measured for fewer values (`of`) and told for a million. Nothing is asserted: these are times of
//! one machine.

use std::sync::Arc;
use std::time::Instant;

use counterfoil_disperse::Secret;
use counterfoil_disperse::coding::boldyreva::DangerOrders;
use counterfoil_disperse::coding::cells::Cells;
use counterfoil_disperse::coding::convergent::DangerConvergent;
use counterfoil_disperse::coding::erasure::Pieces;
use counterfoil_disperse::coding::pads::{self, Pads};
use counterfoil_disperse::coding::paillier::{Adding, Ciphertext, Encryptor, Exponents, PrivateKey, Slots};

const MILLION: u64 = 1_000_000;

fn main() {
    let rows = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(MILLION).clamp(64, 100 * MILLION);
    println!("{:<44} {:>12} {:>12}  {:>18}", "", "of", "a million", "StealthDB, 2015");
    padded(rows);
    for bits in [2048, 3072] {
        encrypted(bits, rows);
    }
    in_order(rows.min(20_000));
    texts(rows.min(100_000));
}

/// Prints what some of a million took.
fn told(what: &str, of: u64, started: Instant, paper: &str) {
    let seconds = started.elapsed().as_secs_f64();
    println!("{what:<44} {of:>12} {:>10.4} s  {paper:>18}", seconds * MILLION as f64 / of as f64);
}

/// Prints what one thing took.
fn once(what: &str, started: Instant) {
    println!("{what:<44} {:>12} {:>9.3} ms", "once", started.elapsed().as_secs_f64() * 1000.0);
}

fn padded(rows: u64) {
    let values: Vec<i128> = (1..=i128::from(rows)).collect();
    let pads = Pads::<u64>::new(&Secret::new([1; 32]), 34, rows).expect("room");
    let mut codes = Vec::with_capacity(values.len());
    let started = Instant::now();
    pads.seal(0, &values, &mut codes).expect("values");
    told("pads: INSERT", rows, started, "65,685 s");
    let started = Instant::now();
    let sum = std::hint::black_box(pads::add(std::hint::black_box(&codes)));
    told("pads: SUM at the provider", rows, started, "110.7 s");
    let started = Instant::now();
    let sum = pads.open_sum(sum, std::slice::from_ref(&(0..rows))).expect("a sum");
    once(&format!("pads: what the owner adds ({sum})"), started);
}

fn encrypted(bits: usize, rows: u64) {
    let started = Instant::now();
    let key = Arc::new(PrivateKey::generate(&Secret::new([2; 32]), bits).expect("a key"));
    once(&format!("Paillier {bits}: a key"), started);
    for (exponents, name) in [(Exponents::Full, "full"), (Exponents::Short, "short")] {
        let started = Instant::now();
        let encryptor = Encryptor::new(key.clone(), &Secret::new([3; 32]), exponents).expect("exponents");
        once(&format!("Paillier {bits}, {name}: powers of h"), started);
        numbers(bits, name, &encryptor, rows);
        packed(bits, name, &encryptor, rows);
    }
}

fn numbers(bits: usize, name: &str, encryptor: &Encryptor, rows: u64) {
    let some = rows.min(1000);
    let started = Instant::now();
    let encrypted: Vec<Ciphertext> =
        (0..some).map(|row| encryptor.encrypt(row, i128::from(row)).expect("a number")).collect();
    told(&format!("Paillier {bits}, {name}: INSERT"), some, started, "65,685 s");
    if name == "short" {
        return;
    }
    let added = rows.min(100_000);
    let started = Instant::now();
    let sum = sum(encryptor, encrypted.iter().cycle().take(added as usize));
    told(&format!("Paillier {bits}: SUM at the provider"), added, started, "110.7 s");
    let started = Instant::now();
    encryptor.key().open(&sum, added).expect("a sum");
    once(&format!("Paillier {bits}: the sum is opened"), started);
}

/// The same, of values that share numbers.
fn packed(bits: usize, name: &str, encryptor: &Encryptor, rows: u64) {
    let slots = Slots::new(34, MILLION, bits).expect("slots");
    let (count, some) = (slots.count() as u64, rows.min(1000 * slots.count() as u64));
    let values: Vec<i128> = (0..i128::from(count)).collect();
    let started = Instant::now();
    let encrypted: Vec<Ciphertext> =
        (0..some / count).map(|row| encryptor.encrypt_packed(row, &slots, &values).expect("values")).collect();
    told(&format!("Paillier {bits}, {name}, {count} in one: INSERT"), some / count * count, started, "65,685 s");
    if name == "short" {
        return;
    }
    let started = Instant::now();
    let numbers = (MILLION / count).max(1);
    sum(encryptor, encrypted.iter().cycle().take(numbers as usize));
    told(&format!("Paillier {bits}, {count} in one: SUM"), numbers * count, started, "110.7 s");
}

fn sum<'c>(encryptor: &Encryptor, encrypted: impl Iterator<Item = &'c Ciphertext>) -> Ciphertext {
    let mut adding = Adding::new(encryptor.key().public());
    encrypted.for_each(|number| adding.add(number).expect("a ciphertext"));
    adding.finish()
}

fn in_order(rows: u64) {
    let orders = DangerOrders::new(&Secret::new([4; 32]));
    let started = Instant::now();
    let mut codes: Vec<_> = (0..rows).map(|row| orders.code(row.wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect();
    told("order-preserving codes (danger): INSERT", rows, started, "65,685 s");
    let started = Instant::now();
    codes.sort_unstable();
    told("order-preserving codes: ORDER BY", rows, started, "116.1 s");
}

fn texts(rows: u64) {
    let text = [b'x'; 100];
    let (cells, convergent) =
        (Cells::new(&Secret::new([5; 32]), &[0; 16], 1), DangerConvergent::new(Secret::new([6; 32])));
    let mut bytes = Vec::new();
    let started = Instant::now();
    (0..rows).for_each(|row| {
        bytes.clear();
        cells.seal(row, Some(&text), &mut bytes);
    });
    told("cells of 100 bytes: INSERT", rows, started, "65,685 s");
    let pieces = Pieces::new(4, 2).expect("pieces");
    let started = Instant::now();
    (0..rows).for_each(|_| drop(std::hint::black_box(pieces.cut(&bytes))));
    told("pieces of such a cell, 4 + 2", rows, started, "");
    let started = Instant::now();
    (0..rows).for_each(|row| {
        bytes.clear();
        convergent.seal(&[&row.to_be_bytes()[..], &text].concat(), &mut bytes);
    });
    told("convergent cells (danger) of 108 bytes", rows, started, "65,685 s");
    let blob = vec![7; 16 << 20];
    let started = Instant::now();
    let cut = pieces.cut(&blob).expect("a cell");
    once("pieces of 16 MiB, 4 + 2: cut", started);
    let there: Vec<Option<&[u8]>> =
        cut.iter().enumerate().map(|(at, piece)| Some(&piece[..]).filter(|_| at > 1)).collect();
    let started = Instant::now();
    pieces.join(&there, 0, |cell| (cell.len() == blob.len()).then_some(())).expect("a cell");
    once("pieces of 16 MiB, two are missing: joined", started);
}
