//! What a database is to those who bring its dispersed tables back, when it is lost.
//!
//! ```text
//! database lost -> shares of its key, one cloud -> its catalogue -> tables in a database in memory
//!               -> a volume of the same id, key and slots, NAME.creating -> new epoch above the counter -> rename
//! ```
//! A cut before the rename leaves nothing, or what was there.

pub use counterfoil_sql::BroughtBack;

use std::path::Path;
use std::sync::Weak;

use counterfoil_sql::series_engine::SeriesTables;
use counterfoil_sql::{Lost, Owner, lost_tables};
use counterfoil_vault::{DatabaseId, Header, VolumeKey};
use zeroize::Zeroizing;

use crate::copies::{Progress, Replaced, begin_epoch, stopped, tell_of_restoring};
use crate::create::{self, Temporary};
use crate::database::Database;
use crate::error::{Error, Kind, Result};
use crate::medium::new_geometry;
use crate::options::{Options, Place};
use crate::store::FileStore;

/// The owner of a database as its tables at clouds know it.
pub(crate) struct Owning(pub(crate) Weak<FileStore>);

impl Owner for Owning {
    fn catalogue_secret(&self) -> Option<Zeroizing<[u8; 32]>> {
        let store = self.0.upgrade()?;
        let volume = store.volume();
        let is_kept = volume.options.place != Place::Memory;
        is_kept.then(|| volume.opened().unlocked.volume_key.catalogue_secret(volume.vault.id()))
    }

    fn header(&self) -> Vec<u8> {
        let opened = self.0.upgrade().map(|store| store.volume().opened());
        opened.map_or_else(Vec::new, |opened| opened.header.encode(&opened.unlocked.volume_key))
    }
}

/// A cloud that is asked for what is lost.
#[derive(Clone, Debug)]
pub struct CloudAddress {
    /// Where it is.
    pub url: String,
    /// A file with what is kept secret of it.
    pub secret_file: Option<String>,
}

impl Database {
    /// Remembers that shares of the key were made, and where they are is for their owner to know: rows of dispersed tables are taken
    /// from then on. Clouds are told what these shares bring back.
    ///
    /// # Errors
    /// Those of writing.
    pub fn note_split(&self) -> Result<()> {
        let volume = self.volume();
        let secret = volume.opened().unlocked.volume_key.catalogue_secret(volume.vault.id());
        let mut connection = self.connect()?;
        let noted = connection.note_split(&secret);
        connection.take_notices().iter().for_each(|notice| volume.options.note(notice));
        noted
    }

    /// Makes a database again that is lost, with the dispersed tables that a cloud shows. `options` say where, and have the shares of its
    /// key ([`Database::split_key`]); what opened it opens it again. Rows are read at the clouds as before; `REPAIR TABLE` compares them.
    ///
    /// # Errors
    /// [`Kind::Misuse`] for another key than shares, and for another database in its place; [`Kind::NotFound`] if the cloud shows nothing
    /// of it; those of the cloud and of writing.
    pub fn restore_from_cloud(
        from: &CloudAddress,
        options: Options,
        progress: Progress<'_>,
    ) -> Result<Vec<BroughtBack>> {
        let place = options.place.clone();
        let Place::File(path) = &place else {
            return Err(Error::new(
                Kind::NotSupported,
                "not supported: restoring from a cloud into what is not a file",
            ));
        };
        let shares = options.key.as_ref().and_then(|key| key.of_shares()).ok_or_else(|| {
            Error::new(Kind::Misuse, "a cloud has no key slots: shares of the key are needed")
                .advise("give the folder that `counterfoil key split` wrote as --key-file")
        })?;
        restore(from, path, options.clone(), shares, progress).map_err(|error| error.at(&place))
    }
}

fn restore(
    from: &CloudAddress,
    path: &Path,
    options: Options,
    (key, id): (VolumeKey, DatabaseId),
    progress: Progress<'_>,
) -> Result<Vec<BroughtBack>> {
    // What is in the place of the new one is looked at before clouds are.
    refuse_what_opens(path, &options)?;
    let replaced = Replaced::look(path, id, &options)?;
    let secret = key.catalogue_secret(id);
    let memory = Database::create(Options::memory())?;
    let engine = memory.inner.engine.clone();
    let lost = lost_tables(&engine, &secret, (&from.url, from.secret_file.clone()), &mut |note| options.note(&note))?;
    let header = header_of(&lost, &key, id)?;
    let brought = memory.connect()?.bring_back(lost, &secret)?;
    let snapshot = memory.snapshot()?;
    let options = Options {
        cipher: header.suite,
        page_bytes: header.layout.page_bytes,
        size_limit: (header.layout.size_limit > 0).then_some(header.layout.size_limit),
        recovery: false,
        ..options
    };
    let temporary = Temporary::create(path, new_geometry(&options)?)?;
    let lock = temporary.lock()?;
    let volume = create::make_again(&temporary, options, &header, &key, &snapshot, |writer| {
        if writer.fill_from_with(&snapshot, &SeriesTables::new(), progress)? { Ok(()) } else { Err(stopped()) }
    })?;
    let text = format!("brought back from the cloud at {}", from.url);
    begin_epoch(&volume, |writer| tell_of_restoring(writer, &text))?;
    drop((volume, lock));
    replaced.publish(temporary, path)?;
    Ok(brought)
}

/// Refuses to put what clouds show into the place of a database that is whole: tables of its own no cloud has, nor rows that wait for clouds.
fn refuse_what_opens(path: &Path, options: &Options) -> Result<()> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    match Database::open(options.clone().read_only(true)) {
        // What does not open may be what is to be replaced.
        Err(_) => Ok(()),
        Ok(_) => Err(Error::new(Kind::Misuse, "this database is there, and opens")
            .advise("choose another name, or move it away first: clouds have nothing of tables of its own")),
    }
}

/// The header with the newest slots.
fn header_of(lost: &[Lost], key: &VolumeKey, id: DatabaseId) -> Result<Header> {
    let headers = lost.iter().filter_map(|lost| Header::made(lost.header(), key)).filter(|header| header.id == id);
    headers.max_by_key(|header| header.generation).ok_or_else(|| {
        Error::new(Kind::Corrupt, "the cloud shows no key slots of this database").advise("try another of its clouds")
    })
}
