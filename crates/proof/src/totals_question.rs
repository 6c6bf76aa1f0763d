//! What a reader asks of a mirror where totals are enough: counts, sums, least and largest values of parts of an order.
//!
//! ```text
//! 04, definition's digest, order, hinted (0 or 1), columns of a group, count and intervals (start string, end string)
//! ```
//! Which columns have totals is the definition's affair. At the edges of an interval, where no node fits, rows are shown, with
//! the values of the order's columns and of those with totals.

use alloc::vec::Vec;

use crate::bytes::{Reader, Writer};
use crate::definition::Definition;
use crate::digest::{Digest, digest};
use crate::error::Malformed;
use crate::node::NO_NODES;
use crate::position::Interval;
use crate::question::{INTERVALS_MAX, Question};

/// A question for totals, made by the reader itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TotalsQuestion {
    /// The same intervals and order, as they are asked where rows are shown.
    rows: Question,
    grouped: u8,
}

impl TotalsQuestion {
    /// The totals of the rows in `intervals` of the order `order`: of all of them together, or for each value of the order's
    /// first `grouped` columns that there is.
    ///
    /// # Errors
    /// [`Malformed`]: an order without nodes or with fewer columns, no interval, too many, or such as overlap.
    pub fn new(
        definition: &Definition,
        order: u8,
        intervals: Vec<Interval>,
        grouped: usize,
    ) -> Result<Self, Malformed> {
        let columns = definition.node_columns(order).ok_or(NO_NODES)?;
        let rows = Question::new(definition, order, intervals, columns)?;
        let columns = definition.orders[usize::from(order)].len();
        if grouped > columns {
            return Err(Malformed("groups by more columns than the order has"));
        }
        Ok(Self { rows, grouped: grouped as u8 })
    }

    /// With hints: 96 bytes more for each signature, and checked some fifteen times faster.
    #[must_use]
    pub fn hinted(self) -> Self {
        Self { rows: self.rows.hinted(), ..self }
    }

    /// Its one encoding, which is sent to mirrors.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.byte(VERSION).raw(self.rows.definition()).byte(self.rows.order());
        writer.byte(u8::from(self.rows.is_hinted())).byte(self.grouped);
        writer.number(self.rows.intervals().len() as u64);
        for interval in self.rows.intervals() {
            writer.string(interval.start()).string(interval.end());
        }
        writer.0
    }

    /// Whether bytes are those of a question of this kind, and not of another.
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.first() == Some(&VERSION)
    }

    /// Reads a question about the table `definition`, as mirrors do.
    ///
    /// # Errors
    /// [`Malformed`]: no question, or one about another table.
    pub fn from_bytes(bytes: &[u8], definition: &Definition) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, "a question for totals");
        if reader.byte()? != VERSION {
            return Err(Malformed("a question of a version that is not known"));
        }
        if reader.array()? != definition.digest() {
            return Err(Malformed("a question about another table"));
        }
        let order = reader.byte()?;
        let is_hinted = match reader.byte()? {
            0 => false,
            1 => true,
            _ => return Err(reader.malformed()),
        };
        let grouped = usize::from(reader.byte()?);
        let mut intervals = Vec::new();
        for _ in 0..reader.count()?.min(INTERVALS_MAX + 1) {
            intervals.push(Interval::from_bytes(reader.string()?, reader.string()?)?);
        }
        reader.end()?;
        let question = Self::new(definition, order, intervals, grouped)?;
        Ok(if is_hinted { question.hinted() } else { question })
    }

    /// What an answer repeats, so that one to another question is told from a forged one.
    #[must_use]
    pub fn digest(&self) -> Digest {
        digest("counterfoil/question/1", &[&self.to_bytes()])
    }

    /// The digest of the table's definition.
    #[must_use]
    pub fn definition(&self) -> &Digest {
        self.rows.definition()
    }

    /// The number of the order.
    #[must_use]
    pub fn order(&self) -> u8 {
        self.rows.order()
    }

    /// The intervals, sorted.
    #[must_use]
    pub fn intervals(&self) -> &[Interval] {
        self.rows.intervals()
    }

    /// How many of the order's first columns make a group.
    #[must_use]
    pub fn grouped(&self) -> usize {
        usize::from(self.grouped)
    }

    /// The question for rows whose columns and hints those at the edges have.
    #[must_use]
    pub fn rows(&self) -> &Question {
        &self.rows
    }

    /// Whether all rows of a part are in one group. A part tells by its low end in which: it begins with the values of the
    /// group's columns, and its high end is not behind all keys that do.
    #[must_use]
    pub fn is_one_group(&self, definition: &Definition, part: &Interval) -> bool {
        self.grouped == 0 || self.group_of(definition, part).is_some()
    }

    /// The encodings of the group's columns that all rows of a part have.
    pub(crate) fn group_of<'a>(&self, definition: &Definition, part: &'a Interval) -> Option<&'a [u8]> {
        let key = &part.start()[1..];
        let mut reader = Reader::new(key, "");
        for column in &definition.orders[usize::from(self.rows.order())][..self.grouped()] {
            definition.columns[usize::from(*column)].kind.decode(&mut reader).ok()?;
        }
        let prefix = &key[..key.len() - reader.left()];
        let behind = crate::position::Edge::behind(prefix);
        (part.end() <= behind.bytes()).then_some(prefix)
    }
}

