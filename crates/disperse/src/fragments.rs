//! What providers hold and are asked: rows of fragments under names that say nothing.

use serde::{Deserialize, Serialize};

use crate::coding::boldyreva::{CODE_BYTES, Code};
use crate::coding::orders::{self, Asked, STORED_BYTES};
use crate::coding::tags::Tag;
use crate::packed;

/// The name of a table or a column at one provider: sixteen hexadecimal digits behind a letter, so that it is a name everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Name(String);

impl TryFrom<String> for Name {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("no name of a table or a column")
    }
}

impl Name {
    /// A table's name from the first bytes of a keyed hash.
    pub(crate) fn of_table(hash: [u8; 8]) -> Self {
        Self(format!("t{:016x}", u64::from_be_bytes(hash)))
    }

    /// A column's.
    pub(crate) fn of_column(hash: [u8; 8]) -> Self {
        Self(format!("c{:016x}", u64::from_be_bytes(hash)))
    }

    /// A name as somebody else wrote it; none if it is none of ours.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(['t', 'c'])?;
        let is_one = digits.len() == 16 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_one.then(|| Self(text.to_owned()))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A byte string for each row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strings {
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Strings {
    /// Adds one, which `write` appends.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Adds one.
    pub fn push(&mut self, string: &[u8]) {
        self.push_with(|bytes| bytes.extend_from_slice(string));
    }

    /// Adds others behind them.
    pub fn append(&mut self, others: &Self) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&others.bytes);
        self.ends.extend(others.ends.iter().map(|end| start + end));
    }

    /// The one of a row.
    #[must_use]
    pub fn get(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[row]]
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of all, one behind the other.
    pub(crate) fn all(&self) -> &[u8] {
        &self.bytes
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|row| self.get(row))
    }
}

/// The fragments of one column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Data {
    /// Shares, below 2^61.
    Shares(#[serde(with = "packed::numbers")] Vec<u64>),
    /// Cells, tags, codes.
    Strings(Strings),
}

impl Data {
    /// How many rows it has.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Shares(shares) => shares.len(),
            Self::Strings(strings) => strings.len(),
        }
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn chosen(&self, rows: &[usize]) -> Self {
        match self {
            Self::Shares(shares) => Self::Shares(rows.iter().map(|row| shares[*row]).collect()),
            Self::Strings(strings) => {
                let mut chosen = Strings::default();
                rows.iter().for_each(|row| chosen.push(strings.get(*row)));
                Self::Strings(chosen)
            }
        }
    }
}

/// Rows of fragments, as one provider has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fragments {
    /// Where each row is.
    #[serde(with = "packed::numbers")]
    pub places: Vec<u64>,
    /// The columns, each with as many rows.
    pub columns: Vec<(Name, Data)>,
}

impl Fragments {
    /// Whether all columns have as many rows as there are places: to be asked of what others say.
    #[must_use]
    pub fn is_even(&self) -> bool {
        self.columns.iter().all(|(_, data)| data.len() == self.places.len())
    }

    /// Adds values to a column, which is made if it is not there; none: it has values of another kind.
    pub(crate) fn append(&mut self, name: Name, data: Data) -> Option<()> {
        match (self.columns.iter_mut().find(|(own, _)| *own == name).map(|(_, data)| data), data) {
            (None, data) => self.columns.push((name, data)),
            (Some(Data::Shares(own)), Data::Shares(more)) => own.extend(more),
            (Some(Data::Strings(own)), Data::Strings(more)) => more.iter().for_each(|string| own.push(string)),
            _ => return None,
        }
        Some(())
    }

    /// Bytes of a row's fragments.
    #[must_use]
    pub fn row_bytes(&self, row: usize) -> usize {
        let bytes = |data: &Data| match data {
            Data::Shares(_) => size_of::<u64>(),
            Data::Strings(strings) => strings.get(row).len(),
        };
        size_of::<u64>() + self.columns.iter().map(|(_, data)| bytes(data)).sum::<usize>()
    }

