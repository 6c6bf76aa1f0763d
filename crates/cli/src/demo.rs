//! `demo`: the main job end to end, on real flights, told as it goes.
//!
//! Everything is done by the program itself, started anew for each command that is shown: what is seen here is what
//! everybody gets. The data are compiled in, so that it works wherever the program is.

mod story;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use counterfoil::{Database, Error, Key, Kind, Options, Region};

use crate::arguments::Demo;
use crate::failure::{Failure, Result};

/// The sample data: nycflights13 (CC0), the flights of January 2013 and what belongs to them.
const DATA: [(&str, &[u8]); 5] = [
    ("airlines.csv", include_bytes!("../../../data/nycflights13/airlines.csv")),
    ("airports.csv", include_bytes!("../../../data/nycflights13/airports.csv")),
    ("planes.csv", include_bytes!("../../../data/nycflights13/planes.csv")),
    ("weather.csv.gz", include_bytes!("../../../data/nycflights13/weather.csv.gz")),
    ("flights-2013-01.csv.gz", include_bytes!("../../../data/nycflights13/flights-2013-01.csv.gz")),
];

pub fn run(arguments: &Demo) -> Result<()> {
    let host = |path: &Path, error: io::Error| Error::host("make the folder", path.display(), &error);
    match &arguments.keep {
        Some(folder) => {
            fs::create_dir(folder).map_err(|error| host(folder, error))?;
            Stage::new(folder.clone())?.play(true)
        }
        None => {
            let folder = tempfile::Builder::new().prefix("counterfoil-demo-").tempdir();
            let folder = folder.map_err(|error| host(&std::env::temp_dir(), error))?;
            let _unfinished = crate::terminal::Unfinished::at(folder.path());
            let played = Stage::new(folder.path().to_owned())?.play(false);
            folder.close().map_err(|error| Error::host("clean up", "the demo's folder", &error))?;
            played
        }
    }
}

/// The folder in which it plays, and the program that plays in it.
struct Stage {
    folder: PathBuf,
    program: PathBuf,
}

impl Stage {
    fn new(folder: PathBuf) -> Result<Self> {
        let program = std::env::current_exe()
            .map_err(|error| Error::host("find the program itself", "/proc/self/exe", &error))?;
        let folder =
            fs::canonicalize(&folder).map_err(|error| Error::host("find the folder", folder.display(), &error))?;
        for (name, bytes) in DATA {
            write(&folder.join(name), bytes)?;
        }
        Ok(Self { folder, program })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Shows a command and runs it; what it prints is seen. It has to end well.
    fn show(&self, words: &[&str]) -> Result<()> {
        let output = self.run(words)?;
        if output.status.success() { Ok(()) } else { Err(went_wrong(words, &output)) }
    }

    /// Shows a command and runs it; it has to be refused, and why is seen.
    fn show_refused(&self, words: &[&str]) -> Result<()> {
        let output = self.run(words)?;
        if output.status.code() != Some(3) {
            return Err(went_wrong(words, &output));
        }
        say("  (exit code 3: not to be trusted)")
    }

    fn run(&self, words: &[&str]) -> Result<Output> {
        say(&format!("\n  $ counterfoil {}", words.iter().map(|word| shown(word)).collect::<Vec<_>>().join(" ")))?;
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("COUNTERFOIL_") || name == "CREDENTIALS_DIRECTORY" {
                command.env_remove(name);
            }
        }
        let output = command
            .args(words)
            .args(["--color", "never"])
            .current_dir(&self.folder)
            .env("COUNTERFOIL_KEY_FILE", self.path("flights.key"))
            .env("COUNTERFOIL_STATE_DIR", self.path("state"))
            .stdin(Stdio::null())
            .output()
            .map_err(|error| Error::host("run the program itself", self.program.display(), &error))?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        for line in text.lines() {
            say(&format!("  {line}"))?;
        }
        Ok(output)
    }

    fn ask(&self, question: &str, sql: &str) -> Result<()> {
        say(&format!("\n{question}"))?;
        self.show(&["flights.db", sql, "--format", "table"])
    }

    /// A byte in the middle of a page that a table needs.
    fn byte_of_a_table(&self) -> Result<u64> {
        let options = Options::path(self.path("flights.db")).key(Key::from_file(self.path("flights.key"))?);
        let inspection = Database::open(options.read_only(true))?.inspect()?;
        let full = |extent: &counterfoil::Extent| {
            matches!(extent.region, Region::Group(_)) && extent.live_pages == inspection.extent_pages
        };
        let number = inspection.extents.iter().rposition(full).ok_or_else(|| bug("no table fills an extent"))?;
        let pages = number as u64 * u64::from(inspection.extent_pages) + u64::from(inspection.extent_pages) / 2;
        Ok(pages * u64::from(inspection.page_bytes) + u64::from(inspection.page_bytes) / 2)
    }

    /// How often a text stands in a file.
    fn count(&self, name: &str, text: &str) -> Result<usize> {
        let path = self.path(name);
        let bytes = fs::read(&path).map_err(|error| Error::host("read the file", path.display(), &error))?;
        Ok(memchr::memmem::find_iter(&bytes, text.as_bytes()).count())
    }

    fn copy(&self, from: &str, to: &str) -> Result<()> {
        say(&format!("\n  $ cp {from} {to}"))?;
        let copied = fs::copy(self.path(from), self.path(to));
        copied.map_err(|error| Error::host("copy the file", from, &error))?;
        Ok(())
    }

    fn flip(&self, name: &str, at: u64) -> Result<()> {
        use std::os::unix::fs::FileExt;
        let path = self.path(name);
        let flipped = fs::OpenOptions::new().read(true).write(true).open(&path).and_then(|file| {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at)?;
            file.write_all_at(&[byte[0] ^ 1], at)
        });
        Ok(flipped.map_err(|error| Error::host("change the file", path.display(), &error))?)
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    Ok(fs::write(path, bytes).map_err(|error| Error::host("write the file", path.display(), &error))?)
}

/// A word as it would be typed.
fn shown(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./,=".contains(letter);
    if word.chars().all(plain) { word.to_owned() } else { format!("\"{word}\"") }
}

fn say(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(Failure::output)
}

fn went_wrong(words: &[&str], output: &Output) -> Failure {
    let code = output.status.code().unwrap_or(-1);
    bug(&format!("`{}` ended with exit code {code}", words.first().copied().unwrap_or_default())).into()
}

fn bug(what: &str) -> Error {
    Error::new(Kind::Bug, format!("the demo did not go as it should: {what}")).advise("please report it")
}
