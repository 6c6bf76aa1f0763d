//! Users: who may come in where the database is served.
//!
//! ```text
//! record of space SETTING, name `user/` and the user's in UTF-8:
//!   format u8 (1) | role u8 (1 reader, 2 writer) | shows u8 (1 a password, 2 a token) | zero u8 | created u64 |
//!   verifier of the password [84], or digest of the token [32]
//! ```
//! They lie sealed among everything else, and are no keys: who opens the file needs none of them.
//!
//! A password is prepared by SASLprep (RFC 4013) before it is hashed, as clients of PostgreSQL do; what cannot be prepared is
//! taken as its bytes are, as they do, too.

use std::fmt;
use std::sync::Arc;

use counterfoil_log::{self as log, View, record_space};
use counterfoil_vault::{PASSWORD_VERIFIER_BYTES, PasswordVerifier, SystemEntropy, Token, TokenDigest};
use zeroize::Zeroizing;

use crate::convert::no_entropy;
use crate::database::Database;
use crate::error::{Error, Kind, Result};
use crate::key::Secret;

const FORMAT: u8 = 1;
const PREFIX: &str = "user/";
const HEAD_BYTES: usize = 12;
const NAME_BYTES_MAX: usize = 64;
/// Users of a database, at most: each of them is looked at when a token is shown.
const USERS_MAX: usize = 1000;

/// What a user may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Read.
    Reader = 1,
    /// Read, write, make and drop.
    Writer = 2,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Reader => "reader",
            Role::Writer => "writer",
        })
    }
}

/// What a user shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    /// A password: its verifier of SCRAM-SHA-256 is kept.
    Password,
    /// A token: its digest is kept.
    Token,
}

impl fmt::Display for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Login::Password => "password",
            Login::Token => "token",
        })
    }
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserInfo {
    /// The name.
    pub name: String,
    /// What the user may do.
    pub role: Role,
    /// What the user shows.
    pub login: Login,
    /// When the user was added, in seconds since 1970.
    pub created: u64,
}

/// The users of a database.
#[derive(Clone)]
pub struct Users {
    database: Database,
}

impl Database {
    /// The users of this database.
    #[must_use]
    pub fn users(&self) -> Users {
        Users { database: self.clone() }
    }
}

impl Users {
    /// Adds a user who shows a password: however it is typed where more than one way leads to the same letters, it is one.
    ///
    /// # Errors
    /// [`Kind::Misuse`] for an empty password and a name that is taken, [`Kind::Input`] for one that cannot be; those of
    /// writing.
    pub fn add(&self, name: &str, role: Role, password: &Secret) -> Result<()> {
        if password.is_empty() {
            return Err(Error::new(Kind::Misuse, "the password is empty").advise("choose one that is hard to guess"));
        }
        let prepared = prepared(password.as_bytes());
        let verifier = PasswordVerifier::new(&prepared, &mut SystemEntropy).map_err(|_| no_entropy())?;
        self.put(name, role, Login::Password, &*verifier.encode())
    }

    /// Adds a user who shows a token, and answers it: it is kept nowhere.
    ///
    /// # Errors
    /// As [`Users::add`].
    pub fn add_with_token(&self, name: &str, role: Role) -> Result<Zeroizing<String>> {
        let token = Token::generate(&mut SystemEntropy).map_err(|_| no_entropy())?;
        self.put(name, role, Login::Token, &token.digest().0)?;
        Ok(Zeroizing::new(token.reveal().to_owned()))
    }

    fn put(&self, name: &str, role: Role, login: Login, secret: &[u8]) -> Result<()> {
        check_name(name)?;
        let mut value = Zeroizing::new(vec![FORMAT, role as u8, login as u8 + 1, 0]);
        value.extend_from_slice(&crate::time::now().to_le_bytes());
        value.extend_from_slice(secret);
        self.database.change(|writer| {
            if writer.record(record_space::SETTING, &record(name)).is_some() {
                return Err(Error::new(Kind::Misuse, format!("there is a user {name} already"))
                    .advise("remove it first, or choose another name"));
            }
            if writer.records(record_space::SETTING, PREFIX.as_bytes()).len() >= USERS_MAX {
                return Err(Error::new(Kind::Misuse, format!("a database has at most {USERS_MAX} users"))
                    .advise("remove one first"));
            }
            Ok(writer.put_record(record_space::SETTING, &record(name), &value)?)
        })
    }

    /// Removes a user.
    ///
    /// # Errors
    /// [`Kind::NotFound`]; those of writing.
    pub fn remove(&self, name: &str) -> Result<()> {
        self.database.change(|writer| {
            if writer.record(record_space::SETTING, &record(name)).is_none() {
                return Err(
                    Error::new(Kind::NotFound, format!("no user {name}")).advise("see `counterfoil user list DB`")
                );
            }
            Ok(writer.delete_record(record_space::SETTING, &record(name))?)
        })
    }

