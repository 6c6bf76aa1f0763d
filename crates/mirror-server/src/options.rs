//! What a mirror is started with, and the way to start it.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use counterfoil_proof::Owner;

use crate::embedded::Embedded;
use crate::limits::Limits;
use crate::postgres::Postgres;
use crate::server::Listener;
use crate::store::{Store, StoreError};
use crate::tls::Tls;

/// Whose tables a mirror takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// Those of the owners of these names.
    Owners(BTreeSet<Owner>),
    /// Anybody's, up to [`Limits::tables_max`]: strangers can fill the disk.
    Any,
}

impl Allowed {
    pub(crate) fn contains(&self, owners: &[Owner]) -> bool {
        match self {
            Self::Any => true,
            Self::Owners(allowed) => owners.iter().any(|owner| allowed.contains(owner)),
        }
    }
}

/// What a mirror is started with. It has no Debug: the address of a store may hold a password.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// The path of an embedded store's file, or `postgres://` and what follows.
    pub store: String,
    /// Where to listen; port 0: any free one.
    pub listen: SocketAddr,
    /// Whose tables are taken.
    pub allowed: Allowed,
    /// What strangers may take.
    pub limits: Limits,
    /// The certificate, for `https://`; without one, requests come in clear.
    pub tls: Option<Tls>,
}

impl Options {
    /// With the usual limits.
    #[must_use]
    pub fn new(store: &str, listen: SocketAddr, allowed: Allowed) -> Self {
        Self { store: store.into(), listen, allowed, limits: Limits::default(), tls: None }
    }
}

/// Why a mirror does not run.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// Its store cannot be opened.
    Store(StoreError),
    /// Its address cannot be had.
    Listen(std::io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => write!(f, "the store: {error}"),
            Self::Listen(error) => write!(f, "cannot listen: {error}"),
        }
    }
}

impl std::error::Error for ServeError {}

/// Opens the store, listens, calls `stop` with the address, and shuts down when that returns: requests that have begun end
/// within [`Limits::shutdown_wait`].
///
/// # Errors
/// [`ServeError`].
pub fn serve(options: Options, stop: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    let store = open(&options.store).map_err(ServeError::Store)?;
    let listener = Listener::bind(options.listen, store, options.allowed, options.limits, options.tls);
    let listener = listener.map_err(ServeError::Listen)?;
    stop(listener.address());
    listener.shut_down();
    Ok(())
}

fn open(store: &str) -> Result<Arc<dyn Store>, StoreError> {
    let is_postgres = ["postgres://", "postgresql://"].iter().any(|scheme| store.starts_with(scheme));
    Ok(if is_postgres { Arc::new(Postgres::open(store)?) } else { Arc::new(Embedded::open(store.as_ref())?) })
}
