//! The C face of the relational engine (feature `relation`): tables on raw flash, filled row by row, asked with compiled plans.
//!
//! 1. What a call changes is part of the commit under way; the first change begins one, [`counterfoil_tables_commit`] ends it.
//! 2. After an error the commit under way is undone, all of it.
//! 3. Tables take memory as they need it, from the heap ([`heap`]); where that ends, the part halts.

mod change;
mod header;
mod heap;
mod value;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::{c_char, c_int, c_void};
use core::ptr;

use counterfoil_flash::{self as flash, BlockNumber, Geometry, PageNumber};
use counterfoil_log::{self as log, Counting, Layout, Media, NoPins, Recovered, Settings, Writer, create};
use counterfoil_relation::{
    Cause, Error, NewColumn, NewForeignKey, NewIndex, NewKey, NewTable, NoScratch, Relations, TableId, Vacuum, ValueRef,
};
use counterfoil_vault::{DatabaseId, HeaderShape, Suite, Vault, VolumeKey};

pub use change::{counterfoil_tables_delete, counterfoil_tables_update};
pub use header::counterfoil_tables_put_header;
use value::text;
pub use value::{CellValue, Column};

use crate::device::{Device, Medium, OneWayCounter, Random};
use crate::{Key, MISUSE, OK};

/// Blocks of each copy of the record store, as few as it takes.
const WINDOW_BLOCKS: u32 = 8;
/// Rows of an index that are not in a run yet, at most, and what all of them take of memory.
const FRESH_ROWS: usize = 64;
const NEW_BYTES: usize = 8 << 10;
/// Runs of an index that are merged into one.
const TIER_RUNS: usize = 2;
/// How much larger the runs of a tier are than those below.
const TIER_GROWTH: usize = 16;

/// What only tables answer; the others are those of records.
const CONSTRAINT: c_int = -40;
const MEMORY: c_int = -41;

/// Tables that are open.
pub struct Tables {
    writer: Writer,
    relations: Relations,
    /// What a header for hosts must say of them.
    shape: HeaderShape,
    /// A reorganization under way: the tables that are still to come, and where it is in the first of them.
    reorganizing: Option<(Vec<TableId>, Vacuum)>,
}

/// The medium below tables, for the writer and for whoever reads: a read may run over into the pages that follow.
#[derive(Clone, Copy)]
struct Shared(Device);

// SAFETY: tables are used by one thread at a time, as the header says; the context goes where they go.
unsafe impl Send for Shared {}
// SAFETY: as above; callbacks are made by that one thread alone.
unsafe impl Sync for Shared {}

impl Shared {
    fn medium(&self) -> Result<Medium, flash::Error> {
        // It was there when the tables were opened.
        let gone = flash::Error::OutOfRange { page: PageNumber(0), page_count: 0 };
        Medium::new(&self.0).ok_or(gone)
    }
}

impl flash::Read for Shared {
    fn geometry(&self) -> Geometry {
        self.0.geometry()
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), flash::Error> {
        let (medium, page_bytes) = (self.medium()?, self.0.geometry().page_bytes);
        let (mut page, mut offset, mut rest) = (page.0 + u64::from(offset / page_bytes), offset % page_bytes, buffer);
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at_mut(rest.len().min((page_bytes - offset) as usize));
            medium.read(PageNumber(page), offset, piece)?;
            (page, offset, rest) = (page + 1, 0, behind);
        }
        Ok(())
    }
}

impl flash::Device for Shared {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), flash::Error> {
        let mut medium = self.medium()?;
        let pages = data.chunks(self.0.geometry().page_bytes as usize);
        (page.0..).zip(pages).try_for_each(|(page, data)| medium.program(PageNumber(page), data))
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), flash::Error> {
        self.medium()?.erase(block)
    }

    fn flush(&mut self) -> Result<(), flash::Error> {
        self.medium()?.flush()
    }
}

/// The number of the header for an error.
fn code_of(error: &Error) -> c_int {
    match error.cause() {
        Cause::Constraint(_) => CONSTRAINT,
        Cause::Memory { .. } => MEMORY,
        Cause::Corrupt { .. } => -3,
        Cause::Log { source, .. } => code_of_log(source),
        _ => MISUSE,
    }
}

