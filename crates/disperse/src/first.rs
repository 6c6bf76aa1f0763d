//! Which rows come first in the order of a column: clouds narrow them down, by questions of which each stands on the answer to the one before
//! (StealthDB, Table I: MIN and MAX by map-carry-reduce).
//!
//! ```text
//! rows  --some of them are opened-->  the bound: a value up to which as many rows come as are wanted
//!       --clouds with codes-------->  those rows that come up to the bound, and again, until they are few
//! ```
//! 1. A bound is a value of rows that were opened, and as many of these come up to it as are wanted: so whatever clouds say, all rows that come
//!    first come up to the bound. One that any cloud names stays: who leaves rows out changes nothing as long as another one does not.
//! 2. A code may know a value in part (of a text eight bytes): then rows stay that come somewhat later. Whoever asks sorts what is left.
//! 3. Clouds that give files are not asked: all codes would come here with each round, which are about as much as the values.
//! 4. Where NULL comes first, clouds are asked which rows come *behind* the bound, and those stay of which not all say so: a NULL never does.

use crate::declaration::Kind;
use crate::goal::Goal;
use crate::placement::Coding;
use crate::plain::Value;
use crate::state::Rows;
use crate::table::{Asking, Condition, Report, Table, Unanswered};

/// Rows that are opened at least to find a bound, and for each one that is wanted: a round leaves about one in so many.
const OPENED_LEAST: u64 = 256;
const OPENED_FOR_EACH: u64 = 16;
/// What is fewer than so many times those is fetched.
const WORTH: u64 = 4;

/// A value, and its row.
type Opened = (Option<Value>, u64);

/// An order of rows, and how many of the first are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct First {
    /// By the values of this column.
    pub column: u16,
    /// The greatest first.
    pub is_descending: bool,
    /// NULL before all values; else behind them.
    pub nulls_first: bool,
    /// So many rows, and those that are equal to the last of them.
    pub count: u64,
}

impl First {
    /// How many rows a round opens; none: there are so few that they are fetched, or so many are wanted.
    fn opened(&self, rows: u64) -> Option<u64> {
        let opened = self.count.checked_mul(OPENED_FOR_EACH)?.max(OPENED_LEAST);
        (self.count > 0 && opened.checked_mul(WORTH)? <= rows).then_some(opened)
    }

    /// Keeps of values the first, as many as are wanted, in order. NULL is one where it comes first; it is none where it comes last.
    fn keep(&self, values: &mut Vec<Opened>) {
        if !self.nulls_first {
            values.retain(|(value, _)| value.is_some());
        }
        values.sort_by(|(one, _), (other, _)| match (one, other) {
            (Some(one), Some(other)) if self.is_descending => other.in_order(one),
            (Some(one), Some(other)) => one.in_order(other),
            // NULL is here where it comes first.
            (one, other) => one.is_some().cmp(&other.is_some()),
        });
        values.truncate(usize::try_from(self.count).unwrap_or(usize::MAX));
    }

    /// What is true of the values that come up to a bound, or of those behind it.
    fn condition(&self, bound: &Value, is_behind: bool) -> Condition {
        let end = Some((bound.clone(), !is_behind));
        let (low, high) = if self.is_descending == is_behind { (None, end) } else { (end, None) };
        Condition::Range { column: self.column, low, high }
    }
}

impl Table {
    /// Live rows among which are those that come first of all of which some conditions are true: all of them, unless clouds put the column
    /// in order ([`Table::puts_in_order`]).
    ///
    /// # Errors
    /// [`Unanswered`]: a column that a condition or the order is about cannot be had of the rows that are opened.
    pub fn first(
        &self,
        asking: Asking<'_>,
        first: First,
        conditions: &[Condition],
        report: &mut Report,
    ) -> Result<Rows, Unanswered> {
        let all = &asking.state.live;
        if !self.puts_in_order(first.column, asking.goal) || first.opened(all.len()).is_none() {
            return Ok(all.clone());
        }
        let mut rows = all.clone();
        for condition in conditions {
            if let Some(matching) = self.matching(asking, condition, report)? {
                rows &= matching;
            }
        }
        while let Some(opened) = first.opened(rows.len()) {
            // Of these rows alone: one that was opened before must not count twice.
            let mut values = self.values(asking, (first.column, conditions), &some(&rows, opened), report)?;
            first.keep(&mut values);
            let bound = values.last().filter(|_| values.len() as u64 == first.count).map(|(value, _)| value);
            let Some(fewer) = self.up_to(asking, first, bound, &rows, report)? else { break };
            if values.iter().any(|(_, row)| !fewer.contains(*row)) {
                // All of them come up to the bound, and nobody names this one.
                return Ok(all.clone());
            }
            let is_slow = fewer.len() > rows.len() / 2;
            rows = fewer;
            if is_slow {
                break;
            }
        }
        Ok(if self.is_beyond_belief(asking.goal, report) { all.clone() } else { rows })
    }

