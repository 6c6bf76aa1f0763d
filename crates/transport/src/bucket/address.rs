//! `s3://BUCKET/PREFIX`.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// Bytes of a prefix at most: names of objects have 1024, and those of a site 40 behind it.
const PREFIX_BYTES_MAX: usize = 900;

/// A bucket, and where in it a site lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketAddress {
    bucket: String,
    /// Empty, or ends with a slash.
    prefix: String,
}

impl BucketAddress {
    /// The bucket's name.
    #[must_use]
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The name of an object of the site.
    pub(super) fn object(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// What is below the prefix, of an object's name.
    pub(super) fn path<'a>(&self, object: &'a str) -> Option<&'a str> {
        object.strip_prefix(&self.prefix)
    }
}

impl FromStr for BucketAddress {
    type Err = Error;

    /// A part that is `.` or `..` would lead out of the prefix, or out of the bucket; an address with a key in it is refused and not told
    /// again.
    fn from_str(text: &str) -> Result<Self, Error> {
        let rest = text.strip_prefix("s3://").ok_or(Error::NoBucketAddress)?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
        if !(3..=63).contains(&bucket.len()) || !bucket.bytes().all(plain) || bucket.starts_with(['.', '-']) {
            return Err(Error::NoBucketAddress);
        }
        let prefix = prefix.trim_end_matches('/');
        let is_part = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(char::is_control);
        if prefix.len() > PREFIX_BYTES_MAX || !(prefix.is_empty() || prefix.split('/').all(is_part)) {
            return Err(Error::NoBucketAddress);
        }
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Ok(Self { bucket: bucket.into(), prefix })
    }
}

impl fmt::Display for BucketAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = format!("s3://{}/{}", self.bucket, self.prefix);
        f.write_str(address.trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_bucket_and_a_prefix() {
        let read = |text: &str| text.parse::<BucketAddress>().map(|address| address.to_string()).unwrap_or_default();
        assert_eq!(read("s3://prices"), "s3://prices");
        assert_eq!(read("s3://prices/"), "s3://prices");
        assert_eq!(read("s3://prices.example.com/of/all days/"), "s3://prices.example.com/of/all days");
        let address: BucketAddress = "s3://prices/daily".parse().expect("an address");
        assert_eq!(address.object("head"), "daily/head");
        assert_eq!(address.path("daily/pages/00/11"), Some("pages/00/11"));
        assert_eq!(address.path("other/head"), None);
    }

    #[test]
    fn nothing_leads_out_of_it_and_no_key_is_taken_in_it() {
        for wrong in [
            "",
            "s3://",
            "s3://ab",
            "s3:///x",
            "prices",
            "s3://Prices",
            "s3://prices/..",
            "s3://prices/a/../b",
            "s3://prices/./a",
            "s3://prices//a",
            "s3://-prices",
            "s3://key:secret@prices/x",
            "s3://prices/a\nb",
        ] {
            let refused = wrong.parse::<BucketAddress>().expect_err(wrong).to_string();
            assert!(!refused.contains("secret"), "{refused}");
        }
        assert!(format!("s3://prices/{}", "a".repeat(901)).parse::<BucketAddress>().is_err());
    }
}
