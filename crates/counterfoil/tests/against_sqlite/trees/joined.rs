//! Tables that are joined: what stands behind FROM.

use super::super::scripts::Dice;
use super::condition::{alternatives, nested, of_two, test};
use super::table::{Reference, Table};

/// Tables that are joined, called j0, j1 and so on.
pub struct Joined<'t> {
    pub tables: &'t [Table],
    /// Which of them, by their numbers.
    pub places: Vec<usize>,
    /// What stands behind FROM.
    text: String,
}

impl<'t> Joined<'t> {
    /// Up to five tables, mostly with those that they reference.
    pub fn new(dice: &mut Dice, tables: &'t [Table]) -> Joined<'t> {
        let mut first = dice.below(tables.len() as u64) as usize;
        if dice.below(3) > 0 {
            first = tables.len() - 1 - dice.below(2) as usize;
        }
        let text = format!("{} AS j0", tables[first].name);
        let mut joined = Joined { tables, places: vec![first], text };
        let mut children = 0;
        for _ in 0..dice.below(5) {
            let of = dice.below(joined.places.len() as u64) as usize;
            // Of children there are many for each row: no more than two tables of them.
            if children < 2 && dice.below(6) == 0 {
                children += usize::from(joined.child(dice, of));
            } else {
                joined.parent(dice, of);
            }
        }
        joined
    }

    /// Joins what a table references.
    fn parent(&mut self, dice: &mut Dice, of: usize) {
        let references = &self.tables[self.places[of]].references;
        if !references.is_empty() {
            let reference = &references[dice.below(references.len() as u64) as usize];
            let (child, parent) = (format!("j{of}"), format!("j{}", self.places.len()));
            self.join(dice, reference, (&child, &parent), reference.parent);
        }
    }

    /// Joins what references a table, if anything does.
    fn child(&mut self, dice: &mut Dice, of: usize) -> bool {
        let parent = self.places[of];
        let all = self.tables.iter().enumerate();
        let all = all.flat_map(|(number, child)| child.references.iter().map(move |reference| (number, reference)));
        let children: Vec<_> = all.filter(|(_, reference)| reference.parent == parent).collect();
        if children.is_empty() {
            return false;
        }
        let (number, reference) = children[dice.below(children.len() as u64) as usize];
        let (child, parent) = (format!("j{}", self.places.len()), format!("j{of}"));
        self.join(dice, reference, (&child, &parent), number);
        true
    }

    /// Joins a table by a reference, or by nearly that.
    fn join(&mut self, dice: &mut Dice, reference: &Reference, (child, parent): (&str, &str), number: usize) {
        let key = &self.tables[reference.parent].key;
        let equal = |(own, key): (&String, &String)| match dice.below(2) {
            0 => format!("{child}.{own} = {parent}.{key}"),
            _ => format!("{parent}.{key} = {child}.{own}"),
        };
        let mut pairs: Vec<String> = reference.columns.iter().zip(key).map(equal).collect();
        match dice.below(14) {
            // Something else than the key says, or less.
            0 => pairs.push(format!("{parent}.a = {child}.a")),
            1 if pairs.len() > 1 => drop(pairs.pop()),
            2 => pairs[0] = format!("{child}.a = {parent}.{}", key[0]),
            3 => pairs.push(format!("{parent}.a < {child}.a + 10")),
            4 => pairs.push(test(dice, &self.tables[number], &format!("j{}", self.places.len()))),
            5 => pairs.push(test(dice, &self.tables[self.places[0]], "j0")),
            6 => pairs.push(format!("{parent}.a IS NOT DISTINCT FROM {child}.a")),
            7 => pairs[0] = format!("{child}.{} IS NOT DISTINCT FROM {parent}.a", reference.columns[0]),
            _ => {}
        }
        let kind = match dice.below(12) {
            0 | 1 => "LEFT JOIN",
            2 => dice.pick(&["RIGHT JOIN", "FULL JOIN"]),
            _ => "JOIN",
        };
        let (name, new) = (&self.tables[number].name, self.places.len());
        self.text.push_str(&format!(" {kind} {name} AS j{new} ON {}", pairs.join(" AND ")));
        self.places.push(number);
    }

    /// Any of them: its name here, and the table.
    pub fn any(&self, dice: &mut Dice) -> (String, &'t Table) {
        let place = dice.below(self.places.len() as u64) as usize;
        (format!("j{place}"), &self.tables[self.places[place]])
    }

    /// Any column.
    pub fn column(&self, dice: &mut Dice) -> String {
        let (name, table) = self.any(dice);
        let columns = table.columns();
        format!("{name}.{}", columns[dice.below(columns.len() as u64) as usize])
    }

    /// Any column that is an integer.
    pub fn integer(&self, dice: &mut Dice) -> String {
        let (name, table) = self.any(dice);
        let columns = table.integers();
        format!("{name}.{}", columns[dice.below(columns.len() as u64) as usize])
    }

    /// The keys of all of them: no two rows have the same, whichever are missing.
    pub fn keys(&self) -> Vec<String> {
        let places = self.places.iter().enumerate();
        places
            .flat_map(|(place, table)| self.tables[*table].key.iter().map(move |part| format!("j{place}.{part}")))
            .collect()
    }

    /// An order in which no two rows are equal, as both sides have it.
    pub fn order(&self) -> String {
        let keys: Vec<String> = self.keys().iter().map(|key| format!("{key} NULLS FIRST")).collect();
        keys.join(", ")
    }

    /// FROM and WHERE.
    pub fn text(&self, dice: &mut Dice) -> String {
        let mut tests = Vec::new();
        for _ in 0..1 + dice.below(3) {
            let (name, table) = self.any(dice);
            tests.push(test(dice, table, &name));
        }
        if dice.below(3) == 0 {
            tests.push(alternatives(dice, self.tables, &self.places));
        }
        if dice.below(6) == 0 {
            let (name, table) = self.any(dice);
            tests.push(nested(dice, self.tables, table, &name));
        }
        if dice.below(8) == 0 {
            tests.push(of_two(dice, self.tables, &self.places));
        }
        format!("FROM {} WHERE {}", self.text, tests.join(if dice.below(8) == 0 { " OR " } else { " AND " }))
    }
}
