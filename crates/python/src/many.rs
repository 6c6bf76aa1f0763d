//! One statement with many rows of parameters: INSERTs become one INSERT of many rows, the rest is run row by row.

use counterfoil::{Connection, Error, Kind, Outcome, TransactionState, Value};

use crate::placeholders::piece_bytes;
use crate::waiting::{ended, is_called_off};

/// Rows of one INSERT, and values of one, at most.
const ROWS_MAX: usize = 1000;
const VALUES_MAX: usize = 20_000;

/// Runs a statement for each row of parameters, all in one transaction, and answers how many rows were changed together.
///
/// # Errors
/// The first row's that fails: none of the rows is there then, unless a transaction was open before. [`Kind::Misuse`] for
/// a statement that answers rows.
pub fn run(connection: &mut Connection, sql: &str, rows: &[Vec<Value>]) -> Result<u64, Error> {
    if connection.transaction_state() != TransactionState::Idle {
        return all(connection, sql, rows);
    }
    let mut transaction = connection.transaction()?;
    let changed = all(&mut transaction, sql, rows)?;
    transaction.commit()?;
    Ok(changed)
}

fn all(connection: &mut Connection, sql: &str, rows: &[Vec<Value>]) -> Result<u64, Error> {
    let width = rows.first().map_or(0, Vec::len);
    let same_width = rows.iter().all(|row| row.len() == width);
    match insert(sql).filter(|insert| same_width && insert.parameters == width && width > 0) {
        Some(insert) => {
            let together = (VALUES_MAX / width).clamp(1, ROWS_MAX);
            rows.chunks(together).map(|rows| one(connection, &insert.text(rows.len()), &rows.concat())).sum()
        }
        None => rows.iter().map(|row| one(connection, sql, row)).sum(),
    }
}

fn one(connection: &mut Connection, sql: &str, parameters: &[Value]) -> Result<u64, Error> {
    let mut changed = 0;
    if is_called_off() {
        return Err(ended());
    }
    for outcome in connection.run(sql, parameters)? {
        match outcome {
            Outcome::Count { rows, .. } => changed += rows,
            Outcome::Done(_) => {}
            _ => {
                return Err(Error::new(Kind::Misuse, "this statement answers rows")
                    .advise("executemany is for statements that change some: use execute"));
            }
        }
    }
    Ok(changed)
}

/// `INSERT ... VALUES (...)` with one row, and nothing behind it.
struct Insert<'a> {
    head: &'a str,
    row: &'a str,
    parameters: usize,
}

/// Whether a statement is an INSERT of one row whose parameters are `$1`, `$2`, ... in order, and ends with that row. One
/// statement may do more than many do only where ON CONFLICT or RETURNING follow, so these are left as they are.
fn insert(sql: &str) -> Option<Insert<'_>> {
    let (mut at, mut depth, mut parameters) = (0, 0_usize, 0);
    let (mut values, mut first, mut end) = (None, true, None);
    while at < sql.len() {
        let piece = &sql[at..at + piece_bytes(&sql[at..], sql[..at].chars().next_back())];
        at += piece.len();
        let is_blank = piece.starts_with(char::is_whitespace) || piece.starts_with("--") || piece.starts_with("/*");
        if is_blank || (end.is_some() && piece == ";") {
            continue;
        }
        if end.is_some() || (first && !piece.eq_ignore_ascii_case("INSERT")) {
            return None;
        }
        first = false;
        match piece {
            "(" => depth += 1,
            ")" => {
                depth = depth.checked_sub(1)?;
                end = (depth == 0 && values.is_some()).then_some(at);
            }
            _ if depth == 0 && piece.eq_ignore_ascii_case("VALUES") => values = Some(at),
            _ if depth == 0 && values.is_some() => return None,
            _ if piece.strip_prefix('$').is_some_and(|number| number.parse() == Ok(parameters + 1)) => {
                values?;
                parameters += 1;
            }
            _ if piece.starts_with('$') => return None,
            // A query in the row sees the rows before it.
            _ if values.is_some()
                && ["SELECT", "WITH", "TABLE"].iter().any(|word| piece.eq_ignore_ascii_case(word)) =>
            {
                return None;
            }
            _ => {}
        }
    }
    let (values, end) = (values?, end?);
    Some(Insert { head: &sql[..values], row: sql[values..end].trim(), parameters })
}

impl Insert<'_> {
    /// The statement for so many rows.
    fn text(&self, rows: usize) -> String {
        let mut text = String::with_capacity(self.head.len() + rows * (self.row.len() + 8));
        text.push_str(self.head);
        for row in 0..rows {
            text.push(if row == 0 { ' ' } else { ',' });
            self.row_text(&mut text, row * self.parameters);
        }
        text
    }

    /// The row, with its parameters counted on from `before`.
    fn row_text(&self, text: &mut String, before: usize) {
        let mut at = 0;
        while at < self.row.len() {
            let piece = &self.row[at..at + piece_bytes(&self.row[at..], self.row[..at].chars().next_back())];
            at += piece.len();
            match piece.strip_prefix('$').and_then(|number| number.parse::<usize>().ok()) {
                Some(number) => text.push_str(&format!("${}", before + number)),
                None => text.push_str(piece),
            }
        }
    }
}
