//! Opening, and the databases that this process has open.
//!
//! Connections to one file share one open database: a second opening would meet the first one's lock as soon as both write.
//! Whoever joins shows a key that opens the file all the same.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use counterfoil::{Counter, Database, Error, Key, Kind, Options, Place, Secret, Tpm};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::errors::{about, exception, misuse};
use crate::session::Session;
use crate::waiting::{is_called_off, wait};

/// An open database, with what it has to say and nobody was told yet.
pub struct Shared {
    pub database: Database,
    pub notes: Arc<Mutex<Vec<String>>>,
}

/// What connections must have in common to share a database.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Name {
    /// A child of a process opens a database for itself.
    process: u32,
    path: PathBuf,
    read_only: bool,
    require_counter: bool,
    counter: Option<PathBuf>,
}

static OPEN: Mutex<Option<HashMap<Name, Weak<Shared>>>> = Mutex::new(None);

/// How a database is opened.
struct Asked {
    place: Place,
    key: Option<Key>,
    create: bool,
    read_only: bool,
    counter: Option<Counter>,
    require_counter: bool,
    lock_timeout: Duration,
}

/// Opens a database, or joins those who have it open. At most one of the four ways to give a key is given; without one the
/// environment is asked.
///
/// # Errors
/// Those of opening, as exceptions.
#[pyfunction]
#[pyo3(signature = (place, *, key=None, key_file=None, passphrase=None, passphrase_file=None, create=false, read_only=false,
                    counter=None, require_counter=false, lock_timeout=5.0))]
#[allow(clippy::too_many_arguments)] // They are keywords, and Python checks them.
pub fn open(
    py: Python<'_>,
    place: &str,
    key: Option<&Bound<'_, PyAny>>,
    key_file: Option<PathBuf>,
    passphrase: Option<&Bound<'_, PyAny>>,
    passphrase_file: Option<PathBuf>,
    create: bool,
    read_only: bool,
    counter: Option<&str>,
    require_counter: bool,
    lock_timeout: f64,
) -> PyResult<Session> {
    let told = |error: Error| exception(py, &error);
    let key = given(py, key, key_file, passphrase, passphrase_file)?;
    let counter = counter_of(counter).map_err(told)?;
    let lock_timeout = Duration::try_from_secs_f64(lock_timeout)
        .map_err(|_| told(misuse("the lock timeout is no number of seconds")))?;
    let named = (place != ":memory:").then(|| Arc::from(place));
    let place = Place::parse(place);
    let asked = Asked { place, key, create, read_only, counter, require_counter, lock_timeout };
    let (shared, connection) = wait(py, || {
        let shared = shared(asked).map_err(|error| about(error, named.as_deref()))?;
        let mut connection = shared.database.connect()?;
        connection.ask_while_waiting(is_called_off);
        connection.execute(&format!("SET lock_timeout = '{}ms'", lock_timeout.as_millis()), &[])?;
        Ok((shared, connection))
    })?;
    Ok(Session::new(shared, connection, named))
}

fn given(
    py: Python<'_>,
    key: Option<&Bound<'_, PyAny>>,
    key_file: Option<PathBuf>,
    passphrase: Option<&Bound<'_, PyAny>>,
    passphrase_file: Option<PathBuf>,
) -> PyResult<Option<Key>> {
    let told = |error: Error| exception(py, &error);
    let ways = [key.is_some(), key_file.is_some(), passphrase.is_some(), passphrase_file.is_some()];
    if ways.iter().filter(|given| **given).count() > 1 {
        return Err(told(misuse("more than one key was given").advise("give one")));
    }
    if let Some(key) = key {
        return key_of(key).map(Some);
    }
    if let Some(passphrase) = passphrase {
        return passphrase_of(passphrase).map(Some);
    }
    let from_file = match (key_file, passphrase_file) {
        (Some(path), _) => Key::from_file(path).map(Some),
        (_, Some(path)) => Key::from_passphrase_file(path).map(Some),
        _ => Ok(None),
    };
    from_file.map_err(told)
}

/// 32 bytes, or 64 hex digits.
fn key_of(key: &Bound<'_, PyAny>) -> PyResult<Key> {
    let told = |error: Error| exception(key.py(), &error);
    if let Ok(digits) = key.cast::<PyString>() {
        return Key::from_hex(digits.to_str()?).map_err(told);
    }
    let bytes = key.cast::<PyBytes>().ok().and_then(|bytes| <&[u8; 32]>::try_from(bytes.as_bytes()).ok());
    bytes.map(Key::bytes).ok_or_else(|| told(misuse("a key is 32 bytes, or a text of 64 hex digits")))
}

