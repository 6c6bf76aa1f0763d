//! The tables of the MILo-DB paper on a volume of the token.
//!
//! Calls are not inlined into one another: what each needs of the stack is there only while it runs.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Display;

use counterfoil_firmware::ChipCounter;
use counterfoil_firmware::host::File;
use counterfoil_firmware::token::{BLOCK_PAGES, Token};
use counterfoil_flash::Read;
use counterfoil_log::{Counting, Layout, Media, NoPins, Recovered, Settings, Writer, create};
use counterfoil_relation::{
    BUDGET_BYTES_MIN, Error, NewColumn, NewForeignKey, NewIndex, NewKey, NewTable, NoScratch, Relations, RowBuilder,
    RowId, Type, Vacuum, ValueRef,
};
use counterfoil_vault::{DangerFixedEntropy, DatabaseId, HEADER_BYTES, MadeHeader, Suite, Vault, VolumeKey};

use crate::digest;
use crate::figure7::{INDEXED, TABLES, Table};
use crate::{IS_LITTLE, ROWS};

/// Extents of the record store: as few blocks as it takes.
const WINDOW_EXTENTS: u32 = 8;
/// Rows that are loaded with a commit.
const LOAD_ROWS: u64 = if IS_LITTLE { 1 } else { 8 };
/// Rows whose entries are fresh at most.
const FRESH_ROWS: usize = 32;
/// Memory for index entries of new rows, deletes and updates.
const NEW_BYTES: usize = if IS_LITTLE { 2 << 10 } else { (3 << 10) + 512 };
/// Runs of an index that are merged into one.
const TIER_RUNS: usize = 2;
/// How much larger the runs of a tier are than those below.
const TIER_GROWTH: usize = 16;
/// Memory for a question.
const QUESTION_BYTES: usize = BUDGET_BYTES_MIN;

/// The tables that are made, by their places in [`TABLES`]; the last one is the root.
const MADE: &[usize] = if IS_LITTLE { &[0, 3] } else { &[0, 1, 2, 3, 4, 5] };

/// An open volume.
pub struct Volume {
    writer: Writer,
    relations: Relations,
    /// Rows of each table.
    next: [u64; TABLES.len()],
}

fn said(error: impl Display) -> String {
    error.to_string()
}

fn settings() -> Settings {
    let counter = Some(Box::new(ChipCounter) as _);
    Settings { counter, counting: Counting::EveryCommit, pins: Box::new(NoPins), headers: None }
}

/// The key is in the chip. The name is no secret.
const KEY: [u8; 32] = [7; 32];
const NAME: DatabaseId = DatabaseId([1; 32]);
const SUITE: Suite = Suite::AsconAead128;

fn vault() -> Arc<Vault> {
    Arc::new(Vault::new(&VolumeKey::from_bytes(&KEY), NAME, SUITE))
}

/// QEMU's machine has no source of random bytes; a chip has one.
fn entropy() -> DangerFixedEntropy {
    DangerFixedEntropy::seeded(1)
}

fn layout(token: Token) -> Result<Layout, String> {
    Layout::new(&token.geometry(), BLOCK_PAGES as u32, WINDOW_EXTENTS).map_err(said)
}

fn relations() -> Relations {
    let relations = Relations::with_fresh_rows(FRESH_ROWS).with_head_bytes(0).with_new_bytes(NEW_BYTES);
    relations.with_tier_runs(TIER_RUNS).with_tier_growth(TIER_GROWTH)
}

impl Volume {
    /// A new volume, without a table.
    #[inline(never)]
    pub fn create(token: Token) -> Result<Box<Volume>, String> {
        let media = Media { reader: Arc::new(token), writer: Box::new(token) };
        let writer = create(media, vault(), layout(token)?, settings(), &mut entropy(), 0, 0);
        Volume::of(writer)
    }

