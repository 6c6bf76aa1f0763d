//! A provider's address: `provider://example.com:7443?pin=HEX`.

use std::net::{SocketAddr, ToSocketAddrs as _};

use crate::identity::Pin;

const SCHEME: &str = "provider://";

/// Where a provider is, and what its key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
    pub(crate) pin: Pin,
}

impl Address {
    /// Whether a text is to be one.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("cloud at {text}: {what}; `counterfoil provider serve` says its address");
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| wrong("provider://example.com:7443?pin=..."))?;
        let (place, query) = rest.split_once('?').ok_or_else(|| wrong("its pin is missing"))?;
        let pin = query.strip_prefix("pin=").and_then(Pin::parse);
        let pin = pin.ok_or_else(|| wrong("?pin= and 64 hexadecimal digits are due"))?;
        let (host, port) = place.rsplit_once(':').ok_or_else(|| wrong("its port is missing"))?;
        let port = port.parse().map_err(|_| wrong("its port is no number"))?;
        if host.is_empty() || host.contains(['@', '/', ' ']) {
            return Err(wrong("its host is none"));
        }
        Ok(Self { host: host.to_owned(), port, pin })
    }

    /// The addresses of its host.
    pub(crate) fn resolve(&self) -> std::io::Result<Vec<SocketAddr>> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        Ok((host, self.port).to_socket_addrs()?.collect())
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{SCHEME}{}:{}?pin={}", self.host, self.port, self.pin)
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, SCHEME};

    #[test]
    fn addresses_are_whole_or_refused() {
        let pin = "0123456789abcdef".repeat(4);
        for host in ["example.com:7", "127.0.0.1:443", "[::1]:9"] {
            let text = format!("provider://{host}?pin={pin}");
            assert_eq!(Address::parse(&text).expect("an address").to_string(), text);
        }
        let cut = &pin[1..];
        for wrong in [
            "provider://example.com:7".to_owned(),
            format!("provider://example.com?pin={pin}"),
            format!("{SCHEME}example.com:x?pin={pin}"),
            format!("{SCHEME}:7?pin={pin}"),
            format!("provider://me:pw@example.com:7?pin={pin}"),
            format!("provider://example.com:7?pin={cut}"),
            format!("provider://example.com:7?pin=+{cut}"),
            format!("https://example.com:7?pin={pin}"),
        ] {
            assert!(Address::parse(&wrong).is_err(), "{wrong}");
        }
    }
}
