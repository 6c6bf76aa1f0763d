//! Tables in a chain of foreign keys: of one column and of two, with actions, and one that is not enforced, whose rows come before those
//! that they name.
//!
//! ```text
//! notes (child, not enforced) -> children (a, b: CASCADE) -> parents (line: SET NULL) -> lines
//! ```

use counterfoil_flash_sim::Dice;
use counterfoil_log::Writer;
use counterfoil_relation::{
    Action, Error, NewColumn, NewForeignKey, NewIndex, NewKey, NewTable, Relations, RowId, Type, Value,
};

use crate::rig::{batch, insert};
use crate::script::{Model, Rows, Script};

const LINES: &str = "lines";
const PARENTS: &str = "parents";
const CHILDREN: &str = "children";
const NOTES: &str = "notes";
/// Keys of children, which come again: as many as there may be at once.
const CHILD_KEYS: i32 = 40;

pub struct Family;

impl Script for Family {
    fn tables(&self) -> &'static [&'static str] {
        &[LINES, PARENTS, CHILDREN, NOTES]
    }

    fn create(&self, relations: &Relations, writer: &mut Writer) -> Result<(), Error> {
        let to = |columns: &[&str], parent: &str, columns_there: &[&str], on_delete| NewForeignKey {
            columns: names(columns),
            parent: parent.into(),
            parent_columns: names(columns_there),
            on_delete,
            ..NewForeignKey::default()
        };
        let line = to(&["line"], LINES, &["id"], Action::SetNull);
        let parent = to(&["a", "b"], PARENTS, &["a", "b"], Action::Cascade);
        let child = NewForeignKey { not_enforced: true, ..to(&["child"], CHILDREN, &["key"], Action::NoAction) };
        relations.create_table(writer, &table(LINES, &["id", "length"], &["id"], None))?;
        relations.create_table(writer, &table(PARENTS, &["a", "b", "line"], &["a", "b"], Some(line)))?;
        relations.create_table(writer, &table(CHILDREN, &["key", "a", "b", "kind"], &["key"], Some(parent)))?;
        relations.create_table(writer, &table(NOTES, &["key", "child", "kind"], &["key"], Some(child)))?;
        for (name, column) in [(LINES, "length"), (CHILDREN, "kind"), (NOTES, "kind")] {
            let table = relations.table(&*writer, name)?.unwrap();
            relations.create_index(writer, &table, &NewIndex { columns: names(&[column]), ..NewIndex::default() })?;
        }
        Ok(())
    }

    fn change(&self, relations: &Relations, writer: &mut Writer, model: &mut Model, step: i32) -> Result<(), Error> {
        let mut step = Step { relations, writer, model, dice: Dice::new(step as u64), number: step };
        match step.dice.below(8) {
            0 => step.delete_lines(),
            1 => step.delete_parents(),
            2 => step.move_children(),
            3 => step.move_notes(),
            4 => step.add_children(),
            5 => step.add_notes(),
            _ => {
                step.add_lines_and_parents()?;
                step.add_notes()?;
                step.add_children()
            }
        }
    }
}

fn names(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|column| (*column).to_owned()).collect()
}

fn table(name: &str, columns: &[&str], key: &[&str], reference: Option<NewForeignKey>) -> NewTable {
    NewTable {
        name: name.into(),
        columns: columns.iter().map(|column| NewColumn::new(*column, Type::Integer)).collect(),
        primary_key: Some(NewKey { name: None, columns: names(key) }),
        foreign_keys: reference.into_iter().collect(),
        ..NewTable::default()
    }
}

/// One transaction.
struct Step<'a> {
    relations: &'a Relations,
    writer: &'a mut Writer,
    model: &'a mut Model,
    dice: Dice,
    number: i32,
}