    /// The volume as the last commit left it.
    #[inline(never)]
    pub fn open(token: Token) -> Result<Box<Volume>, String> {
        Volume::opened(Volume::recovered(token)?, token)
    }

    /// Not beside what opens it, which needs as much of the stack.
    #[inline(never)]
    fn recovered(token: Token) -> Result<Box<Recovered>, String> {
        Recovered::recover(Arc::new(token), vault(), layout(token)?, 0).map_err(said).map(Box::new)
    }

    #[inline(never)]
    fn opened(recovered: Box<Recovered>, token: Token) -> Result<Box<Volume>, String> {
        Volume::of(recovered.open(Box::new(token), settings(), &mut entropy()))
    }

    #[inline(never)]
    fn of(writer: Result<Writer, counterfoil_log::Error>) -> Result<Box<Volume>, String> {
        let writer = writer.map_err(said)?;
        Ok(Box::new(Volume { writer, relations: relations(), next: [0; TABLES.len()] }))
    }

    /// A change, committed, and a step of what is then due.
    fn change<T>(&mut self, body: impl FnOnce(&Relations, &mut Writer) -> Result<T, Error>) -> Result<T, String> {
        self.writer.begin().map_err(said)?;
        let done = body(&self.relations, &mut self.writer).map_err(said)?;
        self.commit()?;
        Ok(done)
    }

    #[inline(never)]
    fn commit(&mut self) -> Result<(), String> {
        self.writer.commit().map_err(said)?;
        self.relations.committed(&self.writer);
        self.writer.begin().map_err(said)?;
        match self.relations.maintain(&mut self.writer).map_err(said)? {
            true => drop(self.writer.commit().map_err(said)?),
            false => self.writer.rollback(),
        }
        self.relations.committed(&self.writer);
        Ok(())
    }

