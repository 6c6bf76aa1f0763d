//! `mirror serve`: published tables of others, served by somebody whom nobody has to trust.

use std::sync::mpsc::channel;

use counterfoil::{Error, Kind};
use counterfoil_mirror_server::{Allowed, Options, ServeError, Tls, TlsError, serve};
use counterfoil_proof::{NoOwner, Owner};

use crate::arguments::{Mirror, MirrorAction, MirrorServe};
use crate::failure::{Result, misuse};
use crate::serve::resolve;
use crate::terminal::{self, Cancelling};

pub fn run(arguments: &Mirror) -> Result<()> {
    let MirrorAction::Serve(arguments) = &arguments.action;
    let mut options = Options::new(&store(arguments)?, resolve(&arguments.listen)?, allowed(arguments)?);
    options.tls = certificate(arguments)?;
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    if arguments.allow_any {
        terminal::warning("everybody's tables are taken: strangers can fill the disk");
    }
    let (stopped, stop) = channel();
    let _ending = Cancelling::with(move || {
        // Nobody waits any more where it was told already.
        let _ = stopped.send(());
    });
    serve(options, |address| {
        terminal::done(format_args!("published tables at {scheme}://{address}: Ctrl-C ends it"));
        let _ = stop.recv();
        terminal::done("ending: what has begun is answered first");
    })
    .map_err(|error| told(&error).into())
}

/// Where tables are kept. A password on the command line can be seen by everybody on the machine.
fn store(arguments: &MirrorServe) -> Result<String, Error> {
    let variable = "COUNTERFOIL_MIRROR_STORE";
    let Some(store) = &arguments.store else {
        let named = std::env::var(variable).ok().filter(|store| !store.is_empty());
        return named.ok_or_else(|| misuse("no store was named").advise(format!("use --store PATH, or {variable}")));
    };
    let shows_password = store
        .split_once("://")
        .and_then(|(_, rest)| rest.split('/').next()?.rsplit_once('@'))
        .is_some_and(|(user, _)| user.contains(':'));
    if shows_password || store.contains("password=") {
        let advice = format!("put the address into {variable}");
        return Err(misuse("a password on the command line is seen by others").advise(advice));
    }
    Ok(store.clone())
}

fn certificate(arguments: &MirrorServe) -> Result<Option<Tls>, Error> {
    let (Some(certificate), Some(key)) = (&arguments.tls_certificate_file, &arguments.tls_key_file) else {
        return Ok(None);
    };
    let advice = "name files in PEM: the server's certificate first, and its key without a passphrase";
    let told = |error: TlsError| Error::new(Kind::Input, error.to_string()).advise(advice);
    Tls::from_files(certificate, key).map(Some).map_err(told)
}

fn allowed(arguments: &MirrorServe) -> Result<Allowed, Error> {
    if arguments.allow_any {
        return Ok(Allowed::Any);
    }
    let owner = |text: &String| text.parse::<Owner>().map_err(|error: NoOwner| misuse(error.to_string()).at(text));
    arguments.allow.iter().map(owner).collect::<Result<_, Error>>().map(Allowed::Owners)
}

fn told(error: &ServeError) -> Error {
    Error::new(Kind::Device, error.to_string()).advise("check the store and the address, then start again")
}
