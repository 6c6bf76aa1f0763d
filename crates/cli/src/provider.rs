//! `provider`: a cloud of one's own making, which knows no key.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use counterfoil::{Error, Kind};
use counterfoil_provider::{Limits, Options, ServeError, TokenError, Tokens, serve};

use crate::arguments::{Provider, ProviderAction, ProviderServe, ProviderToken};
use crate::failure::{Result, misuse};
use crate::serve::resolve;
use crate::terminal::{self, Cancelling};

const DAY: u64 = 24 * 60 * 60;

pub fn run(arguments: &Provider) -> Result<()> {
    match &arguments.action {
        ProviderAction::Serve(arguments) => serve_folder(arguments),
        ProviderAction::Token(arguments) => token(arguments),
    }
}

fn serve_folder(arguments: &ProviderServe) -> Result<()> {
    let mut limits = Limits::default();
    limits.connections_max = arguments.connections.max(1);
    limits.memory_bytes = arguments.memory.saturating_mul(1 << 20);
    let listen = resolve(&arguments.listen)?;
    let note = |what: &str| terminal::note(format_args!("{what} (--connections)"));
    let options = Options { folder: arguments.folder.clone(), listen, limits, note };
    let (stopped, stop) = channel();
    let _ending = Cancelling::with(move || {
        // Nobody waits any more where it was told already.
        let _ = stopped.send(());
    });
    serve(options, |url| {
        terminal::done(format_args!("a cloud at {url}: Ctrl-C ends it"));
        let _ = stop.recv();
        terminal::done("ending: what has begun is done first");
    })
    .map_err(|error| told(&error).into())
}

fn told(error: &ServeError) -> Error {
    Error::new(Kind::Device, error.to_string()).advise("check the folder and the address, then start again")
}

fn token(arguments: &ProviderToken) -> Result<()> {
    let ProviderToken { folder, name, days } = arguments;
    make(folder)?;
    let lasts = Duration::from_secs(u64::from(*days) * DAY);
    let token = Tokens::in_folder(folder).add(name, lasts).map_err(|error| match error {
        TokenError::Name => misuse(error.to_string()).at(name),
        TokenError::Host(error) => Error::host("write the tokens", folder.display(), &error),
    })?;
    // The only place where it is ever seen.
    println!("{}", token.reveal());
    terminal::done(format_args!("{name} comes in with it for {days} days: keep it in a file for secret_file"));
    Ok(())
}

fn make(folder: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| Error::host("make the folder", folder.display(), &error))
}
