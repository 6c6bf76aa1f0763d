//! Prints how fast pages are sealed and opened: `cargo run --release -p counterfoil-vault --example seal_speed`.

use std::time::{Duration, Instant};

use counterfoil_vault::{DatabaseId, Epoch, Kind, Plain, Sealed, Suite, Vault, VolumeKey};

const EPOCH: Epoch = Epoch { number: 7, salt: [3; 16] };
const PAGES: usize = 256;

fn main() {
    println!("hardware AES: {}", if aes::hardware_accelerated() { "yes" } else { "no" });
    println!("{:18} {:>6} {:>10} {:>10} {:>12}", "suite", "page", "seal GB/s", "open GB/s", "derive ns");
    for suite in Suite::ALL {
        for page_bytes in [4096, 512] {
            row(suite, page_bytes);
        }
    }
}

fn row(suite: Suite, page_bytes: usize) {
    let vault = Vault::new(&VolumeKey::from_bytes(&[1; 32]), DatabaseId([2; 32]), suite);
    let key = vault.page_key(Kind::Container, 1, &EPOCH);
    let mut pages = vec![0u8; PAGES * page_bytes];
    let seal = best(|| {
        for (position, page) in pages.chunks_mut(page_bytes).enumerate() {
            key.seal(position as u32, Plain::new(page));
        }
    });
    // Opening works in place, so every round seals again; the sealing time is taken off.
    let both = best(|| {
        for (position, page) in pages.chunks_mut(page_bytes).enumerate() {
            key.seal(position as u32, Plain::new(page));
            assert!(key.open(position as u32, Sealed::from_medium(page)).is_ok());
        }
    });
    let derive = best(|| {
        for allocation in 0..PAGES as u64 {
            std::hint::black_box(vault.page_key(Kind::Container, allocation, &EPOCH));
        }
    });
    let speed = |time: Duration| (PAGES * page_bytes) as f64 / time.as_nanos() as f64;
    println!(
        "{:18} {page_bytes:6} {:10.2} {:10.2} {:12.0}",
        suite.name(),
        speed(seal),
        speed(both.saturating_sub(seal)),
        derive.as_nanos() as f64 / PAGES as f64
    );
}

/// The best of many rounds: the machine is shared.
fn best(mut round: impl FnMut()) -> Duration {
    let started = Instant::now();
    let mut best = Duration::MAX;
    while started.elapsed() < Duration::from_millis(300) {
        let round_started = Instant::now();
        round();
        best = best.min(round_started.elapsed());
    }
    best
}
