//! One who holds the file moves pages of series about: of one tree, of two tables, of two databases with one key, of earlier and
//! later. A question is answered as ever, or with an error that says what is wrong and where; never with another answer.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use counterfoil::arrow::array::RecordBatch;
use counterfoil::arrow::util::display::array_value_to_string;
use counterfoil::{Counter, Database, Error, Key, Kind, Options};

const PAGE_BYTES: usize = 4096;
/// What is done to an image: pages, and what they become.
type Attack = (&'static str, Vec<(usize, Vec<u8>)>);

/// What is asked: all rows, from summaries, newest values, a time long ago, both tables together.
const QUESTIONS: [&str; 6] = [
    "SELECT sensor, ts, value, note FROM s ORDER BY sensor, ts",
    "SELECT sensor, ts, value, note FROM t ORDER BY sensor, ts",
    "SELECT sensor, count(*), sum(value), max(ts) FROM s GROUP BY sensor ORDER BY sensor",
    "SELECT sensor, date_bin('10 minutes', ts) AS bin, sum(value), last_value(note ORDER BY ts) FROM t GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT sensor, value, sample_ts FROM value_at((SELECT sensor, ts, value FROM s), '1970-01-01 00:40:00', by => sensor) ORDER BY 1",
    "SELECT count(*), sum(s.value - t.value) FROM s JOIN t ON s.sensor = t.sensor AND s.ts = t.ts",
];

fn options(folder: &Path) -> Options {
    Options::path(folder.join("db")).key(Key::bytes(&[7; 32])).counter(Counter::File(folder.join("state")))
}

/// Rows of a table from some second on; other numbers in every database and table.
fn fill(table: &str, from: u32, count: u32, salt: u32) -> String {
    format!(
        "INSERT INTO {table} SELECT 's' || i % 2, to_timestamp({from} + i), ((i * 7919 + {salt}) % 40009)::DOUBLE PRECISION / 7,
             'note ' || (i * {salt}) % 1009 FROM generate_series(0, {count} - 1) AS g(i)"
    )
}

/// A database with two series tables of one form, and what its file was half way.
fn lived(folder: &Path, salt: u32) -> Result<Vec<u8>, Error> {
    let columns = "(sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, note TEXT, PRIMARY KEY (sensor, ts))
         WITH (engine = 'series', summaries = 'value')";
    let database = Database::create(options(folder))?;
    let create = format!("CREATE TABLE s {columns}; CREATE TABLE t {columns}");
    let first = [create, fill("s", 0, 4000, 1 + salt), fill("t", 0, 4000, 2 + salt)];
    database.connect()?.run(&first.join("; "), &[])?;
    database.close()?;
    let before = std::fs::read(folder.join("db")).expect("reads");
    let database = Database::open(options(folder))?;
    // Newer points, and late ones that make leaves be written anew.
    let second = [fill("s", 4000, 1500, 3 + salt), fill("t", 4000, 1500, 4 + salt), fill("s", 1000, 300, 5 + salt)];
    database.connect()?.run(&second.join("; "), &[])?;
    database.connect()?.run("DELETE FROM t WHERE ts >= '1970-01-01 00:20:00' AND ts < '1970-01-01 00:25:00'", &[])?;
    database.close()?;
    Ok(before)
}

fn rows(batches: impl Iterator<Item = Result<RecordBatch, Error>>) -> Result<String, Error> {
    let mut rows = String::new();
    for batch in batches {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            for column in batch.columns() {
                rows.push_str(&array_value_to_string(column, row).expect("shows"));
                rows.push('|');
            }
            rows.push('\n');
        }
    }
    Ok(rows)
}

/// The answers to all questions, each by itself.
fn answers(folder: &Path) -> Result<Vec<Result<String, Error>>, Error> {
    let database = Database::open(options(folder))?;
    let ask = |question: &&str| rows(database.connect()?.query(question, &[])?);
    Ok(QUESTIONS.iter().map(ask).collect())
}

/// A database whose file is changed and put back.
struct Victim<'a> {
    folder: &'a Path,
    bytes: Vec<u8>,
    file: File,
    wanted: Vec<String>,
    /// The kinds of errors that were seen, and how many questions were answered with them.
    told: BTreeSet<String>,
    refused: usize,
    answered: usize,
}

impl Victim<'_> {
    fn page(&self, page: usize) -> &[u8] {
        &self.bytes[page * PAGE_BYTES..(page + 1) * PAGE_BYTES]
    }

    /// Writes pages, asks, and puts back what was there.
    fn attack(&mut self, what: &str, pages: &[(usize, &[u8])]) {
        let write =
            |page: usize, bytes: &[u8]| self.file.write_all_at(bytes, (page * PAGE_BYTES) as u64).expect("written");
        pages.iter().for_each(|(page, bytes)| write(*page, bytes));
        let found = answers(self.folder);
        pages.iter().for_each(|(page, _)| write(*page, self.page(*page)));
        let places: Vec<usize> = pages.iter().map(|(page, _)| *page).collect();
        self.judge(&format!("{what}, pages {places:?}"), found);
    }

    fn judge(&mut self, what: &str, found: Result<Vec<Result<String, Error>>, Error>) {
        let found = match found {
            Ok(found) => found,
            Err(error) => return self.refusal(what, &error),
        };
        for (at, answer) in found.into_iter().enumerate() {
            match answer {
                Ok(rows) => {
                    assert!(rows == self.wanted[at], "{what}: another answer to {}", QUESTIONS[at]);
                    self.answered += 1;
                }
                Err(error) => self.refusal(what, &error),
            }
        }
    }

    /// What is wrong and where: a page, a part, the file or its counter.
    fn refusal(&mut self, what: &str, error: &Error) {
        let told = error.to_string();
        let kinds = [Kind::Tampered, Kind::Corrupt, Kind::RolledBack, Kind::CounterLost];
        assert!(kinds.contains(&error.kind()), "{what}: {:?}, {told}", error.kind());
        let names = ["page", "image", "extent", "commit", "header", "table", "checkpoint", "file"];
        assert!(names.iter().any(|name| told.contains(name)), "{what}: {told}");
        self.refused += 1;
        let letters = told.split(|letter: char| !letter.is_alphabetic()).filter(|word| !word.is_empty());
        self.told.insert(letters.take(12).collect::<Vec<_>>().join(" "));
    }
}

