//! A plan as bytes: compiled where there is a planner, kept or sent along, and run where there is none.
//!
//! ```text
//! format 1 | sources | outputs | groups | having | flags | order | offset? | limit? | shown | conditions?
//! ```
//! SPEC.md ("compiled plans") has every byte. Tables, columns and paths stand there by their numbers, which are never used again: a
//! plan of a table that was altered finds its columns, or is refused.
//!
//! Invariants:
//! 1. what is decoded makes sense for the tables of the view: constants are of the type of their columns, places are there;
//! 2. no bytes make it take more memory than their own length and that of [`ELEMENTS_MAX`] tests, nor nest deeper than [`DEPTH_MAX`];
//! 3. a plan has one encoding: what is decoded is encoded to the same bytes again.

use alloc::sync::Arc;
use alloc::vec::Vec;

use counterfoil_log::View;

use super::{Comparison, Condition, Constant, Function, Order, Output, Place, Plan, Source, Test};
use crate::{ColumnId, Error, Relations, Table, TableId, Type};

/// Bytes of a plan at most.
pub const PLAN_BYTES_MAX: usize = 4096;
/// Elements of all lists of a plan, at most.
const ELEMENTS_MAX: usize = 256;
/// Tests within tests, and conditions within conditions, at most.
const DEPTH_MAX: usize = 8;
const FORMAT: u8 = 1;

const DISTINCT: u8 = 1;
const OFFSET: u8 = 2;
const LIMIT: u8 = 4;
const CONDITIONS: u8 = 8;
const DESCENDING: u8 = 1;
const NULLS_FIRST: u8 = 2;

const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::Unequal,
    Comparison::Less,
    Comparison::AtMost,
    Comparison::Greater,
    Comparison::AtLeast,
];
const FUNCTIONS: [Function; 5] = [Function::Count, Function::Sum, Function::Mean, Function::Least, Function::Greatest];

/// The first byte of a test: a comparison has 2 and its place in [`COMPARISONS`].
mod kind {
    pub(super) const NULL: u8 = 0;
    pub(super) const NOT_NULL: u8 = 1;
    pub(super) const COMPARE: u8 = 2;
    pub(super) const IN: u8 = 8;
    pub(super) const ALL: u8 = 9;
    pub(super) const ANY: u8 = 10;
    pub(super) const NEVER: u8 = 11;
}

/// The first byte of a condition.
mod condition {
    pub(super) const OF: u8 = 0;
    pub(super) const ALL: u8 = 1;
    pub(super) const ANY: u8 = 2;
}

/// The first byte of an output: an aggregate has 2 and the place of its function in [`FUNCTIONS`].
const COLUMN: u8 = 0;
const COUNT_ROWS: u8 = 1;
const AGGREGATE: u8 = 2;

impl Plan {
    /// The plan as bytes, for [`Relations::compiled`].
    ///
    /// # Errors
    /// [`Error::misuse`] for a plan that makes no sense, or is larger than [`PLAN_BYTES_MAX`].
    pub fn compile(&self) -> Result<Vec<u8>, Error> {
        self.check()?;
        let mut bytes = Bytes(Vec::from([FORMAT]), 0);
        bytes.list(&self.sources, |bytes, source| self.put_source(bytes, source))?;
        bytes.list(&self.outputs, |bytes, output| self.put_output(bytes, output))?;
        bytes.list(&self.groups, |bytes, place| self.put_place(bytes, *place))?;
        bytes.list(&self.having, |bytes, test| put_test(bytes, test, 0, &|place| self.output_at(place)))?;
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let (offset, limit) = (flag(self.offset > 0, OFFSET), flag(self.limit.is_some(), LIMIT));
        let conditions = flag(!self.conditions.is_empty(), CONDITIONS);
        bytes.0.push(flag(self.is_distinct, DISTINCT) | offset | limit | conditions);
        bytes.list(&self.order, |bytes, order| {
            bytes.number(order.output as u64);
            bytes.0.push(flag(order.is_descending, DESCENDING) | flag(order.nulls_first, NULLS_FIRST));
            Ok(())
        })?;
        [Some(self.offset).filter(|offset| *offset > 0), self.limit]
            .into_iter()
            .flatten()
            .for_each(|n| bytes.number(n));
        bytes.number(self.shown as u64);
        if !self.conditions.is_empty() {
            bytes.list(&self.conditions, |bytes, condition| self.put_condition(bytes, condition, 0))?;
        }
        if bytes.0.len() > PLAN_BYTES_MAX || bytes.1 > ELEMENTS_MAX {
            return Err(Error::misuse("a plan that is larger than a compiled one may be"));
        }
        Ok(bytes.0)
    }

