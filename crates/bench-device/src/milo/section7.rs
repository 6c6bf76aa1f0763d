//! Sections 7.2, 7.4 and 7.5: queries at three sizes of what is fresh, reorganization, and what a row is written over its life.

use super::cost::{CALIBRATION, Cost};
use super::data::{Change, Data};
use super::figure7::{self, TABLES};
use super::paper::Database;
use super::table1::{self, Query};
use super::token::{Answer, Held, Left, Steps, Token};
use crate::Failure;

/// Rows of T0 that are fresh, of each million; what the geometric mean of ours over the paper's is to be.
const FRESH: [(u64, f64); 3] = [(0, 0.55), (10_000, 0.5), (100_000, 0.35)];
/// Deletes and as many updates, of each million.
const CHANGES: u64 = 3000;
/// What a query is to take at most, in milliseconds, and what those up to so many rows are to.
const LONGEST: f64 = 5500.0;
pub const FEW: (u64, f64) = (799, 80.0);

/// What a query took, and where.
pub struct Measured {
    pub name: &'static str,
    pub paper_rows: u64,
    pub rows: u64,
    pub theirs: Cost,
    pub ours: Cost,
    by: String,
}

/// What a reorganization took, or rows that were inserted.
pub struct Spent {
    pub theirs: Cost,
    pub ours: Cost,
}

/// What our engine writes for rows that come one by one, and for the VACUUM of all of them at the end.
pub struct Life {
    grown: Cost,
    reorganized: Cost,
}

/// All that is measured with a size of what is fresh.
pub struct Setting {
    pub fresh: u64,
    pub queries: Vec<Measured>,
    /// Of all fresh rows, and how many those are in all tables.
    pub grown: Spent,
    pub grown_rows: u64,
    pub reorganized: Spent,
    pub rows: u64,
}

/// Both databases and what they hold.
struct Pair {
    data: Data,
    database: Database,
    token: Token,
}

impl Pair {
    fn loaded(rows: u64, held: Held) -> Result<Self, Failure> {
        let data = Data::loaded(rows);
        Ok(Self { database: Database::reorganized(&data), data, token: Token::loaded(rows, held)? })
    }

    fn cost(&self) -> Spent {
        Spent { theirs: self.database.cost(), ours: self.token.cost() }
    }

    fn since(&self, before: &Spent) -> Spent {
        let Spent { theirs, ours } = self.cost();
        Spent { theirs: theirs.since(&before.theirs), ours: ours.since(&before.ours) }
    }

    /// Adds so many rows to T0, one by one, and to the others what belongs to them. How many those are.
    fn grow(&mut self, fresh: u64) -> Result<u64, Failure> {
        let mut grown = 0;
        for (table, known) in TABLES.iter().enumerate() {
            let count = known.rows(fresh).min(fresh);
            self.data.add(table, count);
            for _ in 0..count {
                self.database.insert(&self.data, table);
                self.token.insert(known.name)?;
            }
            grown += count;
        }
        Ok(grown)
    }

    fn wear(&mut self, changes: &[Change]) -> Result<(), Failure> {
        for change in changes {
            self.database.change(change, &self.data);
            self.data.change(change);
            self.token.wear(change)?;
        }
        Ok(())
    }

    /// Asks both, and holds both answers against looking at all rows.
    fn ask(&mut self, query: &Query) -> Result<Measured, Failure> {
        let truth = self.data.answer(query);
        let before = self.cost();
        if self.database.ask(query) != truth {
            return Err(format!("{}: the rebuilt design is wrong", query.name).into());
        }
        let Answer { rows: mut shown, by } = self.token.ask(query)?;
        let Spent { theirs, ours } = self.since(&before);
        shown.sort_unstable();
        if shown != self.data.shown(query, &truth) {
            let (ours, there) = (shown.len(), truth.len());
            return Err(format!("{}: our {ours} rows are not the {there} that there are", query.name).into());
        }
        let (Query { name, paper_rows, .. }, by) = (query, by.join(", "));
        Ok(Measured { name, paper_rows: *paper_rows, rows: truth.len() as u64, theirs, ours, by })
    }
}