    /// All users, by name.
    ///
    /// # Errors
    /// Those of reading.
    pub fn list(&self) -> Result<Vec<UserInfo>> {
        self.database.require_process()?;
        Ok(all(&self.database.snapshot()?)?.into_iter().map(|user| user.info).collect())
    }

    /// A user, if there is one of this name.
    ///
    /// # Errors
    /// Those of reading.
    pub fn find(&self, name: &str) -> Result<Option<UserInfo>> {
        self.database.require_process()?;
        let name = record(name);
        let Some(value) = self.database.snapshot()?.record(record_space::SETTING, &name) else { return Ok(None) };
        let user = decode(&name, &value).ok_or_else(|| log::Error::corrupt("users"))?;
        Ok(Some(user.info))
    }

    /// What whoever shows this password, or a token in its place, may do; none for nobody whom we know.
    ///
    /// # Errors
    /// Those of reading.
    pub fn by_password(&self, name: &str, password: &[u8]) -> Result<Option<Role>> {
        let users = all(&self.database.snapshot()?)?;
        let verifiers = users.iter().filter(|user| user.info.name == name);
        let verifier = verifiers.filter_map(|user| match &user.secret {
            Kept::Password(verifier) => Some((user.info.role, verifier)),
            Kept::Token(_) => None,
        });
        match { verifier }.next() {
            Some((role, verifier)) if accepts(verifier, password) => return Ok(Some(role)),
            Some(_) => {}
            // A name that nobody has takes as long as a wrong password.
            None => {
                let nobody = PasswordVerifier::nobodys(name.as_bytes(), &[0; 32]);
                let _ = accepts(&nobody, password);
            }
        }
        Ok(by_token(&users, password))
    }

    /// What a dialogue of SCRAM-SHA-256 with whoever gives this name is held against. For a name without a password it goes the
    /// same way, and fails; what it is shown is the same whoever serves the database, and whenever.
    ///
    /// # Errors
    /// Those of reading.
    pub fn scram(&self, name: &str) -> Result<Scram> {
        let users = all(&self.database.snapshot()?)?;
        let secret = secret_of_nobody(&users);
        let known = users.into_iter().find_map(|user| match user.secret {
            Kept::Password(verifier) if user.info.name == name => Some((true, verifier)),
            _ => None,
        });
        let (is_known, verifier) =
            known.unwrap_or_else(|| (false, PasswordVerifier::nobodys(name.as_bytes(), &secret)));
        Ok(Scram { is_known, verifier })
    }

    /// What whoever shows this token may do; none for nobody whom we know.
    ///
    /// # Errors
    /// Those of reading.
    pub fn by_token(&self, token: &[u8]) -> Result<Option<Role>> {
        Ok(by_token(&all(&self.database.snapshot()?)?, token))
    }
}

/// What a server of SCRAM-SHA-256 (RFC 5802, RFC 7677) knows of a user.
#[derive(Debug)]
pub struct Scram {
    is_known: bool,
    verifier: PasswordVerifier,
}

impl Scram {
    /// The salt to show.
    #[must_use]
    pub fn salt(&self) -> [u8; 16] {
        self.verifier.salt()
    }

    /// The iterations to show.
    #[must_use]
    pub fn iterations(&self) -> u32 {
        self.verifier.iterations()
    }

    /// The signature that the server shows, if the proof is right for this AuthMessage.
    #[must_use]
    pub fn finish(&self, exchange: &[u8], proof: &[u8; 32]) -> Option<[u8; 32]> {
        self.verifier.signature(exchange, proof).filter(|_| self.is_known)
    }
}

/// A user, and what tells the right secret from others.
struct User {
    info: UserInfo,
    secret: Kept,
}

enum Kept {
    Password(PasswordVerifier),
    Token(TokenDigest),
}

/// A password as it is hashed. What SASLprep forbids, or makes nothing of, is taken as it is.
fn prepared(password: &[u8]) -> Zeroizing<Vec<u8>> {
    let text = std::str::from_utf8(password).ok().and_then(|text| stringprep::saslprep(text).ok());
    Zeroizing::new(match text {
        Some(text) if !text.is_empty() => text.into_owned().into_bytes(),
        _ => password.to_vec(),
    })
}

/// Whether this is the password. Verifiers that were made before passwords were prepared are of its bytes.
fn accepts(verifier: &PasswordVerifier, password: &[u8]) -> bool {
    let prepared = prepared(password);
    verifier.accepts(&prepared) || (*prepared != password && verifier.accepts(password))
}

/// Looks at all of them, whichever it is.
fn by_token(users: &[User], token: &[u8]) -> Option<Role> {
    let shown = TokenDigest::of(token);
    let matches = |user: &User| matches!(&user.secret, Kept::Token(digest) if digest.matches(&shown));
    users.iter().fold(None, |found, user| if matches(user) { Some(user.info.role) } else { found })
}