    fn put_source(&self, bytes: &mut Bytes, source: &Source) -> Result<(), Error> {
        bytes.number(source.table.id.0);
        let root = self.sources.iter().find(|source| source.path.is_none());
        let join = |path: usize| root.and_then(|root| root.table.joins.get(path)).map(|join| u64::from(join.id.0) + 1);
        match source.path {
            None => bytes.number(0),
            Some(path) => bytes.number(join(path).ok_or_else(|| Error::misuse("a path that is not there"))?),
        }
        bytes.0.push(u8::from(source.is_optional));
        bytes.list(&source.tests, |bytes, test| put_test(bytes, test, 0, &|column| column_of(&source.table, column)))
    }

    fn put_condition(&self, bytes: &mut Bytes, condition: &Condition, depth: usize) -> Result<(), Error> {
        match condition {
            Condition::Of(place, test) => {
                let source = self.sources.get(*place).ok_or_else(|| Error::misuse("a source that is not there"))?;
                bytes.0.push(condition::OF);
                bytes.number(*place as u64);
                put_test(bytes, test, 0, &|column| column_of(&source.table, column))
            }
            Condition::All(conditions) | Condition::Any(conditions) if depth < DEPTH_MAX => {
                bytes.0.push(if matches!(condition, Condition::All(_)) { condition::ALL } else { condition::ANY });
                bytes.list(conditions, |bytes, condition| self.put_condition(bytes, condition, depth + 1))
            }
            Condition::All(_) | Condition::Any(_) => {
                Err(Error::misuse("conditions within conditions within conditions"))
            }
        }
    }

    fn put_output(&self, bytes: &mut Bytes, output: &Output) -> Result<(), Error> {
        match output {
            Output::Column(place) => {
                bytes.0.push(COLUMN);
                self.put_place(bytes, *place)
            }
            Output::CountRows => {
                bytes.0.push(COUNT_ROWS);
                Ok(())
            }
            Output::Aggregate(function, place) => {
                let number = FUNCTIONS.iter().position(|known| known == function).unwrap_or_default();
                bytes.0.push(AGGREGATE + number as u8);
                self.put_place(bytes, *place)
            }
        }
    }

    fn output_at(&self, place: usize) -> Result<(u64, Type), Error> {
        let output = self.outputs.get(place).ok_or_else(|| Error::misuse("an output that is not there"))?;
        Ok((place as u64, self.kind_of(*output)?))
    }

    fn put_place(&self, bytes: &mut Bytes, place: Place) -> Result<(), Error> {
        let source = self.sources.get(place.source).ok_or_else(|| Error::misuse("a source that is not there"))?;
        bytes.number(place.source as u64);
        bytes.number(column_of(&source.table, place.column)?.0);
        Ok(())
    }
}

fn column_of(table: &Table, place: usize) -> Result<(u64, Type), Error> {
    let column = table.columns.get(place).ok_or_else(|| Error::misuse("a column that is not there"))?;
    Ok((u64::from(column.id.0), column.kind))
}

/// How a test names a column, and its type: by its number, or in HAVING by its place among the outputs.
type Name<'n> = &'n dyn Fn(usize) -> Result<(u64, Type), Error>;

