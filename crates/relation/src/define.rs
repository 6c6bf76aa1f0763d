//! CREATE TABLE, CREATE INDEX, and dropping them.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use counterfoil_log::Order as _;
use counterfoil_log::View;

use crate::access::{Access, Shared};
use crate::alter::begin_layout;
use crate::catalog::{self, COLUMNS_MAX, NameEntry};
use crate::files::{Coverage, Files, IndexFiles, groups};
use crate::key::Keys;
use crate::path::JOINS_MAX;
use crate::read::Wanted;
use crate::relations::Named;
use crate::{
    Action, Check, Column, ColumnId, Error, ForeignKey, ForeignKeyId, IndexDef, IndexId, IndexOrigin, JoinId, KeyDef,
    NewCheck, NewColumn, NewForeignKey, NewIndex, NewKey, NewTable, Storage, Table, TableId, Type, insert, path,
    settle,
};

/// CREATE TABLE.
pub(crate) fn create_table(shared: &Shared, writer: &mut dyn Storage, new: &NewTable) -> Result<Arc<Table>, Error> {
    catalog::check_name(&new.name)?;
    if catalog::entry(writer, &new.name)?.is_some() {
        return Err(Error::sql(format!("{} already exists", new.name)));
    }
    let id = catalog::next_table(writer)?;
    catalog::take_name(writer, &new.name, NameEntry::Table(id))?;
    let table = Table { engine: new.engine.clone(), ..empty_table(id, &new.name) };
    let mut making = Making { shared, writer, table };
    for column in &new.columns {
        making.add_column(column)?;
    }
    making.table.layouts = Vec::from([making.table.stored_layout()]);
    if let Some(key) = &new.primary_key {
        making.add_primary_key(key)?;
    }
    new.uniques.iter().try_for_each(|key| making.add_unique(key))?;
    new.checks.iter().try_for_each(|check| making.add_check(check))?;
    new.foreign_keys.iter().try_for_each(|key| making.add_foreign_key(key))?;
    let Making { table, .. } = making;
    store(shared, writer, &table)?;
    catalog::put_files(writer, id, &Files::default())?;
    let none = IndexFiles::empty(Coverage::default());
    table.indexes.iter().try_for_each(|index| catalog::put_index(writer, id, index.id, &none))?;
    path::redefine(shared, writer, id)?;
    reread(shared, writer, id)
}

fn empty_table(id: TableId, name: &str) -> Table {
    Table {
        id,
        name: name.into(),
        columns: Vec::new(),
        primary_key: None,
        uniques: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        joins: Vec::new(),
        indexes: Vec::new(),
        children: Vec::new(),
        retired: Vec::new(),
        layouts: Vec::new(),
        next_column: 1,
        next_index: 1,
        next_foreign_key: 1,
        next_join: 1,
        engine: None,
        shape: None,
    }
}

/// Writes a table's description.
pub(crate) fn store(_: &Shared, writer: &mut dyn Storage, table: &Table) -> Result<(), Error> {
    catalog::put_table(writer, table)
}

/// A table as it now is.
pub(crate) fn reread(shared: &Shared, view: &dyn View, id: TableId) -> Result<Arc<Table>, Error> {
    shared.catalog.table(view, id)?.ok_or_else(|| Error::sql("this table no longer exists"))
}

/// A table under construction.
pub(crate) struct Making<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) writer: &'a mut dyn Storage,
    pub(crate) table: Table,
}

