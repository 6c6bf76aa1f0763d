//! From a cloud's address to the cloud.
//!
//! | address | what it is |
//! |---|---|
//! | `dir:/mnt/a` | a folder |
//! | `memory:a` | in the memory of this process, gone with it: to try things |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use crate::folder::Folder;
use crate::keys::Secret;
use crate::provider::{MemoryProvider, Provider};
use crate::stored::StoredProvider;

static MEMORIES: LazyLock<Mutex<BTreeMap<String, Arc<MemoryProvider>>>> = LazyLock::new(Mutex::default);

fn unknown(url: &str) -> String {
    format!("cloud at {url}: 'dir:PATH' or 'memory:NAME', or one of those over a network in docs/disperse.md")
}

/// An address as it is kept: a folder by its whole path, so that it is the same wherever the program runs.
///
/// # Errors
/// What is wrong with it, for people.
pub fn whole_url(url: &str) -> Result<String, String> {
    match url.split_once(':') {
        Some(("dir", path)) if !path.is_empty() => {
            // One folder has one address, whatever leads to it.
            match std::fs::canonicalize(path) {
                Ok(whole) if whole.is_dir() => Ok(format!("dir:{}", whole.display())),
                _ => Err(format!("cloud at {url}: there is no such folder; make it, or mount it")),
            }
        }
        Some(("memory", name)) if !name.is_empty() => Ok(url.to_owned()),
        _ => Err(unknown(url)),
    }
}

/// The cloud at an address; `key` tells the owner's files from others. Nobody is asked yet.
///
/// # Errors
/// What is wrong with the address, for people.
pub fn open_cloud(url: &str, key: Secret) -> Result<Arc<dyn Provider>, String> {
    match url.split_once(':') {
        Some(("dir", path)) if Path::new(path).is_absolute() => {
            Ok(Arc::new(StoredProvider::new(Folder(PathBuf::from(path)), key)))
        }
        Some(("memory", name)) => {
            let mut memories = MEMORIES.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(memories.entry(name.to_owned()).or_default().clone())
        }
        _ => Err(unknown(url)),
    }
}

#[cfg(test)]
mod tests {
    use super::{open_cloud, whole_url};
    use crate::keys::Secret;

    #[test]
    fn addresses_are_whole_or_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("dir:{}", folder.path().display());
        assert_eq!(whole_url(&url).as_deref(), Ok(url.as_str()));
        assert_eq!(whole_url("memory:a").as_deref(), Ok("memory:a"));
        for wrong in ["", "dir:", "memory:", "ftp://example.com", "dir:/nowhere/at/all"] {
            assert!(whole_url(wrong).is_err(), "{wrong}");
        }
        assert!(open_cloud("dir:relative", Secret::new([1; 32])).is_err());
        assert!(open_cloud("s3://bucket", Secret::new([1; 32])).is_err());
    }
}