/// Measures a setting: `fresh` of `rows` are inserted one by one, and worn if there are any.
fn measure(rows: u64, held: Held, fresh: u64) -> Result<Setting, Failure> {
    let mut pair = Pair::loaded(rows - fresh, held)?;
    let before = pair.cost();
    let grown_rows = pair.grow(fresh)?;
    let grown = pair.since(&before);
    let changes = if fresh > 0 { pair.data.changes(CHANGES * rows / figure7::ROWS) } else { Vec::new() };
    pair.wear(&changes)?;
    let queries: Result<Vec<Measured>, Failure> =
        table1::all(rows - fresh).iter().map(|query| pair.ask(query)).collect();
    let before = pair.cost();
    pair.database.reorganize(&pair.data, &changes);
    pair.token.reorganize()?;
    let reorganized = pair.since(&before);
    let all = (0..TABLES.len()).map(|table| pair.data.rows(table)).sum();
    Ok(Setting { fresh, queries: queries?, grown, grown_rows, reorganized, rows: all })
}

/// The sizes of what is fresh for a T0 of so many rows.
fn fresh_sizes(rows: u64) -> [u64; 3] {
    FRESH.map(|(fresh, _)| fresh * rows / figure7::ROWS)
}

/// All settings for a T0 of so many rows, side by side: each has parts of its own.
pub fn measured(rows: u64, held: Held) -> Result<Vec<Setting>, Failure> {
    std::thread::scope(|scope| {
        let measure = |fresh| scope.spawn(move || measure(rows, held, fresh).map_err(|failure| failure.to_string()));
        let threads: Vec<_> = fresh_sizes(rows).into_iter().map(measure).collect();
        threads.into_iter().map(joined).collect()
    })
}