/// A column for a table, with its number.
pub(crate) fn new_column(table: &mut Table, new: &NewColumn) -> Result<Column, Error> {
    catalog::check_name(&new.name)?;
    if table.column(&new.name).is_some() {
        return Err(Error::sql(format!("table {} has a column {} already", table.name, new.name)));
    }
    if table.columns.len() == COLUMNS_MAX {
        return Err(Error::sql(format!(
            "table {} has no room for column {}: a table has at most {COLUMNS_MAX}",
            table.name, new.name
        )));
    }
    if !new.kind.is_valid() {
        return Err(Error::sql(format!("the type of column {} does not exist", new.name)));
    }
    if new.default_value.as_ref().is_some_and(|value| !value.fits(new.kind)) {
        return Err(Error::misuse("a default of another type than its column"));
    }
    if let Some(identity) = new.identity {
        let counts = matches!(new.kind, Type::SmallInt | Type::Integer | Type::BigInt);
        if !counts || identity.increment == 0 {
            return Err(Error::sql(format!(
                "identity column {} must be an integer with a step other than 0",
                new.name
            )));
        }
    }
    let id = ColumnId(table.next_column);
    table.next_column = table.next_column.checked_add(1).ok_or_else(|| Error::misuse("no more column numbers"))?;
    Ok(Column {
        id,
        name: new.name.clone(),
        kind: new.kind,
        not_null: new.not_null || new.identity.is_some(),
        default: new.default.clone(),
        default_value: new.default_value.clone(),
        identity: new.identity,
        added_default: None,
    })
}

/// Columns by name, none twice.
fn columns_of(table: &Table, names: &[String]) -> Result<Vec<ColumnId>, Error> {
    let mut ids = Vec::with_capacity(names.len());
    for name in names {
        let (_, column) =
            table.column(name).ok_or_else(|| Error::sql(format!("table {} has no column {name}", table.name)))?;
        if ids.contains(&column.id) {
            return Err(Error::sql(format!("column {name} is named twice")));
        }
        ids.push(column.id);
    }
    if ids.is_empty() {
        return Err(Error::sql("a key has at least one column"));
    }
    Ok(ids)
}

/// An index definition with its number and a name that is taken.
pub(crate) fn new_index(
    writer: &mut dyn Storage,
    table: &mut Table,
    name: &str,
    columns: Vec<ColumnId>,
    origin: IndexOrigin,
    unique: bool,
) -> Result<IndexId, Error> {
    let id = IndexId(table.next_index);
    table.next_index = table.next_index.checked_add(1).ok_or_else(|| Error::misuse("no more index numbers"))?;
    if origin.takes_name() {
        catalog::take_name(writer, name, NameEntry::Index(table.id, id))?;
    }
    table.indexes.push(IndexDef { id, name: name.into(), columns, unique, origin });
    Ok(id)
}

