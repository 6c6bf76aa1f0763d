//! The image of a chip's flash: a record store that stands alone, looked at and written to on a host.
//!
//! ```text
//! file: | anything | block 0 | ... | block of the index ring: superblock, pages | ... | anything |
//!                    ^ where the store begins follows from where a superblock stands and what it says
//! ```
//! 1. A superblock is only a claim until the key has opened it, and then it still has to lie in the file with all of its
//!    store: no memory is taken by the word of bytes that nobody vouches for, and none that the file's length does not bound.
//! 2. Nothing is written without a counter on this host: two that go on from one image would seal other bytes under the
//!    same keys.
//! 3. Every call opens the store anew. What a host writes, a device with the documented memory can open.

mod chip;
mod counting;
mod inspection;
mod making;
mod medium;
mod memory;
mod opening;
mod search;

use counterfoil_flash::FileDevice;
use counterfoil_record::RecordId;
use counterfoil_record::alone;
use counterfoil_vault::{CounterKind, Vault};

use crate::error::{Error, Kind, Result};
use crate::options::{Options, Place};

use chip::Chip;
pub use inspection::{ImageInspection, ImageVerification};
pub use making::DeviceShape;
use medium::GRAIN;
use search::Site;

/// The image of a chip's flash, in a file.
pub struct DeviceImage {
    options: Options,
    vault: Vault,
    site: Site,
    /// Superblocks that the key opened, and others.
    superblocks: (u32, u32),
}

/// What a record is called: by number, written `#12`, or by name.
#[derive(Clone, Copy)]
enum Called<'a> {
    Number(u32),
    Name(&'a [u8]),
}

impl<'a> Called<'a> {
    fn parse(text: &'a str) -> Self {
        let digits = text.strip_prefix('#').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        match digits.and_then(|digits| digits.parse().ok()) {
            Some(number) => Called::Number(number),
            None => Called::Name(text.as_bytes()),
        }
    }

    /// What records may be called, where this is refused.
    fn limits(&self, names: u32) -> String {
        match (self, names) {
            (Called::Name(_), 0) => "this store has no names: its records are numbered, such as #12".into(),
            (Called::Name(_), _) => "a name has 1 to 255 bytes".into(),
            (Called::Number(_), 0) => "use a smaller one".into(),
            (Called::Number(_), names) => format!("those below #{names} belong to names; above it, use a smaller one"),
        }
    }
}

impl DeviceImage {
    /// Whether what is there is the image of a device: no database, and something in it claims to be a superblock. Reads the
    /// whole file where it is no database.
    ///
    /// # Errors
    /// [`Kind::Device`] if the file cannot be read to its end. What cannot be opened is no image.
    pub fn is_one(place: &Place) -> Result<bool> {
        let Place::File(path) = place else { return Ok(false) };
        let Ok(file) = FileDevice::open_read_only(path, GRAIN) else { return Ok(false) };
        match counterfoil_vault::read_headers(&file) {
            Err(counterfoil_vault::HeaderError::NotADatabase) => search::is_claimed(&file),
            _ => Ok(false),
        }
    }

    /// Opens an image. The key is the store's own: of [`crate::Key::from_file`] and its like, no passphrase.
    ///
    /// # Errors
    /// [`Kind::NotADatabase`] without a superblock, [`Kind::WrongKey`] if the key opens none, [`Kind::Corrupt`] if the
    /// store does not lie in the file as a whole, [`Kind::Misuse`] for a passphrase.
    pub fn open(options: Options) -> Result<Self> {
        let place = options.place.clone();
        Self::open_file(options).map_err(|error| error.at(&place))
    }