fn code_of_log(error: &log::Error) -> c_int {
    match error.cause() {
        log::Cause::Device(_) => -1,
        log::Cause::Tampered { .. } => -2,
        log::Cause::Corrupt { .. } => -3,
        log::Cause::RolledBack { .. } => -5,
        log::Cause::CounterLost { .. } => -6,
        log::Cause::CounterFailed { .. } | log::Cause::CounterHeld { .. } => -7,
        log::Cause::Full { .. } => -8,
        log::Cause::TooLarge { .. } => -12,
        log::Cause::NoEntropy => -16,
        log::Cause::Latched => -18,
        _ => MISUSE,
    }
}

/// Makes tables, or opens those that are there.
fn begin(device: &Device, key: &Key, is_new: bool) -> Result<Tables, c_int> {
    let shared = Shared(*device);
    let geometry = device.geometry();
    let suite = u8::try_from(key.cipher).ok().and_then(Suite::from_number);
    let (Some(suite), Ok(_), 0) = (suite, shared.medium(), device.first_block) else { return Err(-15) };
    let layout = Layout::new(&geometry, geometry.block_pages, WINDOW_BLOCKS).map_err(|_| -15)?;
    let vault = Arc::new(Vault::new(&VolumeKey::from_bytes(&key.volume_key), DatabaseId(key.database), suite));
    let mut counter = OneWayCounter::new(device);
    let counted = match counter.is_there() {
        true => counterfoil_vault::Counter::value(&mut counter).map_err(|_| -7)?.value,
        false => 0,
    };
    let counter = counter.is_there().then(|| Box::new(counter) as _);
    let settings = Settings { counter, counting: Counting::EveryCommit, pins: Box::new(NoPins), headers: None };
    let mut random = Random::new(device);
    let media = Media { reader: Arc::new(shared), writer: Box::new(shared) };
    let writer = match is_new {
        true => create(media, vault, layout, settings, &mut random, counted, 0),
        false => Recovered::recover(media.reader, vault, layout, 0)
            .and_then(|recovered| recovered.open(media.writer, settings, &mut random)),
    };
    let writer = writer.map_err(|error| code_of_log(&error))?;
    let shape = writer.header_shape(DatabaseId(key.database), suite);
    let relations = Relations::with_fresh_rows(FRESH_ROWS).with_head_bytes(0);
    let relations = relations.with_new_bytes(NEW_BYTES).with_tier_runs(TIER_RUNS).with_tier_growth(TIER_GROWTH);
    Ok(Tables { writer, relations, shape, reorganizing: None })
}

impl Tables {
    /// A change within the commit under way, which is undone if it fails.
    fn change(&mut self, body: impl FnOnce(&Relations, &mut Writer) -> Result<(), Error>) -> c_int {
        if !self.writer.is_active()
            && let Err(error) = self.writer.begin()
        {
            return code_of_log(&error);
        }
        match body(&self.relations, &mut self.writer) {
            Ok(()) => OK,
            Err(error) => {
                self.roll_back();
                code_of(&error)
            }
        }
    }

    fn roll_back(&mut self) {
        self.writer.rollback();
        self.relations.rolled_back(&self.writer);
    }

    /// Ends the commit under way; whether it had begun.
    fn commit(&mut self) -> c_int {
        if !self.writer.is_active() {
            return OK;
        }
        match self.writer.commit() {
            Ok(_) => {
                self.relations.committed(&self.writer);
                OK
            }
            Err(error) => {
                self.roll_back();
                code_of_log(&error)
            }
        }
    }

    /// One step of what is due, and its commit; 1 if there may be more.
    fn step(&mut self, body: impl FnOnce(&Relations, &mut Writer) -> Result<bool, Error>) -> c_int {
        if self.writer.is_active() {
            return MISUSE;
        }
        let mut is_more = false;
        let done = self.change(|relations, writer| {
            is_more = body(relations, writer)?;
            Ok(())
        });
        let done = if done == OK { self.commit() } else { done };
        if done == OK { is_more.into() } else { done }
    }