fn put_test(bytes: &mut Bytes, test: &Test, depth: usize, name: Name<'_>) -> Result<(), Error> {
    match test {
        Test::Null { column, wanted } => {
            bytes.0.push(if *wanted { kind::NULL } else { kind::NOT_NULL });
            bytes.number(name(*column)?.0);
        }
        Test::Compare { column, comparison, constant } => {
            let number = COMPARISONS.iter().position(|known| known == comparison).unwrap_or_default();
            bytes.0.push(kind::COMPARE + number as u8);
            let (column, of) = name(*column)?;
            bytes.number(column);
            put_constant(bytes, constant, of)?;
        }
        Test::In { column, constants } => {
            bytes.0.push(kind::IN);
            let (column, of) = name(*column)?;
            bytes.number(column);
            bytes.list(constants, |bytes, constant| put_constant(bytes, constant, of))?;
        }
        Test::All(tests) | Test::Any(tests) if depth < DEPTH_MAX => {
            bytes.0.push(if matches!(test, Test::All(_)) { kind::ALL } else { kind::ANY });
            bytes.list(tests, |bytes, test| put_test(bytes, test, depth + 1, name))?;
        }
        Test::All(_) | Test::Any(_) => return Err(Error::misuse("tests within tests within tests")),
        Test::Never => bytes.0.push(kind::NEVER),
    }
    Ok(())
}

/// A constant: which sort it is follows from the type of its column.
fn put_constant(bytes: &mut Bytes, constant: &Constant, of: Type) -> Result<(), Error> {
    match (constant, sort_of(of)) {
        // Small numbers of either sign are short.
        (Constant::Whole(number), Sort::Whole) => bytes.number(((number << 1) ^ (number >> 63)) as u64),
        (Constant::Float(number), Sort::Float) => bytes.0.extend(number.to_le_bytes()),
        (Constant::Decimal(number), Sort::Decimal) => bytes.0.extend(number.to_le_bytes()),
        (Constant::Bytes(value), Sort::Sixteen) if value.len() == 16 => bytes.0.extend(value),
        (Constant::Bytes(value), Sort::Sized) => {
            bytes.number(value.len() as u64);
            bytes.0.extend(value);
        }
        _ => return Err(Error::misuse("a constant of another type than its column")),
    }
    Ok(())
}

/// How constants of a type are written.
enum Sort {
    Whole,
    Float,
    Decimal,
    Sixteen,
    Sized,
}

fn sort_of(kind: Type) -> Sort {
    match kind {
        Type::Real | Type::Double => Sort::Float,
        Type::Numeric { .. } => Sort::Decimal,
        Type::Uuid => Sort::Sixteen,
        kind if kind.is_variable() => Sort::Sized,
        _ => Sort::Whole,
    }
}

/// Bytes in the making, and how many elements their lists have.
struct Bytes(Vec<u8>, usize);

impl Bytes {
    /// Seven bits a byte, the lowest first.
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn list<T>(&mut self, all: &[T], mut put: impl FnMut(&mut Bytes, &T) -> Result<(), Error>) -> Result<(), Error> {
        self.number(all.len() as u64);
        self.1 += all.len();
        all.iter().try_for_each(|one| put(self, one))
    }
}

