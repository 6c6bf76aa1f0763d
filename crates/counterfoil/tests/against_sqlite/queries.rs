//! Random queries over three small tables full of NULLs and repeated values: joins of all sorts, conditions, groups,
//! subqueries, set operations, orders and limits. Both sides must answer the same rows.

use super::cell::{Ours, Peer, Rows, Sqlite, difference};
use super::scripts::Dice;

const SCHEMA: [&str; 6] = [
    "CREATE TABLE a (id INTEGER PRIMARY KEY, x INTEGER, y INTEGER, s TEXT)",
    "CREATE TABLE b (id INTEGER PRIMARY KEY, a INTEGER, x INTEGER, s TEXT, UNIQUE (x, s))",
    "CREATE TABLE c (x INTEGER, y INTEGER, s TEXT)",
    "CREATE INDEX a_x ON a (x)",
    "CREATE INDEX a_s ON a (s, y)",
    "CREATE INDEX c_x ON c (x)",
];

const TABLES: [(&str, &[&str]); 3] = [("a", &["id", "x", "y"]), ("b", &["id", "a", "x"]), ("c", &["x", "y"])];

/// Tables of a query under their aliases, and how deep it may nest.
struct Maker<'a> {
    dice: &'a mut Dice,
    /// Alias, columns of numbers. Every table has a column `s` of texts.
    visible: Vec<(String, &'static [&'static str])>,
    aliases: usize,
    depth: usize,
}

impl<'a> Maker<'a> {
    fn new(dice: &'a mut Dice) -> Self {
        Maker { dice, visible: Vec::new(), aliases: 0, depth: 2 }
    }

    fn table(&mut self) -> (&'static str, String) {
        let (name, columns) = TABLES[self.dice.below(3) as usize];
        let alias = format!("t{}", self.aliases);
        self.aliases += 1;
        self.visible.push((alias.clone(), columns));
        (name, alias)
    }

    fn column(&mut self) -> String {
        let place = self.dice.below(self.visible.len() as u64) as usize;
        let (alias, columns) = self.visible[place].clone();
        format!("{alias}.{}", self.dice.pick(columns))
    }

    /// A column of the newest table.
    fn own_column(&mut self) -> String {
        let Some((alias, columns)) = self.visible.last().cloned() else { return "1".into() };
        format!("{alias}.{}", self.dice.pick(columns))
    }

    fn text(&mut self) -> String {
        let place = self.dice.below(self.visible.len() as u64) as usize;
        format!("{}.s", self.visible[place].0)
    }

    fn number(&mut self) -> String {
        match self.dice.below(8) {
            0 => format!("{} + {}", self.column(), self.column()),
            1 => format!("{} * 2 - {}", self.column(), self.dice.below(9)),
            2 => format!("coalesce({}, {})", self.column(), self.column()),
            3 => format!("CASE WHEN {} > {} THEN {} END", self.column(), self.dice.below(6), self.column()),
            4 => format!("abs({} - {})", self.column(), self.dice.below(6)),
            _ => self.column(),
        }
    }

    fn condition(&mut self) -> String {
        let compare = self.dice.pick(&["=", "<>", "<", "<=", ">", ">="]);
        match self.dice.below(if self.depth > 0 { 18 } else { 12 }) {
            0 => format!("{} IS NULL", self.column()),
            1 => format!("{} IS NOT NULL", self.text()),
            2 => format!("{} {compare} {}", self.number(), self.column()),
            3 => format!("{} BETWEEN {} AND {}", self.column(), self.dice.below(4), self.dice.below(9)),
            4 => format!("{} IN ({}, {}, NULL)", self.column(), self.dice.below(8), self.dice.below(8)),
            5 => format!("{} NOT IN ({}, {})", self.column(), self.dice.below(8), self.dice.below(8)),
            6 => format!("{} LIKE '{}%'", self.text(), self.dice.pick(&["r", "g", "", "%e"])),
            7 => format!("{} {compare} '{}'", self.text(), self.dice.pick(&["red", "green", "", "blue"])),
            8..12 => format!("{} {compare} {}", self.column(), self.dice.below(8)),
            12 => format!("NOT ({})", self.nested()),
            13 => format!("({} OR {})", self.nested(), self.nested()),
            14 => format!("({} AND {})", self.nested(), self.nested()),
            15 => {
                let column = self.column();
                let not = self.dice.pick(&["", "NOT "]);
                let correlated = self.dice.below(3) == 0;
                format!("{column} {not}IN ({})", self.subquery(correlated))
            }
            16 => format!("{}EXISTS ({})", self.dice.pick(&["", "NOT "]), self.subquery(true)),
            _ => {
                let column = self.column();
                format!("{column} {compare} ({})", self.scalar())
            }
        }
    }

