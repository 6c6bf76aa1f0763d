//! `publish`: tables that anybody may serve and everybody can check, and the keys that sign them.
//!
//! ```text
//! file -> rows (a table in memory) -> difference to what is published -> signatures -> the owner's state -> folder, mirrors
//! ```
//! A cut before the state's commit leaves everything as it was. One behind it leaves an older folder: publishing again
//! writes what is missing.

mod delivery;
mod keys;
mod owned;
mod push;
mod root;
mod rows;
mod state;
mod status;
mod table;

use counterfoil::{Error, Kind};
use counterfoil_publish as publish;

use crate::arguments::{Publish, PublishAction};
use crate::context::Context;
use crate::failure::{Failure, Result, misuse};

pub fn run(context: &Context, arguments: &Publish) -> Result<()> {
    match &arguments.action {
        None => table::run(context, arguments),
        Some(PublishAction::Keygen { root, from }) => keys::keygen(context, root, from.as_deref()),
        Some(PublishAction::Rotate { owned, new_root, finish }) => {
            keys::rotate(context, owned, new_root.as_deref(), *finish)
        }
        Some(PublishAction::Revoke { owned, key }) => keys::revoke(context, owned, key.as_deref()),
        Some(PublishAction::Status { state }) => status::run(context, state),
    }
}

/// Milliseconds since 1970.
fn now() -> Result<u64> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let since = since.map_err(|_| misuse("this machine's clock is before 1970").advise("set it"))?;
    Ok(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// An owner's error as the program tells it, at the state it is about.
fn told(error: publish::Error, place: &str) -> Failure {
    let kind = match &error {
        publish::Error::Misuse(_) | publish::Error::RootNeeded => Kind::Input,
        publish::Error::Corrupt(_) => Kind::Corrupt,
        publish::Error::Ledger(_) => Kind::Device,
        _ => Kind::Bug,
    };
    let told = Error::new(kind, error.to_string()).at(place);
    let needs_root = matches!(error, publish::Error::RootNeeded);
    if needs_root { told.advise("name its database with --root").into() } else { told.into() }
}
