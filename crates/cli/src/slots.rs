//! `key`, `keygen`, `rekey`: who may open the database.

use std::fs;
use std::io::{self, Write};
use std::ops::Deref;
use std::path::Path;

use counterfoil::{Database, Error, Key, Kind, utc};

use crate::arguments::{KeyAction, KeyCommand, Keygen, Rekey};
use crate::begun::Begun;
use crate::closing;
use crate::context::Context;
use crate::failure::{Failure, Result, misuse};
use crate::{copies, keys, private, terminal};

pub fn run(context: &Context, arguments: &KeyCommand) -> Result<()> {
    match &arguments.action {
        KeyAction::List { db } => list(&context.open_to_read(db)?),
        KeyAction::Add { db, new } => {
            let database = context.open(db)?;
            let slot = database.add_slot(&keys::find_new(new)?)?;
            closing::close(database)?;
            terminal::done(format_args!("slot {slot} was added"));
            Ok(())
        }
        KeyAction::Change { db, slot, new } => {
            let database = context.open(db)?;
            require_slot(&database, *slot)?;
            database.change_slot(usize::from(*slot), &keys::find_new(new)?)?;
            closing::close(database)?;
            terminal::done(format_args!("slot {slot} was changed"));
            terminal::note("copies of the file from before still open with the old one, whatever is done here");
            Ok(())
        }
        KeyAction::Remove { db, slot } => {
            let database = context.open(db)?;
            database.remove_slot(usize::from(*slot))?;
            closing::close(database)?;
            terminal::done(format_args!("slot {slot} was removed"));
            terminal::note("copies of the file from before still open with it, whatever is done here");
            Ok(())
        }
        KeyAction::Split { db, need, of, dir } => split(context, db, *need, *of, dir),
    }
}

fn list(database: &Database) -> Result<()> {
    let mut stdout = io::stdout().lock();
    for slot in database.slots()? {
        let ours = if slot.is_ours { "  (opened it now)" } else { "" };
        let kind = slot.kind;
        writeln!(stdout, "{}  {kind:13}  since {}{ours}", slot.number, utc(slot.created)).map_err(Failure::output)?;
    }
    Ok(())
}

/// Said before anybody is asked for a passphrase.
fn require_slot(database: &Database, slot: u8) -> Result<(), Error> {
    if database.slots()?.iter().any(|known| known.number == usize::from(slot)) {
        return Ok(());
    }
    Err(Error::new(Kind::NotFound, format!("there is no key slot {slot}")).advise("see `counterfoil key list`"))
}

fn split(context: &Context, db: &str, need: u8, of: u8, folder: &Path) -> Result<()> {
    // What cannot be written to has a key as well.
    let database = context.open(db).or_else(|error| match error.kind() {
        Kind::Device => context.open_to_read(db),
        _ => Err(error),
    })?;
    let shares = database.split_key(need, of)?;
    write_shares(folder, &shares)?;
    terminal::done(format_args!("{of} shares in {}", folder.display()));
    // Shares are good whether or not the database knows of them: a copy that cannot be written to has some, too.
    if let Err(error) = database.note_split() {
        terminal::note(format_args!(
            "dispersed tables take no rows yet, since the database could not note that it was split: {error}"
        ));
    }
    terminal::done(format_args!("any {need} of them, in a folder given as --key-file, open the database"));
    Ok(())
}

/// Writes shares into a folder that is there when all of them are: what a cut leaves has another name.
fn write_shares(folder: &Path, shares: &[impl Deref<Target = String>]) -> Result<()> {
    let wrong = |what, path: &Path, error| Error::host(what, path.display(), &error);
    if folder.exists() {
        return Err(wrong("make the folder", folder, io::ErrorKind::AlreadyExists.into()).into());
    }
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished");
    let unfinished = folder.with_file_name(name);
    if unfinished.exists() {
        let text = format!("{} has shares that were never complete", unfinished.display());
        let advice = "nobody counts on them: delete that folder, then split the key again";
        return Err(Error::new(Kind::Misuse, text).advise(advice).into());
    }
    let begun = Begun::folder(&unfinished)?;
    for (index, share) in shares.iter().enumerate() {
        let path = unfinished.join(format!("share-{}-of-{}.txt", index + 1, shares.len()));
        private::write_new(&path, share.as_bytes())?;
    }
    let sync = |folder: &Path| fs::File::open(folder).and_then(|folder| folder.sync_all());
    sync(&unfinished).map_err(|error| wrong("sync the folder of shares", &unfinished, error))?;
    fs::rename(&unfinished, folder).map_err(|error| wrong("rename the folder of shares", folder, error))?;
    begun.finish();
    // Whoever is told that they are there finds them after a power cut, too.
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync(parent).map_err(|error| wrong("sync the folder of the shares' folder", parent, error))?;
    Ok(())
}

pub fn keygen(arguments: &Keygen) -> Result<()> {
    let key = Key::generate()?;
    let Some(digits) = key.to_hex() else { return Err(misuse("this key has no digits").into()) };
    let line = format!("{}\n", digits.as_str());
    match &arguments.output {
        Some(path) => private::write_new(path, line.as_bytes())?,
        None => io::stdout().write_all(line.as_bytes()).map_err(Failure::output)?,
    }
    Ok(())
}

pub fn rekey(context: &Context, arguments: &Rekey) -> Result<()> {
    if arguments.data {
        if arguments.new.new_key_file.is_some() || arguments.new.new_passphrase_file.is_some() || arguments.new.tpm {
            return Err(misuse("--data keeps the key that opens the database")
                .advise("use `counterfoil key change`")
                .into());
        }
        // The key is asked for before anything else is on the terminal.
        let options = context.options(&arguments.db)?;
        let _unfinished = copies::on_its_way(&arguments.db);
        let bar = copies::Bar::begin("sealing anew");
        Database::rekey(options, &mut |done, total| bar.set(done, total))?;
        drop(bar);
        terminal::done("everything is sealed under a new key; other key slots are gone: add them again");
        terminal::note(
            "shares of the old key do not open it: `counterfoil key split` makes new ones, and tells the clouds of dispersed tables; until \
             then the old ones alone bring those back",
        );
        return Ok(());
    }
    let database = context.open(&arguments.db)?;
    let slot = database.own_slot()?;
    database.change_slot(slot, &keys::find_new(&arguments.new)?)?;
    closing::close(database)?;
    terminal::done(format_args!("slot {slot} was changed"));
    terminal::note("copies of the file from before still open with the old one, whatever is done here");
    Ok(())
}