impl Relations {
    /// The plan that some bytes are, for the tables of a view. They may come from anywhere.
    ///
    /// # Errors
    /// [`Error::misuse`] for bytes that are no plan, or none for these tables; [`Error::corrupt`] for a catalog that makes no sense.
    pub fn compiled(&self, view: &dyn View, bytes: &[u8]) -> Result<Plan, Error> {
        let rest = bytes.strip_prefix(&[FORMAT]).filter(|_| bytes.len() <= PLAN_BYTES_MAX).ok_or_else(no_plan)?;
        let mut reader = Reader { rest, elements_left: ELEMENTS_MAX };
        let sources = self.sources(view, &mut reader)?;
        let mut plan = Plan { sources, ..Plan::default() };
        plan.outputs = reader.list(|reader| reader.output(&plan.sources))?;
        plan.groups = reader.list(|reader| reader.place(&plan.sources))?;
        let kinds = plan.outputs.iter().map(|output| plan.kind_of(*output)).collect::<Result<Vec<_>, _>>()?;
        plan.having = reader.list(|reader| {
            reader.test(0, &|number| {
                let place = usize::try_from(number).ok().filter(|place| *place < kinds.len());
                place.map(|place| (place, kinds[place])).ok_or_else(other_tables)
            })
        })?;
        let flags = reader.flags(DISTINCT | OFFSET | LIMIT | CONDITIONS)?;
        plan.is_distinct = flags & DISTINCT != 0;
        plan.order = reader.list(|reader| {
            let (output, flags) = (reader.size()?, reader.flags(DESCENDING | NULLS_FIRST)?);
            Ok(Order { output, is_descending: flags & DESCENDING != 0, nulls_first: flags & NULLS_FIRST != 0 })
        })?;
        if flags & OFFSET != 0 {
            plan.offset = reader.number().and_then(|offset| if offset > 0 { Ok(offset) } else { Err(no_plan()) })?;
        }
        plan.limit = if flags & LIMIT != 0 { Some(reader.number()?) } else { None };
        plan.shown = reader.size()?;
        if flags & CONDITIONS != 0 {
            plan.conditions = reader.list(|reader| reader.condition(&plan.sources, 0))?;
            if plan.conditions.is_empty() {
                return Err(no_plan());
            }
        }
        if !reader.rest.is_empty() {
            return Err(no_plan());
        }
        plan.check()?;
        Ok(plan)
    }

    fn sources(&self, view: &dyn View, reader: &mut Reader<'_>) -> Result<Vec<Source>, Error> {
        // Paths are those of the root, which may stand anywhere among the sources.
        let mut paths = Vec::new();
        let mut sources = reader.list(|reader| {
            let table = self.table_by_id(view, TableId(reader.number()?))?.ok_or_else(other_tables)?;
            paths.push(reader.number()?);
            let is_optional = reader.flags(1)? != 0;
            let tests = reader.list(|reader| reader.test(0, &|number| column_at(&table, number)))?;
            Ok(Source { table, path: None, tests, is_optional })
        })?;
        let root = paths.iter().position(|path| *path == 0).ok_or_else(no_plan)?;
        let root: Arc<Table> = sources[root].table.clone();
        for (source, path) in sources.iter_mut().zip(paths).filter(|(_, path)| *path > 0) {
            let place = root.joins.iter().position(|join| u64::from(join.id.0) + 1 == path).ok_or_else(other_tables)?;
            let ends = root.joins[place].steps.last().is_some_and(|step| step.to == source.table.id);
            source.path = Some(place).filter(|_| ends);
            source.path.ok_or_else(other_tables)?;
        }
        Ok(sources)
    }
}

fn no_plan() -> Error {
    Error::misuse("these bytes are no compiled plan")
}

fn other_tables() -> Error {
    Error::misuse("a plan that was compiled for other tables")
}

fn column_at(table: &Table, number: u64) -> Result<(usize, Type), Error> {
    let place = u32::try_from(number).ok().and_then(|number| table.position(ColumnId(number)));
    place.map(|place| (place, table.columns[place].kind)).ok_or_else(other_tables)
}

/// What a test may name: the column's place, and its type.
type Find<'f> = &'f dyn Fn(u64) -> Result<(usize, Type), Error>;

