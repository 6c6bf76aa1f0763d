//! `salvage`: every row that authenticates, and a list of what is missing.

use std::io::{BufWriter, Write};
use std::path::Path;

use counterfoil::{Error, Missing, Salvage as Salvaged};

use crate::arguments::{Format, Salvage};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::output::Style;
use crate::{private, terminal};

pub fn run(context: &Context, arguments: &Salvage) -> Result<()> {
    let salvaged = Salvaged::open(context.options(&arguments.db)?)?;
    let folder = &arguments.dir;
    std::fs::create_dir(folder).map_err(|error| Error::host("make the folder", folder.display(), &error))?;
    let mut report = String::new();
    for note in salvaged.doubts.iter().chain(&salvaged.notes) {
        terminal::warning(note);
        report.push_str(&format!("{note}\n"));
    }
    let mut lost = !salvaged.notes.is_empty();
    let mut rows = 0;
    let names: Vec<String> = salvaged.tables().map(str::to_owned).collect();
    for (index, name) in names.iter().enumerate() {
        match table(&salvaged, index, name, folder) {
            Ok((count, missing)) => {
                rows += count;
                report.push_str(&format!("table {name}: {count} rows saved\n"));
                lost |= !missing.rows.is_empty() || !missing.notes.is_empty();
                describe(&mut report, &missing);
            }
            Err(Failure::Error(error)) if error.exit_code() == 3 => {
                lost = true;
                report.push_str(&format!("table {name}: nothing saved: {error}\n"));
            }
            Err(other) => return Err(other),
        }
    }
    let records = salvaged.records();
    if !records.is_empty() {
        save_records(&records, &folder.join("records"))?;
        report.push_str(&format!("records: {} saved\n", records.len()));
    }
    let verdict = match (lost, salvaged.doubts.is_empty()) {
        (true, _) => "something is missing",
        (false, true) => "nothing is missing",
        // An older copy is whole as far as it goes.
        (false, false) => "nothing is missing of this image, which may not be the newest",
    };
    report.push_str(verdict);
    report.push_str(if lost { ": see above\n" } else { "\n" });
    let path = folder.join("missing.txt");
    private::write(&path, report)?;
    terminal::done(format_args!("{} saved; {verdict}: see {}", terminal::counted(rows, "row"), path.display()));
    Ok(())
}

fn table(salvaged: &Salvaged, index: usize, name: &str, folder: &Path) -> Result<(u64, Missing)> {
    let plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter));
    let file_name = if plain { format!("{name}.csv") } else { format!("table-{index}.csv") };
    let path = folder.join(file_name);
    let file = private::create(&path)?;
    let style = Style { format: Format::Csv, null: None, header: true, delimiter: b',' };
    let mut writer = style.begin(&salvaged.schema(index), Box::new(BufWriter::new(file)))?;
    let mut count = 0;
    let missing = salvaged.read::<Failure>(index, &mut |batch| {
        count += batch.num_rows() as u64;
        writer.batch(&batch).map_err(|failure| failure.of_file(&path))
    })?;
    writer.finish().map_err(|failure| failure.of_file(&path))?;
    Ok((count, missing))
}

fn describe(report: &mut String, missing: &Missing) {
    for (from, to) in &missing.rows {
        report.push_str(&format!("  rows {from} to {} are missing\n", to.saturating_sub(1)));
    }
    for note in &missing.notes {
        report.push_str(&format!("  {note}\n"));
    }
}

fn save_records(records: &[(Vec<u8>, std::sync::Arc<[u8]>)], folder: &Path) -> Result<()> {
    let host = |path: &Path, error: std::io::Error| Error::host("write the file", path.display(), &error);
    std::fs::create_dir(folder).map_err(|error| host(folder, error))?;
    let path = folder.join("names.jsonl");
    let mut names = private::create(&path)?;
    for (number, (name, value)) in records.iter().enumerate() {
        let path = folder.join(number.to_string());
        private::write(&path, value)?;
        let name = serde_json::to_string(&String::from_utf8_lossy(name)).unwrap_or_default();
        writeln!(names, "{{\"file\":\"{number}\",\"name\":{name}}}").map_err(|error| host(&path, error))?;
    }
    Ok(())
}
