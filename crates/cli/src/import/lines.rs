//! Line protocol: files and pipes of lines into series tables, in memory that does not grow with them.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use counterfoil::{Connection, Database, Error, LinePrecision, Lines};
use flate2::read::MultiGzDecoder;

use super::progress::Progress;
use super::source::{Source, ahead};
use crate::arguments::{Format, Import, Unit};
use crate::closing;
use crate::context::Context;
use crate::failure::{Result, input, misuse};
use crate::terminal::{self, counted};

/// Whether line protocol is to be imported: by the format that was named, or by the names of all files.
pub fn are_meant(arguments: &Import) -> bool {
    let named = |path: &PathBuf| {
        let name = path.to_string_lossy();
        super::format_of(name.strip_suffix(".gz").unwrap_or(&name)) == Format::Influx
    };
    match arguments.shape.format {
        Some(format) => format == Format::Influx,
        None => !arguments.what.is_empty() && arguments.what.iter().all(named),
    }
}

pub fn run(context: &Context, arguments: &Import) -> Result<()> {
    if arguments.create || arguments.all.is_some() {
        return Err(misuse("line protocol makes its tables itself").advise("leave --create and --all out").into());
    }
    if arguments.what.is_empty() {
        return Err(misuse("a file is wanted").advise("`counterfoil import DB FILE.lp`, or `-` for a pipe").into());
    }
    let files = arguments.what.iter().map(|path| Opened::open(path)).collect::<Result<Vec<_>, _>>()?;
    let database = context.open(&arguments.db)?;
    let mut wrong = Ok(());
    for file in files {
        let place = file.place.clone();
        let ended = one(&database, &mut database.connect()?, file, arguments).map_err(|failure| failure.at(&place));
        match arguments.batch {
            // What was stored of it stays, and so do the other files.
            Some(_) => wrong = wrong.and(ended),
            None => ended?,
        }
    }
    closing::close(database)?;
    wrong
}

/// A file or pipe, from its beginning.
struct Opened {
    place: String,
    reader: Box<dyn Read + Send>,
    progress: Option<Progress>,
}

impl Opened {
    fn open(path: &Path) -> Result<Self, Error> {
        let unread = |error: io::Error| Error::host("read the file", path.display(), &error);
        if path.as_os_str() == "-" {
            return Ok(Self {
                place: "standard input".into(),
                reader: unpacked(io::stdin()).map_err(unread)?,
                progress: None,
            });
        }
        let place = path.display().to_string();
        let metadata = std::fs::metadata(path).map_err(unread)?;
        if metadata.is_file() || metadata.is_dir() {
            let source = Source::open(path)?;
            return Ok(Self { place, reader: source.reader()?, progress: Some(Progress::begin("importing", &source)) });
        }
        let reader = unpacked(File::open(path).map_err(unread)?).map_err(unread)?;
        Ok(Self { place, reader, progress: None })
    }
}

/// A pipe, which is read once: its first bytes say whether gzip packed it.
fn unpacked(mut pipe: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut head = Vec::new();
    pipe.by_ref().take(2).read_to_end(&mut head)?;
    let is_packed = head == [0x1F, 0x8B];
    let whole = Cursor::new(head).chain(pipe);
    Ok(if is_packed { ahead(MultiGzDecoder::new(whole)) } else { Box::new(whole) })
}

/// Brings in one file: whole, or in batches if that was asked for.
fn one(database: &Database, connection: &mut Connection, file: Opened, arguments: &Import) -> Result<()> {
    let Opened { place, reader, progress } = file;
    let mut lines = Lines::new(reader, precision(arguments.precision), &arguments.quality_field);
    let tick = || progress.iter().for_each(Progress::tick);
    let mut goes_on = true;
    while goes_on {
        connection.execute("BEGIN", &[])?;
        let begun = lines.imported().rows;
        let left = |lines: &Lines<_>| arguments.batch.map(|rows| rows.saturating_sub(lines.imported().rows - begun));
        while goes_on && left(&lines) != Some(0) {
            goes_on = lines.store_some(database, connection, left(&lines).unwrap_or(u64::MAX))?;
            tick();
        }
        if arguments.batch.is_none() && lines.imported().refused() > 0 {
            let what = wrong(&lines, "none was stored");
            return Err(input(what).advise("mend them, or add --batch N to store the others").into());
        }
        connection.execute("COMMIT", &[])?;
    }
    drop(progress);
    terminal::done(format_args!("{place}: {}", counted(lines.imported().rows, "row")));
    match lines.imported().refused() {
        0 => Ok(()),
        _ => Err(input(wrong(&lines, "the others are stored")).advise("mend them and import them again").into()),
    }
}

fn wrong<R: Read>(lines: &Lines<R>, others: &str) -> String {
    let imported = lines.imported();
    format!("{} of {} refused, {others}: {}", imported.refused(), counted(imported.lines, "line"), imported.why())
}

fn precision(unit: Unit) -> LinePrecision {
    match unit {
        Unit::Ns => LinePrecision::Nanoseconds,
        Unit::Us => LinePrecision::Microseconds,
        Unit::Ms => LinePrecision::Milliseconds,
        Unit::S => LinePrecision::Seconds,
        Unit::M => LinePrecision::Minutes,
        Unit::H => LinePrecision::Hours,
    }
}