    /// Some of the rows.
    #[must_use]
    pub fn chosen(&self, rows: &[usize]) -> Self {
        let columns = self.columns.iter().map(|(name, data)| (name.clone(), data.chosen(rows)));
        Self { places: rows.iter().map(|row| self.places[*row]).collect(), columns: columns.collect() }
    }

    /// A column.
    #[must_use]
    pub fn column(&self, name: &Name) -> Option<&Data> {
        self.columns.iter().find(|(own, _)| own == name).map(|(_, data)| data)
    }
}

/// What must be true of a row's fragments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Test {
    /// A tag, from byte `at` on, is one of these.
    Tagged {
        /// The column.
        column: Name,
        /// Where the tag begins.
        at: usize,
        /// Those that are asked for, ascending.
        tags: Vec<Tag>,
    },
    /// What is asked for compares with the stored code in one of these ways.
    Compared {
        /// The column.
        column: Name,
        /// What is asked for.
        #[serde(with = "packed::asked")]
        asked: Box<Asked>,
        /// Whether it may be less, equal, greater than what is stored.
        allowed: [bool; 3],
    },
    /// A code that is in order by itself lies between these, or is one of them.
    Between {
        /// The column.
        column: Name,
        /// The least.
        least: Code,
        /// The greatest.
        greatest: Code,
    },
}

impl Test {
    /// The column that it is about.
    #[must_use]
    pub fn column(&self) -> &Name {
        match self {
            Self::Tagged { column, .. } | Self::Compared { column, .. } | Self::Between { column, .. } => column,
        }
    }

    /// Whether it is true of a row; of a string that is none of its kind it is not.
    #[must_use]
    pub fn is_true(&self, string: &[u8]) -> bool {
        match self {
            Self::Tagged { at, tags, .. } => {
                // Whoever asks says where: somebody else, at a provider.
                let own = at.checked_add(size_of::<Tag>()).and_then(|end| string.get(*at..end));
                own.is_some_and(|own| tags.binary_search_by(|tag| tag[..].cmp(own)).is_ok())
            }
            Self::Compared { asked, allowed, .. } => {
                let stored: Option<&[u8; STORED_BYTES]> = string.try_into().ok();
                stored.is_some_and(|stored| allowed[(orders::compare(asked, stored) as i8 + 1) as usize])
            }
            // What is as long as none of them is NULL.
            Self::Between { least, greatest, .. } => {
                string.len() == CODE_BYTES && (&least[..]..=&greatest[..]).contains(&string)
            }
        }
    }
}

/// A question to one provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The columns that are wanted.
    pub columns: Vec<Name>,
    /// What must be true of the rows that are meant: all of it.
    pub tests: Vec<Test>,
    /// The rows that are meant by their places, ascending; none: all.
    #[serde(with = "packed::some_numbers")]
    pub places: Option<Vec<u64>>,
    /// Columns of shares that are to be added up.
    pub sums: Vec<Name>,
}

/// A part of an answer. Sums of parts are to be added up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The rows, with the columns that were wanted; where only sums were, without.
    pub rows: Fragments,
    /// How many rows were added up.
    pub added: u64,
    /// The sums, in the order in which they were asked for, below 2^61 - 1.
    pub sums: Vec<u64>,
}

