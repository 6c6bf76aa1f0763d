//! INSERT: literals straight into row images, everything else through a query; defaults, conflicts, RETURNING.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use counterfoil_relation::{self as relation, Column, RowBatch, Table, Value as Stored, ValueRef};
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::sql::sqlparser::ast::{
    Expr, Insert, Query, SelectItem, SetExpr, TableObject, UnaryOperator, Value as Literal, ValueWithSpan, With,
};

use crate::assign;
use crate::cast;
use crate::change::{self, Changed, Seen};
use crate::dispersed;
use crate::error::{Error, Result};
use crate::evaluate;
use crate::gathering::{Enough, Gathering};
use crate::naming;
use crate::on_conflict::{Conflict, conflict, may_be_in_parts};
use crate::parameters;
use crate::planner;
use crate::rows;
use crate::series;
use crate::session::{Outcome, Session};
use crate::statement::{self, fold};
use crate::together::Together;
use crate::transaction::Change;
use crate::value::{Value, parse};

/// Rows that are turned into images and handed down at once.
const BATCH_ROWS: usize = 8192;

/// Where an INSERT puts what it gets.
pub(crate) struct Target {
    table: Arc<Table>,
    /// The place in the table of each value given.
    places: Vec<usize>,
    /// Whether the statement named them: otherwise the last columns may be left to their defaults.
    named: bool,
    overriding: bool,
}

/// What VALUES has in one place.
enum Cell<'a> {
    Value(Cow<'a, Value>),
    Default,
    /// Has to be computed: the place among what is computed.
    Computed(usize),
}

impl Session {
    pub(crate) fn insert(&mut self, with: Option<With>, insert: &Insert, parameters: &[Value]) -> Result<Outcome> {
        refuse(insert)?;
        let TableObject::TableName(name) = &insert.table else {
            return Err(Error::NotSupported("INSERT into anything but a table".into()));
        };
        let name = statement::table_name(name)?;
        self.lease_named(&name)?;
        if let Some(source) = insert.source.as_ref().filter(|source| !matches!(*source.body, SetExpr::Values(_))) {
            self.follow(source)?;
        }
        let changed = self.adding_change(&name, |session, change| {
            let table = planner::rows_of(session.engine(), &*change.lease, &name)?;
            let target = target(table, insert)?;
            session.insert_into(change, &target, with, insert, parameters)
        })?;
        self.changed("INSERT", changed)
    }

    fn insert_into(
        &mut self,
        change: &mut Change,
        target: &Target,
        with: Option<With>,
        insert: &Insert,
        parameters: &[Value],
    ) -> Result<Changed> {
        let table = &target.table;
        let conflict = insert.on.as_ref().map(|on| conflict(on, table, insert)).transpose()?;
        let mut changed = Changed::new(table.clone(), insert.returning.is_some(), parameters);
        changed.alias = insert.table_alias.as_ref().map(|alias| fold(&alias.alias));
        let is_of_one = |values: &Query| matches!(values.body.as_ref(), SetExpr::Values(all) if all.rows.len() == 1);
        let updates = conflict.as_ref().is_some_and(|conflict| conflict.updates());
        // One row is worked out before anything is stored.
        let as_of = (updates || !insert.source.as_deref().is_none_or(is_of_one)).then(|| change.lease.pending());
        let seen = Seen { as_of, parameters };
        // What WITH names it does not know.
        if let Some(conflict) = conflict.as_ref().filter(|_| with.is_none()) {
            self.check_update(change, table, conflict, &seen)?;
        }
        change::returning_items(insert.returning.as_deref(), change, &mut changed);
        match insert.source.as_deref() {
            None => {
                let batch = self.images(change, target, &[Vec::new()], &[])?;
                self.insert_batch(change, &conflict, batch, &seen, &mut changed)?;
            }
            Some(Query { body, with: None, order_by: None, limit_clause: None, .. })
                if with.is_none() && matches!(body.as_ref(), SetExpr::Values(_)) =>
            {
                let SetExpr::Values(values) = body.as_ref() else { return Err(Error::Bug("VALUES".into())) };
                let lists: Vec<&[Expr]> = values.rows.iter().map(|row| row.content.as_slice()).collect();
                if let Some(other) = lists.iter().find(|list| list.len() != lists[0].len()) {
                    let (first, other) = (lists[0].len(), other.len());
                    return Err(Error::Sql(format!("VALUES has lists of {first} and of {other} values")));
                }
                let together = conflict.is_some() && !may_be_in_parts(table);
                let part_rows = if together { usize::MAX } else { self.part_rows(true).min(BATCH_ROWS) };
                for lists in lists.chunks(part_rows) {
                    self.insert_values(change, target, lists, &conflict, &seen, &mut changed)?;
                }
            }
            Some(query) => self.insert_query(change, target, with, query, &conflict, &seen, &mut changed)?,
        }
        changed.finish(self, change)
    }