    fn define(&mut self, name: &str, columns: &[value::Described]) -> c_int {
        let key: Vec<String> =
            columns.iter().filter(|column| column.is_primary).map(|column| column.name.clone()).collect();
        let references = columns.iter().filter_map(|column| {
            let parent = column.references.clone()?;
            Some(NewForeignKey { columns: [column.name.clone()].into(), parent, ..NewForeignKey::default() })
        });
        let described = |column: &value::Described| {
            let new = NewColumn::new(column.name.clone(), column.kind);
            if column.not_null { new.not_null() } else { new }
        };
        let new = NewTable {
            name: name.into(),
            columns: columns.iter().map(described).collect(),
            primary_key: (!key.is_empty()).then_some(NewKey { name: None, columns: key }),
            foreign_keys: references.collect(),
            ..NewTable::default()
        };
        self.change(|relations, writer| {
            let mut made = relations.create_table(writer, &new)?;
            for column in columns.iter().filter(|column| column.is_indexed) {
                let index = NewIndex { columns: [column.name.clone()].into(), ..NewIndex::default() };
                made = relations.create_index(writer, &made, &index)?;
            }
            Ok(())
        })
    }

    fn insert(&mut self, name: &str, values: &[CellValue]) -> c_int {
        self.change(|relations, writer| {
            let table = relations.table(writer, name)?.ok_or_else(|| Error::misuse("no such table"))?;
            relations.insert(writer, &table, &change::row_of(&table, values)?).map(drop)
        })
    }

    fn ask(&mut self, plan: &[u8], memory_bytes: usize, each: RowCall, context: *mut c_void) -> Result<c_int, Error> {
        let plan = self.relations.compiled(&self.writer, plan)?;
        let mut answer = self.relations.answer(&self.writer, plan, memory_bytes)?;
        let columns = answer.layout().columns().len();
        let mut cells = Vec::with_capacity(columns);
        while let Some(batch) = answer.next(&self.relations, &mut NoScratch)? {
            for row in 0..batch.count() {
                let values = (0..columns).map(|column| batch.value(row, column));
                let values = values.collect::<Result<Vec<ValueRef<'_>>, _>>()?;
                cells.clear();
                cells.extend(values.iter().map(CellValue::from));
                // SAFETY: the callback is the caller's, and the cells are as many as it is told.
                let wanted = unsafe { each(context, cells.as_ptr(), columns as u32) };
                if wanted != 0 {
                    return Ok(wanted);
                }
            }
        }
        Ok(OK)
    }

    fn reorganize(&mut self) -> c_int {
        let under_way = match self.reorganizing.take() {
            Some(under_way) => Ok(under_way),
            None => self.relations.tables(&self.writer).map(|tables| {
                let ids: Vec<TableId> = tables.iter().map(|table| table.id).collect();
                let first = Vacuum::of(ids.first().copied().unwrap_or(TableId(0)));
                (ids, first)
            }),
        };
        let (mut ids, mut vacuum) = match under_way {
            Ok(under_way) if !under_way.0.is_empty() => under_way,
            Ok(_) => return 0,
            Err(error) => return code_of(&error),
        };
        let done = self.step(|relations, writer| relations.vacuum_step(writer, &mut vacuum));
        if done < 0 {
            return done;
        }
        if done == 0 {
            ids.remove(0);
            vacuum = Vacuum::of(ids.first().copied().unwrap_or(TableId(0)));
        }
        let is_more = !ids.is_empty();
        self.reorganizing = is_more.then_some((ids, vacuum));
        is_more.into()
    }
}

/// What is called for each row of an answer.
type RowCall = unsafe extern "C" fn(*mut c_void, *const CellValue, u32) -> c_int;

/// What some pointers lead to.
///
/// # Safety
/// The pointer is null, or leads to so many of them.
unsafe fn list<'l, T>(at: *const T, count: usize) -> Option<&'l [T]> {
    match (at.is_null(), count) {
        (true, 0) => Some(&[]),
        (true, _) => None,
        // SAFETY: as the caller promised.
        (false, _) => Some(unsafe { core::slice::from_raw_parts(at, count) }),
    }
}

/// # Safety
/// The pointers are null or what the header says.
unsafe fn place(
    tables: *mut *mut Tables,
    (device, key): (*const Device, *const Key),
    (memory, memory_bytes): (*mut c_void, usize),
    is_new: bool,
) -> c_int {
    // SAFETY: the caller promised that these are null, or valid for reads and writes of their types.
    let (Some(tables), Some(device), Some(key)) = (unsafe { (tables.as_mut(), device.as_ref(), key.as_ref()) }) else {
        return MISUSE;
    };
    // SAFETY: the memory is the caller's to give away, as the header says.
    if !unsafe { heap::give(memory.cast(), memory_bytes) } {
        return MISUSE;
    }
    match begin(device, key, is_new) {
        Ok(made) => {
            *tables = Box::into_raw(Box::new(made));
            OK
        }
        Err(code) => code,
    }
}

