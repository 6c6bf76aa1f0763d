//! What is to change in a table, and how it is told in periods that can hold it.

use counterfoil_proof::Value;

/// What is to change.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// Records that go.
    pub delete: Vec<u64>,
    /// Records with other values.
    pub update: Vec<(u64, Vec<Value>)>,
    /// Rows that come.
    pub insert: Vec<Vec<Value>>,
}

impl Edit {
    /// Changes that a summary may have to tell of: each row, and its neighbours on both sides in each order, where it was and
    /// where it will be.
    #[must_use]
    pub fn changes(&self, orders: usize) -> usize {
        let rows = self.delete.len() + self.insert.len() + 2 * self.update.len();
        rows.saturating_mul(1 + 2 * orders)
    }

    /// The same in parts of at most `changes` changes each, and one row at least; what goes comes first.
    #[must_use]
    pub fn parts(mut self, changes: usize, orders: usize) -> Vec<Self> {
        let rows = (changes / (1 + 2 * orders)).max(1);
        let mut parts = Vec::new();
        while self.changes(orders) > 0 {
            let mut part = Self::default();
            part.delete = take(&mut self.delete, rows);
            part.update = take(&mut self.update, (rows - part.delete.len()) / 2);
            let left = rows - part.delete.len() - 2 * part.update.len();
            if self.update.is_empty() {
                part.insert = take(&mut self.insert, left);
            } else if part.changes(orders) == 0 {
                part.update = take(&mut self.update, 1);
            }
            parts.push(part);
        }
        parts
    }
}

/// The first of a list, `most` at most.
fn take<T>(list: &mut Vec<T>, most: usize) -> Vec<T> {
    let rest = list.split_off(most.min(list.len()));
    std::mem::replace(list, rest)
}

#[cfg(test)]
mod tests {
    use counterfoil_proof::Value;

    use super::Edit;

    #[test]
    fn parts_are_the_whole_and_none_is_too_large() {
        let row = |at: u64| vec![Value::Integer(at as i64)];
        for (deletes, updates, inserts) in [(0, 0, 0), (5, 0, 0), (0, 7, 0), (0, 0, 9), (5, 7, 9), (1, 1, 1), (6, 6, 6)]
        {
            for changes in [0, 3, 6, 9, 12, 30, 1000] {
                let edit = Edit {
                    delete: (0..deletes).collect(),
                    update: (100..100 + updates).map(|rid| (rid, row(rid))).collect(),
                    insert: (0..inserts).map(row).collect(),
                };
                let parts = edit.clone().parts(changes, 1);
                // A row that changes counts twice, and may come alone.
                assert!(parts.iter().all(|part| part.changes(1) <= changes.max(6) && part.changes(1) > 0));
                let mut whole = Edit::default();
                parts.into_iter().for_each(|part| {
                    whole.delete.extend(part.delete);
                    whole.update.extend(part.update);
                    whole.insert.extend(part.insert);
                });
                assert!(whole.delete == edit.delete && whole.update == edit.update && whole.insert == edit.insert);
            }
        }
    }
}