    /// Stores the rows of VALUES, or does what ON CONFLICT says: in halves where there is no memory to work them all out.
    fn insert_values(
        &mut self,
        change: &mut Change,
        target: &Target,
        lists: &[&[Expr]],
        conflict: &Option<Conflict<'_>>,
        seen: &Seen<'_>,
        changed: &mut Changed,
    ) -> Result<()> {
        let may_be_halved = lists.len() > 1 && (conflict.is_none() || may_be_in_parts(&target.table));
        match self.values(change, target, lists, seen) {
            Err(Error::Memory(_)) if may_be_halved => {
                let (one, other) = lists.split_at(lists.len() / 2);
                self.insert_values(change, target, one, conflict, seen, changed)?;
                self.insert_values(change, target, other, conflict, seen, changed)
            }
            batch => self.insert_batch(change, conflict, batch?, seen, changed),
        }
    }

    /// The images of VALUES.
    fn values(&mut self, change: &mut Change, target: &Target, lists: &[&[Expr]], seen: &Seen<'_>) -> Result<RowBatch> {
        let mut computed: Vec<Expr> = Vec::new();
        let mut cells = Vec::with_capacity(lists.len());
        for list in lists {
            width(list.len(), target)?;
            let row = list.iter().map(|expr| match cell(expr, seen.parameters)? {
                Some(cell) => Ok(cell),
                None => {
                    computed.push(expr.clone());
                    Ok(Cell::Computed(computed.len() - 1))
                }
            });
            cells.push(row.collect::<Result<Vec<_>>>()?);
        }
        let computed = self.compute(change, computed, seen)?;
        self.images(change, target, &cells, &computed)
    }

    /// Evaluates expressions of VALUES, all in one query, each with a type of its own.
    fn compute(&mut self, change: &mut Change, exprs: Vec<Expr>, seen: &Seen<'_>) -> Result<Vec<ArrayRef>> {
        if exprs.is_empty() {
            return Ok(Vec::new());
        }
        let named = |(place, expr)| SelectItem::ExprWithAlias { expr, alias: statement::ident(&format!("c{place}")) };
        let items = exprs.into_iter().enumerate().map(named).collect();
        let query = change::select(None, items, Vec::new(), None);
        let batches = self.collect_query(change, query, Vec::new(), seen)?;
        match batches.as_slice() {
            [batch] if batch.num_rows() == 1 => Ok(batch.columns().to_vec()),
            _ => Err(Error::Bug("a list of values has not one row".into())),
        }
    }