fn record(name: &str) -> Vec<u8> {
    [PREFIX.as_bytes(), name.as_bytes()].concat()
}

/// A name goes before a colon where clients send it.
fn check_name(name: &str) -> Result<()> {
    let possible = |letter: char| letter.is_alphanumeric() || "_-.@".contains(letter);
    if !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(possible) {
        return Ok(());
    }
    Err(Error::new(Kind::Input, "this is not a name for a user")
        .advise(format!("use up to {NAME_BYTES_MAX} letters, digits, and _ - . @")))
}

/// What salts of names that nobody has come from: something that only this database knows, and knows as long as its first user
/// is there. Drawn by each server anew, salts would tell after its next start which names there are.
fn secret_of_nobody(users: &[User]) -> [u8; 32] {
    let mut secret = [0; 32];
    match users.first().map(|user| &user.secret) {
        Some(Kept::Password(verifier)) => secret.copy_from_slice(&verifier.encode()[PASSWORD_VERIFIER_BYTES - 32..]),
        Some(Kept::Token(digest)) => secret = digest.0,
        None => {}
    }
    secret
}

fn all(view: &dyn View) -> Result<Vec<User>> {
    let records = view.records(record_space::SETTING, PREFIX.as_bytes());
    let users = records.into_iter().map(|(name, value)| decode(&name, &value));
    users.collect::<Option<_>>().ok_or_else(|| log::Error::corrupt("users").into())
}

fn decode(name: &[u8], value: &Arc<[u8]>) -> Option<User> {
    let name = std::str::from_utf8(name.strip_prefix(PREFIX.as_bytes())?).ok()?.to_owned();
    let (head, secret) = value.split_at_checked(HEAD_BYTES)?;
    let role = match head[1] {
        1 => Role::Reader,
        2 => Role::Writer,
        _ => return None,
    };
    let (login, secret) = match (head[2], secret.len()) {
        (1, PASSWORD_VERIFIER_BYTES) => {
            (Login::Password, Kept::Password(PasswordVerifier::decode(secret.try_into().ok()?)?))
        }
        (2, 32) => (Login::Token, Kept::Token(TokenDigest(secret.try_into().ok()?))),
        _ => return None,
    };
    let created = u64::from_le_bytes(head[4..].try_into().ok()?);
    (head[0] == FORMAT && head[3] == 0).then_some(User { info: UserInfo { name, role, login, created }, secret })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC.md, "counterfoil": users.
    #[test]
    fn what_is_kept_is_read_and_nothing_else() {
        let mut value = vec![1, 2, 2, 0, 7, 0, 0, 0, 0, 0, 0, 0];
        value.extend([9; 32]);
        let user = decode(b"user/me", &value.clone().into()).expect("a user");
        assert_eq!(user.info, UserInfo { name: "me".into(), role: Role::Writer, login: Login::Token, created: 7 });
        for (at, byte) in [(0, 2), (1, 0), (1, 3), (2, 0), (2, 1), (3, 1)] {
            let mut changed = value.clone();
            changed[at] = byte;
            assert!(decode(b"user/me", &changed.into()).is_none(), "byte {at}");
        }
        assert!(decode(b"user/me", &value[..43].into()).is_none());
        assert!(decode(b"other/me", &value.into()).is_none());
    }

    #[test]
    fn a_password_is_one_however_it_is_typed() {
        let prepared = |text: &str| String::from_utf8(prepared(text.as_bytes()).to_vec()).expect("a text");
        // RFC 4013, section 3, and what passwords of people hold.
        for (typed, hashed) in [
            ("I\u{ad}X", "IX"),
            ("user", "user"),
            ("USER", "USER"),
            ("\u{aa}", "a"),
            ("\u{2168}", "IX"),
            ("ka\u{308}se", "käse"),
            ("a\u{a0}b", "a b"),
            // Forbidden, or nothing: as its bytes are.
            ("\u{7}", "\u{7}"),
            ("\u{627}1", "\u{627}1"),
            ("\u{ad}", "\u{ad}"),
        ] {
            assert_eq!(prepared(typed), hashed, "{typed:?}");
        }
        assert_eq!(*super::prepared(&[0xff]), [0xff]);
        let new = |bytes: &[u8]| PasswordVerifier::new(bytes, &mut SystemEntropy).expect("a verifier");
        let (now, earlier) = (new(&super::prepared("ka\u{308}se".as_bytes())), new("ka\u{308}se".as_bytes()));
        assert!(accepts(&now, "käse".as_bytes()) && accepts(&now, "ka\u{308}se".as_bytes()));
        assert!(accepts(&earlier, "ka\u{308}se".as_bytes()) && !accepts(&earlier, "käse".as_bytes()));
    }

    #[test]
    fn names_fit_before_a_colon() {
        for good in ["a", "me@example.com", "Jürgen", "x-1_2"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for wrong in ["", "a:b", "a b", "a/b", "a\n", &"x".repeat(65)] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
    }
}
