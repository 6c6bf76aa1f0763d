//! `serve`: the database for clients of InfluxDB, until it is told to end.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};

use counterfoil::{Error, InfluxOptions, Kind};

use crate::arguments::Serve;
use crate::context::Context;
use crate::failure::{Result, misuse};
use crate::terminal::{self, Cancelling};

pub fn run(context: &Context, arguments: &Serve) -> Result<()> {
    if arguments.postgres.is_some() {
        let refused = Error::new(Kind::NotSupported, "not supported: --postgres");
        return Err(refused.advise("serve line protocol with --influx ADDRESS").into());
    }
    let Some(address) = &arguments.influx else {
        return Err(misuse("nothing to serve was named").advise("add --influx ADDRESS, such as 127.0.0.1:8086").into());
    };
    let mut options = InfluxOptions::at(resolve(address)?).create(!arguments.no_create);
    for name in &arguments.quality_field {
        options = options.quality_field(name);
    }
    if arguments.no_auth {
        options = options.danger_no_authentication();
    }
    let database = context.open(&arguments.db)?;
    let listener = database.serve_influx(options)?;
    let stopper = listener.stopper();
    let ending = Cancelling::with(move || stopper.stop());
    if arguments.no_auth {
        terminal::warning("nobody is asked who they are: every program on this machine may write and drop tables");
    }
    terminal::done(format_args!("line protocol at http://{}: Ctrl-C ends it", listener.address()));
    let ended = listener.wait();
    terminal::done("ending: requests that have begun are answered first");
    listener.shut_down();
    drop(ending);
    let closed = database.close();
    ended?;
    Ok(closed?)
}

/// An address as people write it: a port alone is one of the loopback address, a name is looked up.
fn resolve(text: &str) -> Result<SocketAddr, Error> {
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
