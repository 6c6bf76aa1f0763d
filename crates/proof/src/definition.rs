//! What a published table is, for as long as it is published.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::bytes::{Reader, Writer};
use crate::digest::{Digest, digest};
use crate::error::Malformed;
use crate::node::{NodesOf, check_list, read_list, write_list};
use crate::position::{KEY_BYTES_MAX, Position};
use crate::value::{Type, Value};

/// Columns of a published table at most.
pub const COLUMNS_MAX: usize = 1000;

/// Orders of a published table at most.
pub const ORDERS_MAX: usize = 16;

/// Numbers below this one belong to heads and tails; records have the others.
pub const FIRST_RID: u64 = 2 * ORDERS_MAX as u64;

/// Parts of a definition that not every table has begin with the kind of what is signed for them: nodes...
const NODES: u8 = 4;

/// ... and filters.
const FILTERS: u8 = 5;

/// A column of a published table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub kind: Type,
}

/// Records of a group at least, in a definition.
pub const GROUP_ROWS_MIN: u8 = 2;

/// Records of a group at most, in a definition: what is not shown of a group is a list of digests.
pub const GROUP_ROWS_MAX: u8 = 64;

/// Records of a group at most, if its owner says nothing else.
pub const GROUP_ROWS: u8 = 16;

/// How much one signature covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scheme {
    /// A record: any of its values can be shown without the others.
    PerRecord,
    /// A value, and what a record stands beside: what is not shown takes no byte of an answer.
    PerAttribute,
    /// So many records at most that stand beside each other in the first order.
    Group(u8),
}

impl Scheme {
    fn write(self, writer: &mut Writer) {
        match self {
            Self::PerRecord => writer.byte(1),
            Self::PerAttribute => writer.byte(2),
            Self::Group(rows_max) => writer.byte(3).byte(rows_max),
        };
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        match reader.byte()? {
            1 => Ok(Self::PerRecord),
            2 => Ok(Self::PerAttribute),
            3 => Ok(Self::Group(reader.byte()?)),
            _ => Err(Malformed("a scheme of signatures that this version does not know")),
        }
    }

    fn check(self) -> Result<(), Malformed> {
        match self {
            Self::Group(rows_max) if !(GROUP_ROWS_MIN..=GROUP_ROWS_MAX).contains(&rows_max) => {
                Err(Malformed("a published table has groups of 2 to 64 records"))
            }
            _ => Ok(()),
        }
    }
}

/// What never changes of a published table: each signature holds its digest, so that none can be used for another table,
/// another column or another order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The table's number, drawn at random once.
    pub table: [u8; 16],
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its orders, each the numbers of the columns by which it sorts.
    pub orders: Vec<Vec<u16>>,
    /// How much one signature covers.
    pub scheme: Scheme,
    /// Which totals are signed, by order.
    pub nodes: Vec<NodesOf>,
    /// The orders of whose first columns there are signed filters ([`crate::Filter`]), for joins; ascending.
    pub filters: Vec<u8>,
}

