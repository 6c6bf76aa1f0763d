//! A key of a join as bytes that are equal where the values are.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type, Schema};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;

use crate::error::Error;

/// Values of which -0 is 0, as the library has it where it compares them for groups and joins, and not where it orders them.
pub(super) fn without_negative_zero(values: ArrayRef) -> ArrayRef {
    // 0 added to -0 is 0, and to everything else what it is.
    match values.data_type() {
        DataType::Float64 => {
            Arc::new(values.as_primitive::<Float64Type>().unary::<_, Float64Type>(|value| value + 0.0))
        }
        DataType::Float32 => {
            Arc::new(values.as_primitive::<Float32Type>().unary::<_, Float32Type>(|value| value + 0.0))
        }
        _ => values,
    }
}

/// The expression. As where the library looks for keys in a table of them, NaN is NaN, and -0 is 0; NULL stays NULL.
#[derive(Debug)]
pub(super) struct MergeKey {
    of: Arc<dyn PhysicalExpr>,
    kind: DataType,
    converter: RowConverter,
}

impl MergeKey {
    pub(super) fn new(of: Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Self, DataFusionError> {
        let kind = of.data_type(schema)?;
        MergeKey::of_kind(of, kind)
    }

    fn of_kind(of: Arc<dyn PhysicalExpr>, kind: DataType) -> Result<Self, DataFusionError> {
        let converter = RowConverter::new(vec![SortField::new(kind.clone())])?;
        Ok(MergeKey { of, kind, converter })
    }
}

impl fmt::Display for MergeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key({})", self.of)
    }
}

impl PartialEq for MergeKey {
    fn eq(&self, other: &Self) -> bool {
        self.of.eq(&other.of) && self.kind == other.kind
    }
}

impl Eq for MergeKey {}

impl Hash for MergeKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of.hash(state);
    }
}

impl PhysicalExpr for MergeKey {
    fn data_type(&self, _schema: &Schema) -> Result<DataType, DataFusionError> {
        Ok(DataType::Binary)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool, DataFusionError> {
        self.of.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue, DataFusionError> {
        let values = without_negative_zero(self.of.evaluate(batch)?.into_array(batch.num_rows())?);
        let rows = self.converter.convert_columns(std::slice::from_ref(&values))?;
        let (nulls, mut keys) = (values.logical_nulls(), BinaryBuilder::new());
        for (place, row) in rows.iter().enumerate() {
            match nulls.as_ref().is_some_and(|nulls| nulls.is_null(place)) {
                true => keys.append_null(),
                false => keys.append_value(row.as_ref()),
            }
        }
        Ok(ColumnarValue::Array(Arc::new(keys.finish())))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.of]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>, DataFusionError> {
        let of = children.into_iter().next().ok_or_else(|| Error::Bug("a key of nothing".into()))?;
        Ok(Arc::new(MergeKey::of_kind(of, self.kind.clone())?))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of.fmt_sql(f)
    }
}
