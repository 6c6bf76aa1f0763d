//! Who writes into buckets: a key and its secret, and where the server is.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use rusty_s3::{Bucket, Credentials, UrlStyle};
use url::Url;
use zeroize::Zeroizing;

use super::address::BucketAddress;
use crate::error::Error;

/// A larger file holds something else.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Where buckets are whose region nobody named.
const REGION: &str = "us-east-1";

const KEY: &str = "AWS_ACCESS_KEY_ID";
const SECRET: &str = "AWS_SECRET_ACCESS_KEY";
const TOKEN: &str = "AWS_SESSION_TOKEN";
const REGIONS: [&str; 3] = ["AWS_REGION", "AWS_DEFAULT_REGION", "REGION"];
const SERVERS: [&str; 3] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "ENDPOINT_URL"];

/// A key for buckets, its secret, and where the server is.
#[derive(Clone)]
pub struct Account {
    credentials: Credentials,
    region: String,
    /// Where it is not Amazon.
    server: Option<Url>,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key for buckets, and its secret")
    }
}

impl Account {
    /// As the environment names it: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and their kin.
    ///
    /// # Errors
    /// [`Error::NoAccount`], [`Error::NoServer`].
    pub fn from_environment() -> Result<Self, Error> {
        Self::named(|name| std::env::var(name).ok().map(Zeroizing::new))
    }

    /// As a file names it: the same names, as they are or in small letters, each with `=` and its value on a line. A file of one
    /// profile, as Amazon's own programs have it, is one.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::SecretFile`], [`Error::NoAccount`], [`Error::NoServer`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let failed = |error| Error::File(path.into(), error);
        let mut text = Zeroizing::new(String::with_capacity(4096));
        File::open(path).map_err(failed)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
        let is_small = text.len() as u64 <= FILE_BYTES_MAX;
        let lines = lines(&text).filter(|_| is_small).ok_or_else(|| Error::SecretFile(path.into()))?;
        Self::named(|name| {
            let found = lines.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| Zeroizing::new((*value).to_owned()))
        })
    }

    fn named(value: impl Fn(&str) -> Option<Zeroizing<String>>) -> Result<Self, Error> {
        let value = |name: &str| value(name).filter(|value| !value.trim().is_empty());
        let (Some(key), Some(secret)) = (value(KEY), value(SECRET)) else { return Err(Error::NoAccount) };
        let credentials = match value(TOKEN) {
            Some(token) => Credentials::new_with_token(key.trim(), secret.trim(), token.trim()),
            None => Credentials::new(key.trim(), secret.trim()),
        };
        let region =
            REGIONS.iter().find_map(|name| value(name)).map_or(REGION.into(), |region| region.trim().to_owned());
        let server = match SERVERS.iter().find_map(|name| value(name)) {
            Some(text) => Some(Url::parse(text.trim()).ok().filter(is_server).ok_or(Error::NoServer)?),
            None => None,
        };
        Ok(Self { credentials, region, server })
    }

    pub(super) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// A bucket as requests name it. Other servers than Amazon's have no host for each bucket, and certificates for names with a full stop
    /// are for none.
    pub(super) fn bucket(&self, address: &BucketAddress) -> Result<Bucket, Error> {
        let amazon = || Url::parse(&format!("https://{}", ["s3", &self.region, "amazonaws.com"].join("."))).ok();
        let style = if self.server.is_some() || address.bucket().contains('.') {
            UrlStyle::Path
        } else {
            UrlStyle::VirtualHost
        };
        let server = self.server.clone().or_else(amazon).ok_or(Error::NoServer)?;
        Bucket::new(server, style, address.bucket().to_owned(), self.region.clone()).map_err(|_| Error::NoServer)
    }

    /// Where readers find a site that lies there, if the bucket is public.
    ///
    /// # Errors
    /// [`Error::NoServer`].
    pub fn public_address(&self, address: &BucketAddress) -> Result<String, Error> {
        Ok(self.bucket(address)?.object_url(&address.object("")).as_str().trim_end_matches('/').to_owned())
    }
}

/// Whether requests can be sent there. A password in an address would be seen in messages.
fn is_server(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
        && url.host_str().is_some()
        && url.username().is_empty()
        && url.password().is_none()
}

/// Names and values of a file; none if it is something else, or has more than one profile.
fn lines(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut profiles = 0;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])) {
        if line.starts_with('[') {
            profiles += 1;
        } else {
            let (name, value) = line.split_once('=')?;
            found.push((name.trim().trim_start_matches("export ").trim(), value.trim().trim_matches('"')));
        }
    }
    (profiles <= 1).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Account, Error> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        std::fs::write(&path, text).expect("written");
        Account::from_file(path)
    }

    fn address() -> BucketAddress {
        "s3://prices/daily".parse().expect("an address")
    }

    #[test]
    fn a_file_names_key_secret_and_server() {
        let account = read(
            "# mine\n[default]\naws_access_key_id = AKIA\naws_secret_access_key=very secret\nregion = eu-central-1\n",
        );
        let account = account.expect("an account");
        assert_eq!((account.credentials.key(), account.credentials.secret()), ("AKIA", "very secret"));
        let amazon = ["eu-central-1", "amazonaws.com/daily"].join(".");
        let shown = account.public_address(&address()).expect("an address");
        assert!(shown.contains("//prices.s3.") && shown.ends_with(&amazon), "{shown}");
        let text = "export AWS_ACCESS_KEY_ID=\"AKIA\"\nAWS_SECRET_ACCESS_KEY=s\nAWS_SESSION_TOKEN=t\nAWS_ENDPOINT_URL=http://localhost:9000 \n";
        let account = read(text).expect("an account");
        assert_eq!(account.credentials.token(), Some("t"));
        assert_eq!(account.public_address(&address()).expect("an address"), "http://localhost:9000/prices/daily");
    }

    #[test]
    fn what_lacks_or_makes_no_sense_is_told_without_the_secret() {
        let both = "AWS_ACCESS_KEY_ID=AKIA\nAWS_SECRET_ACCESS_KEY=hush\n";
        for text in [
            "AWS_ACCESS_KEY_ID=hush\n".to_owned(),
            "AWS_SECRET_ACCESS_KEY=hush\n".to_owned(),
            "hush".to_owned(),
            format!("[a]\n{both}[b]\n{both}"),
            format!("{both}AWS_ENDPOINT_URL=hush\n"),
            format!("{both}AWS_ENDPOINT_URL=http://me:hush@localhost \n"),
        ] {
            let told = read(&text).expect_err(&text);
            assert!(!format!("{told} {told:?} {}", told.advice()).contains("hush"), "{told:?}");
        }
        assert!(!format!("{:?}", read(both).expect("an account")).contains("hush"));
        assert!(read(&"#".repeat(1 << 17)).is_err());
    }
}
