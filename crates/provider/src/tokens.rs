//! Who may come in, and until when.
//!
//! ```text
//! file `tokens`, a line for each: SHA-256 of the token (64 hexadecimal digits) | until (seconds since 1970) | name
//! ```
//! A token is shown once, when it is made; whoever reads the file can come in with none. What is put under a name lies in a folder of its
//! own. A token goes when its line does, for the next connection.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use counterfoil_vault::{SystemEntropy, Token, TokenDigest};

const FILE: &str = "tokens";
const FILE_BYTES_MAX: u64 = 1 << 20;
const NAME_BYTES_MAX: usize = 64;

/// The tokens of a folder.
pub struct Tokens(PathBuf);

/// Why there is no new token.
#[derive(Debug)]
pub enum TokenError {
    /// It is no name for a folder.
    Name,
    /// What the system says.
    Host(io::Error),
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => write!(f, "a client's name is of letters a to z, digits, - and _, {NAME_BYTES_MAX} at most"),
            Self::Host(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TokenError {}

/// Who shows a token.
pub(crate) enum Shown {
    /// This client.
    Client(String),
    /// Somebody whose token was good once.
    Expired,
    /// Nobody.
    Unknown,
}

impl Tokens {
    /// Those of a folder.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self(folder.join(FILE))
    }

    /// Makes a token for a client, good for so long.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn add(&self, name: &str, lasts: Duration) -> Result<Token, TokenError> {
        if !is_name(name) {
            return Err(TokenError::Name);
        }
        let host = TokenError::Host;
        let token = Token::generate(&mut SystemEntropy)
            .map_err(|_| host(io::Error::other("the system gives no random numbers")))?;
        let until = now().saturating_add(lasts.as_secs());
        let digits: String = token.digest().0.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.0).map_err(host)?;
        file.write_all(format!("{digits} {until} {name}\n").as_bytes()).and_then(|()| file.sync_all()).map_err(host)?;
        Ok(token)
    }

    /// Who shows this.
    pub(crate) fn who(&self, token: &str) -> io::Result<Shown> {
        let mut content = String::new();
        match fs::File::open(&self.0) {
            Ok(file) => drop(file.take(FILE_BYTES_MAX).read_to_string(&mut content)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let digest = TokenDigest::of(token.as_bytes());
        let mut found = Shown::Unknown;
        // All of them are looked at: how long it takes says nothing of which.
        for (known, until, name) in content.lines().filter_map(read) {
            if known.matches(&digest) {
                found = if now() < until { Shown::Client(name.to_owned()) } else { Shown::Expired };
            }
        }
        Ok(found)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn is_name(name: &str) -> bool {
    let is_one = |letter: u8| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_one)
}

fn read(line: &str) -> Option<(TokenDigest, u64, &str)> {
    let mut words = line.split(' ');
    let digits = words.next()?;
    let until = words.next()?.parse().ok()?;
    let name = words.next().filter(|name| is_name(name))?;
    let crate::Pin(digest) = crate::Pin::parse(digits)?;
    words.next().is_none().then_some((TokenDigest(digest), until, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_open_until_they_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let tokens = Tokens::in_folder(folder.path());
        let long = tokens.add("ada", Duration::from_secs(1000)).expect("a token");
        let ended = tokens.add("bob", Duration::ZERO).expect("a token");
        assert!(matches!(tokens.who(long.reveal()), Ok(Shown::Client(name)) if name == "ada"));
        assert!(matches!(tokens.who(ended.reveal()), Ok(Shown::Expired)));
        assert!(matches!(tokens.who("cft_0"), Ok(Shown::Unknown)));
        for wrong in ["", "..", "a/b", "A", "a b", &"x".repeat(65)] {
            assert!(matches!(tokens.add(wrong, Duration::ZERO), Err(TokenError::Name)), "{wrong}");
        }
        // What somebody else wrote there is nobody's token.
        fs::write(folder.path().join(FILE), "nonsense\n\n00 1 x\n").expect("written");
        assert!(matches!(tokens.who(long.reveal()), Ok(Shown::Unknown)));
        let mode = std::os::unix::fs::PermissionsExt::mode;
        assert_eq!(mode(&fs::metadata(&tokens.0).expect("a file").permissions()) & 0o777, 0o600);
    }
}
