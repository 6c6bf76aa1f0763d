//! Random tables that reference each other, random changes, and random queries along their foreign keys: the same rows as in SQLite.

use counterfoil::Options;

use super::cell::{Ours, Peer, Rows, Sqlite, difference};
use super::scripts::Dice;

/// A table that was made up.
struct Table {
    name: String,
    /// The columns of its primary key.
    key: Vec<String>,
    references: Vec<Reference>,
    /// Keys that its rows have; some may be gone.
    keys: u64,
    /// No key is greater, nor was.
    greatest: u64,
}

/// A foreign key.
struct Reference {
    columns: Vec<String>,
    parent: usize,
    enforced: bool,
}

impl Table {
    /// The first tables reference nothing, later ones the one before and others.
    fn new(dice: &mut Dice, number: usize, tables: &[Table]) -> Table {
        let key = match dice.below(3) {
            0 => vec!["k".into(), "l".into()],
            _ => vec!["k".to_owned()],
        };
        let mut references = Vec::new();
        if number > 0 {
            for place in 0..1 + dice.below(3) {
                // Mostly the one before, so that paths become long; two references to one table now and then.
                let parent = if place == 0 { number - 1 } else { dice.below(number as u64) as usize };
                let columns = (0..tables[parent].key.len()).map(|part| format!("r{place}{part}")).collect();
                references.push(Reference { columns, parent, enforced: dice.below(2) == 0 });
            }
        }
        Table { name: format!("t{number}"), key, references, keys: 0, greatest: 0 }
    }

    /// CREATE TABLE; SQLite is not told of what nobody enforces.
    fn create(&self, dice: &mut Dice, tables: &[Table], ours: bool) -> String {
        let mut parts: Vec<String> = self.key.iter().map(|column| format!("{column} INTEGER NOT NULL")).collect();
        let referencing = self.references.iter().flat_map(|reference| &reference.columns);
        parts.extend(referencing.map(|column| format!("{column} INTEGER")));
        parts.extend(OTHERS.iter().map(|(column, kind)| format!("{column} {kind}")));
        parts.push(format!("PRIMARY KEY ({})", self.key.join(", ")));
        for reference in &self.references {
            let action = dice.pick(&["", " ON DELETE CASCADE", " ON DELETE SET NULL", " ON UPDATE CASCADE"]);
            let parent = &tables[reference.parent];
            let (columns, key) = (reference.columns.join(", "), parent.key.join(", "));
            let text = format!("FOREIGN KEY ({columns}) REFERENCES {} ({key})", parent.name);
            match reference.enforced {
                true => parts.push(format!("{text}{action}")),
                false if ours => parts.push(format!("{text} NOT ENFORCED")),
                false => {}
            }
        }
        format!("CREATE TABLE {} ({})", self.name, parts.join(", "))
    }

    /// Those that are integers.
    fn integers(&self) -> Vec<String> {
        let referencing = self.references.iter().flat_map(|reference| reference.columns.iter().cloned());
        self.key.iter().cloned().chain(referencing).chain(["a".into()]).collect()
    }

    fn columns(&self) -> Vec<String> {
        let others = OTHERS[1..].iter().map(|(column, _)| (*column).to_owned());
        self.integers().into_iter().chain(others).collect()
    }
}

/// The columns behind keys and references, `a` an integer and the others none.
const OTHERS: [(&str, &str); 7] = [
    ("a", "INTEGER"),
    ("b", "TEXT"),
    ("c", "NUMERIC(9,2)"),
    ("d", "DOUBLE PRECISION"),
    ("e", "DATE"),
    ("f", "BOOLEAN"),
    ("g", "VARCHAR(12)"),
];

/// The parts of the key numbered so.
fn key_parts(number: u64, parts: usize) -> Vec<String> {
    match parts {
        1 => vec![number.to_string()],
        _ => vec![(number / 7).to_string(), (number % 7).to_string()],
    }
}

