//! Random subqueries in expressions, wherever an expression may stand: IN, EXISTS, values; of the same table and of others, under names of their
//! own and without, of the query around them or not, with NULLs and without rows.

use super::cell::{Ours, Peer, Sqlite, difference};
use super::scripts::Dice;

/// A column of `a_line` is called as the other table.
const SCHEMA: [&str; 4] = [
    "CREATE TABLE head (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER)",
    "CREATE TABLE a_line (id INTEGER PRIMARY KEY, head INTEGER, b INTEGER NOT NULL)",
    "INSERT INTO head VALUES (1, 3, 1), (2, NULL, 1), (3, 5, NULL), (4, 3, 4), (5, 0, 2), (6, NULL, NULL)",
    "INSERT INTO a_line VALUES (1, 1, 3), (2, 1, 4), (3, 2, 1), (4, 4, 5), (5, NULL, 2), (6, 6, 3), (7, 3, 3)",
];
const TABLES: [(&str, [&str; 3]); 2] = [("head", ["id", "a", "b"]), ("a_line", ["id", "head", "b"])];
const COMPARISONS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

/// A table of a FROM: its name there and its columns.
#[derive(Clone, Copy)]
struct From {
    table: usize,
    name: &'static str,
}

impl From {
    fn text(self) -> String {
        let table = TABLES[self.table].0;
        if table == self.name { table.to_owned() } else { format!("{table} {}", self.name) }
    }

    fn column(self, dice: &mut Dice) -> String {
        format!("{}.{}", self.name, dice.pick(&TABLES[self.table].1))
    }
}

