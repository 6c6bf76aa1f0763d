//! The verifier's page beside a published table: whoever opens the folder in a browser finds it, with the folder filled in.
//!
//! It lies there as `index.html`, which web servers show for a folder. What else is called so is somebody's, and stays.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use counterfoil_mirror::site::Destination;
use sha2::{Digest as _, Sha256};

use crate::error::Error;

/// Its name in the folder.
const NAME: &str = "index.html";
/// A larger file is something else: the page has 3 MB.
const BYTES_MAX: u64 = 16 << 20;
/// What it begins with, and what it says of itself in its head (`crates/verifier/page/page.html`).
const BEGINNING: &[u8] = b"<!DOCTYPE html>";
const TITLE: &[u8] = b"<title>Counterfoil verifier</title>";
/// Bytes in which the title is found.
const HEAD_BYTES: usize = 4 << 10;

/// The verifier's page, as `scripts/build-verifier` makes it.
pub struct VerifierPage(Vec<u8>);

impl fmt::Debug for VerifierPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a verifier's page of {} bytes", self.0.len())
    }
}

impl VerifierPage {
    /// The page in a file.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::NoPage`]: it is something else.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let failed = |error| Error::File(path.into(), error);
        let mut bytes = Vec::new();
        File::open(path).map_err(failed)?.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        let fits = bytes.len() as u64 <= BYTES_MAX && is_page(&bytes);
        if fits { Ok(Self(bytes)) } else { Err(Error::NoPage(path.into())) }
    }

    /// How large it is.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.len() as u64
    }

    /// Its SHA-256 in hex, which readers compare with what the owner tells them.
    #[must_use]
    pub fn sha256(&self) -> String {
        Sha256::digest(&self.0).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Puts it beside a table, in the place of an older one; says whether that was needed.
    ///
    /// # Errors
    /// Those of the destination; [`io::ErrorKind::AlreadyExists`]: another page is there.
    pub fn put(&self, destination: &mut dyn Destination) -> io::Result<bool> {
        if destination.has(NAME, &self.0)? {
            return Ok(false);
        }
        if destination.read(NAME)?.is_some_and(|there| !is_page(&there)) {
            let text = format!("{NAME} is there already, and is no verifier's page");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        destination.put(NAME, &self.0)?;
        destination.settle()?;
        Ok(true)
    }
}

fn is_page(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    head.starts_with(BEGINNING) && head.windows(TITLE.len()).any(|part| part == TITLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_mirror::site::OwnFolder;

    const PAGE: &str = include_str!("../../verifier/page/page.html");

    fn page(folder: &Path, text: &str) -> Result<VerifierPage, Error> {
        let path = folder.join("page");
        std::fs::write(&path, text).expect("written");
        VerifierPage::from_file(path)
    }

    #[test]
    fn a_page_is_put_replaced_and_kept_and_nothing_else_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let (own, there) = (folder.path().join("site"), folder.path().join("site/index.html"));
        let mut site = OwnFolder::make(&own).expect("made");
        let (old, new) =
            (page(folder.path(), PAGE).expect("one"), page(folder.path(), &format!("{PAGE} ")).expect("one"));
        assert_eq!(old.sha256().len(), 64);
        assert!(old.sha256() != new.sha256());
        assert!(old.put(&mut site).expect("put") && !old.put(&mut site).expect("kept"));
        assert!(new.put(&mut site).expect("replaced"));
        assert_eq!(std::fs::read(&there).expect("a file"), new.0);
        std::fs::write(&there, "<!DOCTYPE html><title>Prices</title>").expect("written");
        let refused = new.put(&mut site).expect_err("somebody's");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert!(std::fs::read_to_string(&there).expect("a file").contains("Prices"));
    }

    #[test]
    fn what_is_no_verifier_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let late = format!("<!DOCTYPE html>{}<title>Counterfoil verifier</title>", " ".repeat(HEAD_BYTES));
        for text in ["", "<!DOCTYPE html><title>Prices</title>", "<title>Counterfoil verifier</title>", &late] {
            assert!(matches!(page(folder.path(), text), Err(Error::NoPage(_))), "{text}");
        }
        assert!(matches!(VerifierPage::from_file("/nowhere/at/all"), Err(Error::File(..))));
    }
}
