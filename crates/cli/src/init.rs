//! `init`: makes a database.

use counterfoil::{Cipher, Counter, Database, Error, Kind, Options, Place};

use crate::arguments::Init;
use crate::context::Context;
use crate::failure::{Result, misuse};
use crate::{image, keys, terminal};

pub fn run(context: &Context, arguments: &Init) -> Result<()> {
    let cipher = cipher(&arguments.cipher)?;
    let counter = counter(&arguments.counter)?;
    let page_bytes = u32::try_from(arguments.page_size).unwrap_or(u32::MAX);
    if let Place::File(path) = Place::parse(&arguments.db)
        && path.symlink_metadata().is_ok()
    {
        // Said before anybody is asked for a passphrase.
        return Err(misuse("there is something of this name already")
            .at(path.display())
            .advise("choose another name, or move it away")
            .into());
    }
    if arguments.device.is_some() {
        return image::init(context, arguments, cipher, counter);
    }
    let mut options = context
        .options_without_key(&arguments.db)?
        .counter(counter.clone())
        .cipher(cipher)
        .page_bytes(page_bytes)
        .danger_erase(arguments.erase);
    if let Some(size) = arguments.size {
        options = options.size_limit(size);
    }
    if Place::parse(&arguments.db) == Place::Memory {
        terminal::note("a database in memory ends with the command");
        return Ok(Database::create(options)?.close()?);
    }
    let database = create(context, options, !arguments.no_recovery)?;
    if counter == Counter::None {
        terminal::note("this database has no counter: an older copy put back is not detected");
    }
    Ok(database.close()?)
}

/// Makes a database with the key that the options or a person give, and shows its recovery code.
pub fn create(context: &Context, options: Options, recovery: bool) -> Result<Database> {
    // Nobody would see the code where nobody is asked for a passphrase either.
    let recovery = terminal::is_watched() && recovery;
    let database = Database::create(options.key(keys::find_for_new(&context.common)?).recovery(recovery))?;
    if let Some(code) = database.recovery_code() {
        terminal::show(format_args!("recovery code: {code}"));
        terminal::show("It opens the database like the passphrase does, and is shown this once: write it down.");
    }
    Ok(database)
}

fn cipher(name: &str) -> Result<Cipher, Error> {
    Cipher::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Cipher::ALL.iter().map(|cipher| cipher.name()).collect();
        misuse(format!("there is no cipher {name}")).advise(format!("use one of {}", names.join(", ")))
    })
}

fn counter(kind: &str) -> Result<Counter, Error> {
    match kind {
        "file" => Counter::user_default(),
        "none" => Ok(Counter::None),
        "tpm" => Counter::user_tpm(),
        "nor" | "ecc" => Err(Error::new(Kind::NotSupported, format!("not supported: the counter {kind} here"))
            .advise("use file, tpm or none")),
        _ => Err(misuse(format!("there is no counter {kind}")).advise("use file, tpm or none")),
    }
}
