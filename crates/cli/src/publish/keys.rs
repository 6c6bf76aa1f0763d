//! `publish keygen`, `rotate` and `revoke`: keys that come and go.

use counterfoil::publishing::{TableLedger, new_key, now};
use counterfoil_proof::{Owner, PublicKey};
use counterfoil_publish::{self as publish, Publication};
use zeroize::Zeroizing;

use super::delivery::Recipients;
use super::{owned, root, told};
use crate::arguments::{Owned, StateOf};
use crate::closing;
use crate::context::Context;
use crate::failure::{Result, misuse};
use crate::terminal;

/// Digits by which a key is called.
const NAME_DIGITS: usize = 16;

/// How a signing key is called.
pub fn name_of(key: &PublicKey) -> String {
    key.to_bytes()[..NAME_DIGITS / 2].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Makes a root key, or takes that of a state out of it; prints the owner's name.
pub fn keygen(context: &Context, place: &str, from: Option<&str>, table: Option<&str>) -> Result<()> {
    let owner = match from {
        None => {
            let (key, database) = (root::fresh()?, root::make(context, place)?);
            root::keep(&database, &*Zeroizing::new(key.to_bytes()))?;
            closing::close(database)?;
            Owner::of(&key.public())
        }
        Some(state) => {
            let of = StateOf { state: state.to_owned(), table: table.map(str::to_owned) };
            owned::with(context, &of, &[], |publication| take_out(context, place, state, publication))?
        }
    };
    crate::output::put(&mut std::io::stdout().lock(), format!("{owner}\n").as_bytes())
}

fn take_out(context: &Context, place: &str, state: &str, publication: &mut Publication<TableLedger>) -> Result<Owner> {
    if !publication.has_root() {
        return Err(misuse("the root key is kept elsewhere already").at(state).into());
    }
    let database = root::make(context, place)?;
    // A cut in between leaves the key in both places, and the command can be given again under another name.
    let keep = |roots: &[u8]| {
        root::keep(&database, roots).map_err(|error| publish::Error::Ledger(error.to_string()))?;
        Ok(())
    };
    publication.export_root(keep).map_err(|error| told(error, state))?;
    closing::close(database)?;
    terminal::done(format_args!("{state}: the root key is not in it any more"));
    terminal::note("older copies of the state still hold the root key, and so do its pages until it is purged");
    Ok(publication.owner())
}

/// Lets another signing key sign, or changes the root key.
pub fn rotate(context: &Context, owned: &Owned, new_root: Option<&str>, finish: bool) -> Result<()> {
    let recipients = Recipients::of_owned(owned)?;
    let mut roots = root::all(context, &owned.root)?;
    let new_root = new_root.map(|place| root::beside(context, &owned.root, place)).transpose()?;
    let place = &owned.of.state;
    let owner = owned::with(context, &owned.of, &roots.clone(), |publication| {
        let told = |error| told(error, place);
        if let Some(new) = &new_root {
            publication.rotate_root(now()?, new, &roots).map_err(told)?;
            roots.push(new.clone());
            terminal::done(format_args!("{}: this is the owner's name from now on", publication.owner()));
            terminal::note(
                "the old name leads to the table until `publish rotate --finish`: tell your readers the new one",
            );
        } else if finish {
            publication.finish_root_rotation(now()?, &roots).map_err(told)?;
            terminal::done("the old name leads nowhere any more");
        } else {
            publication.rotate(now()?, new_key()?, &roots).map_err(told)?;
            // It signs from the next period on: that begins now.
            publication.close_period(now()?).map_err(told)?;
            terminal::done("a new key signs from now on");
        }
        finish_up(publication, &recipients, place)
    })?;
    print(&owner)
}

/// Withdraws a signing key.
pub fn revoke(context: &Context, owned: &Owned, key: Option<&str>) -> Result<()> {
    let recipients = Recipients::of_owned(owned)?;
    let roots = root::all(context, &owned.root)?;
    let place = &owned.of.state;
    let owner = owned::with(context, &owned.of, &roots, |publication| {
        let is_named = key.is_some();
        let (key, signed) = named(publication, key, place)?;
        let others = others(publication, &key);
        let revoked = {
            let _working = terminal::Working::begin("signing again");
            publication.revoke(now()?, &key, new_key()?, &roots)
        };
        revoked.map_err(|error| told(error, place))?;
        terminal::done(format_args!(
            "key {} is withdrawn: {} made again by a new one",
            name_of(&key),
            terminal::counted(signed, "signature")
        ));
        if !is_named && !others.is_empty() {
            let names = others.join(", ");
            terminal::note(format_args!("what {names} signed counts as before: --key NAME withdraws another key"));
        }
        finish_up(publication, &recipients, place)
    })?;
    print(&owner)
}

/// How the other keys are called of which signatures stand.
fn others(publication: &Publication<TableLedger>, key: &PublicKey) -> Vec<String> {
    let keys = publication.status().keys;
    let others = keys.iter().filter(|(other, signed)| other.key != *key && *signed > 0);
    others.map(|(other, _)| name_of(&other.key)).collect()
}

/// The signing key that is called so, or the one that signs now; and how many signatures stand of it.
fn named(publication: &Publication<TableLedger>, name: Option<&str>, place: &str) -> Result<(PublicKey, u64)> {
    let status = publication.status();
    let signs_now = |from: u64, until: u64| (from..until).contains(&status.open_period);
    let found: Vec<_> = match name {
        None => status.keys.iter().filter(|(key, _)| signs_now(key.from_period, key.until_period)).collect(),
        Some(name) => {
            status.keys.iter().filter(|(key, _)| !name.is_empty() && name_of(&key.key).starts_with(name)).collect()
        }
    };
    match found[..] {
        [(key, signed)] => Ok((key.key, *signed)),
        _ => {
            let names: Vec<String> = status.keys.iter().map(|(key, _)| name_of(&key.key)).collect();
            let what = format!("no signing key, or more than one, is called {}", name.unwrap_or_default());
            Err(misuse(what).at(place).advise(format!("there are {}", names.join(", "))).into())
        }
    }
}

/// Tells whoever was named of what was signed; gives the owner's name.
pub fn finish_up(publication: &mut Publication<TableLedger>, recipients: &Recipients, place: &str) -> Result<Owner> {
    recipients.deliver(publication, place)?;
    if recipients.is_empty() {
        terminal::note("nobody was told yet: the next `publish` does, or this command with --out or --to");
    }
    Ok(publication.owner())
}

/// Prints the owner's name.
pub fn print(owner: &Owner) -> Result<()> {
    crate::output::put(&mut std::io::stdout().lock(), format!("{owner}\n").as_bytes())
}