    /// Row images of cells; columns not given get their defaults.
    fn images(
        &mut self,
        change: &mut Change,
        target: &Target,
        cells: &[Vec<Cell<'_>>],
        computed: &[ArrayRef],
    ) -> Result<RowBatch> {
        let table = &target.table;
        let mut batch = RowBatch::new(table.layout(), cells.len());
        let mut defaults: Vec<Vec<usize>> = vec![Vec::new(); table.columns.len()];
        let mut given = vec![None; table.columns.len()];
        for (order, place) in target.places.iter().enumerate() {
            given[*place] = Some(order);
        }
        for (row, cells) in cells.iter().enumerate() {
            for (place, column) in table.columns.iter().enumerate() {
                let cell = given[place].and_then(|order| cells.get(order));
                match cell {
                    None | Some(Cell::Default) => defaults[place].push(row),
                    Some(cell) => {
                        refuse_generated(column, target)?;
                        store_cell(&mut batch, row, place, column, cell, computed)?;
                    }
                }
            }
        }
        for (place, rows) in defaults.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
            self.fill_default(change, table, &mut batch, place, rows)?;
        }
        Ok(batch)
    }

    /// Puts a column's default into some rows.
    pub(crate) fn fill_default(
        &mut self,
        change: &mut Change,
        table: &Table,
        batch: &mut RowBatch,
        place: usize,
        rows: &[usize],
    ) -> Result<()> {
        let column = &table.columns[place];
        if let Some(identity) = column.identity {
            let count = rows.len() as u64;
            let engine = self.engine().clone();
            let mut next =
                engine.relations.next_identity(&mut *change.lease, table, column.id, count).map_err(Error::Relation)?;
            for row in rows {
                let stored = assign::assign(&Value::Integer(next), &column.kind)
                    .map_err(|misfit| misfit.error(&column.name, &column.kind, "generated number"))?;
                batch.set(*row, place, stored.borrow()).map_err(Error::Relation)?;
                next = next.saturating_add(identity.increment);
            }
            return Ok(());
        }
        if let Some(value) = &column.default_value {
            return rows.iter().try_for_each(|row| batch.set(*row, place, value.borrow())).map_err(Error::Relation);
        }
        let Some(sql) = &column.default else { return Ok(()) };
        let values = self.planner.constants(&evaluate::parse(sql)?, rows.len())?;
        let values = cast::to_column(&values, &column.kind, &column.name)?;
        store_rows(batch, place, column, &values, rows)
    }

    /// INSERT ... SELECT.
    #[allow(clippy::too_many_arguments)]
    fn insert_query(
        &mut self,
        change: &mut Change,
        target: &Target,
        with: Option<With>,
        query: &Query,
        conflict: &Option<Conflict<'_>>,
        seen: &Seen<'_>,
        changed: &mut Changed,
    ) -> Result<()> {
        let mut query = query.clone();
        query.with = with.or(query.with);
        let mut statement = datafusion::sql::sqlparser::ast::Statement::Query(Box::new(query));
        parameters::bind(&mut statement, seen.parameters)?;
        naming::name_columns(&mut statement, naming::Names::Written);
        let snapshot = change.lease.pending();
        let plan = self.planner.plan(statement, &snapshot, Vec::new())?;
        width(plan.schema().fields().len(), target)?;
        let mut stream = self.planner.stream(&plan)?;
        let (mut gathered, mut gathering) = (None::<RowBatch>, Gathering::default());
        let mut together = Together::new(self.planner.pool(), size_of::<u64>(), true);
        while let Some(batch) = self.planner.next(&mut stream)? {
            if conflict.is_none() {
                self.insert_gathered(change, target, &mut gathering, batch, changed)?;
                continue;
            }
            let images = self.images_of(change, target, columns_of(target, &batch)?, batch.num_rows())?;
            if may_be_in_parts(&target.table) {
                self.insert_batch(change, conflict, images, seen, changed)?;
                continue;
            }
            together.take(images.count(), images.bytes().len() + images.heap().len())?;
            match &mut gathered {
                None => gathered = Some(images),
                Some(all) => {
                    (0..images.count()).try_for_each(|row| all.push_from(&images, row)).map_err(Error::Relation)?;
                }
            }
        }
        self.insert_left(change, target, gathering, changed)?;
        match gathered {
            Some(batch) => self.insert_batch(change, conflict, batch, seen, changed),
            None => Ok(()),
        }
    }