fn reference_to(dice: &mut Dice, parent: &Table, enforced: bool) -> Vec<String> {
    if dice.below(9) == 0 || (enforced && parent.keys == 0) {
        let mut parts = key_parts(0, parent.key.len());
        // One part that is NULL is enough to reference nothing.
        parts[0] = "NULL".into();
        return parts;
    }
    // Where nobody enforces it, some that are not there, or not yet.
    let keys = if enforced { parent.keys } else { parent.keys + 6 };
    key_parts(dice.below(keys), parent.key.len())
}

fn value(dice: &mut Dice) -> String {
    if dice.below(9) == 0 { "NULL".into() } else { dice.below(40).to_string() }
}

fn text(dice: &mut Dice) -> String {
    if dice.below(9) == 0 {
        "NULL".into()
    } else {
        format!("'{}{}'", dice.pick(&["ab", "abc", "b", "Ä"]), dice.below(9))
    }
}

/// Numbers whose sums are exact.
fn quarters(dice: &mut Dice) -> String {
    let quarters = dice.below(160);
    if dice.below(9) == 0 { "NULL".into() } else { format!("{}.{:02}", quarters / 4, quarters % 4 * 25) }
}

fn date(dice: &mut Dice) -> String {
    if dice.below(9) == 0 { "NULL".into() } else { format!("'2013-0{}-{:02}'", 1 + dice.below(3), 1 + dice.below(28)) }
}

fn truth(dice: &mut Dice) -> String {
    (dice.pick(&["NULL", "TRUE", "TRUE", "FALSE"])).into()
}

fn insert(dice: &mut Dice, tables: &mut [Table], number: usize) -> String {
    let rows = 1 + dice.below(30);
    let mut texts = Vec::new();
    for _ in 0..rows {
        let table = &tables[number];
        let mut values = key_parts(table.keys, table.key.len());
        for reference in &table.references {
            values.extend(reference_to(dice, &tables[reference.parent], reference.enforced));
        }
        values.extend([value(dice), text(dice)]);
        values.extend([quarters(dice), quarters(dice), date(dice), truth(dice), text(dice)]);
        texts.push(format!("({})", values.join(", ")));
        tables[number].keys += 1;
    }
    format!("INSERT INTO {} VALUES {}", tables[number].name, texts.join(", "))
}

fn change(dice: &mut Dice, tables: &mut [Table]) -> String {
    let number = dice.below(tables.len() as u64) as usize;
    let table = &tables[number];
    let some = test(dice, table, &table.name);
    match dice.below(8) {
        0..4 => insert(dice, tables, number),
        4 => format!("DELETE FROM {} WHERE {some} AND a < 12", table.name),
        5 => {
            let set = match dice.below(3) {
                0 => format!("a = {}, b = {}", value(dice), text(dice)),
                1 => format!("c = c + 1.25, e = {}, g = {}", date(dice), text(dice)),
                _ => format!("d = {}, f = {}", quarters(dice), truth(dice)),
            };
            format!("UPDATE {} SET {set} WHERE {some}", table.name)
        }
        6 => {
            // To a key that nobody has, or one that somebody references already: behind all others, since SQLite refuses a key that
            // another row has in the middle of the statement and not at its end.
            let by = table.greatest.max(table.keys) + dice.below(9);
            let (key, name) = (table.key[0].clone(), table.name.clone());
            tables[number].greatest = 2 * by;
            format!("UPDATE {name} SET {key} = {key} + {by} WHERE {some} AND a > 30")
        }
        _ => match table.references.is_empty() {
            true => insert(dice, tables, number),
            false => {
                let reference = &table.references[dice.below(table.references.len() as u64) as usize];
                let to = reference_to(dice, &tables[reference.parent], reference.enforced);
                let set = reference.columns.iter().zip(to).map(|(column, to)| format!("{column} = {to}"));
                format!("UPDATE {} SET {} WHERE {some}", table.name, set.collect::<Vec<_>>().join(", "))
            }
        },
    }
}