fn from(dice: &mut Dice, names: [&'static str; 2]) -> From {
    let table = dice.below(2) as usize;
    // Often without a name of its own: then it hides a table of the same name outside.
    let name = if dice.below(3) == 0 { TABLES[table].0 } else { names[table] };
    From { table, name }
}

fn value(dice: &mut Dice, from: From) -> String {
    match dice.below(6) {
        0 => (dice.below(7) as i64 - 1).to_string(),
        1 => format!("{} + 1", from.column(dice)),
        _ => from.column(dice),
    }
}

/// A condition of a subquery, which may speak of the query around it.
fn inner(dice: &mut Dice, own: From, outer: From) -> String {
    let speaks = own.name != outer.name && dice.below(3) > 0;
    let other = if speaks { outer.column(dice) } else { (dice.below(6)).to_string() };
    match dice.below(8) {
        0 => "1 = 1".into(),
        1 => "1 = 0".into(),
        2 => format!("{} IS NULL", own.column(dice)),
        3 => format!("{} = {other} AND {} > {}", own.column(dice), own.column(dice), dice.below(4)),
        4 | 5 => format!("{} = {other}", own.column(dice)),
        _ => format!("{} {} {other}", own.column(dice), dice.pick(&COMPARISONS)),
    }
}

fn scalar(dice: &mut Dice, outer: From) -> String {
    let own = from(dice, ["h", "l"]);
    let condition = inner(dice, own, outer);
    match dice.below(8) {
        0 => format!("(SELECT count(*) FROM {} WHERE {condition})", own.text()),
        1 if own.name != outer.name => {
            // A row at most, by its key.
            format!("(SELECT {} FROM {} WHERE {}.id = {})", value(dice, own), own.text(), own.name, outer.column(dice))
        }
        2 => format!("(SELECT {} FROM {} WHERE {}.id = {})", value(dice, own), own.text(), own.name, dice.below(9)),
        3 | 4 => {
            let (shown, name) = (value(dice, own), own.name);
            let order = format!("{}, {name}.id", own.column(dice));
            // Where NULLs come is not the same in both.
            let order =
                format!("{name}.id{}", if dice.below(2) == 0 { String::new() } else { format!(" + 0, {order}") });
            format!("(SELECT {shown} FROM {} WHERE {condition} ORDER BY {order} LIMIT 1)", own.text())
        }
        5 => format!("(SELECT 7 FROM {} WHERE {}.id = {})", own.text(), own.name, dice.below(9)),
        _ => {
            let aggregate = dice.pick(&["max", "min", "sum", "count"]);
            format!("(SELECT {aggregate}({}) FROM {} WHERE {condition})", value(dice, own), own.text())
        }
    }
}

fn predicate(dice: &mut Dice, outer: From) -> String {
    let own = from(dice, ["h", "l"]);
    let condition = inner(dice, own, outer);
    let not = dice.pick(&["", " NOT"]);
    match dice.below(7) {
        0 => format!("{not} EXISTS (SELECT 1 FROM {} WHERE {condition})", own.text()),
        1 => format!("{} IS{not} NULL", scalar(dice, outer)),
        2 | 3 => format!("{} {} {}", value(dice, outer), dice.pick(&COMPARISONS), scalar(dice, outer)),
        _ => format!(
            "{}{not} IN (SELECT {} FROM {} WHERE {condition})",
            value(dice, outer),
            value(dice, own),
            own.text()
        ),
    }
}

fn condition(dice: &mut Dice, outer: From) -> String {
    let one = predicate(dice, outer);
    match dice.below(8) {
        0 => format!("NOT ({one})"),
        1 => format!("{one} OR {}.id > 4", outer.name),
        2 => format!("({one}) IS NOT TRUE"),
        3 => format!("{one} AND {}", predicate(dice, outer)),
        4 => format!("{one} OR {}", predicate(dice, outer)),
        5 => format!("CASE WHEN {one} THEN {}.id < 4 ELSE {}.b = 1 END", outer.name, outer.name),
        _ => one,
    }
}

fn question(dice: &mut Dice) -> String {
    let outer = from(dice, ["o", "p"]);
    let (text, name) = (outer.text(), outer.name);
    match dice.below(6) {
        0 => format!("SELECT {name}.id, {} FROM {text} ORDER BY 1", scalar(dice, outer)),
        1 => format!("SELECT {name}.id, {} FROM {text} ORDER BY 1", condition(dice, outer)),
        2 => format!("SELECT {name}.id, coalesce({}, -1) FROM {text} ORDER BY 1", scalar(dice, outer)),
        3 => format!(
            "SELECT {name}.b, sum({name}.id) FROM {text} WHERE {} GROUP BY {name}.b HAVING sum({name}.id) IN \
             (SELECT sum({name}.id) FROM {text} GROUP BY {name}.b) ORDER BY 2, 1 NULLS FIRST",
            condition(dice, outer)
        ),
        _ => format!("SELECT {name}.id FROM {text} WHERE {} ORDER BY 1", condition(dice, outer)),
    }
}

/// Statements that change rows by them, and what is then there. SQLite updates a row before it looks for the next one's value: there subqueries
/// are of the other table.
fn change(dice: &mut Dice) -> [String; 2] {
    let table = dice.below(2) as usize;
    let outer = From { table, name: TABLES[table].0 };
    let name = outer.name;
    let own = format!("FROM {name}");
    let of_the_other = |dice: &mut Dice, drawn: fn(&mut Dice, From) -> String| loop {
        let text = drawn(dice, outer);
        if !text.contains(&own) {
            return text;
        }
    };
    let changed = match dice.below(3) {
        0 => format!("DELETE FROM {name} WHERE {}", condition(dice, outer)),
        1 => format!("UPDATE {name} SET b = coalesce({}, 3)", of_the_other(dice, scalar)),
        _ => format!("UPDATE {name} SET b = b + 1 WHERE {}", of_the_other(dice, condition)),
    };
    [changed, format!("SELECT * FROM {name} ORDER BY id")]
}

/// Whether both answer, and the same: ours may say that it does not know such a place.
fn compared(ours: &mut Ours, sqlite: &mut Sqlite, statements: &[String]) -> Result<bool, String> {
    let all = statements.join("; ");
    for statement in statements {
        let theirs = sqlite.run(statement).map_err(|error| format!("{all}: SQLite: {error}"))?;
        match ours.run(statement) {
            Ok(rows) => {
                if let Some(differs) = difference(&rows, &theirs) {
                    return Err(format!("{all}: {differs}"));
                }
            }
            Err(error) if error.contains("not supported") => return Ok(false),
            Err(error) => return Err(format!("{all}: {error}")),
        }
    }
    Ok(true)
}

#[test]
fn random_subqueries_answer_as_in_sqlite() {
    let full = std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full");
    let (mut ours, mut sqlite) = (Ours::new(), Sqlite::new());
    for statement in SCHEMA {
        ours.run(statement).expect("a schema");
        sqlite.run(statement).expect("a schema");
    }
    let (mut answered, mut wrong, count) = (0, Vec::new(), if full { 6_000 } else { 600 });
    for seed in 0..count {
        let mut dice = Dice(seed);
        let changes = dice.below(5) == 0;
        let statements = if changes { change(&mut dice).to_vec() } else { vec![question(&mut dice)] };
        if changes {
            ours.run("BEGIN").expect("begun");
            sqlite.0.execute_batch("BEGIN").expect("begun");
        }
        if seed % 2 == 0 {
            ours.run(if seed % 4 == 0 { "SET ram = '64K'" } else { "SET ram = '64M'" }).expect("set");
        }
        match compared(&mut ours, &mut sqlite, &statements) {
            Ok(is_answered) => answered += u64::from(is_answered),
            Err(what) => wrong.push(what),
        }
        if changes {
            ours.run("ROLLBACK").expect("ended");
            sqlite.0.execute_batch("ROLLBACK").expect("ended");
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong[..wrong.len().min(9)].join("\n"));
    println!("{answered} of {count} answered");
    assert!(answered * 10 > count * 9, "{answered} of {count} were answered");
}
