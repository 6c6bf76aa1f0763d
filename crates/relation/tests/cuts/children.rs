//! Rows of one table, with a key and a note, whose column's type changes now and then.

use counterfoil_flash_sim::Dice;
use counterfoil_log::Writer;
use counterfoil_relation::{
    Action, Column, Error, NewColumn, NewForeignKey, NewIndex, NewKey, NewTable, Relations, Retype, RowId, Type, Value,
};

use crate::rig::{batch, insert};
use crate::script::{Model, Rows, Script};

const PARENTS: i32 = 12;
const CHILDREN: &str = "children";

pub struct Children;

impl Script for Children {
    fn tables(&self) -> &'static [&'static str] {
        &[CHILDREN]
    }

    fn create(&self, relations: &Relations, writer: &mut Writer) -> Result<(), Error> {
        create_tables(relations, writer)
    }

    fn change(&self, relations: &Relations, writer: &mut Writer, model: &mut Model, step: i32) -> Result<(), Error> {
        change(relations, writer, model.entry(CHILDREN).or_default(), step)
    }
}

fn create_tables(relations: &Relations, writer: &mut Writer) -> Result<(), Error> {
    let key = |column: &str| Some(NewKey { name: None, columns: vec![column.into()] });
    let parents = NewTable {
        name: "parents".into(),
        columns: vec![NewColumn::new("id", Type::Integer)],
        primary_key: key("id"),
        ..NewTable::default()
    };
    let parents = relations.create_table(writer, &parents)?;
    let ids: Vec<_> = (0..PARENTS).map(|id| vec![Value::Integer(id)]).collect();
    insert(relations, writer, "parents", &ids)?;
    let reference = NewForeignKey {
        name: None,
        columns: vec!["parent".into()],
        parent: parents.name.clone(),
        parent_columns: vec!["id".into()],
        on_delete: Action::NoAction,
        on_update: Action::NoAction,
        not_enforced: false,
    };
    let children = NewTable {
        name: "children".into(),
        columns: vec![
            NewColumn::new("key", Type::Integer),
            NewColumn::new("parent", Type::Integer),
            NewColumn::new("note", Type::Text),
        ],
        primary_key: key("key"),
        foreign_keys: vec![reference],
        ..NewTable::default()
    };
    let children = relations.create_table(writer, &children)?;
    relations.create_index(writer, &children, &NewIndex { columns: vec!["note".into()], ..NewIndex::default() })?;
    Ok(())
}

fn row(dice: &mut Dice, key: i32) -> Vec<Value> {
    let note = "n".repeat(dice.below(30) as usize) + &dice.below(9).to_string();
    vec![Value::Integer(key), Value::Integer(dice.below(PARENTS as u64) as i32), Value::Text(note)]
}

/// Rows come, change and go, many more than stay; keys move from row to row.
fn change(relations: &Relations, writer: &mut Writer, model: &mut Rows, step: i32) -> Result<(), Error> {
    let mut dice = Dice::new(step as u64);
    if step % 9 == 4 {
        retype(relations, writer, model)?;
    }
    let table = relations.table(&*writer, "children")?.unwrap();
    let some: Vec<RowId> = model.keys().copied().filter(|_| dice.below(3) == 0).collect();
    match dice.below(4) {
        0 => {
            relations.delete(writer, &table, &some)?;
            model.retain(|row, _| !some.contains(row));
        }
        1 => {
            let moved = some.iter().enumerate().map(|(place, id)| {
                let key = model[&some[(place + 1) % some.len()]][0].clone();
                let mut new = row(&mut dice, 0);
                new[0] = if step % 2 == 0 { key } else { model[id][0].clone() };
                new
            });
            let new: Vec<_> = moved.collect();
            relations.update(writer, &table, &some, &batch(&table, &new))?;
            model.extend(some.into_iter().zip(new));
        }
        _ => {
            let new: Vec<_> = (0..12).map(|place| row(&mut dice, step * 100 + place)).collect();
            let first = insert(relations, writer, "children", &new)?;
            model.extend(new.into_iter().enumerate().map(|(place, row)| (RowId(first.0 + place as u64), row)));
        }
    }
    Ok(())
}

/// Notes lie otherwise in the images of rows from then on, and there is an index over them.
fn retype(relations: &Relations, writer: &mut Writer, model: &Rows) -> Result<(), Error> {
    let table = relations.table(&*writer, "children")?.unwrap();
    let kind = if table.column("note").unwrap().1.kind == Type::Text { Type::Char(40) } else { Type::Text };
    let to = Retype { column: "note", kind, default_value: None, keeps_values: true, aside: "aside" };
    let table = relations.begin_retype(writer, &table, &to)?;
    let (rows, values): (Vec<RowId>, Vec<&Vec<Value>>) = model.iter().map(|(row, values)| (*row, values)).unzip();
    let place = |column: &Column| match column.name.as_str() {
        "key" => 0,
        "parent" => 1,
        _ => 2,
    };
    let images: Vec<Vec<Value>> = values
        .iter()
        .map(|values| table.columns.iter().map(|column| values[place(column)].clone()).collect())
        .collect();
    relations.update(writer, &table, &rows, &batch(&table, &images))?;
    relations.end_retype(writer, &table, &to).map(drop)
}
