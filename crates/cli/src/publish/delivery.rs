//! What is published, brought to whoever serves it.

use std::path::{Path, PathBuf};

use counterfoil::Error;
use counterfoil::publishing::{TableLedger, push};
use counterfoil_mirror::site;
use counterfoil_publish::Publication;

use super::told;
use crate::failure::Result;
use crate::terminal::{self, Working, counted};

/// Brings the folder and each mirror up to date.
pub fn deliver(
    publication: &mut Publication<TableLedger>,
    out: Option<&PathBuf>,
    mirrors: &[String],
    place: &str,
) -> Result<()> {
    if let Some(out) = out {
        let (files, bytes) = write(publication, out, place)?;
        terminal::done(format_args!("{}: {} written, {bytes} bytes", out.display(), counted(files, "file")));
    }
    for mirror in mirrors {
        let (updates, bytes) = {
            let _working = Working::begin("sending");
            push(publication, mirror)?
        };
        terminal::done(format_args!("{mirror}: {} sent, {bytes} bytes", counted(updates, "update")));
    }
    Ok(())
}

fn write(publication: &mut Publication<TableLedger>, folder: &Path, place: &str) -> Result<(u64, u64)> {
    let _working = Working::begin("writing the folder");
    let summaries = publication.summaries().map_err(|error| told(error, place))?;
    let written = site::write(publication.shelf(), publication.manifest(), &summaries, folder);
    Ok(written.map_err(|error| Error::host("write the folder", folder.display(), &error))?)
}