impl Making<'_> {
    fn add_column(&mut self, new: &NewColumn) -> Result<(), Error> {
        let column = new_column(&mut self.table, new)?;
        self.table.columns.push(column);
        Ok(())
    }

    fn name_or(&self, given: &Option<String>, made_up: String) -> Result<String, Error> {
        match given {
            Some(name) => Ok(name.clone()),
            None => catalog::free_name_like(&*self.writer, &made_up),
        }
    }

    pub(crate) fn add_primary_key(&mut self, new: &NewKey) -> Result<(), Error> {
        let columns = columns_of(&self.table, &new.columns)?;
        let name = self.name_or(&new.name, format!("{}_pkey", self.table.name))?;
        for column in self.table.columns.iter_mut().filter(|column| columns.contains(&column.id)) {
            column.not_null = true;
        }
        let index = new_index(self.writer, &mut self.table, &name, columns.clone(), IndexOrigin::PrimaryKey, true)?;
        self.table.primary_key = Some(KeyDef { name, columns, index });
        Ok(())
    }

    pub(crate) fn add_unique(&mut self, new: &NewKey) -> Result<(), Error> {
        let columns = columns_of(&self.table, &new.columns)?;
        let name = self.name_or(&new.name, format!("{}_{}_key", self.table.name, new.columns.join("_")))?;
        let index = new_index(self.writer, &mut self.table, &name, columns.clone(), IndexOrigin::Unique, true)?;
        self.table.uniques.push(KeyDef { name, columns, index });
        Ok(())
    }

    /// A name for a constraint without an index, unique within the table.
    fn constraint_name(&self, given: &Option<String>, made_up: String) -> Result<String, Error> {
        let taken = |name: &str| {
            let keys = self.table.primary_key.iter().chain(&self.table.uniques).map(|key| &key.name);
            let checks = self.table.checks.iter().map(|check| &check.name);
            let foreign = self.table.foreign_keys.iter().map(|key| &key.name);
            keys.chain(checks).chain(foreign).any(|there| there == name)
        };
        match given {
            Some(name) if taken(name) => Err(Error::sql(format!("constraint {name} is named twice"))),
            Some(name) => catalog::check_name(name).map(|()| name.clone()),
            None => {
                let numbered = |number: u32| format!("{made_up}{number}");
                let mut names = core::iter::once(made_up.clone()).chain((1..).map(numbered));
                names.find(|name| !taken(name)).ok_or_else(|| Error::misuse("no more constraint names"))
            }
        }
    }

    pub(crate) fn add_check(&mut self, new: &NewCheck) -> Result<(), Error> {
        let columns = match new.columns.is_empty() {
            true => Vec::new(),
            false => columns_of(&self.table, &new.columns)?,
        };
        let made_up = match new.columns.as_slice() {
            [column] => format!("{}_{column}_check", self.table.name),
            _ => format!("{}_check", self.table.name),
        };
        let name = self.constraint_name(&new.name, made_up)?;
        self.table.checks.push(Check { name, sql: new.sql.clone(), columns });
        Ok(())
    }

    pub(crate) fn add_foreign_key(&mut self, new: &NewForeignKey) -> Result<(), Error> {
        let columns = columns_of(&self.table, &new.columns)?;
        let parent = self.parent(&new.parent)?;
        let parent_columns = self.parent_columns(&parent, new)?;
        let made_up = format!("{}_{}_fkey", self.table.name, new.columns.join("_"));
        let name = self.constraint_name(&new.name, made_up)?;
        if parent.engine.is_some() {
            let what = format!("foreign key {name} to table {}, whose rows another engine keeps", parent.name);
            return Err(Error::not_supported(what));
        }
        if self.table.foreign_keys.len() == JOINS_MAX {
            return Err(Error::sql(format!("a table has at most {JOINS_MAX} foreign keys")));
        }
        path::refuse_cycle(self.shared, &*self.writer, &name, &self.table, &parent)?;
        if parent_columns.len() != columns.len() {
            let (own, other) = (columns.len(), parent_columns.len());
            let text = format!("foreign key {name} has {own} columns and references {other}: it needs as many");
            return Err(Error::sql(text));
        }
        for (own, other) in columns.iter().zip(&parent_columns) {
            let column = |table: &Table, id| table.position(id).map(|place| table.columns[place].clone());
            let Some((one, two)) = column(&self.table, *own).zip(column(&parent, *other)) else { continue };
            if !one.kind.keys_like(&two.kind) {
                let (own, other) = (&one.name, &two.name);
                return Err(Error::not_supported(format!(
                    "foreign key {name}, since column {own} has another type than column {other} of table {}: give both the same",
                    parent.name
                )));
            }
        }
        let parent_index = key_over(&parent, &parent_columns).ok_or_else(|| {
            Error::sql(format!(
                "table {} has no unique constraint over the columns that {name} references",
                parent.name
            ))
        })?;
        self.check_defaults(new, &name, &columns)?;
        let paired = crate::reference::paired(&columns, &parent_columns, &parent_index.columns);
        let paired = paired.ok_or_else(|| Error::corrupt(&parent.name, "index behind a key"))?;
        let key = ForeignKey {
            id: ForeignKeyId(self.table.next_foreign_key),
            parent: parent.id,
            parent_index: parent_index.id,
            index: self.child_index(&name, paired)?,
            name,
            columns,
            parent_columns,
            on_delete: new.on_delete,
            on_update: new.on_update,
            enforced: !new.not_enforced,
        };
        self.table.next_foreign_key =
            key.id.0.checked_add(1).ok_or_else(|| Error::misuse("no more numbers of foreign keys"))?;
        self.table.foreign_keys.push(key);
        self.note_child(parent)
    }

    /// SET DEFAULT can only set what is known here.
    fn check_defaults(&self, new: &NewForeignKey, name: &str, columns: &[ColumnId]) -> Result<(), Error> {
        let sets_default = [new.on_delete, new.on_update].contains(&Action::SetDefault);
        let computed = |column: &Column| column.default.is_some() && column.default_value.is_none();
        let own = self.table.columns.iter().filter(|column| columns.contains(&column.id));
        if sets_default && { own }.any(computed) {
            return Err(Error::not_supported(format!("SET DEFAULT in {name} with a default that is not a constant")));
        }
        Ok(())
    }

    fn parent(&self, name: &str) -> Result<Table, Error> {
        if name == self.table.name {
            return Ok(self.table.clone());
        }
        match self.shared.catalog.named(&*self.writer, name)? {
            Some(Named::Table(parent)) => Ok((*parent).clone()),
            _ => Err(Error::sql(format!("table {name} does not exist"))),
        }
    }

    fn parent_columns(&self, parent: &Table, new: &NewForeignKey) -> Result<Vec<ColumnId>, Error> {
        if !new.parent_columns.is_empty() {
            return columns_of(parent, &new.parent_columns);
        }
        let key = parent.primary_key.as_ref();
        let key = key.ok_or_else(|| Error::sql(format!("table {} has no primary key to reference", parent.name)))?;
        Ok(key.columns.clone())
    }

    /// An index that begins with these columns in this order and lives as long as the table: one behind a key, or a new
    /// one.
    fn child_index(&mut self, name: &str, columns: Vec<ColumnId>) -> Result<IndexId, Error> {
        let lasts = |origin| !matches!(origin, IndexOrigin::Created | IndexOrigin::Path(_));
        let fits = |index: &&IndexDef| lasts(index.origin) && index.columns.starts_with(&columns);
        if let Some(index) = self.table.indexes.iter().find(fits) {
            return Ok(index.id);
        }
        new_index(self.writer, &mut self.table, name, columns, IndexOrigin::ForeignKey, false)
    }

    fn note_child(&mut self, mut parent: Table) -> Result<(), Error> {
        if parent.id == self.table.id {
            self.table.children.push(self.table.id);
            return Ok(());
        }
        parent.children.push(self.table.id);
        catalog::put_table(self.writer, &parent)
    }
}

