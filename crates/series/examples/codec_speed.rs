//! How fast columns are written and read, and how long they are: `cargo run --release -p counterfoil-series --example codec_speed`.

use std::hint::black_box;
use std::time::Instant;

use counterfoil_series::codec::{doubles, integers};

/// Points of a leaf, and how often each is done.
const POINTS: usize = 2000;
const ROUNDS: usize = 5000;

fn noise(at: i64) -> i64 {
    let mixed = (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20) as i64
}

fn print(name: &str, times: &[i64], values: &[f64], quality: &[i64]) {
    let mut leaf = Vec::new();
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        leaf.clear();
        integers::encode(black_box(times), &mut leaf);
        doubles::encode(black_box(values), &mut leaf);
        integers::encode(black_box(quality), &mut leaf);
    }
    let written = begun.elapsed();
    let (mut times_found, mut values_found, mut quality_found) = (Vec::new(), Vec::new(), Vec::new());
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        let mut bytes = black_box(&leaf[..]);
        times_found.clear();
        values_found.clear();
        quality_found.clear();
        integers::decode(&mut bytes, POINTS, &mut times_found).expect("times");
        doubles::decode(&mut bytes, POINTS, &mut values_found).expect("values");
        integers::decode(&mut bytes, POINTS, &mut quality_found).expect("quality");
    }
    let read = begun.elapsed();
    assert_eq!((&times_found[..], &quality_found[..]), (times, quality));
    assert!(values_found.iter().zip(values).all(|(found, value)| found.to_bits() == value.to_bits()));
    let each = |elapsed: std::time::Duration| (POINTS * ROUNDS) as f64 / elapsed.as_secs_f64() / 1e6;
    let bytes = leaf.len() as f64 / POINTS as f64;
    println!("| {name} | {:.0} | {:.0} | {bytes:.2} |", each(written), each(read));
}

fn main() {
    println!("| values | M points/s written | M points/s read | bytes a point |\n|---|---|---|---|");
    let regular: Vec<i64> = (0..POINTS as i64).map(|at| 1_700_000_000_000_000 + at * 100_000).collect();
    let jitter: Vec<i64> = regular.iter().zip(0..).map(|(time, at)| time + noise(at).rem_euclid(2000)).collect();
    let good = vec![192; POINTS];
    let mut level = 200_000;
    let walk: Vec<f64> = (0..POINTS as i64)
        .map(|at| {
            level += noise(at).rem_euclid(33) - 16;
            level as f64 / 100.0
        })
        .collect();
    let white: Vec<f64> = (0..POINTS as i64).map(|at| noise(at).rem_euclid(1 << 21) as f64 / 4096.0).collect();
    let slow: Vec<f64> = (0..POINTS as i64).map(|at| (at / 100) as f64 / 10.0).collect();
    let root: Vec<f64> = (0..POINTS as i64).map(|at| (noise(at) as f64).sqrt()).collect();
    print("decimal walk, regular", &regular, &walk, &good);
    print("decimal walk, 2 ms of jitter", &jitter, &walk, &good);
    print("21 bits of noise", &regular, &white, &good);
    print("slow signal", &regular, &slow, &good);
    print("square roots", &regular, &root, &good);
}