/// What a thread ended with.
fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T, String>>) -> Result<T, Failure> {
    match thread.join() {
        Ok(ended) => ended.map_err(Failure::from),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Inserts all rows of a database one by one, with a commit each, and with what its maintenance then does.
fn live(rows: u64, held: Held) -> Result<Life, Failure> {
    let mut token = Token::grown(rows, held)?;
    let grown = token.cost();
    token.reorganize()?;
    Ok(Life { grown, reorganized: token.cost().since(&grown) })
}

/// Prints the tables for a T0 of so many rows, each as soon as it is there, and hands over what is in them.
pub fn print(rows: u64, held: Held) -> Result<Vec<Setting>, Failure> {
    std::thread::scope(|scope| {
        let life = scope.spawn(|| live(rows, held).map_err(|failure| failure.to_string()));
        let settings = measured(rows, held)?;
        settings.iter().zip(FRESH).for_each(|(setting, (_, goal))| queries(setting, goal));
        reorganizations(&settings);
        lives(&settings, &joined(life)?, rows);
        Ok(settings)
    })
}

/// A tidy database of ours to which rows have been added one by one, for a T0 of so many rows.
fn grown(rows: u64, fresh: u64, held: Held) -> Result<(Token, Data), Failure> {
    let mut token = Token::loaded(rows - fresh, held)?;
    let mut data = Data::loaded(rows - fresh);
    token.maintained()?;
    for (table, known) in TABLES.iter().enumerate() {
        let count = known.rows(fresh).min(fresh);
        data.add(table, count);
        (0..count).try_for_each(|_| token.insert(known.name))?;
    }
    Ok((token, data))
}

/// Prints section 7.5 without what VACUUM does about deletes and updates: all steps that were due by themselves since the last one, rows
/// worn as ever; and the merges of a VACUUM, no row deleted or updated, so that rows stay where they are.
pub fn print_maintained(rows: u64, held: Held) -> Result<(), Failure> {
    println!("\n#### 7.5: without a renewal of rows\n");
    println!(
        "| fresh rows in T0 | what | steps | minutes | times {CALIBRATION} | GB read | GB written | the longest step, ms | then: rows deleted, images updated, MB of both | then: runs of indexes, MB of them, entries in none | goal, of a million |"
    );
    println!("|{}", "---|".repeat(11));
    let goals = ["0.5 min, 0.06 GB", "0.75 min, 0.1 GB"];
    for (fresh, goal) in fresh_sizes(rows).into_iter().skip(1).zip(goals) {
        let (mut token, data) = grown(rows, fresh, held)?;
        data.changes(CHANGES * rows / figure7::ROWS).iter().try_for_each(|change| token.wear(change))?;
        let steps = token.maintained()?;
        maintained(fresh, "steps that were due", &steps, &token.left()?, goal);
        let (mut token, _) = grown(rows, fresh, held)?;
        token.maintained()?;
        let steps = token.merged()?;
        maintained(fresh, "a VACUUM's steps, nothing deleted or updated", &steps, &token.left()?, goal);
    }
    Ok(())
}

fn maintained(fresh: u64, what: &str, steps: &Steps, left: &Left, goal: &str) {
    let minutes = steps.milliseconds / 60_000.0;
    println!(
        "| {fresh} | {what} | {} | {minutes:.3} | {:.3} | {:.4} | {:.4} | {:.0} | {}, {}, {:.2} | {} of {}, {:.1}, {} | {goal} |",
        steps.count,
        minutes * CALIBRATION,
        steps.read_bytes as f64 / 1e9,
        steps.program_bytes as f64 / 1e9,
        steps.longest,
        left.deleted,
        left.updates,
        left.log_bytes as f64 / 1e6,
        left.runs,
        left.indexes,
        left.run_bytes as f64 / 1e6,
        left.fresh_entries
    );
}

fn queries(setting: &Setting, goal: f64) {
    println!("\n#### 7.4: {} fresh rows in T0\n", setting.fresh);
    println!(
        "| query | rows | in the paper, of a million | the paper's design, ms | its pages | ours, ms | our pages | ours over the paper's | by |"
    );
    println!("|{}", "---|".repeat(9));
    for query in &setting.queries {
        let (theirs, ours) = (query.theirs.milliseconds(), query.ours.milliseconds());
        println!(
            "| {} | {} | {} | {theirs:.1} | {} | {ours:.1} | {} | {:.2} | {} |",
            query.name,
            query.rows,
            query.paper_rows,
            query.theirs.meters.reads,
            query.ours.meters.reads,
            ours / theirs,
            query.by
        );
    }
    let ratio = |query: &Measured| query.ours.milliseconds() / query.theirs.milliseconds();
    let mean =
        (setting.queries.iter().map(|query| ratio(query).ln()).sum::<f64>() / setting.queries.len() as f64).exp();
    let slower = setting.queries.iter().filter(|query| ratio(query) > 1.0).count();
    let most = |few: bool| {
        let asked = setting.queries.iter().filter(|query| !few || query.paper_rows <= FEW.0);
        asked.map(|query| query.ours.milliseconds()).fold(0.0, f64::max)
    };
    println!(
        "\ngeometric mean {mean:.2} (goal {goal}: {}), {slower} of {} slower (goal 0); up to {} rows at most {:.0} ms (goal {}), all at most {:.0} ms (goal {LONGEST})",
        if mean <= goal { "reached" } else { "missed" },
        setting.queries.len(),
        FEW.0,
        most(true),
        FEW.1,
        most(false)
    );
}

fn reorganizations(settings: &[Setting]) {
    let stated = ["", "6.2 min, 0.5 GB", "7.7 min, 0.9 GB"];
    let goals = ["", "0.5 min, 0.06 GB", "0.75 min, 0.1 GB"];
    println!("\n#### 7.5: a reorganization\n");
    println!(
        "| fresh rows in T0 | by | minutes | times {CALIBRATION} | GB read | GB written | the paper says; goal, of a million |"
    );
    println!("|---|---|---|---|---|---|---|");
    for ((setting, stated), goal) in settings.iter().zip(stated).zip(goals) {
        let Spent { theirs, ours } = &setting.reorganized;
        for (by, cost, beside) in [("the paper's design, rebuilt", theirs, stated), ("ours, VACUUM", ours, goal)] {
            let minutes = cost.milliseconds() / 60_000.0;
            println!(
                "| {} | {by} | {minutes:.3} | {:.3} | {:.4} | {:.4} | {beside} |",
                setting.fresh,
                minutes * CALIBRATION,
                cost.meters.read_bytes as f64 / 1e9,
                cost.meters.program_bytes as f64 / 1e9
            );
        }
    }
}

/// Section 7.2: what is written for a row that is there from the first reorganization to the last.
fn lives(settings: &[Setting], life: &Life, rows: u64) {
    println!("\n#### 7.2: pages written for a row over its life\n");
    println!(
        "| fresh rows in T0 | by | for its insert | its share of a reorganization | reorganizations | all in all | the paper says; goal |"
    );
    println!("|---|---|---|---|---|---|---|");
    let beside = [("12 to 17", "2"), ("4 to 5", "1.6")];
    for (setting, (stated, goal)) in settings.iter().filter(|setting| setting.fresh > 0).zip(beside) {
        let times = rows / setting.fresh;
        for (by, grown, reorganized, beside) in [
            ("the paper's design, rebuilt", &setting.grown.theirs, &setting.reorganized.theirs, stated),
            ("ours, with a VACUUM as often", &setting.grown.ours, &setting.reorganized.ours, goal),
        ] {
            let insert = grown.meters.programs as f64 / setting.grown_rows as f64;
            let share = reorganized.meters.programs as f64 / setting.rows as f64;
            println!(
                "| {} | {by} | {insert:.2} | {share:.3} | {times} | {:.2} | {beside} |",
                setting.fresh,
                insert + share * times as f64
            );
        }
    }
    let all = settings.first().map_or(1, |setting| setting.rows) as f64;
    let [insert, share] = [life.grown, life.reorganized].map(|cost| cost.meters.programs as f64 / all);
    println!("| all {rows} | ours, maintained as rows come | {insert:.2} | | 0 | {insert:.2} | goal 1.6 to 2 |");
    println!(
        "| all {rows} | the same and a VACUUM at the end | {insert:.2} | {share:.3} | 1 | {:.2} | |",
        insert + share
    );
    let (each, erased) = (life.grown.milliseconds() / all, life.grown.meters.erases as f64 / all);
    println!(
        "\nall rows of all tables one by one: {each:.2} ms and {erased:.3} blocks erased a row, merges among them"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both engines are held against looking at all rows, with fresh rows, deletes and updates; what they took is counted.
    #[test]
    fn both_engines_answer_as_looking_at_all_rows_does() {
        let setting = measure(6000, Held::Answers, 600).expect("answers that agree");
        assert_eq!((setting.queries.len(), setting.fresh), (18, 600));
        let found: u64 = setting.queries.iter().map(|query| query.rows).sum();
        assert!(found > 1000, "{found} rows");
        let queries = setting.queries.iter().flat_map(|query| [query.theirs, query.ours]);
        assert!(queries.filter(|cost| cost.milliseconds() > 0.0).count() >= 34, "queries read");
        let Spent { theirs, ours } = setting.reorganized;
        assert!(theirs.meters.programs > 0 && ours.meters.programs > 0, "a reorganization writes");
    }

    /// Where nothing was deleted or updated, a VACUUM writes the runs of indexes anew and no rows.
    #[test]
    fn merges_leave_rows_where_they_are() {
        let (mut token, _) = grown(20_000, 2000, Held::Answers).expect("a database");
        token.maintained().expect("steps that are due");
        let steps = token.merged().expect("a VACUUM");
        let left = token.left().expect("what is left");
        let image_bytes = 160 * 20_000;
        assert!(steps.count > 0 && left.runs <= left.indexes && (left.deleted, left.updates) == (0, 0));
        assert!(steps.program_bytes < image_bytes, "{} bytes", steps.program_bytes);
    }
}
