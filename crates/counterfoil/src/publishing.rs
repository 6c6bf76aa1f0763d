//! Tables that anybody may serve and everybody can check: what PUBLISH does, and what programs that publish stand on.
//!
//! ```text
//! table -> rows -> difference to what is published -> signatures -> ledger (a table beside it) -> folder, mirrors
//! ```
//! - [`TableLedger`] keeps an owner's state in a table of a sealed database: beside the table that PUBLISH publishes, hidden
//!   from SQL, or alone in a database of its own.
//! - [`open`] goes on with a publication, under a new key if its database was put back: [`Alone`], as whoever signs has to be.
//! - [`Target`] is who is told: a folder, a bucket or a mirror, which is brought up to date over a [`Network`].
//! - [`Http`] is what readers fetch with, and mirrors are sent to; [`Authorities`] vouch for servers at `https://`.
//! - Tables WITH (engine = 'published') are read from a server, checked (`asked`), and what was seen of them is kept (`seen`).

mod alone;
mod asked;
mod bounded;
mod columns;
mod ledger;
mod load;
mod opened;
mod publication;
mod publisher;
mod push;
mod rows;
mod seen;
mod server;
mod target;
mod verifying;
mod worker;

use counterfoil_publish as publish;
use counterfoil_transport as transport;
use counterfoil_transport::Denial;

use crate::error::{Error, Kind, Result};

pub use alone::Alone;
pub(crate) use columns::column;
pub use counterfoil_transport::{Account, Authorities, BucketAddress, Http, Patience, VerifierPage};
pub use ledger::TableLedger;
pub use opened::{KEY_LIFE, Opened, is_expiring, look, new_key, open};
pub(crate) use publisher::{Answering, Publications};
pub use publisher::{check_load, is_published, note_signed};
use push::push;
pub use rows::{all, columns, create_sql, orders};
pub use target::{Delivered, Network, Target};
pub(crate) use verifying::Verifying;

/// Milliseconds since 1970 by this machine's clock.
///
/// # Errors
/// [`Kind::Misuse`]: it is before 1970.
pub fn now() -> Result<u64> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let since = since.map_err(|_| Error::new(Kind::Misuse, "this machine's clock is before 1970").advise("set it"))?;
    Ok(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// An owner's error as the database tells it.
#[must_use]
pub fn told(error: publish::Error) -> Error {
    let kind = match &error {
        publish::Error::Misuse(_) | publish::Error::RootNeeded => Kind::Input,
        publish::Error::Corrupt(_) => Kind::Corrupt,
        publish::Error::Ledger(_) => Kind::Device,
        publish::Error::CalledOff => Kind::Interrupted,
        _ => Kind::Bug,
    };
    Error::new(kind, error.to_string())
}

impl From<transport::Error> for Error {
    fn from(error: transport::Error) -> Self {
        let kind = match &error {
            transport::Error::Address(_) => Kind::NotSupported,
            transport::Error::NoAddress(..) => Kind::Misuse,
            transport::Error::NoBucketAddress | transport::Error::NoAccount | transport::Error::NoServer => {
                Kind::Misuse
            }
            transport::Error::SecretFile(_) | transport::Error::NoPage(_) => Kind::Input,
            transport::Error::Denied(_, Denial::NoBucket) => Kind::NotFound,
            transport::Error::Denied(_, Denial::NotVouched(_)) | transport::Error::Unreachable(..) => Kind::Network,
            transport::Error::Denied(..) => Kind::Device,
            transport::Error::File(path, error) => return Self::host("read the file", path.display(), error),
            transport::Error::NoAuthority(_) => Kind::Input,
            _ => Kind::Bug,
        };
        let told = Self::new(kind, error.what()).advise(error.advice());
        error.place().map_or(told.clone(), |place| told.at(place))
    }
}