impl Step<'_> {
    fn rows(&mut self, table: &'static str) -> &mut Rows {
        self.model.get_mut(table).expect("a table of the script")
    }

    fn small(&mut self, below: u64) -> Value {
        Value::Integer(self.dice.below(below) as i32)
    }

    /// About a third of a table's rows.
    fn some(&mut self, table: &'static str) -> Vec<RowId> {
        let all: Vec<RowId> = self.rows(table).keys().copied().collect();
        all.into_iter().filter(|_| self.dice.below(3) == 0).collect()
    }

    fn add(&mut self, table: &'static str, rows: Vec<Vec<Value>>) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let first = insert(self.relations, self.writer, table, &rows)?;
        self.rows(table).extend((first.0..).map(RowId).zip(rows));
        Ok(())
    }

    fn update(&mut self, table: &'static str, new: Vec<(RowId, Vec<Value>)>) -> Result<(), Error> {
        let (ids, values): (Vec<RowId>, Vec<Vec<Value>>) = new.iter().cloned().unzip();
        let there = self.relations.table(&*self.writer, table)?.unwrap();
        self.relations.update(self.writer, &there, &ids, &batch(&there, &values))?;
        self.rows(table).extend(new);
        Ok(())
    }

    fn delete(&mut self, table: &'static str, ids: &[RowId]) -> Result<Vec<Vec<Value>>, Error> {
        let there = self.relations.table(&*self.writer, table)?.unwrap();
        self.relations.delete(self.writer, &there, ids)?;
        Ok(ids.iter().filter_map(|id| self.rows(table).remove(id)).collect())
    }

    fn add_lines_and_parents(&mut self) -> Result<(), Error> {
        let number = self.number;
        let lines = (0..2).map(|at| vec![Value::Integer(number * 10 + at), self.small(5)]).collect();
        self.add(LINES, lines)?;
        let known: Vec<Value> = self.rows(LINES).values().map(|row| row[0].clone()).collect();
        let parents = (0..4).map(|at| {
            let line = known[self.dice.below(known.len() as u64) as usize].clone();
            vec![Value::Integer(at % 2), Value::Integer(number * 10 + at), if at == 3 { Value::Null } else { line }]
        });
        let parents = parents.collect();
        self.add(PARENTS, parents)
    }

    /// A parent's key; none: there is none.
    fn parent(&mut self) -> Option<[Value; 2]> {
        let all: Vec<[Value; 2]> = self.rows(PARENTS).values().map(|row| [row[0].clone(), row[1].clone()]).collect();
        (!all.is_empty()).then(|| all[self.dice.below(all.len() as u64) as usize].clone())
    }

    /// Keys that nobody has, of rows that were there before among them: notes that name one lead there again.
    fn add_children(&mut self) -> Result<(), Error> {
        let taken: Vec<Value> = self.rows(CHILDREN).values().map(|row| row[0].clone()).collect();
        let mut new = Vec::new();
        for key in (0..CHILD_KEYS).map(Value::Integer).filter(|key| !taken.contains(key)) {
            if self.dice.below(3) == 0
                && let Some([a, b]) = self.parent()
            {
                new.push(vec![key, a, b, self.small(4)]);
            }
        }
        self.add(CHILDREN, new)
    }

    /// Some name a child that is not there yet, or never will be, or nobody.
    fn add_notes(&mut self) -> Result<(), Error> {
        let number = self.number;
        let notes = (0..6).map(|at| {
            let child = if at == 5 { Value::Null } else { self.small(CHILD_KEYS as u64 + 5) };
            vec![Value::Integer(number * 10 + at), child, self.small(3)]
        });
        let notes = notes.collect();
        self.add(NOTES, notes)
    }

    fn move_children(&mut self) -> Result<(), Error> {
        let mut new = Vec::new();
        for id in self.some(CHILDREN) {
            let Some([a, b]) = self.parent() else { continue };
            let key = self.rows(CHILDREN)[&id][0].clone();
            new.push((id, vec![key, a, b, self.small(4)]));
        }
        self.update(CHILDREN, new)
    }

    fn move_notes(&mut self) -> Result<(), Error> {
        let mut new = Vec::new();
        for id in self.some(NOTES) {
            let key = self.rows(NOTES)[&id][0].clone();
            new.push((id, vec![key, self.small(CHILD_KEYS as u64 + 5), self.small(3)]));
        }
        let gone = self.some(NOTES);
        self.update(NOTES, new)?;
        self.delete(NOTES, &gone[..gone.len() / 2]).map(drop)
    }

    /// Their children go with them, and notes lead to nobody.
    fn delete_parents(&mut self) -> Result<(), Error> {
        let some = self.some(PARENTS);
        let gone = self.delete(PARENTS, &some)?;
        self.rows(CHILDREN).retain(|_, child| !gone.iter().any(|parent| parent[..2] == child[1..3]));
        Ok(())
    }

    fn delete_lines(&mut self) -> Result<(), Error> {
        let some = self.some(LINES);
        let gone = self.delete(LINES, &some)?;
        let is_of_them = |parent: &&mut Vec<Value>| gone.iter().any(|line| line[0] == parent[2]);
        self.rows(PARENTS).values_mut().filter(is_of_them).for_each(|parent| parent[2] = Value::Null);
        Ok(())
    }
}