    /// Makes the tables, each with an index on every attribute.
    #[inline(never)]
    pub fn define(&mut self) -> Result<(), String> {
        for table in MADE.iter().map(|place| &TABLES[*place]) {
            self.change(|relations, writer| {
                let mut made = relations.create_table(writer, &described(table))?;
                for column in INDEXED {
                    let index = NewIndex { columns: vec![column.into()], ..NewIndex::default() };
                    made = relations.create_index(writer, &made, &index)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Fills the tables, some rows with a commit; the root lacks some at the end.
    #[inline(never)]
    pub fn load(&mut self, without: u64) -> Result<(), String> {
        for place in MADE.iter().copied() {
            let count = TABLES[place].rows(ROWS) - if place == self.root().0 { without } else { 0 };
            for first in (0..count).step_by(LOAD_ROWS as usize) {
                self.add(place, first..(first + LOAD_ROWS).min(count))?;
            }
        }
        Ok(())
    }

    /// Adds rows to the root, each with a commit of its own.
    #[inline(never)]
    pub fn insert(&mut self, count: u64) -> Result<(), String> {
        let (place, next) = self.root();
        (next..next + count).try_for_each(|row| self.add(place, row..row + 1))
    }

    /// The same until the medium fails; how many rows the root has that were acknowledged.
    pub fn insert_until_the_power_goes(&mut self) -> Result<u64, String> {
        while self.insert(1).is_ok() {}
        Ok(self.root().1)
    }

    /// Puts a header that the host made, so that a program there opens the volume with a secret of its own.
    #[inline(never)]
    pub fn put_header(&mut self) -> Result<(), String> {
        let mut bytes = vec![0; HEADER_BYTES];
        let is_read = File::open(c"header").is_some_and(|file| file.read(0, &mut bytes));
        let made = MadeHeader::new(&bytes, &VolumeKey::from_bytes(&KEY)).filter(|_| is_read);
        let made = made.filter(|made| made.is_for(&self.writer.header_shape(NAME, SUITE)));
        self.writer.put_header(&made.ok_or("no header for this volume")?).map_err(said)
    }

    fn root(&self) -> (usize, u64) {
        let place = MADE.last().copied().unwrap_or_default();
        (place, self.next[place])
    }

    #[inline(never)]
    fn add(&mut self, place: usize, rows: core::ops::Range<u64>) -> Result<(), String> {
        let description = &TABLES[place];
        let end = rows.end;
        self.change(|relations, writer| insert(relations, writer, description, rows))?;
        self.next[place] = end;
        Ok(())
    }

    /// The name of the root.
    pub fn root_name(&self) -> &'static str {
        TABLES[self.root().0].name
    }

    /// Rows of the root.
    pub fn count(&mut self) -> Result<u64, String> {
        let table = self.relations.table(&self.writer, self.root_name()).map_err(said)?.ok_or("no root")?;
        self.relations.count(&self.writer, &table).map_err(said)
    }

    /// Runs a compiled plan; how many rows the answer has, and a digest of what they say.
    #[inline(never)]
    pub fn ask(&self, plan: &[u8]) -> Result<(usize, u64), String> {
        let plan = self.relations.compiled(&self.writer, plan).map_err(said)?;
        let mut answer = self.relations.answer(&self.writer, plan, QUESTION_BYTES).map_err(said)?;
        let (mut rows, mut digest) = (0, 0_u64);
        while let Some(batch) = answer.next(&self.relations, &mut NoScratch).map_err(said)? {
            rows += batch.count();
            digest = digest.wrapping_add(digest::of(&batch).map_err(said)?);
        }
        Ok((rows, digest))
    }

    /// All tables and indexes in one piece each, a step and a commit at a time.
    #[inline(never)]
    pub fn reorganize(&mut self) -> Result<(), String> {
        let tables = self.relations.tables(&self.writer).map_err(said)?;
        let ids: Vec<_> = tables.iter().map(|table| table.id).collect();
        drop(tables);
        for id in ids {
            let mut vacuum = Vacuum::of(id);
            loop {
                self.writer.begin().map_err(said)?;
                let is_more = self.relations.vacuum_step(&mut self.writer, &mut vacuum).map_err(said)?;
                self.writer.commit().map_err(said)?;
                self.relations.committed(&self.writer);
                if !is_more {
                    break;
                }
            }
        }
        Ok(())
    }
}

fn described(table: &Table) -> NewTable {
    let references = table.references.iter().map(|other| NewForeignKey {
        columns: vec![(*other).into()],
        parent: (*other).into(),
        ..NewForeignKey::default()
    });
    let kind = |name: &str| match name {
        "a1" => Type::Text,
        name if INDEXED.contains(&name) => Type::Char(10),
        _ => Type::BigInt,
    };
    NewTable {
        name: table.name.into(),
        columns: table.columns().iter().map(|name| NewColumn::new(name.as_str(), kind(name))).collect(),
        primary_key: Some(NewKey { name: None, columns: vec!["id".into()] }),
        foreign_keys: references.collect(),
        ..NewTable::default()
    }
}

#[inline(never)]
fn insert(
    relations: &Relations,
    writer: &mut Writer,
    description: &Table,
    rows: core::ops::Range<u64>,
) -> Result<RowId, Error> {
    let table = relations.table(writer, description.name)?.ok_or_else(|| Error::misuse("no such table"))?;
    let mut builder = RowBuilder::new(table.layout());
    rows.into_iter().try_for_each(|id| push(&mut builder, description, id))?;
    relations.insert(writer, &table, &builder.finish())
}

fn push(builder: &mut RowBuilder, table: &Table, id: u64) -> Result<(), Error> {
    let row = table.row(id, ROWS);
    let mut values = vec![ValueRef::BigInt(row.id)];
    values.extend(row.references.iter().map(|reference| ValueRef::BigInt(*reference)));
    values.extend(row.values.iter().map(|value| ValueRef::Text(value)));
    values.push(ValueRef::Text(&row.a1));
    builder.push(&values)
}
