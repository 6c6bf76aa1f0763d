//! Names that PostgreSQL figures out for columns of a result that have none (its `FigureColname`): programs written for it look for
//! `count` and not for `count(*)`.

use datafusion::sql::sqlparser::ast::{DataType, Expr, SelectItem, SetExpr, TimezoneInfo, TrimWhereField};

use crate::statement::{self, fold};

/// What nothing gives a name to.
const NAMELESS: &str = "?column?";

/// The name of a column that is this expression.
pub(crate) fn name(expr: &Expr) -> String {
    figured(expr).map_or_else(|| NAMELESS.to_owned(), Found::name)
}

/// A name, and how much it says.
enum Found {
    /// That of a column or a function: it stays where that is cast.
    Named(String),
    /// That of a type, or of a word: a cast around it says more.
    Told(String),
}

impl Found {
    fn name(self) -> String {
        match self {
            Found::Named(name) | Found::Told(name) => name,
        }
    }
}

fn figured(expr: &Expr) -> Option<Found> {
    match expr {
        Expr::Identifier(name) => Some(Found::Named(fold(name))),
        Expr::CompoundIdentifier(names) => names.last().map(fold).map(Found::Named),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => figured(inner),
        Expr::Cast { expr: inner, data_type, .. } => match figured(inner) {
            Some(Found::Named(name)) => Some(Found::Named(name)),
            told => type_name(data_type).map(Found::Told).or(told),
        },
        Expr::TypedString(typed) => type_name(&typed.data_type).map(Found::Told),
        Expr::Function(function) => statement::parts(&function.name).ok()?.pop().map(Found::Named),
        Expr::Subquery(query) => match query.body.as_ref() {
            SetExpr::Select(select) => match select.projection.first()? {
                SelectItem::UnnamedExpr(expr) => figured(expr),
                SelectItem::ExprWithAlias { alias, .. } => Some(Found::Named(fold(alias))),
                _ => None,
            },
            _ => None,
        },
        Expr::Case { else_result, .. } => match else_result.as_deref().and_then(figured) {
            Some(Found::Named(name)) => Some(Found::Named(name)),
            _ => Some(Found::Told("case".into())),
        },
        Expr::Interval(_) => Some(Found::Told("interval".into())),
        other => of_syntax(other).map(str::to_owned).map(Found::Named),
    }
}

/// What has a syntax of its own and is a function nevertheless.
fn of_syntax(expr: &Expr) -> Option<&'static str> {
    Some(match expr {
        Expr::Exists { .. } => "exists",
        Expr::Extract { .. } => "extract",
        Expr::Ceil { .. } => "ceil",
        Expr::Floor { .. } => "floor",
        Expr::Position { .. } => "position",
        Expr::Substring { .. } => "substring",
        Expr::Overlay { .. } => "overlay",
        Expr::Trim { trim_where: Some(TrimWhereField::Leading), .. } => "ltrim",
        Expr::Trim { trim_where: Some(TrimWhereField::Trailing), .. } => "rtrim",
        Expr::Trim { .. } => "btrim",
        Expr::AtTimeZone { .. } => "timezone",
        Expr::Array(_) => "array",
        Expr::Tuple(_) => "row",
        _ => return None,
    })
}

/// The name that PostgreSQL has for a type in its catalogue.
fn type_name(kind: &DataType) -> Option<String> {
    use DataType as Kind;
    let known = match kind {
        Kind::Boolean | Kind::Bool => "bool",
        Kind::SmallInt(_) | Kind::Int2(_) => "int2",
        Kind::Int(_) | Kind::Integer(_) | Kind::Int4(_) => "int4",
        Kind::BigInt(_) | Kind::Int8(_) => "int8",
        Kind::Real | Kind::Float4 => "float4",
        Kind::Double(_) | Kind::DoublePrecision | Kind::Float8 | Kind::Float(_) => "float8",
        Kind::Numeric(_) | Kind::Decimal(_) | Kind::Dec(_) => "numeric",
        Kind::Text => "text",
        Kind::Varchar(_) | Kind::CharacterVarying(_) => "varchar",
        Kind::Char(_) | Kind::Character(_) => "bpchar",
        Kind::Bytea => "bytea",
        Kind::Date => "date",
        Kind::Time(..) => "time",
        Kind::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => "timestamptz",
        Kind::Timestamp(..) => "timestamp",
        Kind::Uuid => "uuid",
        Kind::Interval { .. } => "interval",
        Kind::Custom(name, _) => return statement::parts(name).ok()?.pop(),
        _ => return None,
    };
    Some(known.to_owned())
}
