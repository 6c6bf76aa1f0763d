//! How a database is opened from the command line: by the options that every command takes.

use counterfoil::{Counter, Database, Error, Options, Place, Tpm};

use crate::arguments::Common;
use crate::{image, keys, terminal};

/// The options that every command takes.
pub struct Context {
    pub common: Common,
}

impl Context {
    pub fn new(common: Common) -> Self {
        Self { common }
    }

    /// How `db` is opened.
    pub fn options(&self, db: &str) -> Result<Options, Error> {
        let options = self.options_without_key(db)?;
        if Place::parse(db) == Place::Memory {
            return Ok(options);
        }
        // Nobody should be asked for the passphrase of a device.
        if image::is_one(db)? {
            return Err(image::refusal(db));
        }
        Ok(options.key(keys::find(&self.common, &Place::parse(db))?))
    }

    /// How `db` is made or opened, except for its key.
    pub fn options_without_key(&self, db: &str) -> Result<Options, Error> {
        let place = Place::parse(db);
        let in_memory = place == Place::Memory;
        let options = Options::at(place)
            .lock_timeout(self.common.lock_timeout)
            .require_counter(self.common.require_counter)
            .on_note(|note| terminal::note(note));
        let options = match self.common.ram {
            Some(bytes) => options.ram(bytes),
            None => options,
        };
        if in_memory {
            return Ok(options);
        }
        let options = options.tpm(Tpm::from_environment()?);
        // A machine that keeps no state can read all the same; what needs the counter says so.
        Ok(match Counter::user_default() {
            Ok(counter) => options.counter(counter),
            Err(_) => options,
        })
    }

    /// Opens `db`.
    pub fn open(&self, db: &str) -> Result<Database, Error> {
        Database::open(self.options(db)?)
    }

    /// Opens `db` and refuses to write to it.
    pub fn open_to_read(&self, db: &str) -> Result<Database, Error> {
        Database::open(self.options(db)?.read_only(true))
    }
}
