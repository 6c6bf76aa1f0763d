//! How far it is from one nameless write to the next, by the share of a pool that is kept free, when pages are written
//! anew at random (Chronos, figures 2 and 3): `cargo run --release -p counterfoil-log --example write_distance`.

use std::sync::Arc;
use std::time::Instant;

use counterfoil_flash::{Geometry, MemoryDevice};
use counterfoil_log::{Counting, Layout, Media, NoPins, PoolOptions, Settings, create};
use counterfoil_vault::{DatabaseId, Suite, SystemEntropy, Vault, VolumeKey};

const LIVE_PAGES: u64 = 20_000;
const WRITES: u64 = 100_000;
const WRITES_IN_A_COMMIT: u64 = 10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{LIVE_PAGES} live pages of 512 bytes, {WRITES} of them written anew, {WRITES_IN_A_COMMIT} in a commit");
    println!("share kept free | free in fact | pages from write to write | neighbours | microseconds a write");
    for free_percent in [2, 5, 10, 15, 20, 30, 50] {
        measure(free_percent)?;
    }
    Ok(())
}

fn measure(free_percent: u8) -> Result<(), Box<dyn std::error::Error>> {
    let geometry =
        Geometry { page_bytes: 512, block_pages: 64, block_count: 4096, erase_before_program: false, grows: true };
    let device = MemoryDevice::new(geometry)?;
    let key = VolumeKey::generate(&mut SystemEntropy)?;
    let vault = Arc::new(Vault::new(&key, DatabaseId::generate(&mut SystemEntropy)?, Suite::Aes256GcmSiv));
    let layout = Layout::new(&geometry, 64, 64)?;
    let settings = Settings { counter: None, counting: Counting::EveryCommit, pins: Box::new(NoPins), headers: None };
    let media = Media { reader: Arc::new(device.clone()), writer: Box::new(device) };
    let mut writer = create(media, vault, layout, settings, &mut SystemEntropy, 0, 1 << 20)?;
    writer.begin()?;
    let pool = writer.create_pool(PoolOptions { free_percent })?;
    let payload = vec![7; writer.payload_bytes()];
    let mut pages = Vec::new();
    for _ in 0..LIVE_PAGES {
        pages.push(writer.write_nameless(pool, &payload)?);
    }
    writer.commit()?;
    let mut dice = 1u64;
    // Twice: the first time until it is as it stays.
    let mut before = writer.pool_use(pool)?.distances;
    let mut begun = Instant::now();
    for round in 0..2 * WRITES / WRITES_IN_A_COMMIT {
        if round == WRITES / WRITES_IN_A_COMMIT {
            (before, begun) = (writer.pool_use(pool)?.distances, Instant::now());
        }
        writer.begin()?;
        for _ in 0..WRITES_IN_A_COMMIT {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let page = &mut pages[((dice >> 33) % LIVE_PAGES) as usize];
            writer.free_nameless(pool, *page)?;
            *page = writer.write_nameless(pool, &payload)?;
        }
        writer.commit()?;
    }
    let used = writer.pool_use(pool)?;
    let (writes, pages) = (used.distances.writes - before.writes, used.distances.pages - before.pages);
    let all = u64::from(used.extents) * 64;
    println!(
        "{free_percent:>13} % | {:>10.1} % | {:>25.2} | {:>8.1} % | {:>8.2}",
        100.0 * (all - used.live_pages) as f64 / all as f64,
        pages as f64 / writes as f64,
        100.0 * (used.distances.histogram[0] - before.histogram[0]) as f64 / writes as f64,
        begun.elapsed().as_micros() as f64 / writes as f64
    );
    Ok(())
}
