//! `backup` and `restore`.

use std::time::Duration;

use counterfoil::{CloudAddress, Database, Error, Kind, Place};
use indicatif::{ProgressBar, ProgressStyle};

use crate::arguments::{Backup, Restore};
use crate::context::Context;
use crate::failure::Result;
use crate::terminal::{self, Unfinished};
use crate::verify;

/// A bar on a terminal for what is done page by page.
pub struct Bar(ProgressBar);

impl Bar {
    pub fn begin(doing: &str) -> Self {
        let bar = if terminal::shows_progress() { ProgressBar::new(1) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {percent:>3} % {eta}") {
            bar.set_style(style);
        }
        bar.set_message(doing.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// Shows how far it has come, and lets it go on.
    pub fn set(&self, done: u64, total: u64) -> bool {
        self.0.set_length(total.max(1));
        self.0.set_position(done);
        true
    }

    /// Says what is being done now.
    pub fn say(&self, doing: &str) {
        self.0.set_message(doing.to_owned());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// What is in the making beside a file, under the name that says so: an interruption takes it away.
pub fn on_its_way(db: &str) -> Option<Unfinished> {
    match Place::parse(db) {
        Place::File(path) => {
            let mut name = path.file_name()?.to_owned();
            name.push(".creating");
            Some(Unfinished::at(&path.with_file_name(name)))
        }
        _ => None,
    }
}

pub fn backup(context: &Context, arguments: &Backup) -> Result<()> {
    terminal::when_interrupted("there is no backup");
    let database = context.open_to_read(&arguments.db)?;
    let _unfinished = on_its_way(&arguments.file.to_string_lossy());
    let bar = Bar::begin("copying");
    database.backup(&arguments.file, &mut |done, total| bar.set(done, total))?;
    drop(bar);
    let file = arguments.file.display();
    // Whoever hears of it when it is to be restored hears too late.
    terminal::when_interrupted("the backup is there, and not all of it was checked");
    let damage = damage(&database, arguments)?;
    if damage.is_empty() {
        terminal::done(format_args!("{file} holds a backup, and opens with the same keys"));
        return Ok(());
    }
    terminal::warning(format_args!(
        "{file} holds a backup of a database that is damaged: restore will refuse it. Keep the one before; salvage writes what is whole"
    ));
    verify::tell(damage)
}

/// What is wrong in a backup; not that its database was put back, which it says itself.
fn damage(database: &Database, arguments: &Backup) -> Result<Vec<Error>> {
    let bar = Bar::begin("checking");
    let checked = database.verify_backup(&arguments.file, &mut |what, done, total| {
        bar.say(&format!("checking {what}"));
        bar.set(done, total);
    })?;
    drop(bar);
    Ok(checked.problems.into_iter().filter(|error| error.kind() != Kind::RolledBack).collect())
}

pub fn restore(context: &Context, arguments: &Restore) -> Result<()> {
    let (file, db) = match (&arguments.from, &arguments.places[..]) {
        (Some(url), [db]) => return restore_from_cloud(context, url, db, arguments),
        (None, [file, db]) => (file, db),
        (Some(_), _) => return Err(misuse("--from URL takes the place of the backup").advise(FROM_CLOUD).into()),
        (None, _) => return Err(misuse("where is the database to be?").advise("counterfoil restore FILE DB").into()),
    };
    let options = context.options(db)?.danger_erase(arguments.erase);
    let _unfinished = on_its_way(db);
    let bar = Bar::begin("checking and copying");
    Database::restore(file, options, arguments.as_new, &mut |done, total| bar.set(done, total))?;
    drop(bar);
    let copies = if arguments.as_new {
        "a database of its own"
    } else {
        "where its counter is, every other copy is refused now"
    };
    terminal::done(format_args!("{db} is restored: {copies}"));
    Ok(())
}

const FROM_CLOUD: &str = "counterfoil restore --from URL DB --key-file FOLDER-OF-SHARES";

fn restore_from_cloud(context: &Context, url: &str, db: &str, arguments: &Restore) -> Result<()> {
    let secret_file = arguments.cloud_secret_file.as_ref().map(|file| file.to_string_lossy().into_owned());
    let from = CloudAddress { url: url.to_owned(), secret_file };
    let options = context.options(db)?;
    let _unfinished = on_its_way(db);
    let bar = Bar::begin("asking clouds");
    let tables = Database::restore_from_cloud(&from, options, &mut |done, total| bar.set(done, total))?;
    drop(bar);
    for table in &tables {
        terminal::done(format_args!("table {}: {} rows, which stay at its clouds", table.name, table.rows));
    }
    terminal::done(format_args!("{db} is restored, and opens with the keys it had; REPAIR TABLE compares its clouds"));
    Ok(())
}

fn misuse(text: &'static str) -> Error {
    Error::new(Kind::Misuse, text)
}