    /// Stores the rows of a record batch: at once, or with others where that is cheaper.
    pub(crate) fn insert_gathered(
        &mut self,
        change: &mut Change,
        target: &Target,
        gathering: &mut Gathering,
        batch: RecordBatch,
        changed: &mut Changed,
    ) -> Result<()> {
        let ready = match self.enough(&target.table) {
            Some(enough) => gathering.add(batch, enough)?,
            None => Some(batch),
        };
        ready.map_or(Ok(()), |batch| self.insert_columns(change, target, &batch, changed))
    }

    /// How much of what comes into a table is stored at once; none where it is stored as it comes: what lies at clouds, and where
    /// memory is bounded, in which nobody has counted it.
    fn enough(&self, table: &Table) -> Option<Enough> {
        match (series::is_series(table), self.planner.options().ram) {
            (true, _) => Some(Enough::OF_SERIES),
            (false, None) if !dispersed::is_dispersed(table) => Some(Enough::OF_RELATIONS),
            _ => None,
        }
    }

    /// Stores what is still gathered.
    pub(crate) fn insert_left(
        &mut self,
        change: &mut Change,
        target: &Target,
        mut gathering: Gathering,
        changed: &mut Changed,
    ) -> Result<()> {
        gathering.take()?.map_or(Ok(()), |batch| self.insert_columns(change, target, &batch, changed))
    }

    /// Stores the rows of a record batch whose columns stand in the order of the target's: as columns where that can be.
    pub(crate) fn insert_columns(
        &mut self,
        change: &mut Change,
        target: &Target,
        batch: &RecordBatch,
        changed: &mut Changed,
    ) -> Result<()> {
        let (columns, rows) = (columns_of(target, batch)?, batch.num_rows());
        if series::is_series(&target.table) && !changed.gathers() {
            let given = series::Given { columns: &columns, rows, as_given: self.settings.as_given };
            if let Some(elsewhere) = series::insert_columns(self.engine(), &mut change.lease, &target.table, &given)? {
                changed.rows += rows as u64 - elsewhere.expired;
                changed.elsewhere += elsewhere;
                return Ok(());
            }
        }
        let images = self.images_of(change, target, columns, rows)?;
        self.store(change, images, changed)
    }

    /// Row images of columns; those that are not given get their defaults.
    fn images_of(
        &mut self,
        change: &mut Change,
        target: &Target,
        columns: Vec<Option<ArrayRef>>,
        rows: usize,
    ) -> Result<RowBatch> {
        let table = &target.table;
        let mut images = rows::encode(&table.layout(), &columns, rows)?;
        let all: Vec<usize> = (0..rows).collect();
        for place in (0..columns.len()).filter(|place| columns[*place].is_none()) {
            self.fill_default(change, table, &mut images, place, &all)?;
        }
        Ok(images)
    }

    /// Stores rows, or does what ON CONFLICT says.
    pub(crate) fn insert_batch(
        &mut self,
        change: &mut Change,
        conflict: &Option<Conflict<'_>>,
        batch: RowBatch,
        seen: &Seen<'_>,
        changed: &mut Changed,
    ) -> Result<()> {
        let table = changed.table.clone();
        if conflict.is_some() {
            // A row that may not stand by itself is an error even where it would have given way to another.
            table.check(&batch).map_err(Error::Relation)?;
            self.planner.check(&table, &batch)?;
        }
        let batch = match conflict {
            None => batch,
            Some(conflict) => {
                let batch = self.resolve(change, &table, conflict, batch, seen, changed)?;
                self.resolve_apart(change, &table, conflict, batch, seen, changed)?
            }
        };
        self.store(change, batch, changed)
    }

