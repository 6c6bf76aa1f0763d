//! The plan node: groups of series, bucket by bucket, as the states of a partial aggregation.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use counterfoil_relation::Table;
use counterfoil_series::{Aggregation, Bucket, Buckets, Question, Span};
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::question::{Asked, Group};
use super::states;
use crate::error::Result;
use crate::leaf_node::leaf_node;
use crate::series::{Form, SeriesScan, SeriesTarget, change, told};
use crate::steps::{Step, Steps};

/// Buckets that make a batch.
const BATCH_BUCKETS: usize = 1024;
/// Buckets of several series together that wait for each other: more are given as they are, and added up above.
const WAITING_MAX: usize = 1 << 13;
/// Fewer series than this are not worth a part of their own.
const PART_SERIES_MIN: usize = 64;
/// Fewer series than this are answered where they are asked for.
const INLINE_SERIES_MAX: usize = 16;

/// The node.
#[derive(Clone)]
pub(crate) struct SeriesSummaries {
    target: SeriesTarget,
    form: Arc<Form>,
    asked: Arc<Asked>,
    span: Span,
    /// Series whose points are looked at together, for each part.
    parts: Arc<Vec<Vec<Vec<u32>>>>,
    series_count: usize,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl SeriesSummaries {
    /// In the place of a partial aggregation with this schema over a scan.
    ///
    /// # Errors
    /// What reading the names of series answers.
    pub(super) fn new(scan: &SeriesScan, asked: Asked, schema: SchemaRef) -> Result<Self> {
        let target = scan.target().clone();
        let form = scan.form_shared();
        let series = scan.series()?;
        let series_count = series.len();
        let parts = match asked.single {
            true => {
                let wide = (series_count / PART_SERIES_MIN).clamp(1, scan.parallelism());
                series.chunks(series_count.div_ceil(wide).max(1)).map(|part| vec![part.to_vec()]).collect()
            }
            false => vec![grouped(&target, &form, &asked, series)?],
        };
        let parts: Vec<Vec<Vec<u32>>> = if series_count == 0 { vec![Vec::new()] } else { parts };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(parts.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(SeriesSummaries {
            target,
            form,
            asked: Arc::new(asked),
            span: scan.span(),
            parts: Arc::new(parts),
            series_count,
            schema,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    fn work(&self, part: usize) -> Result<Work> {
        let SeriesTarget { tables, snapshot, table } = &self.target;
        let keys = tables.keys(snapshot, self.form.number).map_err(told(table))?;
        Ok(Work {
            target: self.target.clone(),
            form: self.form.clone(),
            asked: self.asked.clone(),
            span: self.span,
            keys: change::key_columns(table, &self.form, &keys)?,
            schema: self.schema.clone(),
            ahead: self.parts.get(part).cloned().unwrap_or_default().into_iter(),
            current: None,
            together: BTreeMap::new(),
        })
    }
}

/// Series whose names are the same in the columns by which is grouped.
fn grouped(target: &SeriesTarget, form: &Form, asked: &Asked, series: Vec<u32>) -> Result<Vec<Vec<u32>>> {
    let places: Vec<usize> = asked.groups.iter().filter_map(Group::key).collect();
    if places.is_empty() {
        return Ok(vec![series]);
    }
    let names = target.tables.keys(&target.snapshot, form.number).map_err(told(&target.table))?;
    let columns = change::key_columns(&target.table, form, &names)?;
    let columns: Vec<ArrayRef> = places.iter().filter_map(|place| columns[*place].clone()).collect();
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let rows = RowConverter::new(fields)?.convert_columns(&columns)?;
    let (mut groups, mut known) = (Vec::<Vec<u32>>::new(), HashMap::new());
    for series in series {
        let group = *known.entry(rows.row(series as usize)).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(series);
    }
    Ok(groups)
}

impl Group {
    fn key(&self) -> Option<usize> {
        match self {
            Group::Key(place) => Some(*place),
            Group::Bin(_) => None,
        }
    }

    fn shown<'a>(&self, table: &'a Table, time: &'a str) -> std::borrow::Cow<'a, str> {
        match self {
            Group::Key(place) => table.columns[*place].name.as_str().into(),
            Group::Bin(_) => format!("date_bin({time})").into(),
        }
    }
}

impl fmt::Debug for SeriesSummaries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeriesSummaries").field("table", &self.target.table.name).finish()
    }
}

impl DisplayAs for SeriesSummaries {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = &self.target.table;
        write!(f, "SeriesSummaries: {}", table.name)?;
        if self.parts.len() > 1 {
            write!(f, " in {} parts", self.parts.len())?;
        }
        let time = table.columns[self.form.time].name.as_str();
        let by: Vec<_> = self.asked.groups.iter().map(|group| group.shown(table, time)).collect();
        if !by.is_empty() {
            write!(f, ", by: [{}]", by.join(", "))?;
        }
        let named = |slot: &usize| {
            let place = self.form.values.iter().find(|(_, other)| other == slot)?.0;
            Some(table.columns[place].name.as_str())
        };
        let columns: Vec<_> = self.asked.columns.iter().filter_map(named).collect();
        if !columns.is_empty() {
            write!(f, ", columns: [{}]", columns.join(", "))?;
        }
        write!(f, ", {} series", self.series_count)?;
        if self.span != Span::ALL {
            write!(f, ", {time} within a span")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for SeriesSummaries {
    fn name(&self) -> &'static str {
        "SeriesSummaries"
    }

    leaf_node!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let inline = self.series_count <= INLINE_SERIES_MAX;
        Ok(Steps::stream(self.work(partition)?, context, inline, metrics, self.schema.clone()))
    }
}

/// One part, batch by batch.
struct Work {
    target: SeriesTarget,
    form: Arc<Form>,
    asked: Arc<Asked>,
    span: Span,
    /// The columns that name series.
    keys: Vec<Option<ArrayRef>>,
    schema: SchemaRef,
    ahead: std::vec::IntoIter<Vec<u32>>,
    current: Option<Aggregation<counterfoil_log::Snapshot>>,
    /// Buckets of several series of one group, by their names.
    together: BTreeMap<Option<i64>, Bucket>,
}

impl Work {
    fn begin(&self, series: Vec<u32>) -> Result<Aggregation<counterfoil_log::Snapshot>> {
        let SeriesTarget { tables, snapshot, table } = &self.target;
        let bin = self.asked.groups.iter().find_map(|group| match group {
            Group::Bin(bin) => Some(*bin),
            Group::Key(_) => None,
        });
        let question = Question {
            span: self.span,
            columns: self.asked.columns.clone(),
            buckets: bin.map(|bin| Arc::new(move |time| bin.of(time)) as Buckets),
            ends: self.asked.ends,
        };
        tables.aggregate(snapshot.clone(), self.form.number, Some(series), question).map_err(told(table))
    }

    /// The next buckets; none when all were given.
    fn buckets(&mut self) -> Result<Vec<Bucket>> {
        let mut buckets = Vec::new();
        while buckets.len() < BATCH_BUCKETS {
            if self.current.is_none() {
                let Some(series) = self.ahead.next() else { break };
                self.current = Some(self.begin(series)?);
            }
            let next = self.current.as_mut().map(Aggregation::next).transpose().map_err(told(&self.target.table))?;
            let Some(bucket) = next.flatten() else {
                self.current = None;
                buckets.extend(std::mem::take(&mut self.together).into_values());
                continue;
            };
            if self.asked.single {
                buckets.push(bucket);
                continue;
            }
            match self.together.get_mut(&bucket.name) {
                Some(same) => same.join(&bucket),
                None => drop(self.together.insert(bucket.name, bucket)),
            }
            if self.together.len() >= WAITING_MAX {
                buckets.extend(std::mem::take(&mut self.together).into_values());
            }
        }
        Ok(buckets)
    }
}

impl Step for Work {
    fn step(&mut self) -> Result<Option<RecordBatch>> {
        let buckets = self.buckets()?;
        if buckets.is_empty() {
            return Ok(None);
        }
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        let from = states::From { table: &self.target.table, form: &self.form, keys: &self.keys, buckets: &buckets };
        for group in &self.asked.groups {
            columns.push(match group {
                Group::Key(place) => from.key(*place)?,
                Group::Bin(_) => from.names()?,
            });
        }
        for wanted in &self.asked.wanted {
            let fields = self.schema.fields().get(columns.len()..).unwrap_or_default();
            columns.extend(from.states(wanted, fields)?);
        }
        Ok(Some(RecordBatch::try_new(self.schema.clone(), states::cast(columns, &self.schema)?)?))
    }
}