/// The unique index behind a key over exactly these columns, in whatever order.
fn key_over<'a>(table: &'a Table, columns: &[ColumnId]) -> Option<&'a IndexDef> {
    let same = |key: &&KeyDef| key.columns.len() == columns.len() && columns.iter().all(|c| key.columns.contains(c));
    let keys = table.primary_key.iter().chain(&table.uniques);
    let key = { keys }.find(same);
    match key {
        Some(key) => table.index(key.index),
        // CREATE UNIQUE INDEX does as well; DROP INDEX then refuses to drop it.
        None => table.indexes.iter().find(|index| {
            index.unique && index.columns.len() == columns.len() && columns.iter().all(|c| index.columns.contains(c))
        }),
    }
}

/// CREATE INDEX.
pub(crate) fn create_index(
    shared: &Shared,
    writer: &mut dyn Storage,
    id: TableId,
    new: &NewIndex,
) -> Result<Arc<Table>, Error> {
    let access = shared.access_to_write(writer, id)?;
    let mut table = (*access.table).clone();
    let columns = columns_of(&table, &new.columns)?;
    let name = match &new.name {
        Some(name) => name.clone(),
        None => catalog::free_name_like(writer, &format!("{}_{}_idx", table.name, new.columns.join("_")))?,
    };
    let index = new_index(writer, &mut table, &name, columns, IndexOrigin::Created, new.unique)?;
    store(shared, writer, &table)?;
    fill_index(shared, writer, &access, index)
}