/// A condition on the rows of one table.
fn test(dice: &mut Dice, table: &Table, name: &str) -> String {
    if dice.below(4) == 0 {
        return test_of_others(dice, name);
    }
    let columns = table.integers();
    let column = &columns[dice.below(columns.len() as u64) as usize];
    let number = dice.below(40);
    match dice.below(13) {
        9 => format!("NOT ({name}.{column} > {number} OR {name}.b = {})", text(dice)),
        10 => format!("{name}.{column} NOT BETWEEN {} AND {number}", dice.below(5)),
        11 => {
            let other = if dice.below(3) == 0 { "NULL".into() } else { dice.below(40).to_string() };
            format!("{name}.{column} NOT IN ({number}, {other})")
        }
        12 => format!("({name}.b NOT LIKE 'ab{}%' OR {name}.{column} IS NOT NULL)", dice.below(9)),
        0 => format!("{name}.{column} IS NULL"),
        1 => format!("{name}.{column} BETWEEN {number} AND {}", number + dice.below(5)),
        2 => format!("{name}.{column} IN ({number}, {}, {})", dice.below(40), dice.below(40)),
        3 => format!("{name}.b LIKE 'ab{}%'", dice.below(9)),
        4 => format!("{name}.b = {}", text(dice)),
        5 => format!("({name}.a = {number} OR {name}.{column} < {})", dice.below(6)),
        6 => format!("{name}.{column} > {number} AND {name}.b IS NOT NULL"),
        _ => format!("{name}.{column} = {number}"),
    }
}

/// One on a column that is no integer.
fn test_of_others(dice: &mut Dice, name: &str) -> String {
    let column = dice.pick(&["c", "d"]);
    match dice.below(10) {
        0 => format!("{name}.{column} = {}", quarters(dice)),
        1 => format!("{name}.{column} > {}", dice.below(40)),
        2 => format!("{name}.{column} BETWEEN {}.5 AND {}", dice.below(9), dice.below(40)),
        3 => format!("{name}.e = {}", date(dice)),
        4 => format!("{name}.e >= {} AND {name}.e < '2013-03-01'", date(dice)),
        5 => format!("{name}.e IN ({}, {}, {})", date(dice), date(dice), date(dice)),
        6 => format!("{name}.f"),
        7 => format!("(NOT {name}.f OR {name}.g < {})", text(dice)),
        8 => format!("{name}.g LIKE 'ab{}%'", dice.below(9)),
        _ => format!("{name}.a * 2 + 1 > {}", dice.below(80)),
    }
}

/// Alternatives of any of the tables, most of which name few rows each.
fn alternatives(dice: &mut Dice, tables: &[Table], joined: &[usize]) -> String {
    let one = |dice: &mut Dice| {
        let place = dice.below(joined.len() as u64) as usize;
        let table = &tables[joined[place]];
        match dice.below(4) {
            0 => test(dice, table, &format!("j{place}")),
            1 => format!("j{place}.a = {} AND {}", dice.below(40), test(dice, table, &format!("j{place}"))),
            2 => format!("j{place}.{} = {}", table.key[0], dice.below(table.keys.max(1))),
            _ => format!("j{place}.b = {}", text(dice)),
        }
    };
    let any: Vec<String> = (0..2 + dice.below(2)).map(|_| format!("({})", one(dice))).collect();
    format!("({})", any.join(" OR "))
}

