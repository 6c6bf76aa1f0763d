//! Opens the image of the token of `firmware/`, as it was left by an image for a chip, and says how many rows each table has.
//!
//! Usage: cargo run -p counterfoil-relation --example image -- FILE
//!
//! What is known of it otherwise is its shape and its key: there is no header on it. Every row and entry is looked at.

use std::error::Error;
use std::sync::Arc;

use counterfoil_flash::{FileDevice, Geometry};
use counterfoil_log::{Layout, Recovered};
use counterfoil_relation::Relations;
use counterfoil_vault::{DatabaseId, Suite, Vault, VolumeKey};

/// As `firmware/src/token.rs` has it, but that a file needs no erase.
const GEOMETRY: Geometry =
    Geometry { page_bytes: 512, block_pages: 256, block_count: 256, erase_before_program: false, grows: false };
/// As `firmware/src/bin/relation/volume.rs` has it.
const WINDOW_EXTENTS: u32 = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: image FILE")?;
    let medium = Arc::new(FileDevice::open_read_only(path, GEOMETRY)?);
    let vault = Vault::new(&VolumeKey::from_bytes(&[7; 32]), DatabaseId([1; 32]), Suite::AsconAead128);
    let layout = Layout::new(&GEOMETRY, GEOMETRY.block_pages, WINDOW_EXTENTS)?;
    let snapshot = Recovered::recover(medium, Arc::new(vault), layout, 1 << 20)?.snapshot();
    let relations = Relations::new();
    for table in relations.tables(&snapshot)? {
        println!("{}: {} rows", table.name, relations.count(&snapshot, &table)?);
    }
    match relations.verify(&snapshot, &mut |_| ())?.problems.as_slice() {
        [] => Ok(()),
        problems => Err(format!("{problems:?}").into()),
    }
}