    fn open_file(options: Options) -> Result<Self> {
        let path = path_of(&options)?;
        let key = options.key.as_ref().ok_or_else(|| Error::new(Kind::Misuse, "no key was given"))?.volume_key()?;
        let file = FileDevice::open_read_only(path, GRAIN)?;
        let found = search::find(&file, &key)?;
        let mut failure = None;
        for site in &found.sites {
            let vault = Vault::new(&key, site.superblock.database, site.superblock.suite);
            let superblocks = (found.good, found.bad);
            let image = DeviceImage { options: options.clone(), vault, site: *site, superblocks };
            // Of several stores, and of what is left of an older one, the first that can be read.
            let is_only = found.sites.len() == 1;
            let whole = site.require_whole(file.length()?);
            match whole.and_then(|()| if is_only { Ok(()) } else { image.probe(&file) }) {
                Ok(()) => return Ok(image.noted(&found)),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        Err(failure.unwrap_or_else(|| no_store(&found)))
    }

    fn noted(self, found: &search::Found) -> Self {
        if found.bad > 0 {
            self.options.note(&format!(
                "{} of {} superblocks are not good: a cut, or a change from outside; the erase of their blocks repairs them",
                found.bad,
                found.bad + found.good
            ));
        }
        for other in found.sites.iter().filter(|site| site.start != self.site.start) {
            self.options.note(&format!(
                "the key opens another store as well, from byte {} on: cut it out to open it",
                other.start
            ));
        }
        self
    }

    /// The identity of its store, in hex.
    #[must_use]
    pub fn id(&self) -> String {
        self.vault.id().to_string()
    }

    /// The bytes of a record: under a name, or with `#12` under a number.
    ///
    /// # Errors
    /// Whatever speaks against trusting the image: [`Kind::Tampered`], [`Kind::Corrupt`], [`Kind::RolledBack`],
    /// [`Kind::CounterLost`]; [`Kind::Input`] for names that cannot be.
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let called = Called::parse(name);
        self.read(&mut |chip| find(chip, called)).map_err(|error| self.told(error, &[called]))
    }

    /// Keeps bytes under a name or a number; what was there is replaced. What the counter stands at then.
    ///
    /// # Errors
    /// [`Kind::CounterLost`] without a counter on this host, [`Kind::Input`] for what no record can be, [`Kind::Full`];
    /// those of [`DeviceImage::get`].
    pub fn put(&self, name: &str, value: &[u8]) -> Result<u64> {
        let called = Called::parse(name);
        self.write(&mut |chip| match called {
            Called::Number(number) if number < chip.names() => Err(alone::Error::IdOutOfRange),
            Called::Number(number) => chip.commit(&[(RecordId(number), Some(value))]),
            Called::Name(name) => chip.put_named(name, value, &mut buffer(chip, name, value)),
        })
        .map_err(|error| self.told(error, &[called]))
    }

    /// Deletes records, each in a commit of its own; how many of them there were, and what the counter stands at then.
    ///
    /// # Errors
    /// As [`DeviceImage::put`].
    pub fn delete(&self, names: &[&str]) -> Result<(usize, u64)> {
        let names: Vec<_> = names.iter().map(|name| Called::parse(name)).collect();
        let deleted = self.write(&mut |chip| {
            let mut count = 0;
            for &called in &names {
                if find(chip, called)?.is_none() {
                    continue;
                }
                match called {
                    Called::Number(number) => chip.commit(&[(RecordId(number), None)])?,
                    Called::Name(name) => chip.delete_named(name, &mut buffer(chip, name, &[]))?,
                };
                count += 1;
            }
            Ok((count, chip.counted()))
        });
        deleted.map_err(|error| self.told(error, &names))
    }

    /// The names that begin with `prefix`, in order, then the numbers of all other records as `#12`, and how many bytes each
    /// has.
    ///
    /// # Errors
    /// Those of [`DeviceImage::get`].
    pub fn list(&self, prefix: &str) -> Result<Vec<(String, usize)>> {
        let mut listed = self.read(&mut |chip| {
            let mut listed = Vec::new();
            let mut page = vec![0; chip.record_bytes_max()];
            for id in 0..chip.ids_max() {
                match entry(chip, id, &mut page)? {
                    Some(entry) if entry.0.starts_with(prefix) => listed.push(entry),
                    _ => {}
                }
            }
            Ok(listed)
        });
        if let Ok(listed) = &mut listed {
            let number = |name: &str| match Called::parse(name) {
                Called::Number(number) => Some(number),
                Called::Name(_) => None,
            };
            listed.sort_by(|(one, _), (other, _)| (number(one), one).cmp(&(number(other), other)));
        }
        listed.map_err(|error| error.at(&self.options.place))
    }

    /// The file counter of the store, where a directory for it was named.
    fn kind(&self) -> CounterKind {
        match self.options.counter {
            Some(crate::options::Counter::File(_)) => CounterKind::File,
            _ => CounterKind::None,
        }
    }

    /// The same error, saying where, and what the records of this store may be called.
    fn told(&self, error: Error, called: &[Called<'_>]) -> Error {
        let error = error.at(&self.options.place);
        match called.first() {
            Some(called) if error.kind() == Kind::Input => {
                error.advise(called.limits(self.site.superblock.shape.names))
            }
            _ => error,
        }
    }
}

fn path_of(options: &Options) -> Result<&std::path::Path> {
    match &options.place {
        Place::File(path) => Ok(path),
        _ => Err(Error::new(Kind::Misuse, "the image of a device is a file").advise("copy it into one")),
    }
}

fn no_store(found: &search::Found) -> Error {
    match found.bad {
        0 => Error::new(Kind::NotADatabase, "not the image of a device: nothing says how it is cut up")
            .advise("check the name, and that the image is whole"),
        bad => Error::new(Kind::WrongKey, format!("the key opens none of the {bad} superblocks of this image"))
            .advise("try another key"),
    }
}

/// Room for a record with this name, the one that is there and the one that comes.
fn buffer(chip: &dyn Chip, name: &[u8], value: &[u8]) -> Vec<u8> {
    vec![0; chip.record_bytes_max().max(1 + name.len() + value.len())]
}

fn find(chip: &mut dyn Chip, called: Called<'_>) -> Result<Option<Vec<u8>>, alone::Error> {
    let name = match called {
        Called::Number(_) => &[],
        Called::Name(name) => name,
    };
    let mut bytes = buffer(chip, name, &[]);
    let read = match called {
        Called::Number(number) if number < chip.names() => Err(alone::Error::NoRecord),
        Called::Number(number) => chip.read(RecordId(number), &mut bytes),
        Called::Name(name) => chip.read_named(name, &mut bytes),
    };
    match read {
        Err(alone::Error::NoRecord) => Ok(None),
        read => read.map(|length| {
            bytes.truncate(length);
            Some(bytes)
        }),
    }
}

/// What stands at an id: what it is called, and how many bytes it has.
fn entry(chip: &mut dyn Chip, id: u32, page: &mut [u8]) -> Result<Option<(String, usize)>, alone::Error> {
    if id < chip.names() {
        let named = chip.named_at(id, page)?;
        return Ok(named.map(|(name, value)| (String::from_utf8_lossy(name).into_owned(), value.len())));
    }
    match chip.read(RecordId(id), page) {
        Err(alone::Error::NoRecord) => Ok(None),
        read => read.map(|bytes| Some((format!("#{id}"), bytes))),
    }
}