#[test]
fn pages_of_trees_that_are_moved_about_are_told_or_not_needed() {
    let (own, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let before = lived(own.path(), 0).expect("lives");
    lived(other.path(), 100).expect("lives");
    let foreign = std::fs::read(other.path().join("db")).expect("reads");
    let path = own.path().join("db");
    let bytes = std::fs::read(&path).expect("reads");
    let wanted: Vec<String> =
        answers(own.path()).expect("opens").into_iter().map(|rows| rows.expect("answers")).collect();
    assert!(wanted.iter().all(|rows| !rows.is_empty()));
    let file = File::options().write(true).open(&path).expect("opens");
    let mut victim = Victim { folder: own.path(), bytes, file, wanted, told: BTreeSet::new(), refused: 0, answered: 0 };
    let held: Vec<usize> =
        (0..victim.bytes.len() / PAGE_BYTES).filter(|page| victim.page(*page).iter().any(|byte| *byte != 0)).collect();
    for (at, page) in held.iter().copied().enumerate() {
        let (next, far) = (held[(at + 1) % held.len()], held[(at * 31 + 7) % held.len()]);
        let of = |image: &[u8]| image.get(page * PAGE_BYTES..(page + 1) * PAGE_BYTES).map(<[u8]>::to_vec);
        let (this, neighbour, distant) =
            (victim.page(page).to_vec(), victim.page(next).to_vec(), victim.page(far).to_vec());
        let mut flipped = this.clone();
        flipped[(at * 1237) % PAGE_BYTES] ^= 1 << (at % 8);
        let attacks: [Attack; 6] = [
            ("two neighbours change places", vec![(page, neighbour), (next, this.clone())]),
            ("two pages far apart change places", vec![(page, distant.clone()), (far, this)]),
            ("another page copied over it", vec![(page, distant)]),
            ("what stood there earlier", of(&before).map(|earlier| (page, earlier)).into_iter().collect()),
            ("what another database has there", of(&foreign).map(|other| (page, other)).into_iter().collect()),
            ("a bit", vec![(page, flipped)]),
        ];
        for (what, pages) in &attacks {
            victim.attack(what, &pages.iter().map(|(page, bytes)| (*page, bytes.as_slice())).collect::<Vec<_>>());
        }
    }
    eprintln!(
        "{} pages, {} questions answered, {} refused: {:#?}",
        held.len(),
        victim.answered,
        victim.refused,
        victim.told
    );
    assert!(victim.refused > held.len() && victim.answered > held.len());
}

#[test]
fn a_file_cut_short_or_made_longer_is_told_or_nothing_of_it_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    lived(folder.path(), 0).expect("lives");
    let path = folder.path().join("db");
    let bytes = std::fs::read(&path).expect("reads");
    let wanted: Vec<String> =
        answers(folder.path()).expect("opens").into_iter().map(|rows| rows.expect("answers")).collect();
    let file = File::options().write(true).open(&path).expect("opens");
    let mut victim =
        Victim { folder: folder.path(), bytes, file, wanted, told: BTreeSet::new(), refused: 0, answered: 0 };
    let pages = victim.bytes.len() / PAGE_BYTES;
    let steps = if std::env::var_os("COUNTERFOIL_PROOF").is_some() { pages } else { 40 };
    for step in 0..steps {
        let page = pages * step / steps;
        let long = page * PAGE_BYTES + [0, 1, 2048][step % 3];
        victim.file.set_len(long as u64).expect("cut");
        let found = answers(victim.folder);
        victim.file.write_all_at(&victim.bytes, 0).expect("put back");
        if page < 2 {
            // Without its header it is no database at all.
            assert!(found.is_err(), "{long} bytes");
            continue;
        }
        victim.judge(&format!("{long} bytes of the file"), found);
    }
    for more in [vec![0; 1], vec![0xA5; PAGE_BYTES], victim.bytes.clone()] {
        victim.file.write_all_at(&more, victim.bytes.len() as u64).expect("longer");
        let found = answers(victim.folder);
        victim.file.set_len(victim.bytes.len() as u64).expect("put back");
        victim.judge(&format!("{} bytes more", more.len()), found);
    }
    eprintln!("{} questions answered, {} refused: {:#?}", victim.answered, victim.refused, victim.told);
    assert!(victim.refused > 0 && victim.answered > 0);
}
