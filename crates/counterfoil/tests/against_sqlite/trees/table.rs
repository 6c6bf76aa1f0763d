//! Tables that are made up, and the foreign keys between them.

use super::super::scripts::Dice;

/// A table that was made up.
pub struct Table {
    pub name: String,
    /// The columns of its primary key.
    pub key: Vec<String>,
    pub references: Vec<Reference>,
    /// Keys that its rows have; some may be gone.
    pub keys: u64,
    /// No key is greater, nor was.
    pub greatest: u64,
}

/// A foreign key.
pub struct Reference {
    pub columns: Vec<String>,
    pub parent: usize,
    pub enforced: bool,
}

impl Table {
    /// The first tables reference nothing, later ones the one before and others.
    pub fn new(dice: &mut Dice, number: usize, tables: &[Table]) -> Table {
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
    pub fn create(&self, dice: &mut Dice, tables: &[Table], ours: bool) -> String {
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
    pub fn integers(&self) -> Vec<String> {
        let referencing = self.references.iter().flat_map(|reference| reference.columns.iter().cloned());
        self.key.iter().cloned().chain(referencing).chain(["a".into()]).collect()
    }

    pub fn columns(&self) -> Vec<String> {
        let others = OTHERS[1..].iter().map(|(column, _)| (*column).to_owned());
        self.integers().into_iter().chain(others).collect()
    }
}

/// The columns behind keys and references, `a` an integer and the others none.
pub const OTHERS: [(&str, &str); 7] = [
    ("a", "INTEGER"),
    ("b", "TEXT"),
    ("c", "NUMERIC(9,2)"),
    ("d", "DOUBLE PRECISION"),
    ("e", "DATE"),
    ("f", "BOOLEAN"),
    ("g", "VARCHAR(12)"),
];

/// The parts of the key numbered so.
pub fn key_parts(number: u64, parts: usize) -> Vec<String> {
    match parts {
        1 => vec![number.to_string()],
        _ => vec![(number / 7).to_string(), (number % 7).to_string()],
    }
}