/// A query over a tree of tables, as it is asked on both sides.
fn query(dice: &mut Dice, tables: &[Table]) -> String {
    let mut joined = vec![dice.below(tables.len() as u64) as usize];
    if dice.below(3) > 0 {
        joined[0] = tables.len() - 1 - dice.below(2) as usize;
    }
    let mut from = format!("{} AS j0", tables[joined[0]].name);
    for _ in 0..dice.below(5) {
        let child = dice.below(joined.len() as u64) as usize;
        let table = &tables[joined[child]];
        if table.references.is_empty() {
            continue;
        }
        let reference = &table.references[dice.below(table.references.len() as u64) as usize];
        let (parent, number) = (&tables[reference.parent], joined.len());
        let equal = |(own, key): (&String, &String)| match dice.below(2) {
            0 => format!("j{child}.{own} = j{number}.{key}"),
            _ => format!("j{number}.{key} = j{child}.{own}"),
        };
        let mut pairs: Vec<String> = reference.columns.iter().zip(&parent.key).map(equal).collect();
        match dice.below(12) {
            // Something else than the key says, or less.
            0 => pairs.push(format!("j{number}.a = j{child}.a")),
            1 if pairs.len() > 1 => drop(pairs.pop()),
            2 => pairs[0] = format!("j{child}.a = j{number}.{}", parent.key[0]),
            3 => pairs.push(format!("j{number}.a < j{child}.a + 10")),
            _ => {}
        }
        let kind = if dice.below(10) == 0 { "LEFT JOIN" } else { "JOIN" };
        from.push_str(&format!(" {kind} {} AS j{number} ON {}", parent.name, pairs.join(" AND ")));
        joined.push(reference.parent);
    }
    let mut tests = Vec::new();
    for _ in 0..1 + dice.below(3) {
        let place = dice.below(joined.len() as u64) as usize;
        tests.push(test(dice, &tables[joined[place]], &format!("j{place}")));
    }
    if dice.below(3) == 0 {
        tests.push(alternatives(dice, tables, &joined));
    }
    if dice.below(6) == 0 {
        tests.push(nested(dice, tables, &joined));
    }
    if dice.below(8) == 0 {
        tests.push(of_two(dice, tables, &joined));
    }
    let tests = tests.join(if dice.below(8) == 0 { " OR " } else { " AND " });
    shown(dice, tables, &joined, &format!("FROM {from} WHERE {tests}"))
}

/// Alternatives of two tables, one of which has a query of its own: what cannot be taken below a join must stay with its own table.
fn of_two(dice: &mut Dice, tables: &[Table], joined: &[usize]) -> String {
    let mut one = || {
        let place = dice.below(joined.len() as u64) as usize;
        (place, test(dice, &tables[joined[place]], &format!("j{place}")))
    };
    let ((_, first), (place, next)) = (one(), one());
    let (bound, other) = (dice.pick(&["<", ">="]), &tables[dice.below(tables.len() as u64) as usize]);
    format!("(({first}) OR ({next}) AND j{place}.a {bound} (SELECT max(o.a) FROM {} o))", other.name)
}

/// A condition with a query of its own.
fn nested(dice: &mut Dice, tables: &[Table], joined: &[usize]) -> String {
    let place = dice.below(joined.len() as u64) as usize;
    let integers = tables[joined[place]].integers();
    let column = format!("j{place}.{}", integers[dice.below(integers.len() as u64) as usize]);
    let other = &tables[dice.below(tables.len() as u64) as usize];
    let (name, some) = (&other.name, test(dice, other, "o"));
    match dice.below(5) {
        0 => format!("{column} IN (SELECT o.a FROM {name} AS o WHERE {some})"),
        1 => format!("{column} NOT IN (SELECT o.a FROM {name} AS o WHERE {some})"),
        2 => format!("EXISTS (SELECT 1 FROM {name} AS o WHERE o.a = {column} AND {some})"),
        3 => format!("NOT EXISTS (SELECT 1 FROM {name} AS o WHERE o.a = {column} AND {some})"),
        _ => format!("{column} > (SELECT avg(o.a) FROM {name} AS o WHERE {some})"),
    }
}

