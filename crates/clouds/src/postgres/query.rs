//! A question to a cloud as SQL of PostgreSQL.

use counterfoil_disperse::Failure;
use counterfoil_disperse::coding::boldyreva::CODE_BYTES;
use counterfoil_disperse::coding::orders::{BLOCKS, STORED_BYTES};
use counterfoil_disperse::fragments::{Name, Question, Test};
use tokio_postgres::types::ToSql;

use super::{Column, Shape, as_bigint};

/// What sums are taken modulo.
const PRIME: u64 = counterfoil_disperse::coding::field::PRIME;

/// A value of a query. Never printed.
enum Value {
    Places(Vec<i64>),
    Strings(Vec<Vec<u8>>),
    String(Vec<u8>),
}

/// From where, and of which rows.
pub(super) struct Query {
    table: String,
    conditions: Vec<String>,
    values: Vec<Value>,
}

impl Query {
    /// What a question says of rows.
    ///
    /// # Errors
    /// [`Failure::Refused`]: a column that is not there, or that holds something else.
    pub fn of(table: &Name, question: &Question, shape: &Shape) -> Result<Self, Failure> {
        let mut query = Self { table: table.as_str().to_owned(), conditions: Vec::new(), values: Vec::new() };
        if let Some(places) = &question.places {
            let at = query.add(Value::Places(places.iter().copied().map(as_bigint).collect()));
            query.conditions.push(format!("place = ANY (${at})"));
        }
        for test in &question.tests {
            let column = shape.column(test.column())?;
            let condition = match (test, column) {
                (_, Column::Shares) => return Err(Failure::Refused("a share has no tag".into())),
                (Test::Tagged { column, at, tags }, kind) => {
                    let value = query.add(Value::Strings(tags.iter().map(|tag| tag.to_vec()).collect()));
                    match kind {
                        // As the index has it.
                        Column::Tags if *at == 0 => format!("{} = ANY (${value})", column.as_str()),
                        _ => format!("substring({} from {} for 16) = ANY (${value})", column.as_str(), at + 1),
                    }
                }
                (Test::Compared { column, asked, allowed }, _) => query.compared(column.as_str(), &asked[..], *allowed),
                // As the index has it. NULL is an empty string, which is less than any code.
                (Test::Between { column, least, greatest }, _) => {
                    let column = column.as_str();
                    let [least, greatest] = [least, greatest].map(|code| query.add(Value::String(code.to_vec())));
                    format!("{column} BETWEEN ${least} AND ${greatest} AND octet_length({column}) = {CODE_BYTES}")
                }
            };
            query.conditions.push(condition);
        }
        for name in question.columns.iter().chain(&question.sums) {
            shape.column(name)?;
        }
        Ok(query)
    }

    fn add(&mut self, value: Value) -> usize {
        self.values.push(value);
        self.values.len()
    }

    /// The blocks of a code in turn, up to the first that differs (`counterfoil_disperse::coding::orders`): 1 for less, 2 for greater.
    fn compared(&mut self, column: &str, asked: &[u8], allowed: [bool; 3]) -> String {
        let mut blocks = Vec::with_capacity(BLOCKS);
        for (block, own) in asked.chunks_exact(17).enumerate() {
            let label = self.add(Value::String(own[1..].to_vec()));
            let at = block * 16 + usize::from(own[0]) % 16;
            let stored = format!("(get_byte({column}, {}) >> {}) & 3", 16 + at / 4, 6 - 2 * (at % 4));
            let hash =
                format!("encode(substring(sha256(${label} || substring({column} from 1 for 16)) from 1 for 7), 'hex')");
            let hidden = format!("(('x' || {hash})::bit(56)::bigint % 3)::int");
            blocks.push(format!("NULLIF((({stored}) + 3 - {hidden}) % 3, 0)"));
        }
        // As tests count: less, equal, greater.
        let results = [(1, allowed[0]), (0, allowed[1]), (2, allowed[2])];
        let results: Vec<String> = results.iter().filter(|(_, is)| *is).map(|(result, _)| result.to_string()).collect();
        let compared = format!("COALESCE({}, 0)", blocks.join(", "));
        let results = if results.is_empty() { "-1".to_owned() } else { results.join(", ") };
        format!("CASE WHEN octet_length({column}) = {STORED_BYTES} THEN {compared} IN ({results}) ELSE false END")
    }

    fn from(&self) -> String {
        let conditions = self.conditions.join(" AND ");
        let clause = if conditions.is_empty() { String::new() } else { format!(" WHERE {conditions}") };
        format!("FROM {}{clause}", self.table)
    }

    /// The rows with their columns.
    pub fn rows(&self, question: &Question) -> String {
        let columns: String = question.columns.iter().map(|name| format!(", {}", name.as_str())).collect();
        format!("SELECT place{columns} {}", self.from())
    }

    /// How many rows there are, and what their shares come to.
    pub fn sums(&self, question: &Question) -> String {
        let sums = question.sums.iter().map(|name| format!(", (sum({}) % {PRIME})::bigint", name.as_str()));
        format!("SELECT count(*){} {}", sums.collect::<String>(), self.from())
    }

    /// The values, in their order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &(dyn ToSql + Sync)> {
        self.values.iter().map(|value| match value {
            Value::Places(places) => places as &(dyn ToSql + Sync),
            Value::Strings(strings) => strings,
            Value::String(string) => string,
        })
    }
}
