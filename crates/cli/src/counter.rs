//! `counter`: the one-way counter beside the file.

use std::io::{self, Write};

use counterfoil::{Counter, CounterInfo, utc};

use crate::arguments::{CounterAction, CounterCommand};
use crate::context::Context;
use crate::failure::{Failure, Result, misuse};
use crate::{image, terminal};

pub fn run(context: &Context, arguments: &CounterCommand) -> Result<()> {
    match &arguments.action {
        CounterAction::Show { db } => {
            let info = match image::is_one(db)? {
                true => image::open(context, db)?.show_counter()?,
                false => Counter::show(context.options(db)?.read_only(true))?,
            };
            show(&info).map_err(Failure::output)?;
            info.verdict.map_or(Ok(()), |verdict| Err(verdict.at(db).into()))
        }
        CounterAction::Adopt { db, yes } => {
            let question = format!("Take {db} as it is now for the newest? Every other copy is refused from then on.");
            agree(*yes, &question)?;
            if image::is_one(db)? {
                return adopt_image(context, db);
            }
            Counter::adopt(context.options(db)?)?;
            terminal::done("the counter is bound to this file; an incident tells of it");
            Ok(())
        }
        CounterAction::Forget { db, yes } => {
            let question = format!("Forget the counter of {db}? An older copy put back is not noticed here then.");
            agree(*yes, &question)?;
            match image::is_one(db)? {
                true => image::open(context, db)?.forget_counter()?,
                false => Counter::forget(context.options(db)?)?,
            }
            terminal::done("the counter is forgotten");
            Ok(())
        }
    }
}

fn adopt_image(context: &Context, db: &str) -> Result<()> {
    let counted = image::open(context, db)?.adopt_counter()?;
    terminal::done("the counter is bound to this image");
    terminal::note(
        "write to no other copy from now on, on the device neither: two that go on from one image share keys",
    );
    image::tell_of_counter(counted);
    Ok(())
}

fn agree(yes: bool, question: &str) -> Result<()> {
    if yes || terminal::confirm(question)? { Ok(()) } else { Err(misuse("nothing was done").into()) }
}

fn show(info: &CounterInfo) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "kind     {}", info.kind)?;
    if let Some(path) = &info.path {
        writeln!(stdout, "{:8} {}", info.kind, path.display())?;
    }
    if let Some(value) = info.value {
        writeln!(stdout, "value    {value}")?;
    }
    if let Some(moved) = info.moved {
        writeln!(stdout, "moved    {}", utc(moved))?;
    }
    if let Some(seen) = &info.seen_at {
        writeln!(stdout, "seen at  {seen}")?;
    }
    writeln!(stdout, "image    {}", info.image)?;
    let verdict = match (&info.verdict, info.kind) {
        (Some(error), _) => error.to_string(),
        (None, "none") => "an older copy put back is not noticed".into(),
        (None, _) => "this is the newest image".into(),
    };
    writeln!(stdout, "verdict  {verdict}")?;
    stdout.flush()
}
