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
mod root;
mod status;
mod table;
mod terms;

use counterfoil::publishing::{self, Authorities};
use counterfoil_publish as publish;

use crate::arguments::{Publish, PublishAction, Reach};
use crate::context::Context;
use crate::failure::{Failure, Result};

pub fn run(context: &Context, arguments: &Publish) -> Result<()> {
    match &arguments.action {
        None => table::run(context, arguments),
        Some(PublishAction::Keygen { root, from, table }) => {
            keys::keygen(context, root, from.as_deref(), table.as_deref())
        }
        Some(PublishAction::Rotate { owned, new_root, finish }) => {
            keys::rotate(context, owned, new_root.as_deref(), *finish)
        }
        Some(PublishAction::Revoke { owned, key }) => keys::revoke(context, owned, key.as_deref()),
        Some(PublishAction::Terms { owned, every, renew, max_age }) => {
            terms::change(context, owned, terms::Asked { every: *every, renew: *renew, max_age: *max_age })
        }
        Some(PublishAction::Status { of }) => status::run(context, of),
    }
}

/// Those who vouch for servers.
pub fn authorities(reach: &Reach) -> Result<Authorities> {
    match &reach.tls_ca {
        None => Ok(Authorities::default()),
        Some(file) => Ok(Authorities::from_file(file).map_err(counterfoil::Error::from)?),
    }
}

/// An owner's error as the program tells it, at the state it is about.
fn told(error: publish::Error, place: &str) -> Failure {
    let needs_root = matches!(error, publish::Error::RootNeeded);
    let told = publishing::told(error).at(place);
    if needs_root { told.advise("name its database with --root").into() } else { told.into() }
}