/// What a provider makes of some of its rows: needs no key.
///
/// None: a column that is not there, or not of the kind that is asked for.
#[must_use]
pub fn evaluate(fragments: &Fragments, question: &Question) -> Option<Answer> {
    let mut rows: Vec<usize> = match &question.places {
        None => (0..fragments.places.len()).collect(),
        Some(wanted) => {
            (0..fragments.places.len()).filter(|row| wanted.binary_search(&fragments.places[*row]).is_ok()).collect()
        }
    };
    for test in &question.tests {
        let Data::Strings(strings) = fragments.column(test.column())? else { return None };
        rows.retain(|row| test.is_true(strings.get(*row)));
    }
    let mut answer = Answer { added: rows.len() as u64, ..Answer::default() };
    for name in &question.sums {
        let Data::Shares(shares) = fragments.column(name)? else { return None };
        let sum: u128 = rows.iter().map(|row| u128::from(shares[*row])).sum();
        answer.sums.push(crate::coding::field::Element::reduce(sum).number());
    }
    let is_all = rows.len() == fragments.places.len();
    if question.sums.is_empty() || !question.columns.is_empty() {
        answer.rows.places = rows.iter().map(|row| fragments.places[*row]).collect();
    }
    for name in &question.columns {
        let column = fragments.column(name)?;
        answer.rows.columns.push((name.clone(), if is_all { column.clone() } else { column.chosen(&rows) }));
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::{Answer, Data, Fragments, Name, Question, Strings, Test, evaluate};

    fn name(text: &str) -> Name {
        Name::parse(text).expect("a name")
    }

    #[test]
    fn questions_are_answered_from_the_rows_that_are_meant() {
        let (tags, shares) = (name("c0000000000000001"), name("c0000000000000002"));
        let mut strings = Strings::default();
        [1_u8, 2, 1].iter().for_each(|tag| strings.push(&[*tag; 16]));
        let columns =
            vec![(tags.clone(), Data::Strings(strings)), (shares.clone(), Data::Shares(vec![5, 6, (1 << 61) - 2]))];
        let fragments = Fragments { places: vec![70, 80, 90], columns };
        let tagged = Test::Tagged { column: tags, at: 0, tags: vec![[1; 16], [9; 16]] };
        let question = Question { tests: vec![tagged.clone()], sums: vec![shares.clone()], ..Question::default() };
        // 5 - 1 in the field.
        assert_eq!(evaluate(&fragments, &question), Some(Answer { added: 2, sums: vec![4], ..Answer::default() }));
        let question =
            Question { columns: vec![shares.clone()], places: Some(vec![60, 80, 90]), ..Question::default() };
        let found = evaluate(&fragments, &question).expect("an answer");
        assert_eq!(found.rows.places, [80, 90]);
        assert_eq!(found.rows.columns, [(shares.clone(), Data::Shares(vec![6, (1 << 61) - 2]))]);
        let beyond = Test::Tagged { column: fragments.columns[0].0.clone(), at: usize::MAX, tags: vec![[1; 16]] };
        let nothing = evaluate(&fragments, &Question { tests: vec![beyond], ..Question::default() });
        assert!(nothing.is_some_and(|answer| answer.rows.places.is_empty()));
        // Codes lie between others or not, and an empty one is that of NULL.
        let mut codes = Strings::default();
        [&[3; 12][..], &[], &[5; 12], &[5; 16]].iter().for_each(|code| codes.push(code));
        let between = |least, greatest| Test::Between {
            column: name("c0000000000000003"),
            least: [least; 12],
            greatest: [greatest; 12],
        };
        let found =
            |least, greatest| codes.iter().map(|code| between(least, greatest).is_true(code)).collect::<Vec<_>>();
        assert_eq!(found(0, 255), [true, false, true, false]);
        assert_eq!(found(4, 5), [false, false, true, false]);
        assert_eq!(found(255, 0), [false; 4]);
        // Shares have no tags, and what is not there has nothing.
        let wrong = Test::Tagged { column: shares, at: 0, tags: Vec::new() };
        assert_eq!(evaluate(&fragments, &Question { tests: vec![wrong], ..Question::default() }), None);
        let none = Question { columns: vec![name("c00000000000000ff")], ..Question::default() };
        assert_eq!(evaluate(&fragments, &none), None);
    }

    #[test]
    fn names_are_what_they_are_everywhere() {
        assert_eq!(Name::of_table([0, 1, 2, 3, 4, 5, 6, 255]).as_str(), "t00010203040506ff");
        for text in
            ["", "t", "people", "t00010203040506f", "t00010203040506FF", "../0010203040506ff", "c00010203040506ff0"]
        {
            assert_eq!(Name::parse(text), None, "{text}");
        }
    }
}
