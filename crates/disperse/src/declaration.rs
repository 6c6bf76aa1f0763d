//! What was said of a table when it was made.

use serde::{Deserialize, Serialize};

use crate::coding::erasure::Pieces;
use crate::coding::shares::Limbs;

/// Rows that a table may have unless more are declared: sums of so many fit into their limbs.
pub const ROWS_MAX_DEFAULT: u64 = 1 << 25;

/// What kind of values a column has, as far as codings care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Whole numbers of so many bits of magnitude, at most 127: integers, decimals by their unscaled value, dates, times, booleans.
    Number {
        /// Bits of the greatest magnitude.
        bits: u8,
        /// Whether some of them do not fit into a signed number of 64 bits.
        wide: bool,
        /// Whether sums of them mean something.
        adds: bool,
    },
    /// Floating-point numbers, by their bits in the order of their values. No sum of them is exact in a field.
    Float,
    /// Texts.
    Text,
    /// Bytes.
    Bytes,
    /// Texts of UUIDs, which have as many bytes each.
    Uuid,
}

/// Bytes of the text of a UUID.
const UUID_BYTES: usize = 36;

impl Kind {
    /// Bytes of a value's canonical form, if all have as many.
    pub(crate) fn width(self) -> Option<usize> {
        match self {
            Self::Number { wide: false, .. } | Self::Float => Some(8),
            Self::Number { .. } => Some(16),
            Self::Uuid => Some(UUID_BYTES),
            Self::Text | Self::Bytes => None,
        }
    }
}

/// What is to be done with a column where its fragments lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operations {
    /// `=` and IN.
    pub equality: bool,
    /// `<`, `>`, BETWEEN.
    pub range: bool,
    /// SUM and AVG.
    pub sum: bool,
    /// `LIKE 'abc%'`.
    pub prefix: bool,
    /// `<`, `>`, BETWEEN and `=`, by codes that are in order wherever they lie: clouds see the order of all values.
    pub danger_order: bool,
}

/// How the cells of a column are distributed over its clouds (the paper's section II.A).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Distribution {
    /// Whole, at one cloud more than may fail: selective replication.
    #[default]
    Spare,
    /// Whole, at every one: full replication.
    Replicated,
    /// In pieces, one at each, of which all but `may_fail` give a cell back: erasure coding.
    Dispersed,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its number: given once, never to another one.
    pub id: u16,
    /// What people call it.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
    /// Whether NULL is one.
    pub nullable: bool,
    /// What is done with it.
    pub operations: Operations,
    /// How its cells are distributed.
    pub distribution: Distribution,
    /// Where its fragments may lie: places among the table's clouds, ascending.
    pub clouds: Vec<u16>,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declaration {
    /// Its number: 16 random bytes.
    pub table: [u8; 16],
    /// Its columns.
    pub columns: Vec<Column>,
    /// What people call the clouds, in the order in which they were named: those of the table, and behind them those that single columns
    /// were moved to.
    pub clouds: Vec<String>,
    /// How many of them may be silent or lie.
    pub may_fail: usize,
    /// How many of them may tell one another what they hold.
    pub may_collude: usize,
    /// Rows at most.
    pub rows_max: u64,
}

impl Declaration {
    /// How many shares give a value away.
    #[must_use]
    pub fn threshold(&self) -> usize {
        self.may_collude + 1
    }

    /// How numbers of a column are cut for sums; none if they are not.
    #[must_use]
    pub fn limbs(&self, column: &Column) -> Option<Limbs> {
        match column.kind {
            Kind::Number { bits, adds: true, .. } if column.operations.sum => {
                Limbs::new(u32::from(bits).max(1), self.rows_max)
            }
            _ => None,
        }
    }

    /// How cells of a column are cut; none if they are whole, or lie at more clouds than pieces there may be.
    #[must_use]
    pub fn pieces(&self, column: &Column) -> Option<Pieces> {
        match column.distribution {
            Distribution::Dispersed => Pieces::new(column.clouds.len().checked_sub(self.may_fail)?, self.may_fail),
            Distribution::Spare | Distribution::Replicated => None,
        }
    }

    /// The column of a number.
    #[must_use]
    pub fn column(&self, id: u16) -> Option<&Column> {
        self.columns.iter().find(|column| column.id == id)
    }
}
