//! `serve`: the database for clients of PostgreSQL and of InfluxDB, until it is told to end.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};

use counterfoil::{Database, Ending, Error, InfluxListener, InfluxOptions};
use counterfoil_postgres as postgres;

use crate::arguments::Serve;
use crate::closing;
use crate::context::Context;
use crate::failure::{Result, misuse};
use crate::terminal::{self, Cancelling};

pub fn run(context: &Context, arguments: &Serve) -> Result<()> {
    if arguments.postgres.is_none() && arguments.influx.is_none() {
        let advice = "add --postgres ADDRESS, such as 127.0.0.1:5432, or --influx ADDRESS, such as 127.0.0.1:8086";
        return Err(misuse("nothing to serve was named").advise(advice).into());
    }
    let database = context.open(&arguments.db)?;
    let ending = Ending::default();
    let listeners = listen(&database, arguments, &ending)?;
    if arguments.no_auth {
        terminal::warning("nobody is asked who they are: every program on this machine may write and drop tables");
    }
    let ended = wait(&ending);
    terminal::done("ending: what has begun is answered first");
    let Listeners { influx, postgres } = listeners;
    drop(postgres);
    if let Some(influx) = influx {
        influx.shut_down();
    }
    let closed = closing::close(database);
    ended?;
    closed
}

/// What clients come in by.
struct Listeners {
    influx: Option<InfluxListener>,
    postgres: Option<postgres::Listener>,
}

fn listen(database: &Database, arguments: &Serve, ending: &Ending) -> Result<Listeners> {
    let influx = arguments.influx.as_ref().map(|address| influx(database, arguments, address, ending)).transpose()?;
    let postgres =
        arguments.postgres.as_ref().map(|address| postgres(database, arguments, address, ending)).transpose()?;
    Ok(Listeners { influx, postgres })
}

fn influx(database: &Database, arguments: &Serve, address: &str, ending: &Ending) -> Result<InfluxListener> {
    let mut options = InfluxOptions::at(resolve(address)?).create(!arguments.no_create).ending(ending.clone());
    for name in &arguments.quality_field {
        options = options.quality_field(name);
    }
    if arguments.no_auth {
        options = options.danger_no_authentication();
    }
    let listener = database.serve_influx(options)?;
    terminal::done(format_args!("line protocol at http://{}: Ctrl-C ends it", listener.address()));
    Ok(listener)
}

fn postgres(database: &Database, arguments: &Serve, address: &str, ending: &Ending) -> Result<postgres::Listener> {
    let mut settings = postgres::Settings::at(resolve(address)?).ending(ending.clone());
    if let (Some(certificate), Some(key)) = (&arguments.tls_certificate_file, &arguments.tls_key_file) {
        settings = settings.tls(postgres::Tls::from_files(certificate, key)?);
    }
    if arguments.no_auth {
        settings = settings.danger_no_authentication();
    }
    let listener = postgres::Listener::bind(database, settings)?;
    let (host, port) = (listener.address().ip(), listener.address().port());
    terminal::done(format_args!("PostgreSQL's protocol at {host} port {port}: Ctrl-C ends it"));
    Ok(listener)
}

/// Waits until it is told to end, or until the database cannot go on.
fn wait(ending: &Ending) -> Result<(), Error> {
    let stopper = ending.clone();
    let _ending = Cancelling::with(move || stopper.stop());
    ending.wait()
}

/// An address as people write it: a port alone is one of the loopback address, a name is looked up.
pub fn resolve(text: &str) -> Result<SocketAddr, Error> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let known: Vec<SocketAddr> = text.to_socket_addrs().map(Iterator::collect).unwrap_or_default();
    let first = known.iter().find(|address| address.is_ipv4()).or(known.first());
    first.copied().ok_or_else(|| misuse("this is no address").at(text).advise("write one such as 127.0.0.1:8086"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_on_loopback_unless_it_says_otherwise() {
        let read = |text| resolve(text).map(|address| address.to_string()).unwrap_or_default();
        assert_eq!(read("8086"), "127.0.0.1:8086");
        assert_eq!(read(":8086"), "127.0.0.1:8086");
        assert_eq!(read("0.0.0.0:1"), "0.0.0.0:1");
        assert_eq!(read("[::1]:8086"), "[::1]:8086");
        for wrong in ["", "127.0.0.1", "127.0.0.1:99999", ":x", "99999"] {
            assert_eq!(read(wrong), "", "{wrong}");
        }
    }
}
