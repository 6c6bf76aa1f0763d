//! Makes a header for the token of `firmware/`, and the key file with which a program of this machine opens what is left on it.
//!
//! Usage: cargo run -p counterfoil-relation --example header -- HEADER KEY-FILE
//!
//! It is made under the chip's key, which whoever makes chips knows. The chip puts it on the token.

use std::error::Error;
use std::fs;

use counterfoil_flash::Geometry;
use counterfoil_log::Layout;
use counterfoil_vault::{
    ArgonCost, CounterKind, DatabaseId, Header, KeyFile, Secret, Suite, SystemEntropy, VolumeKey, VolumeLayout,
};

/// As `firmware/src/token.rs` has it.
const GEOMETRY: Geometry =
    Geometry { page_bytes: 512, block_pages: 256, block_count: 256, erase_before_program: true, grows: false };
/// As `firmware/src/bin/relation/volume.rs` has it.
const WINDOW_EXTENTS: u32 = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: header HEADER KEY-FILE";
    let mut arguments = std::env::args().skip(1);
    let (into, key_file) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let layout = Layout::new(&GEOMETRY, GEOMETRY.block_pages, WINDOW_EXTENTS)?;
    let layout = VolumeLayout {
        page_bytes: layout.page_bytes,
        extent_pages: layout.extent_pages,
        record_first_extent: layout.window_first.into(),
        record_extents: layout.window_extents.into(),
        size_limit: GEOMETRY.page_count() * u64::from(GEOMETRY.page_bytes),
    };
    let (key, file) = (VolumeKey::from_bytes(&[7; 32]), KeyFile::generate(&mut SystemEntropy)?);
    let mut header = Header::new(DatabaseId([1; 32]), Suite::AsconAead128, CounterKind::None, layout, 0)?;
    header.add_slot(&Secret::KeyFile(&file), &ArgonCost::HOST, &key, 0, &mut SystemEntropy)?;
    fs::write(into, header.encode(&key))?;
    fs::write(key_file, file.hex().as_bytes())?;
    Ok(())
}
