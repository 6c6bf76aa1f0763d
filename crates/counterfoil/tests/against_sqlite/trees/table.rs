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
    /// What is done where the parent goes or its key changes, as SQL has it.
    actions: String,
    /// The key of the parent that the columns have by default.
    default: Option<u64>,
}

impl Table {
    /// The first tables reference nothing or themselves, later ones the one before and others, too.
    pub fn new(dice: &mut Dice, number: usize, tables: &[Table]) -> Table {
        let key = match dice.below(3) {
            0 => vec!["k".into(), "l".into()],
            _ => vec!["k".to_owned()],
        };
        let mut parents = Vec::new();
        if number > 0 {
            for place in 0..1 + dice.below(3) {
                // Mostly the one before, so that paths become long; two references to one table now and then.
                parents.push(if place == 0 { number - 1 } else { dice.below(number as u64) as usize });
            }
        }
        if dice.below(3) == 0 {
            parents.push(number);
        }
        let parts = |parent: usize| if parent == number { key.len() } else { tables[parent].key.len() };
        let made = |(place, parent)| Reference::new(dice, place, parent, parts(parent));
        let references = parents.into_iter().enumerate().map(made).collect();
        Table { name: format!("t{number}"), key, references, keys: 0, greatest: 0 }
    }

    /// CREATE TABLE; SQLite is not told of what nobody enforces.
    pub fn create(&self, tables: &[Table], ours: bool) -> String {
        let mut parts: Vec<String> = self.key.iter().map(|column| format!("{column} INTEGER NOT NULL")).collect();
        parts.extend(self.references.iter().flat_map(Reference::declared));
        parts.extend(OTHERS.iter().map(|(column, kind)| format!("{column} {kind}")));
        parts.push(format!("PRIMARY KEY ({})", self.key.join(", ")));
        for reference in &self.references {
            let parent = tables.get(reference.parent).unwrap_or(self);
            let (columns, key) = (reference.columns.join(", "), parent.key.join(", "));
            let text = format!("FOREIGN KEY ({columns}) REFERENCES {} ({key})", parent.name);
            match reference.enforced {
                true => parts.push(format!("{text}{}", reference.actions)),
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

impl Reference {
    /// The one at a place of its table, to a key of so many parts.
    fn new(dice: &mut Dice, place: usize, parent: usize, parts: usize) -> Reference {
        let deleted = dice.pick(&["", "", " ON DELETE CASCADE", " ON DELETE SET NULL", " ON DELETE SET DEFAULT"]);
        let updated = dice.pick(&["", " ON UPDATE CASCADE", " ON UPDATE SET NULL", " ON UPDATE SET DEFAULT"]);
        Reference {
            columns: (0..parts).map(|part| format!("r{place}{part}")).collect(),
            parent,
            enforced: dice.below(2) == 0,
            actions: format!("{deleted}{updated}"),
            default: (dice.below(3) > 0).then(|| dice.below(9)),
        }
    }

    /// Its columns, as they are declared.
    fn declared(&self) -> Vec<String> {
        let parts = self.default.map(|number| key_parts(number, self.columns.len()));
        let default = |place: usize| parts.as_ref().map_or(String::new(), |parts| format!(" DEFAULT {}", parts[place]));
        let one = |(place, column): (usize, &String)| format!("{column} INTEGER{}", default(place));
        self.columns.iter().enumerate().map(one).collect()
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
pub fn key_parts(number: u64, parts: usize) -> Vec<String> {
    match parts {
        1 => vec![number.to_string()],
        _ => vec![(number / 7).to_string(), (number % 7).to_string()],
    }
}