/// Bytes being read.
struct Reader<'b> {
    rest: &'b [u8],
    /// Elements that lists may still have.
    elements_left: usize,
}

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Result<&[u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(no_plan)?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Error> {
        self.take(1).map(|taken| taken[0])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.take(N)?.try_into().map_err(|_| no_plan())
    }

    fn number(&mut self) -> Result<u64, Error> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            number |= bits << shift;
            if bits << shift >> shift != bits {
                return Err(no_plan());
            }
            if byte & 0x80 == 0 {
                // A zero at the end says nothing: there is a shorter way.
                return if byte == 0 && shift > 0 { Err(no_plan()) } else { Ok(number) };
            }
        }
        Err(no_plan())
    }

    fn size(&mut self) -> Result<usize, Error> {
        usize::try_from(self.number()?).map_err(|_| no_plan())
    }

    fn flags(&mut self, known: u8) -> Result<u8, Error> {
        self.byte().and_then(|flags| if flags & !known == 0 { Ok(flags) } else { Err(no_plan()) })
    }

    /// A list, if there is room for its elements.
    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Result<T, Error>) -> Result<Vec<T>, Error> {
        let count = self.size()?;
        self.elements_left = self.elements_left.checked_sub(count).ok_or_else(no_plan)?;
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(read(self)?);
        }
        Ok(list)
    }

    fn output(&mut self, sources: &[Source]) -> Result<Output, Error> {
        match self.byte()? {
            COLUMN => self.place(sources).map(Output::Column),
            COUNT_ROWS => Ok(Output::CountRows),
            function => {
                let function = FUNCTIONS.get(usize::from(function - AGGREGATE)).ok_or_else(no_plan)?;
                Ok(Output::Aggregate(*function, self.place(sources)?))
            }
        }
    }

    fn place(&mut self, sources: &[Source]) -> Result<Place, Error> {
        let source = self.size()?;
        let table = &sources.get(source).ok_or_else(no_plan)?.table;
        Ok(Place { source, column: column_at(table, self.number()?)?.0 })
    }

    fn condition(&mut self, sources: &[Source], depth: usize) -> Result<Condition, Error> {
        match self.byte()? {
            condition::OF => {
                let place = self.size()?;
                let table = &sources.get(place).ok_or_else(no_plan)?.table;
                Ok(Condition::Of(place, self.test(0, &|number| column_at(table, number))?))
            }
            kind @ (condition::ALL | condition::ANY) if depth < DEPTH_MAX => {
                let conditions = self.list(|reader| reader.condition(sources, depth + 1))?;
                Ok(if kind == condition::ALL { Condition::All(conditions) } else { Condition::Any(conditions) })
            }
            _ => Err(no_plan()),
        }
    }

    fn test(&mut self, depth: usize, find: Find<'_>) -> Result<Test, Error> {
        let kind = self.byte()?;
        match kind {
            kind::NULL | kind::NOT_NULL => {
                Ok(Test::Null { column: find(self.number()?)?.0, wanted: kind == kind::NULL })
            }
            kind::COMPARE..kind::IN => {
                let comparison = COMPARISONS[usize::from(kind - kind::COMPARE)];
                let (column, of) = find(self.number()?)?;
                Ok(Test::Compare { column, comparison, constant: self.constant(of)? })
            }
            kind::IN => {
                let (column, of) = find(self.number()?)?;
                Ok(Test::In { column, constants: self.list(|reader| reader.constant(of))? })
            }
            kind::ALL | kind::ANY if depth < DEPTH_MAX => {
                let tests = self.list(|reader| reader.test(depth + 1, find))?;
                Ok(if kind == kind::ALL { Test::All(tests) } else { Test::Any(tests) })
            }
            kind::NEVER => Ok(Test::Never),
            _ => Err(no_plan()),
        }
    }

    fn constant(&mut self, of: Type) -> Result<Constant, Error> {
        Ok(match sort_of(of) {
            Sort::Float => Constant::Float(f64::from_le_bytes(self.array()?)),
            Sort::Decimal => Constant::Decimal(i128::from_le_bytes(self.array()?)),
            Sort::Sixteen => Constant::Bytes(self.take(16)?.to_vec()),
            Sort::Sized => {
                let count = self.size()?;
                Constant::Bytes(self.take(count)?.to_vec())
            }
            Sort::Whole => {
                self.number().map(|number| Constant::Whole((number >> 1) as i64 ^ -((number & 1) as i64)))?
            }
        })
    }
}