fn passphrase_of(passphrase: &Bound<'_, PyAny>) -> PyResult<Key> {
    let told = |error: Error| exception(passphrase.py(), &error);
    let secret = match (passphrase.cast::<PyString>(), passphrase.cast::<PyBytes>()) {
        (Ok(text), _) => Secret::from(text.to_str()?.as_bytes()),
        (_, Ok(bytes)) => Secret::from(bytes.as_bytes()),
        _ => return Err(told(misuse("a passphrase is a text or bytes"))),
    };
    Key::passphrase(secret).map_err(told)
}

/// `user` is the file counter where the user's programs keep their state, `none` is none, anything else a folder.
fn counter_of(counter: Option<&str>) -> Result<Option<Counter>, Error> {
    match counter {
        None | Some("none") => Ok(None),
        // A machine that keeps no state can read all the same; what needs the counter says so.
        Some("user") => Ok(Counter::user_default().ok()),
        Some("tpm") => Counter::user_tpm().map(Some),
        Some(folder) => Ok(Some(Counter::File(folder.into()))),
    }
}

fn shared(mut asked: Asked) -> Result<Arc<Shared>, Error> {
    if asked.place == Place::Memory {
        return opened(&mut asked);
    }
    if asked.key.is_none() {
        asked.key = Some(found(&asked.place)?);
    }
    let known = |name: Name| OPEN.lock().get_or_insert_default().get(&name).and_then(Weak::upgrade);
    if let (Some(shared), Some(key)) = (name(&asked).and_then(known), &asked.key) {
        shared.database.admit(key)?;
        return Ok(shared);
    }
    let read_only = asked.read_only;
    let shared = opened(&mut asked)?;
    // What was just made has a name only now.
    let Some(name) = name(&asked) else { return Ok(shared) };
    let mut open = OPEN.lock();
    let open = open.get_or_insert_default();
    open.retain(|_, shared| shared.strong_count() > 0);
    // Another thread may have been faster. Of two that only read, both may stay.
    match open.get(&name).and_then(Weak::upgrade) {
        Some(first) if !read_only => Ok(first),
        _ => {
            open.insert(name, Arc::downgrade(&shared));
            Ok(shared)
        }
    }
}

/// The name of what is there already.
fn name(asked: &Asked) -> Option<Name> {
    let path = std::fs::canonicalize(asked.place.path()?).ok()?;
    let counter = match &asked.counter {
        Some(Counter::File(folder) | Counter::Tpm(folder)) => Some(folder.clone()),
        _ => None,
    };
    let process = std::process::id();
    Some(Name { process, path, read_only: asked.read_only, require_counter: asked.require_counter, counter })
}

fn found(place: &Place) -> Result<Key, Error> {
    if let Some(key) = Key::from_environment()? {
        return Ok(key);
    }
    let of_tpm = Key::tpm_for(place, &Tpm::from_environment()?)?;
    of_tpm.ok_or_else(|| {
        misuse("no key was given")
            .advise("give key, key_file, passphrase or passphrase_file, or set COUNTERFOIL_KEY_FILE")
    })
}

fn opened(asked: &mut Asked) -> Result<Arc<Shared>, Error> {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let told = notes.clone();
    let create = asked.create;
    let options = options(asked)?.on_note(move |note| told.lock().push(note.to_owned()));
    let database = match Database::open(options.clone()) {
        Err(error) if create && error.kind() == Kind::NotFound => Database::create(options),
        opened => opened,
    }?;
    Ok(Arc::new(Shared { database, notes }))
}

fn options(asked: &mut Asked) -> Result<Options, Error> {
    let in_memory = asked.place == Place::Memory;
    let mut options = Options::at(asked.place.clone())
        .lock_timeout(asked.lock_timeout)
        .read_only(asked.read_only)
        .require_counter(asked.require_counter);
    if in_memory {
        return Ok(options);
    }
    options = options.tpm(Tpm::from_environment()?);
    if let Some(counter) = &asked.counter {
        options = options.counter(counter.clone());
    }
    Ok(match asked.key.take() {
        Some(key) => options.key(key),
        None => options,
    })
}