/// A query of what there is, in one of many shapes.
fn shown(dice: &mut Dice, tables: &[Table], joined: &[usize], from: &str) -> String {
    let any = |dice: &mut Dice, is_integer: bool| {
        let place = dice.below(joined.len() as u64) as usize;
        let table = &tables[joined[place]];
        let columns = if is_integer { table.integers() } else { table.columns() };
        format!("j{place}.{}", columns[dice.below(columns.len() as u64) as usize])
    };
    let (one, other, number) = (any(dice, false), any(dice, false), any(dice, true));
    let place = dice.below(joined.len() as u64);
    let (extreme, exact) = (format!("j{place}.{}", dice.pick(&["a", "b", "c", "d", "e", "g"])), format!("j{place}.d"));
    match dice.below(12) {
        0 => format!("SELECT count(*) {from}"),
        1 => format!("SELECT {one}, count(*), min({extreme}), max({extreme}) {from} GROUP BY {one}"),
        2 => format!("SELECT DISTINCT {one}, {other} {from}"),
        3 => format!("SELECT count({one}), count(DISTINCT {other}) {from}"),
        4 => {
            let having = match dice.below(4) {
                0 => format!("count(*) > {}", dice.below(4)),
                1 => format!("sum({number}) > {} OR min({extreme}) IS NULL", dice.below(200)),
                2 => format!("count(*) >= 2 AND max({number}) < {}", dice.below(60)),
                _ => format!("avg({number}) > {}", dice.below(30)),
            };
            format!("SELECT {one}, sum({number}), avg({number}), sum({exact}) {from} GROUP BY {one} HAVING {having}")
        }
        5 => format!("SELECT sum({number}), avg({number}), sum({exact}), avg({exact}), sum(j{place}.c) {from}"),
        6 => {
            let order = format!("ORDER BY 1{}, 2{}, 3{}", direction(dice), direction(dice), direction(dice));
            format!("SELECT {one}, {other}, {number} {from} {order} LIMIT {} OFFSET {}", dice.below(30), dice.below(5))
        }
        7 => {
            let order = format!("ORDER BY 2{}, 1{}", direction(dice), direction(dice));
            format!("SELECT {one}, count(*) {from} GROUP BY {one} {order} LIMIT {}", dice.below(9))
        }
        8 => format!("SELECT {number} % 5, {one}, sum({number} + 1) {from} GROUP BY {number} % 5, {one}"),
        9 => {
            let (set, table) = (dice.pick(&["UNION", "EXCEPT", "INTERSECT"]), &tables[0].name);
            format!("SELECT {number} {from} {set} SELECT a FROM {table}")
        }
        10 => format!("SELECT {one}, CASE WHEN {number} < 9 THEN 'few' ELSE {number} || 'x' END {from}"),
        _ => format!("SELECT {one}, {other}, {number} {from}"),
    }
}

/// How a column orders, as both sides have it.
fn direction(dice: &mut Dice) -> &'static str {
    dice.pick(&[" NULLS LAST", " NULLS FIRST", " DESC NULLS LAST", " DESC NULLS FIRST"])
}

/// In an order that both sides have.
fn sorted(mut rows: Rows) -> Rows {
    rows.sort_by_key(|row| row.iter().map(|cell| format!("{cell}|")).collect::<String>());
    rows
}

/// How queries were answered.
#[derive(Default)]
struct Asked {
    answered: usize,
    /// Along foreign keys.
    along: usize,
    /// By alternatives that indexes named.
    merged: usize,
}

struct Pair {
    ours: Ours,
    sqlite: Sqlite,
    log: Vec<String>,
}

impl Pair {
    fn both(&mut self, ours: &str, theirs: &str) -> bool {
        self.log.push(ours.to_owned());
        let (ours, theirs) = (self.ours.run(ours), self.sqlite.run(theirs));
        assert_eq!(ours.is_ok(), theirs.is_ok(), "ours {ours:?}, SQLite's {theirs:?}\n{}", self.log.join(";\n"));
        ours.is_ok()
    }

    /// Asks both, ours with little memory and with more; how it was answered.
    fn ask(&mut self, query: &str) -> Asked {
        let in_order = |rows: Rows| if query.contains("ORDER BY") { rows } else { sorted(rows) };
        let theirs = in_order(self.sqlite.run(query).unwrap());
        let mut asked = Asked::default();
        for ram in ["64K", "64M"] {
            if self.ours.run(&format!("SET ram = '{ram}'")).is_err() {
                // The database was opened with no more than 64 KB.
                assert_eq!(ram, "64M");
                continue;
            }
            match self.ours.run(query) {
                Ok(ours) => {
                    if let Some(what) = difference(&in_order(ours), &theirs) {
                        panic!("{query} in {ram}: {what}\n{}", self.log.join(";\n"));
                    }
                    asked.answered += 1;
                    let plan = self.ours.run(&format!("EXPLAIN {query}")).unwrap();
                    let plan: Vec<String> = plan.iter().flatten().map(ToString::to_string).collect();
                    asked.along += usize::from(plan.iter().any(|line| line.contains("along foreign keys")));
                    let named = plan.iter().filter_map(|line| line.split("indexes: [").nth(1)?.split(']').next());
                    asked.merged += usize::from(named.into_iter().any(|by| by.contains(" or ")));
                }
                Err(said) => panic!("{query} in {ram}: {said}\n{}", self.log.join(";\n")),
            }
        }
        self.ours.run("RESET ram").unwrap();
        asked
    }