/// Fills a new index of a table, whose definition is stored, with the rows that there were `before` it.
pub(crate) fn fill_index(
    shared: &Shared,
    writer: &mut dyn Storage,
    before: &Access,
    index: IndexId,
) -> Result<Arc<Table>, Error> {
    let id = before.table.id;
    catalog::put_index(writer, id, index, &IndexFiles::empty(Coverage::none(before.files.rewrites)))?;
    let table = reread(shared, writer, id)?;
    let definition = table.index(index).ok_or_else(|| Error::misuse("an index that is not there"))?;
    let rows: u64 = before.parts.iter().map(|part| part.count).sum();
    if rows > shared.fresh_rows as u64 {
        settle::build(shared, writer, id, definition)?;
    }
    if definition.unique {
        check_unique(shared, writer, &table, definition)?;
    }
    Ok(table)
}

/// Checks that the rows there are have different keys.
fn check_unique(shared: &Shared, view: &dyn View, table: &Table, index: &IndexDef) -> Result<(), Error> {
    let access = shared.access_to_write(view, table.id)?;
    let places = access.places(&index.columns)?;
    let reader = shared.index(view, &access, index, true)?;
    for part in 0..access.parts.len() {
        let mut position = 0;
        while position < access.parts[part].count {
            let count = (access.parts[part].count - position).min(4096) as usize;
            let block = access.read(view, part, position, count, &Wanted::only(&places))?;
            position += block.count() as u64;
            let keys = Keys::of(&block.rows, &places).map_err(access.named())?;
            let mut which = keys.sorted();
            which.retain(|row| block.is_visible(*row));
            // First within the block: after that a key has few candidates, or the second of them ends it.
            let twice = which.windows(2).any(|pair| keys.key(pair[0]) == keys.key(pair[1]));
            if twice {
                return Err(insert::not_unique(table, index));
            }
            let found = reader.matches(&keys, &which)?;
            if found.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                return Err(insert::not_unique(table, index));
            }
        }
    }
    Ok(())
}

/// DROP INDEX.
pub(crate) fn drop_index(shared: &Shared, writer: &mut dyn Storage, name: &str) -> Result<(), Error> {
    let Some(Named::Index(table, index)) = shared.catalog.named(writer, name)? else {
        return Err(Error::sql(format!("index {name} does not exist")));
    };
    let definition = table.index(index).ok_or_else(|| Error::corrupt(&table.name, "name of an index"))?;
    if definition.origin != IndexOrigin::Created {
        return Err(Error::sql(format!("index {name} belongs to a constraint of table {}", table.name)));
    }
    for child in children(shared, writer, &table)? {
        if child.foreign_keys.iter().any(|key| key.parent == table.id && key.parent_index == index) {
            return Err(Error::sql(format!("index {name} is referenced by foreign keys of table {}", child.name)));
        }
    }
    let mut changed = (*table).clone();
    remove_indexes(shared, writer, &mut changed, &[index])?;
    store(shared, writer, &changed)
}

/// Drops indexes of a table, with their runs and names. The caller stores the table.
pub(crate) fn remove_indexes(
    shared: &Shared,
    writer: &mut dyn Storage,
    table: &mut Table,
    gone: &[IndexId],
) -> Result<(), Error> {
    if gone.is_empty() {
        return Ok(());
    }
    let files = shared.catalog.files(writer, table)?;
    for index in gone {
        let of_index = shared.catalog.take_index(writer, (table, &files), *index)?;
        let groups = groups(of_index.all_runs());
        groups.into_iter().try_for_each(|group| shared.drop_group(writer, &table.name, group))?;
        catalog::delete_index(writer, table.id, *index)?;
    }
    for index in table.indexes.iter().filter(|index| gone.contains(&index.id) && index.origin.takes_name()) {
        catalog::free_name(writer, &index.name)?;
    }
    table.indexes.retain(|index| !gone.contains(&index.id));
    Ok(())
}

/// The tables with foreign keys to a table, the table itself apart.
pub(crate) fn children(shared: &Shared, view: &dyn View, table: &Table) -> Result<Vec<Arc<Table>>, Error> {
    let mut ids = table.children.clone();
    ids.order();
    ids.dedup();
    ids.retain(|id| *id != table.id);
    ids.into_iter().map(|id| reread(shared, view, id)).collect()
}