/// The number of the kind of what is signed.
pub(crate) const VERSION: u8 = 4;

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::TotalsQuestion;
    use crate::definition::{Column, Definition, Scheme};
    use crate::node::NodesOf;
    use crate::position::{Edge, Interval};
    use crate::value::{Type, Value};

    fn definition() -> Definition {
        let column = |name: &str, kind| Column { name: name.into(), kind };
        Definition {
            table: [1; 16],
            name: "t".into(),
            columns: vec![column("a", Type::Text), column("b", Type::SmallInt)],
            orders: vec![vec![0, 1], vec![1]],
            scheme: Scheme::PerRecord,
            nodes: vec![NodesOf { order: 0, columns: vec![1] }],
            filters: Vec::new(),
        }
    }

    #[test]
    fn questions_come_back_and_others_are_refused() {
        let definition = definition();
        let all = || vec![Interval::all()];
        let question = TotalsQuestion::new(&definition, 0, all(), 1).expect("a question").hinted();
        let bytes = question.to_bytes();
        assert_eq!(TotalsQuestion::from_bytes(&bytes, &definition), Ok(question));
        for length in 0..bytes.len() {
            assert!(TotalsQuestion::from_bytes(&bytes[..length], &definition).is_err(), "{length}");
        }
        assert!(TotalsQuestion::new(&definition, 0, all(), 3).is_err(), "more columns than the order has");
        assert!(TotalsQuestion::new(&definition, 1, all(), 0).is_err(), "an order without nodes");
        assert!(TotalsQuestion::new(&definition, 0, vec![], 0).is_err(), "no interval");
    }

    fn encoded(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        Type::Text.encode(&Value::Text(text.into()), &mut bytes).expect("a text");
        bytes
    }

    #[test]
    fn a_part_is_in_one_group_or_in_several() {
        let definition = definition();
        let question = TotalsQuestion::new(&definition, 0, vec![Interval::all()], 1).expect("a question");
        let [a, b] = ["a", "b"].map(encoded);
        let within = |start: &[u8], end: Edge| {
            let part = Interval::new(Edge::before(start)..end).expect("a part");
            question.group_of(&definition, &part).map(<[u8]>::to_vec)
        };
        assert_eq!(within(&a, Edge::behind(&a)), Some(a.clone()));
        let behind = [&a[..], &[1, 9]].concat();
        assert_eq!(within(&behind, Edge::before(&b)), None, "strings between both begin with neither");
        assert_eq!(within(&behind, Edge::behind(&a)), Some(a.clone()));
        assert_eq!(within(&a[..2], Edge::behind(&a)), None, "a low end that says no group");
        assert!(
            question.is_one_group(&definition, &Interval::new(Edge::before(&a)..Edge::behind(&a)).expect("a part"))
        );
        assert!(!question.is_one_group(&definition, &Interval::all()));
    }

    proptest! {
        #[test]
        fn noise_is_no_question(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = 4;
            }
            prop_assert!(TotalsQuestion::from_bytes(&bytes, &definition()).is_err());
        }
    }
}
