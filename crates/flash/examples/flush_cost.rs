//! What a small commit costs on this machine's disk: one page programmed and flushed, with and without room made for
//! it before. `cargo run --release -p counterfoil-flash --example flush_cost [DIRECTORY]`

use std::time::Instant;

use counterfoil_flash::{Device, Error, FileDevice, Geometry, PageNumber};

const COMMITS: u64 = 2000;
const RESERVED: u64 = 64;
const SHAPE: Geometry =
    Geometry { page_bytes: 4096, block_pages: 64, block_count: 1 << 20, erase_before_program: false, grows: true };

fn main() -> Result<(), Error> {
    let directory = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, Into::into);
    for reserved in [0, RESERVED] {
        let path = directory.join(format!("counterfoil-flush-cost-{}", std::process::id()));
        let mut device = FileDevice::create_new(&path, SHAPE)?;
        let start = Instant::now();
        for page in 0..COMMITS {
            if reserved > 0 && page % reserved == 0 {
                device.reserve(PageNumber(page), reserved)?;
            }
            device.program(PageNumber(page), &[page as u8 | 1; 4096])?;
            device.flush()?;
        }
        let each = start.elapsed().as_secs_f64() * 1e6 / COMMITS as f64;
        println!("{COMMITS} pages, {reserved:2} reserved at once: {each:7.1} us each");
        // A file left behind in a temporary directory harms nobody.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}
