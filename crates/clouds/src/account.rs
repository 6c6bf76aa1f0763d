//! Who one is for an S3 server: a key and its secret, as a file has them.

use zeroize::Zeroizing;

const KEY: &str = "aws_access_key_id";
const SECRET: &str = "aws_secret_access_key";
const TOKEN: &str = "aws_session_token";

/// A key and its secret.
pub(crate) struct Account {
    pub key: Zeroizing<String>,
    pub secret: Zeroizing<String>,
    pub token: Option<Zeroizing<String>>,
}

impl Account {
    /// Two lines, the key and its secret; or lines with names and values, as Amazon's own programs write them.
    ///
    /// # Errors
    /// What the file should hold, for people; nothing of what it holds.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(str::trim);
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty() && !line.starts_with(['#', ';', '['])).collect();
        let named = |name: &str| lines.iter().find_map(|line| value(line, name));
        let kept = |text: &str| Zeroizing::new(text.to_owned());
        let account = match (named(KEY), named(SECRET), lines.as_slice()) {
            (Some(key), Some(secret), _) => Some((key, secret, named(TOKEN))),
            (None, None, [key, secret]) => Some((*key, *secret, None)),
            _ => None,
        };
        let plain = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let account = account.filter(|(key, secret, token)| plain(key) && plain(secret) && token.iter().all(plain));
        let (key, secret, token) =
            account.ok_or("its secret_file holds two lines: the access key's id, and the secret access key")?;
        Ok(Self { key: kept(key), secret: kept(secret), token: token.map(kept) })
    }
}

fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (known, value) = line.split_once('=')?;
    let known = known.trim().trim_start_matches("export ").trim();
    known.eq_ignore_ascii_case(name).then(|| value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::Account;

    fn read(text: &str) -> Option<(String, String, Option<String>)> {
        let account = Account::parse(text).ok()?;
        Some((account.key.to_string(), account.secret.to_string(), account.token.map(|token| token.to_string())))
    }

    #[test]
    fn two_lines_or_names_and_nothing_else() {
        let both = || (String::from("AKIA"), String::from("a/b=="));
        assert_eq!(read("AKIA\na/b==\n"), Some((both().0, both().1, None)));
        let named = "[default]\n# mine\nAWS_ACCESS_KEY_ID = AKIA\nexport aws_secret_access_key=\"a/b==\"\n";
        assert_eq!(read(named), Some((both().0, both().1, None)));
        let token = format!("{named}aws_session_token=t\n");
        assert_eq!(read(&token), Some((both().0, both().1, Some("t".into()))));
        for wrong in [
            "",
            "hush",
            "AKIA\nhush\nhush",
            "AKIA\nhu sh",
            "aws_access_key_id=hush",
            "AKIA\naws_secret_access_key=hush",
        ] {
            let told = Account::parse(wrong).err().unwrap_or_default();
            assert!(told.contains("two lines") && !told.contains("hush"), "{wrong}: {told}");
        }
    }
}