    /// Some changes; one in three in a transaction that may be rolled back.
    fn change(&mut self, dice: &mut Dice, tables: &mut [Table]) {
        let is_whole = dice.below(3) > 0;
        if !is_whole {
            self.both("BEGIN", "BEGIN");
        }
        for _ in 0..1 + dice.below(3) {
            let text = change(dice, tables);
            if !self.both(&text, &text) && !is_whole {
                self.both("ROLLBACK", "ROLLBACK");
                return;
            }
        }
        if !is_whole {
            let end = if dice.below(3) == 0 { "ROLLBACK" } else { "COMMIT" };
            self.both(end, end);
        }
        if dice.below(6) == 0 {
            self.vacuum(dice);
        }
    }

    /// A reorganization, or as much of one as a moment allows: the next one goes on.
    fn vacuum(&mut self, dice: &mut Dice) {
        let is_whole = dice.below(2) == 0;
        if !is_whole {
            self.ours.run("SET statement_timeout = '1ms'").unwrap();
        }
        let done = self.ours.run("VACUUM");
        assert!(!is_whole || done.is_ok(), "{done:?}\n{}", self.log.join(";\n"));
        self.ours.run("RESET statement_timeout").unwrap();
    }
}

/// Makes tables up, the same on both sides but for indexes, of which SQLite needs none.
fn made_up(dice: &mut Dice, pair: &mut Pair) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for number in 0..4 + dice.below(3) as usize {
        let table = Table::new(dice, number, &tables);
        let same = dice.0;
        let ours = table.create(dice, &tables, true);
        let theirs = table.create(&mut Dice(same), &tables, false);
        assert!(pair.both(&ours, &theirs));
        for column in table.columns() {
            if dice.below(2) == 0 {
                pair.ours.run(&format!("CREATE INDEX ON {} ({column})", table.name)).unwrap();
            }
        }
        tables.push(table);
    }
    tables
}

#[test]
fn random_queries_along_foreign_keys_answer_as_sqlite_does() {
    let full = std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full");
    let mut all = Asked::default();
    for seed in 0..if full { 125 } else { 10 } {
        // One that has no more from the beginning: its rows go to runs of indexes soon, and its pages are read again and again.
        for bytes in [64 << 10, 64 << 20] {
            ask_of_one(seed, bytes, &mut all);
        }
    }
    let Asked { answered, along, merged } = all;
    assert!(merged * 200 > answered, "{merged} of {answered} answers were of alternatives that indexes named");
    assert!(along * 6 > answered, "{along} of {answered} answers were read along foreign keys");
}

/// Makes a database up that is opened with so much memory, changes it, and asks.
fn ask_of_one(seed: u64, ram_bytes: u64, all: &mut Asked) {
    let mut dice = Dice(seed);
    let ours = Ours::with(Options::memory().ram(ram_bytes));
    let log = vec![format!("-- seed {seed}, {ram_bytes} bytes")];
    let mut pair = Pair { ours, sqlite: Sqlite::new(), log };
    let mut tables = made_up(&mut dice, &mut pair);
    for number in 0..tables.len() {
        for _ in 0..3 {
            let text = insert(&mut dice, &mut tables, number);
            pair.both(&text, &text);
        }
    }
    for _ in 0..10 {
        pair.change(&mut dice, &mut tables);
        for _ in 0..4 {
            let asked = pair.ask(&query(&mut dice, &tables));
            all.answered += asked.answered;
            all.along += asked.along;
            all.merged += asked.merged;
        }
    }
}