/// See the header.
///
/// # Safety
/// The pointers are null or what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_tables_create(
    tables: *mut *mut Tables,
    device: *const Device,
    key: *const Key,
    memory: *mut c_void,
    memory_bytes: usize,
) -> c_int {
    // SAFETY: as the caller promised.
    unsafe { place(tables, (device, key), (memory, memory_bytes), true) }
}

/// See the header.
///
/// # Safety
/// The pointers are null or what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_tables_open(
    tables: *mut *mut Tables,
    device: *const Device,
    key: *const Key,
    memory: *mut c_void,
    memory_bytes: usize,
) -> c_int {
    // SAFETY: as the caller promised.
    unsafe { place(tables, (device, key), (memory, memory_bytes), false) }
}

/// See the header.
///
/// # Safety
/// The pointers are null or what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_tables_define(
    tables: *mut Tables,
    name: *const c_char,
    columns: *const Column,
    count: u32,
) -> c_int {
    // SAFETY: as the caller promised.
    let given = unsafe { (tables.as_mut(), text(name), list(columns, count as usize)) };
    let (Some(tables), Some(name), Some(columns)) = given else { return MISUSE };
    // SAFETY: as the caller promised.
    let described: Option<Vec<_>> = columns.iter().map(|column| unsafe { column.described() }).collect();
    described.map_or(MISUSE, |columns| tables.define(name, &columns))
}

/// See the header.
///
/// # Safety
/// The pointers are null or what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_tables_insert(
    tables: *mut Tables,
    name: *const c_char,
    values: *const CellValue,
    count: u32,
) -> c_int {
    // SAFETY: as the caller promised.
    let given = unsafe { (tables.as_mut(), text(name), list(values, count as usize)) };
    let (Some(tables), Some(name), Some(values)) = given else { return MISUSE };
    tables.insert(name, values)
}

/// See the header.
///
/// # Safety
/// The pointer is null, or tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_tables_commit(tables: *mut Tables) -> c_int {
    // SAFETY: as the caller promised.
    unsafe { tables.as_mut() }.map_or(MISUSE, Tables::commit)
}

/// See the header.
///
/// # Safety
/// The pointer is null, or tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_tables_roll_back(tables: *mut Tables) -> c_int {
    // SAFETY: as the caller promised.
    let Some(tables) = (unsafe { tables.as_mut() }) else { return MISUSE };
    tables.roll_back();
    OK
}

/// See the header.
///
/// # Safety
/// The pointers are null or what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_tables_ask(
    tables: *mut Tables,
    plan: *const c_void,
    plan_bytes: usize,
    memory_bytes: usize,
    row: Option<RowCall>,
    context: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promised.
    let given = unsafe { (tables.as_mut(), list(plan.cast::<u8>(), plan_bytes), row) };
    let (Some(tables), Some(plan), Some(row)) = given else { return MISUSE };
    tables.ask(plan, memory_bytes, row, context).unwrap_or_else(|error| code_of(&error))
}

/// See the header.
///
/// # Safety
/// The pointer is null, or tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_tables_maintain(tables: *mut Tables) -> c_int {
    // SAFETY: as the caller promised.
    let Some(tables) = (unsafe { tables.as_mut() }) else { return MISUSE };
    tables.step(|relations, writer| relations.maintain(writer))
}

/// See the header.
///
/// # Safety
/// The pointer is null, or tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_tables_reorganize(tables: *mut Tables) -> c_int {
    // SAFETY: as the caller promised.
    unsafe { tables.as_mut() }.map_or(MISUSE, Tables::reorganize)
}

/// See the header.
///
/// # Safety
/// The pointer is null, or tables; they are none any more after this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_tables_close(tables: *mut Tables) -> c_int {
    if ptr::eq(tables, ptr::null()) {
        return OK;
    }
    // SAFETY: as the caller promised, `place` made it.
    let mut tables = unsafe { Box::from_raw(tables) };
    tables.writer.close().map_or_else(|error| code_of_log(&error), |()| OK)
}
