//! Who sends a request: everything that clients of InfluxDB say it with.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use zeroize::Zeroizing;

use crate::listener::parameters::Parameters;

/// A password or token. It has no Debug, and is wiped when it goes; what the HTTP library read it from is not.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    fn new(text: &str) -> Secret {
        Secret(Zeroizing::new(text.to_owned()))
    }

    /// The secret, to be compared with a hash of it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// What a request says about who sends it.
#[derive(Clone)]
pub enum Credentials {
    /// Nothing.
    None,
    /// `Authorization: Token T` or `Bearer T`.
    Token(Secret),
    /// `Authorization: Basic`, `Token USER:PASSWORD`, or the parameters `u` and `p`.
    Password {
        /// The name of the user.
        user: String,
        /// Its password; clients of version 1 put a token here, too.
        password: Secret,
    },
}

/// The credentials of a request; the header goes before the parameters.
///
/// # Errors
/// A header that is none of the kinds above.
pub(crate) fn of(headers: &HeaderMap, parameters: &Parameters) -> Result<Credentials, &'static str> {
    let Some(header) = headers.get(AUTHORIZATION) else {
        return Ok(match (parameters.first("u"), parameters.first("p")) {
            (Some(user), Some(password)) => {
                Credentials::Password { user: user.to_owned(), password: Secret::new(password) }
            }
            _ => Credentials::None,
        });
    };
    let header = header.to_str().map_err(|_| "the header Authorization is not text")?;
    let (scheme, rest) = header.split_once(' ').ok_or("the header Authorization has no scheme")?;
    let rest = rest.trim();
    match scheme.to_ascii_lowercase().as_str() {
        "basic" => {
            let decoded = Zeroizing::new(STANDARD.decode(rest).map_err(|_| "Authorization: Basic is not base64")?);
            let text = std::str::from_utf8(&decoded).map_err(|_| "Authorization: Basic is not UTF-8")?;
            pair(text).ok_or("Authorization: Basic has no colon")
        }
        "token" => Ok(pair(rest).unwrap_or_else(|| Credentials::Token(Secret::new(rest)))),
        "bearer" => Ok(Credentials::Token(Secret::new(rest))),
        _ => Err("the header Authorization is none of Token, Bearer and Basic"),
    }
}

fn pair(text: &str) -> Option<Credentials> {
    let (user, password) = text.split_once(':')?;
    Some(Credentials::Password { user: user.to_owned(), password: Secret::new(password) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(header: Option<&str>, query: &str) -> String {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert(AUTHORIZATION, header.parse().unwrap());
        }
        match of(&headers, &Parameters::of(query)) {
            Ok(Credentials::None) => "none".to_owned(),
            Ok(Credentials::Token(token)) => format!("token {}", token.reveal()),
            Ok(Credentials::Password { user, password }) => format!("{user}/{}", password.reveal()),
            Err(error) => error.to_owned(),
        }
    }

    #[test]
    fn every_way_to_say_it() {
        assert_eq!(read(None, ""), "none");
        assert_eq!(read(None, "u=me"), "none");
        assert_eq!(read(None, "u=me&p=a%26b"), "me/a&b");
        assert_eq!(read(Some("Token abc=="), "u=me&p=x"), "token abc==");
        assert_eq!(read(Some("token me:x:y"), ""), "me/x:y");
        assert_eq!(read(Some("Bearer  abc "), ""), "token abc");
        assert_eq!(read(Some("Basic bWU6c2VjcmV0"), ""), "me/secret");
        for header in ["Basic ?", "Basic bWU=", "Digest x", "abc"] {
            assert!(read(Some(header), "").contains("Authorization"), "{header}");
        }
    }
}
