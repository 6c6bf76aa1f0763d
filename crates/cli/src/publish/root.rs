//! Root keys that are kept elsewhere: each a sealed database with one record.

use counterfoil::{Database, Error, Kind};
use counterfoil_proof::SecretKey;
use zeroize::Zeroizing;

use crate::arguments::{Common, RootKey};
use crate::context::Context;
use crate::failure::{Result, misuse};
use crate::{init, terminal};

/// The record that holds a root key, 32 bytes; of an owner whose root is being changed the newer one comes first.
const RECORD: &str = "root key of a publisher";

/// The root keys that were named.
pub fn all(context: &Context, named: &RootKey) -> Result<Vec<SecretKey>> {
    let context = Context::new(common(context, named));
    let mut roots = Vec::new();
    for place in &named.places {
        roots.extend(one(&context, place)?);
    }
    Ok(roots)
}

/// How root keys are opened: like the state, unless they have a key of their own.
fn common(context: &Context, named: &RootKey) -> Common {
    let mut common = context.common.clone();
    if named.root_key_file.is_some() || named.root_passphrase_file.is_some() {
        common.key_file.clone_from(&named.root_key_file);
        common.passphrase_file.clone_from(&named.root_passphrase_file);
    }
    common
}

/// The root key of a database that is named beside them, and opened as they are.
pub fn beside(context: &Context, named: &RootKey, place: &str) -> Result<SecretKey> {
    let mut roots = one(&Context::new(common(context, named)), place)?;
    match (roots.pop(), roots.is_empty()) {
        (Some(root), true) => Ok(root),
        _ => Err(misuse("there are two root keys in it").at(place).advise("make one with `publish keygen`").into()),
    }
}

/// The root key of one database, or both while it changes.
fn one(context: &Context, place: &str) -> Result<Vec<SecretKey>> {
    let database = context.open_to_read(place)?;
    let bytes = database.records().get(RECORD)?;
    database.close()?;
    let none = || misuse("no root key is kept here").at(place).advise("name one that `publish keygen` made");
    let bytes = bytes.ok_or_else(none)?;
    let read = |bytes| SecretKey::from_bytes(bytes).map_err(|_| Error::new(Kind::Corrupt, "no root key").at(place));
    let roots = bytes.chunks(32).map(read).collect::<Result<Vec<_>, Error>>()?;
    if roots.is_empty() { Err(none().into()) } else { Ok(roots) }
}

/// Makes a database for a root key. Nothing may be there under this name.
pub fn make(context: &Context, place: &str) -> Result<Database> {
    let database = init::create(context, context.options_without_key(place)?, true)?;
    terminal::done(format_args!("{place}: the root key is in it: keep it apart from what it signs, and a copy of it"));
    Ok(database)
}

/// Keeps root keys in a database: durable when this returns.
pub fn keep(database: &Database, roots: &[u8]) -> Result<(), Error> {
    database.records().put(RECORD, roots)
}

/// A new root key.
pub fn fresh() -> Result<SecretKey> {
    let entropy = Zeroizing::new(counterfoil::random::<32>()?);
    Ok(SecretKey::from_entropy(&*entropy)
        .map_err(|_| Error::new(Kind::Bug, "entropy from which no key can be made"))?)
}