    /// Whether clouds have codes of a column that are in the order of its values in SQL (those of floating-point numbers are not), and answer
    /// where these lie. One alone is not believed
    /// about what comes first, unless that is wanted above all: it could leave out the one row that does.
    #[must_use]
    pub fn puts_in_order(&self, column: u16, goal: Goal) -> bool {
        let is_near = |cloud: &usize| self.clouds()[*cloud].is_near_fragments();
        let codes = self.coder().placement().fragment(column, Coding::DangerOrder);
        let kind = self.coder().declaration().column(column).map(|column| column.kind);
        let is_enough = |holders: &[usize]| holders.len() > 1 || goal == Goal::Performance;
        kind.is_some_and(|kind| kind != Kind::Float)
            && codes.is_some_and(|codes| is_enough(&codes.holders) && codes.holders.iter().all(is_near))
    }

    /// The values of a column, with their rows, of those of some rows of which conditions are true.
    fn values(
        &self,
        asking: Asking<'_>,
        (column, conditions): (u16, &[Condition]),
        rows: &Rows,
        report: &mut Report,
    ) -> Result<Vec<Opened>, Unanswered> {
        let mut wanted: Vec<u16> = conditions.iter().map(Condition::column).chain([column]).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let found = self.read_rows(asking, &wanted, rows, report)?;
        let Some(at) = wanted.iter().position(|id| *id == column) else { return Ok(Vec::new()) };
        let rows = found.matching(&wanted, conditions).into_iter();
        Ok(rows.map(|row| (found.columns[at].value(row), found.rows[row])).collect())
    }

    /// Those of some rows that may come up to a bound; none: there is no bound, or no cloud says.
    fn up_to(
        &self,
        asking: Asking<'_>,
        first: First,
        bound: Option<&Option<Value>>,
        rows: &Rows,
        report: &mut Report,
    ) -> Result<Option<Rows>, Unanswered> {
        let behind = match bound {
            None => return Ok(None),
            Some(Some(bound)) if first.nulls_first => first.condition(bound, true),
            Some(Some(bound)) => {
                let named = self.matching(asking, &first.condition(bound, false), report)?;
                return Ok(named.map(|named| named & rows));
            }
            // Every value comes behind NULL.
            Some(None) => {
                let least = Value::Number(i64::MIN.into());
                Condition::Range { column: first.column, low: Some((least, true)), high: None }
            }
        };
        if !self.knows(&behind) {
            return Ok(None);
        }
        Ok(self.surely(asking, &behind, report)?.map(|behind| rows - behind))
    }
}

/// So many of some rows, one of each stretch of as many, and not always the same one of it.
fn some(rows: &Rows, count: u64) -> Rows {
    let stretch = (rows.len() / count.max(1)).max(1);
    let chosen = |number: u64| (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % stretch;
    let is_chosen = |(at, row): (u64, u64)| (at % stretch == chosen(at / stretch)).then_some(row);
    (0..).zip(rows.iter()).filter_map(is_chosen).collect()
}

#[cfg(test)]
mod tests {
    use super::{First, some};
    use crate::plain::Value;
    use crate::state::Rows;

    #[test]
    fn of_each_stretch_of_rows_one_is_opened() {
        for (rows, count) in [(1024_u64, 256_u64), (100_000, 256), (100_003, 512)] {
            let all: Rows = (0..rows).map(|row| row * 3).collect();
            let opened = some(&all, count);
            assert!(
                opened.is_subset(&all) && opened.len().abs_diff(count) <= count / 100 + 1,
                "{rows}: {}",
                opened.len()
            );
        }
    }

    #[test]
    fn null_is_among_the_first_only_where_it_comes_first() {
        let number = |of: i128| Some(Value::Number(of));
        let all = [number(3), None, number(-5), number(9), number(0)];
        for (is_descending, nulls_first, kept) in [
            (false, false, [number(-5), number(0), number(3)]),
            (true, false, [number(9), number(3), number(0)]),
            (false, true, [None, number(-5), number(0)]),
            (true, true, [None, number(9), number(3)]),
        ] {
            let mut values: Vec<_> = all.iter().cloned().zip(0..).collect();
            First { column: 1, is_descending, nulls_first, count: 3 }.keep(&mut values);
            assert!(
                values.into_iter().map(|(value, _)| value).eq(kept),
                "descending: {is_descending}, NULL first: {nulls_first}"
            );
        }
    }
}
