//! The image of a device's flash, where a database could stand: `kv`, `inspect`, `verify` and `counter` work on it too.

use std::io::{self, Write};

use counterfoil::{Counter, DeviceImage, DeviceShape, Error, ImageInspection, ImageVerification, Kind, Options, Place};

use crate::arguments::{Init, KvAction};
use crate::context::Context;
use crate::failure::{Failure, Result, misuse};
use crate::inspect::{bytes, line};
use crate::{keys, kv, terminal, verify};

/// Whether `db` is the image of a device.
pub fn is_one(db: &str) -> Result<bool, Error> {
    DeviceImage::is_one(&Place::parse(db)).map_err(|error| error.at(db))
}

/// What the commands that want a database are answered.
pub fn refusal(db: &str) -> Error {
    Error::new(Kind::NotSupported, "this is the image of a device, which holds records and no tables")
        .at(db)
        .advise("`kv`, `inspect`, `verify` and `counter` work on it")
}

pub fn open(context: &Context, db: &str) -> Result<DeviceImage, Error> {
    DeviceImage::open(context.options_without_key(db)?.key(keys::find_of_device(&context.common)?))
}

pub fn run_kv(context: &Context, db: &str, action: &KvAction) -> Result<()> {
    match action {
        KvAction::Get { name } => {
            let value = open(context, db)?.get(name)?.ok_or_else(|| kv::absent(name))?;
            kv::write(&value)
        }
        KvAction::Put { name, file } => {
            let value = kv::read(file.as_deref())?;
            tell_of_counter(open(context, db)?.put(name, &value)?);
            Ok(())
        }
        KvAction::Delete { name } => {
            let image = open(context, db)?;
            for name in name {
                if image.get(name)?.is_none() {
                    return Err(kv::absent(name).into());
                }
            }
            let names: Vec<&str> = name.iter().map(String::as_str).collect();
            let (_, counted) = image.delete(&names)?;
            tell_of_counter(counted);
            Ok(())
        }
        KvAction::List { prefix } => kv::list(&open(context, db)?.list(prefix.as_deref().unwrap_or_default())?),
    }
}

/// The device's own counter is out of our reach.
pub fn tell_of_counter(counted: u64) {
    terminal::note(format_args!("a device that is to go on with this image needs its counter at {counted}"));
}

/// `init --device`.
pub fn init(context: &Context, arguments: &Init, cipher: counterfoil::Cipher, counter: Counter) -> Result<()> {
    let Some(shape) = arguments.device else { return Ok(()) };
    if !matches!(Place::parse(&arguments.db), Place::File(_)) {
        return Err(misuse("the image of a device is made in a file").at(&arguments.db).into());
    }
    let has_counter = counter != Counter::None;
    let options: Options = context.options_without_key(&arguments.db)?.counter(counter).cipher(cipher);
    let options = options.key(keys::find_of_device(&context.common)?);
    let shape = DeviceShape { is_salted: arguments.salted, ..shape };
    let (image, counted) = DeviceImage::create(options, &shape)?;
    terminal::done(format_args!("the identity of the store is {}", image.id()));
    tell_of_counter(counted);
    if !has_counter {
        terminal::note("this image has no counter here: a host can read it, and writes to it after `counter adopt`");
    }
    Ok(())
}

pub fn run_inspect(context: &Context, db: &str) -> Result<()> {
    let inspection = open(context, db)?.inspect()?;
    show(&inspection, db).map_err(Failure::output)
}

fn show(inspection: &ImageInspection, db: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let out = &mut stdout;
    let block_bytes = u64::from(inspection.page_bytes) * u64::from(inspection.block_pages);
    let (good, others) = inspection.superblocks;
    let (named, numbered) = inspection.records;
    line(out, "image", format_args!("{db}, the flash of a device, its store from byte {} on", inspection.start))?;
    line(out, "identity", &inspection.id)?;
    line(out, "cipher", inspection.cipher)?;
    line(
        out,
        "shape",
        format_args!(
            "{} blocks of {} pages of {}, {} of them for the index; {} in all",
            inspection.block_count,
            inspection.block_pages,
            bytes(u64::from(inspection.page_bytes)),
            inspection.index_blocks,
            bytes(block_bytes * u64::from(inspection.block_count)),
        ),
    )?;
    line(
        out,
        "entries",
        format_args!(
            "{} a page at most, words of {} bytes, {}",
            inspection.page_entries,
            inspection.word_bytes,
            if inspection.is_salted { "salted" } else { "not salted" }
        ),
    )?;
    line(out, "superblocks", format_args!("{good} good, {others} not"))?;
    line(out, "commit", format_args!("version {}", inspection.version))?;
    match inspection.counter_value {
        Some(value) => line(out, "counter", format_args!("file, at {value}"))?,
        None => line(out, "counter", "absent here: an older copy put back is not noticed")?,
    }
    line(out, "records", format_args!("{named} named, {numbered} numbered, {}", bytes(inspection.record_bytes)))?;
    line(out, "names", format_args!("room for {}", inspection.names))?;
    line(out, "room", format_args!("{} more records of 24 bytes at least", inspection.space_left))?;
    line(out, "wear", format_args!("no block was erased more than {} times by this store", inspection.erases))?;
    line(out, "rollbacks", format_args!("{}", inspection.rollbacks))?;
    out.flush()
}

pub fn run_verify(context: &Context, db: &str) -> Result<()> {
    let verification = open(context, db)?.verify()?;
    tell(&verification).map_err(Failure::output)?;
    verify::tell(verification.problems)
}

fn tell(verification: &ImageVerification) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let (good, others) = verification.superblocks;
    writeln!(
        stdout,
        "{} records, {good} of {} superblocks; freshness: {}; {}",
        verification.records,
        good + others,
        verification.freshness,
        verify::verdict(verification.problems.len())
    )?;
    stdout.flush()
}