    /// Stores rows that are complete.
    pub(crate) fn store(&mut self, change: &mut Change, batch: RowBatch, changed: &mut Changed) -> Result<()> {
        if batch.count() == 0 {
            return Ok(());
        }
        let table = changed.table.clone();
        self.planner.check(&table, &batch)?;
        if dispersed::is_dispersed(&table) {
            dispersed::insert(self, change, &table, &batch, changed)?;
            return changed.add(batch);
        }
        let engine = self.engine().clone();
        let statement = &mut changed.statement;
        let elsewhere = match series::is_series(&table) {
            true if self.settings.as_given => series::insert_as_given(&engine, &mut change.lease, &table, &batch)?,
            true => series::insert(&engine, &mut change.lease, &table, &batch)?,
            false => {
                let first = engine.relations.insert_in(statement, &mut *change.lease, &table, &batch);
                changed.met.note_inserted(first.map_err(Error::Relation)?);
                series::Elsewhere::default()
            }
        };
        changed.elsewhere += elsewhere;
        let as_given = self.settings.as_given;
        changed.add(match elsewhere.expired {
            0 => batch,
            _ => series::without_expired_rows(&engine, &*change.lease, &table, batch, as_given)?,
        })
    }
}

fn refuse(insert: &Insert) -> Result<()> {
    let odd = [
        (insert.or.is_some() || insert.replace_into || insert.ignore, "INSERT OR ..., REPLACE: write ON CONFLICT"),
        (insert.overwrite || insert.partitioned.is_some(), "INSERT OVERWRITE"),
        (!insert.assignments.is_empty(), "INSERT ... SET"),
        (insert.output.is_some(), "OUTPUT: write RETURNING"),
        (insert.multi_table_insert_type.is_some(), "INSERT ALL"),
    ];
    match odd.iter().find(|(is, _)| *is) {
        Some((_, what)) => Err(Error::NotSupported((*what).into())),
        None => Ok(()),
    }
}

impl Target {
    /// The columns of a bulk load, which may give identity columns their values.
    pub(crate) fn of_load(table: Arc<Table>, places: Vec<usize>) -> Result<Self> {
        distinct(&places, &table)?;
        Ok(Target { table, places, named: true, overriding: true })
    }
}

fn target(table: Arc<Table>, insert: &Insert) -> Result<Target> {
    let places = if insert.columns.is_empty() {
        (0..table.columns.len()).collect()
    } else {
        let place = |name: &datafusion::sql::sqlparser::ast::ObjectName| {
            let name = statement::parts(name)?.pop().unwrap_or_default();
            change::place(&table, &name)
        };
        insert.columns.iter().map(place).collect::<Result<Vec<_>>>()?
    };
    distinct(&places, &table)?;
    Ok(Target { table, places, named: !insert.columns.is_empty(), overriding: false })
}

fn distinct(places: &[usize], table: &Table) -> Result<()> {
    let mut seen = HashSet::new();
    match places.iter().find(|place| !seen.insert(**place)) {
        Some(place) => Err(Error::Sql(format!("column {} is named twice", table.columns[*place].name))),
        None => Ok(()),
    }
}

fn width(values: usize, target: &Target) -> Result<()> {
    let columns = target.places.len();
    if values == columns || (values < columns && !target.named) {
        return Ok(());
    }
    Err(Error::Sql(format!("{values} values for {columns} columns (table {})", target.table.name)))
}

/// The columns of a record batch by their place in the table, as columns of its types.
fn columns_of(target: &Target, batch: &RecordBatch) -> Result<Vec<Option<ArrayRef>>> {
    let table = &target.table;
    let mut columns: Vec<Option<ArrayRef>> = vec![None; table.columns.len()];
    for (array, place) in batch.columns().iter().zip(&target.places) {
        let column = &table.columns[*place];
        refuse_generated(column, target)?;
        columns[*place] = Some(cast::to_column(array, &column.kind, &column.name)?);
    }
    Ok(columns)
}

fn refuse_generated(column: &Column, target: &Target) -> Result<()> {
    if column.identity.is_some_and(|identity| identity.always) && !target.overriding {
        return Err(Error::Sql(format!("column {} is GENERATED ALWAYS: leave it out, or give DEFAULT", column.name)));
    }
    Ok(())
}