impl Definition {
    /// Refuses what no reader would accept.
    ///
    /// # Errors
    /// [`Malformed`]: no columns or orders or too many, names that are empty, too long or doubled, orders by absent columns,
    /// groups of too few or too many records.
    pub fn check(&self) -> Result<(), Malformed> {
        let names = self.columns.iter().map(|column| &column.name).chain([&self.name]);
        if names.clone().any(|name| name.is_empty() || name.len() > 256) {
            return Err(Malformed("a name of a published table or column that is empty or longer than 256 bytes"));
        }
        let mut sorted: Vec<&String> = self.columns.iter().map(|column| &column.name).collect();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Malformed("two columns of a published table with one name"));
        }
        if self.columns.is_empty() || self.columns.len() > COLUMNS_MAX {
            return Err(Malformed("a published table has 1 to 1000 columns"));
        }
        if self.orders.is_empty() || self.orders.len() > ORDERS_MAX {
            return Err(Malformed("a published table has 1 to 16 orders"));
        }
        let absent = |column: &u16| usize::from(*column) >= self.columns.len();
        for order in &self.orders {
            if order.len() > 16 || order.iter().any(absent) || has_twice(order) {
                return Err(Malformed("an order of a published table by a column that is not there, or by one twice"));
            }
        }
        let is_filtered = |order: &u8| self.orders.get(usize::from(*order)).is_some_and(|order| !order.is_empty());
        if !self.filters.iter().all(is_filtered) || !self.filters.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err(Malformed("filters of an order of a published table that has none, or is not there"));
        }
        self.scheme.check()?;
        check_list(self)
    }

    /// How many signatures a record has of its own: of a group's records the group has them.
    #[must_use]
    pub fn signatures_of_record(&self) -> usize {
        match self.scheme {
            Scheme::PerRecord => 1,
            Scheme::PerAttribute => 1 + self.columns.len(),
            Scheme::Group(_) => 0,
        }
    }

    /// The digest that every signature holds.
    #[must_use]
    pub fn digest(&self) -> Digest {
        digest("counterfoil/definition/1", &[&self.to_bytes()])
    }

    /// The number of the column `name`.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<u16> {
        self.columns.iter().position(|column| column.name == name).map(|at| at as u16)
    }

    /// The encoded key of a row in the order `order`; `value` gives the row's values by column.
    ///
    /// # Errors
    /// [`Malformed`]: a value that is none of its column, or a key of more than 1024 bytes.
    pub fn key<'a>(&self, order: usize, value: impl Fn(u16) -> &'a Value) -> Result<Vec<u8>, Malformed> {
        let mut key = Vec::new();
        for column in &self.orders[order] {
            let kind = self.columns[usize::from(*column)].kind;
            kind.encode(value(*column), &mut key)
                .map_err(|_| Malformed("a value of a type that its column has not"))?;
        }
        if key.len() > KEY_BYTES_MAX {
            Err(Malformed("a value of more than 1024 bytes in a column of ORDER BY: shorten it, or order by others"))
        } else {
            Ok(key)
        }
    }

    /// Where a row stands in the order `order`.
    ///
    /// # Errors
    /// As [`Definition::key`].
    pub fn position<'a>(
        &self,
        order: usize,
        value: impl Fn(u16) -> &'a Value,
        rid: u64,
    ) -> Result<Position, Malformed> {
        Position::of(&self.key(order, value)?, rid)
    }

    /// Its one encoding.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.raw(&self.table).string(self.name.as_bytes()).number(self.columns.len() as u64);
        for column in &self.columns {
            writer.string(column.name.as_bytes());
            column.kind.write(&mut writer);
        }
        writer.number(self.orders.len() as u64);
        for order in &self.orders {
            writer.number(order.len() as u64);
            for column in order {
                writer.number(u64::from(*column));
            }
        }
        self.scheme.write(&mut writer);
        // Parts that came later, by their tags: a definition without them has the bytes that it always had.
        if !self.nodes.is_empty() {
            writer.byte(NODES).string(&write_list(&self.nodes));
        }
        if !self.filters.is_empty() {
            writer.byte(FILTERS).string(&self.filters);
        }
        writer.0
    }

    /// What [`Definition::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`Malformed`]: something else, or what no reader would accept.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, "the definition of a published table");
        let definition = Self::read(&mut reader)?;
        reader.end()?;
        Ok(definition)
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let table = reader.array()?;
        let name = reader.text()?.to_string();
        let mut columns = Vec::new();
        for _ in 0..reader.count()? {
            columns.push(Column { name: reader.text()?.to_string(), kind: Type::read(reader)? });
        }
        let mut orders = Vec::new();
        for _ in 0..reader.count()? {
            let mut order = Vec::new();
            for _ in 0..reader.count()? {
                order.push(u16::try_from(reader.number()?).map_err(|_| reader.malformed())?);
            }
            orders.push(order);
        }
        let scheme = Scheme::read(reader)?;
        let mut definition = Self { table, name, columns, orders, scheme, nodes: Vec::new(), filters: Vec::new() };
        let mut last = 0;
        while reader.left() > 0 {
            let (tag, part) = (reader.byte()?, reader.string()?);
            match (tag > last && !part.is_empty(), tag) {
                (true, NODES) => definition.nodes = read_list(part)?,
                (true, FILTERS) => definition.filters = part.to_vec(),
                _ => return Err(Malformed("a definition with a part that this version does not know")),
            }
            last = tag;
        }
        definition.check()?;
        Ok(definition)
    }
}

fn has_twice(columns: &[u16]) -> bool {
    let mut sorted = columns.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}