/// DROP TABLE.
pub(crate) fn drop_table(shared: &Shared, writer: &mut dyn Storage, id: TableId, cascade: bool) -> Result<(), Error> {
    let access = shared.access_to_write(writer, id)?;
    for child in children(shared, writer, &access.table)? {
        if !cascade {
            return Err(Error::sql(format!(
                "table {} is referenced by foreign keys of table {}: CASCADE drops them",
                access.table.name, child.name
            )));
        }
        // As it is now: what went of another child's foreign keys may have changed its paths.
        let child = reread(shared, writer, child.id)?;
        drop_foreign_keys(shared, writer, &child, &|key| key.parent == id)?;
    }
    forget_parents(shared, writer, &access.table, id)?;
    drop_groups(shared, writer, &access)?;
    for index in access.table.indexes.iter().filter(|index| index.origin.takes_name()) {
        catalog::free_name(writer, &index.name)?;
    }
    catalog::free_name(writer, &access.table.name)?;
    catalog::delete_table(writer, &access.table)
}

/// Drops all containers of a table.
pub(crate) fn drop_groups(shared: &Shared, writer: &mut dyn Storage, access: &Access) -> Result<(), Error> {
    let drop_group = |writer: &mut dyn Storage, group| shared.drop_group(writer, &access.table.name, group);
    access.files.segments.iter().try_for_each(|segment| drop_group(writer, segment.group()))?;
    for index in &access.table.indexes {
        let files = shared.take_index(writer, access, index.id)?;
        groups(files.all_runs()).into_iter().try_for_each(|group| drop_group(writer, group))?;
    }
    Ok(())
}

/// Takes a table off its parents' lists of children.
fn forget_parents(shared: &Shared, writer: &mut dyn Storage, table: &Table, child: TableId) -> Result<(), Error> {
    for key in table.foreign_keys.iter().filter(|key| key.parent != child) {
        forget_child(shared, writer, key.parent, child)?;
    }
    Ok(())
}

/// Takes one foreign key's child off its parent's list.
fn forget_child(shared: &Shared, writer: &mut dyn Storage, parent: TableId, child: TableId) -> Result<(), Error> {
    let Some(parent) = shared.catalog.table(writer, parent)? else { return Ok(()) };
    let mut parent = (*parent).clone();
    if let Some(place) = parent.children.iter().position(|id| *id == child) {
        parent.children.remove(place);
    }
    catalog::put_table(writer, &parent)
}

/// Drops some foreign keys of a table, with the indexes that only they needed.
pub(crate) fn drop_foreign_keys(
    shared: &Shared,
    writer: &mut dyn Storage,
    table: &Table,
    which: &dyn Fn(&ForeignKey) -> bool,
) -> Result<(), Error> {
    let mut changed = table.clone();
    let (gone, kept) = changed.foreign_keys.into_iter().partition::<Vec<_>, _>(|key| which(key));
    changed.foreign_keys = kept;
    let joins = changed.joins.len();
    changed.joins.retain(|join| !gone.iter().any(|key| join.steps.first() == Some(&key.step())));
    if changed.joins.len() < joins {
        begin_layout(&mut changed)?;
    }
    for key in gone.iter().filter(|key| key.parent == table.id) {
        let place = changed.children.iter().position(|id| *id == key.parent);
        place.map(|place| changed.children.remove(place));
    }
    let needed = |id: IndexId| changed.foreign_keys.iter().any(|key| key.index == id);
    let leads = |id: JoinId| changed.joins.iter().any(|join| join.id == id);
    let unneeded = |index: &&IndexDef| match index.origin {
        IndexOrigin::ForeignKey => !needed(index.id),
        IndexOrigin::Path(join) => !leads(join),
        _ => false,
    };
    let indexes: Vec<_> = changed.indexes.iter().filter(unneeded).map(|index| index.id).collect();
    remove_indexes(shared, writer, &mut changed, &indexes)?;
    store(shared, writer, &changed)?;
    gone.iter()
        .filter(|key| key.parent != table.id)
        .try_for_each(|key| forget_child(shared, writer, key.parent, table.id))?;
    path::redefine(shared, writer, table.id)
}
