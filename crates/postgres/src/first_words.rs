//! What a client says of itself before anything else: its name, settings, and extensions of the protocol that it would like.

use counterfoil::Connection;

use crate::body::{Body, Malformed};
use crate::sqlstate::Refusal;

/// What a client said.
#[derive(Debug, PartialEq, Eq)]
pub struct FirstWords {
    /// Who it says to be.
    pub user: String,
    /// Settings as it wants them, in the order in which they count.
    pub settings: Vec<(String, String)>,
    /// Extensions of the protocol that were asked for: none is known.
    pub unknown: Vec<String>,
}

impl FirstWords {
    /// Reads them.
    ///
    /// # Errors
    /// 08P01 for what cannot be understood, 42601 for options that are none, 0A000 for a connection that is to be for replication.
    pub fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let (mut user, mut options, mut settings, mut unknown) = (None, Vec::new(), Vec::new(), Vec::new());
        for (name, value) in pairs(bytes).map_err(|malformed| Refusal::malformed(malformed.0))? {
            match name.as_str() {
                "user" => user = Some(value),
                // There is one.
                "database" => {}
                "options" => options.extend(of_options(&value)?),
                "replication" if matches!(value.as_str(), "false" | "off" | "no" | "0") => {}
                "replication" => return Err(Refusal::fatal("0A000", "not supported: replication")),
                _ if name.starts_with("_pq_.") => unknown.push(name),
                _ => settings.push((name, value)),
            }
        }
        let user = user.ok_or_else(|| Refusal::malformed("it names no user"))?;
        // What stands alone counts more than what stands among options.
        options.append(&mut settings);
        Ok(FirstWords { user, settings: options, unknown })
    }
}

fn pairs(bytes: &[u8]) -> Result<Vec<(String, String)>, Malformed> {
    let mut body = Body::new(bytes);
    body.u32()?;
    let mut pairs = Vec::new();
    loop {
        let name = body.text()?;
        if name.is_empty() {
            body.end()?;
            return Ok(pairs);
        }
        pairs.push((name.to_owned(), body.text()?.to_owned()));
    }
}

/// Settings among options: `-c name=value`, `-cname=value`, `--name=value`.
fn of_options(text: &str) -> Result<Vec<(String, String)>, Refusal> {
    let mut words = words(text).into_iter();
    let mut settings = Vec::new();
    while let Some(word) = words.next() {
        let setting = match (word.strip_prefix("-c"), word.strip_prefix("--")) {
            (Some(""), _) => words.next(),
            (Some(setting), _) | (None, Some(setting)) => Some(setting.to_owned()),
            (None, None) => None,
        };
        let wrong = || Refusal::fatal("42601", "options are settings: -c name=value");
        let setting = setting.ok_or_else(wrong)?;
        let (name, value) = setting.split_once('=').ok_or_else(wrong)?;
        settings.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(settings)
}

/// Words between blanks; a backslash takes what stands behind it for what it is.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => word.get_or_insert_default().extend(letters.next()),
            letter if letter.is_ascii_whitespace() => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// Gives a connection the settings with which a client wants to begin. What it is to be told beside that.
///
/// # Errors
/// Those of SET, which end the connection: a client does not know what it would get.
pub fn begin_with(connection: &mut Connection, settings: &[(String, String)]) -> Result<Vec<String>, Refusal> {
    let mut notices = Vec::new();
    for (name, value) in settings {
        match connection.begin_with(name, value) {
            Ok(()) => {}
            // Some clients say where they are without being asked.
            Err(_) if name.eq_ignore_ascii_case("timezone") => {
                notices.push(format!("times are shown and read in UTC here, and not in {value}"));
            }
            Err(error) => return Err(Refusal::fatal(error.sqlstate(), error.to_string())),
        }
    }
    Ok(notices)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(fields: &[&str]) -> Result<FirstWords, Refusal> {
        let fields: String = fields.iter().map(|field| format!("{field}\0")).collect();
        FirstWords::read(&[&196_608u32.to_be_bytes(), fields.as_bytes(), &[0]].concat())
    }

    #[test]
    fn settings_stand_alone_and_among_options() {
        let options = "-c a=1 -cb=x\\ y\\\\z  --c-d=2";
        let words = said(&["user", "me", "a", "3", "options", options, "database", "any", "_pq_.new", "1"]).unwrap();
        let settings: Vec<_> = words.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(settings, ["a=1", "b=x y\\z", "c_d=2", "a=3"]);
        assert_eq!((words.user.as_str(), words.unknown), ("me", vec!["_pq_.new".to_owned()]));
    }

    #[test]
    fn what_is_none_is_refused() {
        for options in ["-c", "-c a", "a=1", "-d 1"] {
            let refused = said(&["user", "me", "options", options]).unwrap_err();
            assert!(refused.is_fatal(), "{options}");
        }
        assert!(said(&["database", "any"]).is_err());
        assert!(said(&["user", "me", "replication", "database"]).is_err());
        assert!(said(&["user", "me", "replication", "off"]).is_ok());
        assert!(FirstWords::read(&[0, 3, 0, 0, b'u']).is_err());
    }
}