    fn nested(&mut self) -> String {
        self.depth -= 1;
        let condition = self.condition();
        self.depth += 1;
        condition
    }

    /// A query of one column, which may speak of the tables around it.
    fn subquery(&mut self, correlated: bool) -> String {
        let outer = self.column();
        let seen = self.visible.len();
        let (name, alias) = self.table();
        let inner = self.own_column();
        let joined = if correlated { format!("{} = {outer}", self.own_column()) } else { "1 = 1".into() };
        // Conditions of its own only: what else may be correlated is not the same everywhere.
        let around: Vec<_> = self.visible.drain(..seen).collect();
        let condition = self.nested();
        let own = std::mem::replace(&mut self.visible, around);
        drop(own);
        format!("SELECT {inner} FROM {name} {alias} WHERE {joined} AND {condition}")
    }

    fn scalar(&mut self) -> String {
        let function = self.dice.pick(&["max", "min", "count", "sum"]);
        let correlated = self.dice.below(2) == 0;
        let query = self.subquery(correlated);
        let (column, rest) = query["SELECT ".len()..].split_once(' ').unwrap();
        format!("SELECT {function}({column}) {rest}")
    }

    fn from(&mut self) -> String {
        let (name, alias) = self.table();
        let mut from = format!("{name} {alias}");
        for _ in 0..self.dice.below(3) {
            let before = self.column();
            let (name, alias) = self.table();
            let equal = format!("{before} = {}", self.own_column());
            let more = if self.dice.below(3) == 0 {
                format!(" AND {} > {}", self.own_column(), self.dice.below(5))
            } else {
                String::new()
            };
            from += &match self.dice.below(6) {
                0 => format!(" CROSS JOIN {name} {alias}"),
                1 | 2 => format!(" LEFT JOIN {name} {alias} ON {equal}{more}"),
                3 => format!(" FULL JOIN {name} {alias} ON {equal}"),
                4 => format!(" RIGHT JOIN {name} {alias} ON {equal}{more}"),
                _ => format!(" JOIN {name} {alias} ON {equal}{more}"),
            };
        }
        from
    }

    fn select(&mut self) -> String {
        let from = self.from();
        let filter = if self.dice.below(5) > 0 { format!(" WHERE {}", self.condition()) } else { String::new() };
        let (items, tail) = if self.dice.below(3) == 0 { self.groups() } else { self.items() };
        let count = items.len();
        let order: Vec<String> = (1..=count)
            .map(|place| {
                let way = self.dice.pick(&["", " DESC"]);
                let nulls = self.dice.pick(&[" NULLS FIRST", " NULLS LAST"]);
                format!("{place}{way}{nulls}")
            })
            .collect();
        let limit = match self.dice.below(4) {
            0 => format!(" LIMIT {}", self.dice.below(12)),
            1 => format!(" LIMIT {} OFFSET {}", self.dice.below(12), self.dice.below(6)),
            _ => String::new(),
        };
        let distinct = if tail.is_empty() { self.dice.pick(&["", "", "DISTINCT "]) } else { "" };
        format!("SELECT {distinct}{} FROM {from}{filter}{tail} ORDER BY {}{limit}", items.join(", "), order.join(", "))
    }

    fn items(&mut self) -> (Vec<String>, String) {
        let items = (0..1 + self.dice.below(3)).map(|_| match self.dice.below(12) {
            0..3 => self.text(),
            3 => self.membership(),
            _ => self.number(),
        });
        (items.collect(), String::new())
    }

    /// Whether a value is in the rows of a query, or that is unknown.
    fn membership(&mut self) -> String {
        let column = self.column();
        let correlated = self.dice.below(3) == 0;
        let query = self.subquery(correlated);
        format!("CASE WHEN {column} IN ({query}) THEN 1 WHEN {column} NOT IN ({query}) THEN 0 END")
    }

