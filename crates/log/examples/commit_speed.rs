//! How many durable commits a second the spine takes on this machine: `cargo run --release -p counterfoil-log
//! --example commit_speed -- FILE`.

use std::sync::Arc;
use std::time::Instant;

use counterfoil_flash::{FileDevice, Geometry, Read};
use counterfoil_log::{Counting, Layout, Media, NoPins, Settings, create};
use counterfoil_vault::{DatabaseId, Suite, SystemEntropy, Vault, VolumeKey};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    let geometry =
        Geometry { page_bytes: 4096, block_pages: 16, block_count: 1 << 20, erase_before_program: false, grows: true };
    let device = FileDevice::create_new(std::path::Path::new(&path), geometry)?;
    let key = VolumeKey::generate(&mut SystemEntropy)?;
    let vault = Arc::new(Vault::new(&key, DatabaseId::generate(&mut SystemEntropy)?, Suite::Aes256GcmSiv));
    let layout = Layout::new(&device.geometry(), 64, 16)?;
    let started = Instant::now();
    let clock = Box::new(move || started.elapsed().as_millis() as u64);
    let settings = Settings {
        counter: None,
        counting: Counting::Every { milliseconds: 1000, clock },
        pins: Box::new(NoPins),
        headers: None,
    };
    let media = Media { reader: Arc::new(device.clone()), writer: Box::new(device) };
    let mut writer = create(media, vault, layout, settings, &mut SystemEntropy, 0, 1 << 20)?;
    writer.begin()?;
    let group = writer.create_group()?;
    let container = writer.create_container(group)?;
    writer.commit()?;
    for round in 0..3 {
        let commits = 5000;
        let begun = Instant::now();
        for _ in 0..commits {
            writer.begin()?;
            writer.append(container, &[round; 100])?;
            writer.commit()?;
        }
        let seconds = begun.elapsed().as_secs_f64();
        println!("{commits} commits of 100 bytes: {:.0} a second", f64::from(commits) / seconds);
    }
    writer.begin()?;
    let begun = Instant::now();
    let bytes = vec![7; 1 << 20];
    for _ in 0..256 {
        writer.append(container, &bytes)?;
    }
    writer.commit()?;
    println!("256 MiB in one commit: {:.0} MB/s", 268.4 / begun.elapsed().as_secs_f64());
    writer.close()?;
    Ok(())
}