/// A cell that needs no query.
fn cell<'a>(expr: &Expr, parameters: &'a [Value]) -> Result<Option<Cell<'a>>> {
    let owned = |value| Ok(Some(Cell::Value(Cow::Owned(value))));
    match expr {
        Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default") => {
            Ok(Some(Cell::Default))
        }
        Expr::Nested(inner) => cell(inner, parameters),
        Expr::Value(ValueWithSpan { value: Literal::Placeholder(name), .. }) => {
            Ok(Some(Cell::Value(Cow::Borrowed(parameters::value(name, parameters)?))))
        }
        Expr::Value(ValueWithSpan { value, .. }) => literal(value).map_or(Ok(None), owned),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(ValueWithSpan { value: Literal::Number(digits, _), .. }) => {
                number(&format!("-{digits}")).map_or(Ok(None), owned)
            }
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

/// The value of a literal.
pub(crate) fn literal(literal: &Literal) -> Option<Value> {
    Some(match literal {
        Literal::Number(digits, _) => return number(digits),
        Literal::SingleQuotedString(text)
        | Literal::EscapedStringLiteral(text)
        | Literal::UnicodeStringLiteral(text)
        | Literal::NationalStringLiteral(text) => Value::Text(text.clone()),
        Literal::DollarQuotedString(text) => Value::Text(text.value.clone()),
        Literal::HexStringLiteral(digits) => Value::Bytes(parse::hex(digits)?),
        Literal::Boolean(truth) => Value::Boolean(*truth),
        Literal::Null => Value::Null,
        _ => return None,
    })
}

fn number(digits: &str) -> Option<Value> {
    if let Ok(number) = digits.parse::<i64>() {
        return Some(Value::Integer(number));
    }
    match parse::decimal(digits) {
        Some((unscaled, scale @ 0..=38)) => Some(Value::Decimal { unscaled, scale: scale as u8 }),
        // One that no double comes near is left to the query, which says so.
        _ => parse::double(digits).map(Value::Double),
    }
}

fn store_cell(
    batch: &mut RowBatch,
    row: usize,
    place: usize,
    column: &Column,
    cell: &Cell<'_>,
    computed: &[ArrayRef],
) -> Result<()> {
    match cell {
        Cell::Default => Ok(()),
        Cell::Value(value) => match (value.as_ref(), &column.kind) {
            // The frequent case without a copy of the text.
            (Value::Text(text), relation::Type::Text) if text.as_bytes().contains(&0) => return Err(Error::ZeroInText),
            (Value::Text(text), relation::Type::Text) => batch.set(row, place, ValueRef::Text(text)),
            (Value::Bytes(bytes), relation::Type::Bytea) => batch.set(row, place, ValueRef::Bytea(bytes)),
            (value, kind) => {
                let stored: Stored =
                    assign::assign(value, kind).map_err(|misfit| misfit.error(&column.name, kind, value.kind()))?;
                batch.set(row, place, stored.borrow())
            }
        }
        .map_err(Error::Relation),
        Cell::Computed(index) => {
            let array = computed.get(*index).ok_or_else(|| Error::Bug("a value was not computed".into()))?;
            let array = cast::to_column(array, &column.kind, &column.name)?;
            store_rows(batch, place, column, &array, &[row])
        }
    }
}

/// Puts the values of an array of the column's own type into some rows.
fn store_rows(batch: &mut RowBatch, place: usize, column: &Column, values: &ArrayRef, rows: &[usize]) -> Result<()> {
    for (index, row) in rows.iter().enumerate().filter(|(index, _)| values.is_valid(*index)) {
        let value = cast::element(values.as_ref(), index)?;
        let stored = assign::assign(&value, &column.kind)
            .map_err(|misfit| misfit.error(&column.name, &column.kind, value.kind()))?;
        batch.set(*row, place, stored.borrow()).map_err(Error::Relation)?;
    }
    Ok(())
}