    fn groups(&mut self) -> (Vec<String>, String) {
        let keys: Vec<String> = (0..self.dice.below(3))
            .map(|_| if self.dice.below(3) == 0 { self.text() } else { self.column() })
            .collect();
        let mut items = keys.clone();
        for _ in 0..1 + self.dice.below(3) {
            items.push(match self.dice.below(7) {
                0 => "count(*)".into(),
                1 => format!("count(DISTINCT {})", self.column()),
                2 => format!("sum({})", self.number()),
                3 => format!("avg({})", self.column()),
                4 => format!("max({})", self.text()),
                5 => format!("count({})", self.text()),
                _ => format!("min({})", self.column()),
            });
        }
        let having =
            if self.dice.below(3) == 0 { format!(" HAVING count(*) > {}", self.dice.below(4)) } else { String::new() };
        let by = if keys.is_empty() { String::new() } else { format!(" GROUP BY {}", keys.join(", ")) };
        (items, if keys.is_empty() { " ".into() } else { by + &having })
    }

    fn set(&mut self) -> String {
        let operation = self.dice.pick(&["UNION", "UNION ALL", "INTERSECT", "EXCEPT"]);
        let mut sides = (0..2).map(|_| {
            let mut maker = Maker::new(self.dice);
            let from = maker.from();
            let (number, text, condition) = (maker.number(), maker.text(), maker.condition());
            format!("SELECT {number}, {text} FROM {from} WHERE {condition}")
        });
        let (left, right) = (sides.next().unwrap(), sides.next().unwrap());
        format!("{left} {operation} {right} ORDER BY 1 NULLS LAST, 2 NULLS FIRST")
    }
}

fn fill(dice: &mut Dice) -> Vec<String> {
    let text = |dice: &mut Dice| match dice.below(5) {
        0 => "NULL".to_owned(),
        _ => format!("'{}'", dice.pick(&["red", "green", "blue", "", "orange"])),
    };
    let number = |dice: &mut Dice| if dice.below(5) == 0 { "NULL".to_owned() } else { dice.below(8).to_string() };
    let mut rows = Vec::new();
    for id in 0..12 + dice.below(10) {
        let (x, y) = (number(dice), number(dice));
        rows.push(format!("INSERT INTO a VALUES ({id}, {x}, {y}, {})", text(dice)));
        let (a, x) = (number(dice), number(dice));
        rows.push(format!("INSERT INTO b VALUES ({id}, {a}, {x}, {}) ON CONFLICT DO NOTHING", text(dice)));
        let (x, y) = (number(dice), number(dice));
        rows.push(format!("INSERT INTO c VALUES ({x}, {y}, {})", text(dice)));
    }
    rows.push("UPDATE a SET x = y WHERE id % 5 = 0".into());
    rows.push("DELETE FROM b WHERE id % 7 = 3".into());
    rows
}

#[test]
fn random_queries_answer_as_in_sqlite() {
    let full = std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full");
    let (mut asked, mut refused) = (0, 0);
    for seed in 0..if full { 100 } else { 10 } {
        let mut dice = Dice(seed);
        let (mut ours, mut sqlite) = (Ours::new(), Sqlite::new());
        let script: Vec<String> = SCHEMA.into_iter().map(String::from).chain(fill(&mut dice)).collect();
        for sql in &script {
            ours.run(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
            sqlite.run(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        for _ in 0..40 {
            let mut maker = Maker::new(&mut dice);
            let sql = if maker.dice.below(6) == 0 { maker.set() } else { maker.select() };
            let theirs: Rows = sqlite.run(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
            asked += 1;
            match ours.run(&sql) {
                Ok(rows) => {
                    if let Some(what) = difference(&rows, &theirs) {
                        panic!("seed {seed}: {what}\n{};\n{sql}", script.join(";\n"));
                    }
                }
                Err(error) if error.starts_with("not supported: ") => refused += 1,
                Err(error) => panic!("{error}\n{};\n{sql}", script.join(";\n")),
            }
        }
    }
    assert!(refused * 20 < asked, "{refused} of {asked} queries were refused");
}
