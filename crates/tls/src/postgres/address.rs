//! `postgres://USER@example.com/DATABASE[?sslmode=require|disable][&sslrootcert=FILE]`, and `:PORT` behind the host

use std::path::PathBuf;

use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use super::encrypted::Encrypted;

/// Where a database is, and how connections to it are encrypted, if they are.
pub struct Address {
    /// What the library knows of it.
    pub config: Config,
    /// How its connections are encrypted, if they are.
    pub encrypted: Option<Encrypted>,
}

impl Address {
    /// Reads it. What is said of encryption means no less than it says: `require` checks who answers, as `verify-full` does.
    ///
    /// # Errors
    /// What is wrong with it, for people; the address, which may have a password, is not repeated.
    pub fn parse(url: &str) -> Result<Self, String> {
        let is_one = ["postgres://", "postgresql://"].iter().any(|begin| url.starts_with(begin));
        let (plain, mode, ca) = encryption(url)?;
        let config = plain.parse().ok().filter(|config: &Config| is_one && !config.get_hosts().is_empty());
        let mut config: Config = config.ok_or("this is no postgres:// address")?;
        let is_encrypted = match mode.as_deref() {
            None => ca.is_some(),
            Some("require" | "verify-full") => true,
            Some("disable") if ca.is_none() => false,
            Some(_) => {
                return Err("sslmode is require (who answers is checked as well) or disable".into());
            }
        };
        config.ssl_mode(if is_encrypted { SslMode::Require } else { SslMode::Disable });
        let encrypted = is_encrypted.then(|| Encrypted::new(ca.as_deref())).transpose();
        Ok(Self { config, encrypted: encrypted? })
    }
}

/// What an address says of encryption, and the rest of it: the library knows half of these words, and means less by them.
fn encryption(url: &str) -> Result<(String, Option<String>, Option<PathBuf>), String> {
    let Some((before, query)) = url.split_once('?') else { return Ok((url.to_owned(), None, None)) };
    let (mut rest, mut mode, mut ca) = (Vec::new(), None, None);
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let said = |value: &str| percent_encoding::percent_decode_str(value).decode_utf8_lossy().into_owned();
        match option.split_once('=') {
            Some(("sslmode", value)) if mode.is_none() => mode = Some(said(value)),
            Some(("sslrootcert", value)) if ca.is_none() => ca = Some(PathBuf::from(said(value))),
            Some(("sslmode" | "sslrootcert", _)) => return Err("a word of encryption is said twice".into()),
            _ => rest.push(option),
        }
    }
    if ca.as_ref().is_some_and(|path: &PathBuf| !path.is_absolute()) {
        return Err("sslrootcert= is the whole path of a file of certificates in PEM".into());
    }
    let rest = rest.join("&");
    Ok((if rest.is_empty() { before.to_owned() } else { format!("{before}?{rest}") }, mode, ca))
}
