//! What the owner of a table makes of values, and of fragments: all of the table's keys meet here, and nobody is asked.

use std::collections::{BTreeSet, HashMap};
use std::panic::resume_unwind;
use std::thread::{self, available_parallelism};

use hmac::Mac as _;

use crate::coding::boldyreva::{CODE_BYTES, DangerOrders};
use crate::coding::cells::{Cells, NotSealedHere};
use crate::coding::field::Element;
use crate::coding::orders::Orders;
use crate::coding::places::Places;
use crate::coding::shares::{Coefficients, Limbs, hiding_of};
use crate::coding::tags::{Tag, Tags};
use crate::declaration::{Column, Declaration};
use crate::fragments::{Data, Fragments, Name, Strings, Test};
use crate::keys::{Epoch, Purpose, Scope, Secret};
use crate::placement::{Coding, Fragment, Placement};
use crate::plain::{Plain, Value, ordinal_of_number, ordinal_of_string};

/// Characters of which a text's first ones have tags: of 1, of 2, and so on.
pub const PREFIX_CHARACTERS_MAX: usize = 6;

/// Codes in order for which a thread is begun: it takes about as long as a few of them.
const CODES_OF_A_WORKER_MIN: usize = 64;

/// Bits of a row in what its place is made of.
const ROW_BITS: u32 = 40;
const ROWS_END: u64 = 1 << ROW_BITS;

/// Who wrote which rows: each epoch from its first row on, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Epochs(Vec<(u64, Epoch)>);

impl Epochs {
    /// From this row on another one writes. Rows before keep theirs.
    pub fn begin(&mut self, first_row: u64, epoch: Epoch) {
        assert!(self.0.last().is_none_or(|(last, _)| *last <= first_row), "an epoch that began before the last one");
        // An epoch of no rows leaves nothing to open.
        if self.0.last().is_some_and(|(last, _)| *last == first_row) {
            self.0.pop();
        }
        self.0.push((first_row, epoch));
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Epoch)> {
        self.0.iter().copied()
    }

    /// A row with a part of its epoch, by which a row that has the same number in a database that was put back is another one; none: a row
    /// of no epoch, or with a number that is too large.
    fn number(&self, row: u64) -> Option<u64> {
        let (_, Epoch(epoch)) = self.0[self.at(row)?];
        let tag = u64::from_be_bytes([0, 0, 0, 0, 0, epoch[0], epoch[1], epoch[2]]);
        (row < ROWS_END).then_some(tag << ROW_BITS | row)
    }

    /// The same of rows.
    fn numbers(&self, rows: &[u64]) -> Result<Vec<u64>, Unfit> {
        rows.iter().map(|row| self.number(*row).ok_or(Unfit::Row(*row))).collect()
    }

    /// The place of a row's epoch.
    fn at(&self, row: u64) -> Option<usize> {
        self.0.partition_point(|(first, _)| *first <= row).checked_sub(1)
    }

    /// Rows, ascending, in stretches of one epoch each.
    fn stretches<'a>(&'a self, rows: &'a [u64]) -> impl Iterator<Item = (Epoch, &'a [u64])> {
        rows.chunk_by(|one, other| self.at(*one) == self.at(*other)).filter_map(|rows| {
            let at = self.at(*rows.first()?)?;
            Some((self.0[at].1, rows))
        })
    }
}

/// A row that no epoch has, or a value that its column has no room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// A row from before anybody wrote, or behind the last one that has a place.
    Row(u64),
    /// A number of more bits than were declared, in this column.
    Number(String),
    /// A value that is too long to be cut, in this column.
    Long(String),
}

/// Fragments of a column in some rows, by what they are.
type Named = ((u16, Coding), Data);

/// Fragments of some rows that are the same wherever they lie.
#[derive(Default)]
pub struct Common(HashMap<(u16, Coding), Data>);

/// The coder of a table.
pub struct Coder {
    declaration: Declaration,
    placement: Placement,
    secret: Secret,
    places: Vec<Places>,
}

impl Coder {
    /// The coder of a table with its secret.
    #[must_use]
    pub fn new(declaration: Declaration, placement: Placement, secret: Secret) -> Self {
        let places = (0..declaration.clouds.len())
            .map(|cloud| Places::new(&secret.derive(Purpose::Places, &Scope::provider(cloud as u16))))
            .collect();
        Self { declaration, placement, secret, places }
    }

    /// What was declared.
    #[must_use]
    pub fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    /// Where everything is.
    #[must_use]
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Where a cloud has a row; none: it has no place.
    #[must_use]
    pub fn place(&self, epochs: &Epochs, cloud: usize, row: u64) -> Option<u64> {
        epochs.number(row).map(|number| self.places[cloud].place(number))
    }

    /// Where a cloud has rows, ascending.
    #[must_use]
    pub fn sorted_places(&self, epochs: &Epochs, cloud: usize, rows: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut places: Vec<u64> = rows.into_iter().filter_map(|row| epochs.number(row)).collect();
        self.places[cloud].places(&mut places);
        places.sort_unstable();
        places
    }

    /// Which row a cloud has at a place; none: none of this table as it is, though it may be one of before it was put back.
    #[must_use]
    pub fn row(&self, epochs: &Epochs, cloud: usize, place: u64) -> Option<u64> {
        self.rows(epochs, cloud, vec![place]).next().flatten()
    }

    /// The rows that a cloud has at places, each or none as [`row`](Self::row) says.
    pub(crate) fn rows(
        &self,
        epochs: &Epochs,
        cloud: usize,
        mut places: Vec<u64>,
    ) -> impl Iterator<Item = Option<u64>> {
        self.places[cloud].numbers(&mut places);
        places.into_iter().map(|number| Some(number % ROWS_END).filter(|row| epochs.number(*row) == Some(number)))
    }

    fn hash(&self, cloud: usize, parts: &[&[u8]]) -> [u8; 8] {
        let key = self.secret.derive(Purpose::Names, &Scope::provider(cloud as u16));
        let mut mac = key.mac();
        parts.iter().for_each(|part| mac.update(part));
        let whole = mac.finalize().into_bytes();
        std::array::from_fn(|at| whole[at])
    }

    /// What a cloud calls the table.
    #[must_use]
    pub fn table_name(&self, cloud: usize) -> Name {
        Name::of_table(self.hash(cloud, &[b"table"]))
    }

    /// What a cloud calls a fragment of a column.
    #[must_use]
    pub fn column_name(&self, cloud: usize, column: u16, coding: Coding) -> Name {
        Name::of_column(self.hash(cloud, &[b"column", &column.to_be_bytes(), &[coding.number()]]))
    }

    fn key(&self, purpose: Purpose, column: u16, part: u8, epoch: Epoch) -> Secret {
        self.secret.derive(purpose, &Scope { part, epoch, ..Scope::column(column) })
    }

    fn tags(&self, column: u16) -> Tags {
        Tags::new(self.key(Purpose::Tag, column, 0, Epoch::ALL))
    }

    fn orders(&self, column: u16) -> Orders {
        Orders::new(&self.key(Purpose::Order, column, 0, Epoch::ALL))
    }

    fn danger_orders(&self, column: u16) -> DangerOrders {
        DangerOrders::new(&self.key(Purpose::Preserving, column, 0, Epoch::ALL))
    }

    fn coefficients(&self, column: u16, coding: Coding, epoch: Epoch) -> Coefficients {
        let threshold = self.declaration.threshold() as u32;
        Coefficients::new(&self.key(Purpose::Shares, column, coding.number(), epoch), threshold)
    }

    /// Where a cloud's shares lie: all at one place, under one pad, where one alone would be the value.
    fn x(&self, cloud: usize) -> Element {
        let of_its_own = if self.declaration.threshold() > 1 { cloud } else { 0 };
        Element::reduce(of_its_own as u128 + 1)
    }

    /// What is the same at all clouds that hold it: everything but shares. `rows` are ascending; `columns` are the declared ones in
    /// order. Columns are coded at the same time.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn common(&self, epochs: &Epochs, rows: &[u64], columns: &[Plain]) -> Result<Common, Unfit> {
        let is_common = |coding: &Coding| match coding {
            Coding::Share(_) | Coding::Present => false,
            // All of a column's are made with the first.
            Coding::Piece(number) => *number == 0,
            _ => true,
        };
        let fragments = self.placement.fragments.iter().filter(|fragment| is_common(&fragment.coding));
        let code = |fragment: &Fragment| {
            let mut all = self.declaration.columns.iter().zip(columns);
            let (column, plain) = all.find(|(column, _)| column.id == fragment.column).ok_or(Unfit::Row(0))?;
            self.coded(epochs, (column, fragment.coding), rows, plain)
        };
        let code = &code;
        let coded: Vec<Result<_, Unfit>> = thread::scope(|scope| {
            let coding: Vec<_> = fragments.map(|fragment| scope.spawn(move || code(fragment))).collect();
            coding.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        coded.into_iter().collect::<Result<Vec<_>, Unfit>>().map(|coded| Common(coded.into_iter().flatten().collect()))
    }

    /// Fragments of a column that are made together.
    fn coded(
        &self,
        epochs: &Epochs,
        (column, coding): (&Column, Coding),
        rows: &[u64],
        plain: &Plain,
    ) -> Result<Vec<Named>, Unfit> {
        match coding {
            Coding::Piece(_) => {
                let pieces = self.pieces(epochs, column, rows, plain)?;
                let named = |(number, pieces)| ((column.id, Coding::Piece(number)), Data::Strings(pieces));
                Ok((0..).zip(pieces).map(named).collect())
            }
            coding => Ok(vec![((column.id, coding), self.data(epochs, (column, coding), 0, rows, plain)?)]),
        }
    }

    /// The fragments of rows at one cloud, in the order of their places. `rows` are ascending; `columns` are the declared ones in order, and
    /// `common` what they have been coded to for all.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn fragments(
        &self,
        epochs: &Epochs,
        cloud: usize,
        rows: &[u64],
        (columns, common): (&[Plain], &Common),
    ) -> Result<Fragments, Unfit> {
        let mut places = epochs.numbers(rows)?;
        self.places[cloud].places(&mut places);
        // In an order that each cloud has for itself. In that of their numbers the nth of a batch would be the same row everywhere, also
        // where it moves to under other keys.
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_unstable_by_key(|at| places[*at]);
        let mut fragments = Fragments { places: order.iter().map(|at| places[*at]).collect(), columns: Vec::new() };
        for (column, plain) in self.declaration.columns.iter().zip(columns) {
            let own = self.placement.held_by(cloud).filter(|fragment| fragment.column == column.id);
            for fragment in own {
                let name = self.column_name(cloud, column.id, fragment.coding);
                let data = match common.0.get(&(column.id, fragment.coding)) {
                    Some(data) => data.chosen(&order),
                    None => self.data(epochs, (column, fragment.coding), cloud, rows, plain)?.chosen(&order),
                };
                fragments.columns.push((name, data));
            }
        }
        Ok(fragments)
    }

    fn data(
        &self,
        epochs: &Epochs,
        (column, coding): (&Column, Coding),
        cloud: usize,
        rows: &[u64],
        plain: &Plain,
    ) -> Result<Data, Unfit> {
        match coding {
            Coding::Cell => self.cells(epochs, column, rows, plain).map(Data::Strings),
            Coding::Piece(number) => {
                let pieces = self.pieces(epochs, column, rows, plain)?.into_iter().nth(number.into());
                Ok(Data::Strings(pieces.ok_or(Unfit::Row(0))?))
            }
            Coding::Share(_) | Coding::Present => self.shares(epochs, (column, coding), cloud, rows, plain),
            Coding::Tag => Ok(Data::Strings(self.tag_strings(column, &epochs.numbers(rows)?, plain))),
            Coding::Prefix => Ok(Data::Strings(self.prefix_strings(column, &epochs.numbers(rows)?, plain))),
            Coding::Order => Ok(Data::Strings(self.order_strings(column, &epochs.numbers(rows)?, plain))),
            Coding::DangerOrder => Ok(Data::Strings(self.danger_order_strings(column, plain))),
        }
    }

    fn cells(&self, epochs: &Epochs, column: &Column, rows: &[u64], plain: &Plain) -> Result<Strings, Unfit> {
        let mut strings = Strings::default();
        let mut scratch = [0; 16];
        for (epoch, stretch) in epochs.stretches(rows) {
            let cells = self.opener(column.id, epoch).of_width(column.kind.width());
            for row in stretch {
                let value = plain.canonical(column.kind, strings.len(), &mut scratch);
                strings.push_with(|cell| cells.seal(*row, value, cell));
            }
        }
        whole(rows, strings.len())?;
        Ok(strings)
    }

    /// The pieces of cells: for each number those of all rows.
    fn pieces(&self, epochs: &Epochs, column: &Column, rows: &[u64], plain: &Plain) -> Result<Vec<Strings>, Unfit> {
        let too_long = || Unfit::Long(column.name.clone());
        let cut = self.declaration.pieces(column).ok_or_else(too_long)?;
        let mut pieces = vec![Strings::default(); cut.count()];
        for cell in self.cells(epochs, column, rows, plain)?.iter() {
            let own = cut.cut(cell).map_err(|_| too_long())?;
            pieces.iter_mut().zip(own).for_each(|(all, own)| all.push(&own));
        }
        Ok(pieces)
    }

    fn shares(
        &self,
        epochs: &Epochs,
        (column, coding): (&Column, Coding),
        cloud: usize,
        rows: &[u64],
        plain: &Plain,
    ) -> Result<Data, Unfit> {
        let too_long = || Unfit::Number(column.name.clone());
        let limbs = self.declaration.limbs(column).ok_or_else(too_long)?;
        let mut shares = Vec::with_capacity(rows.len());
        for (epoch, stretch) in epochs.stretches(rows) {
            let coefficients = self.coefficients(column.id, coding, epoch);
            for row in stretch {
                let number = plain.number(shares.len());
                let value = match coding {
                    Coding::Share(limb) => limbs.limb(number.unwrap_or(0), limb).ok_or_else(too_long)?,
                    _ => Element::from_signed(i64::from(number.is_some())),
                };
                shares.push((value + coefficients.hiding(*row, self.x(cloud))).number());
            }
        }
        whole(rows, shares.len())?;
        Ok(Data::Shares(shares))
    }

    /// `rows` are with their epochs here and below: keys of what is compared are of all epochs, and what is a row's own must not come again.
    fn tag_strings(&self, column: &Column, rows: &[u64], plain: &Plain) -> Strings {
        let (tags, mut strings, mut scratch) = (self.tags(column.id), Strings::default(), [0; 16]);
        for (at, row) in rows.iter().enumerate() {
            let value = plain.comparable(column.kind, at, &mut scratch);
            strings.push(&value.map_or_else(|| tags.of_null(*row), |value| tags.of(value)));
        }
        strings
    }

    fn prefix_strings(&self, column: &Column, rows: &[u64], plain: &Plain) -> Strings {
        let (tags, mut strings, mut scratch) = (self.tags(column.id), Strings::default(), [0; 16]);
        for (at, row) in rows.iter().enumerate() {
            let text = plain.canonical(column.kind, at, &mut scratch).and_then(|text| std::str::from_utf8(text).ok());
            let mut characters = text.unwrap_or_default().char_indices().map(|(start, one)| start + one.len_utf8());
            strings.push_with(|string| {
                for length in 1..=PREFIX_CHARACTERS_MAX as u16 {
                    // What a text is too short for has a tag like no other's: lengths do not show.
                    let tag = match (characters.next(), text) {
                        (Some(end), Some(text)) => tags.of_prefix(length, &text[..end]),
                        _ => tags.of_no_prefix(length, *row),
                    };
                    string.extend_from_slice(&tag);
                }
            });
        }
        strings
    }

    /// A code is 256 hashes: parts of a column are coded at the same time, or it would be what all else waits for.
    fn order_strings(&self, column: &Column, rows: &[u64], plain: &Plain) -> Strings {
        let (orders, ordinals) = (&self.orders(column.id), ordinals(column, plain).collect::<Vec<_>>());
        let workers = available_parallelism().map_or(1, usize::from);
        let part = rows.len().div_ceil(workers).max(CODES_OF_A_WORKER_MIN);
        thread::scope(|scope| {
            let code = |(rows, ordinals)| scope.spawn(move || codes(orders, rows, ordinals));
            let parts: Vec<_> = rows.chunks(part).zip(ordinals.chunks(part)).map(code).collect();
            let mut strings = Strings::default();
            for part in parts {
                strings.append(&part.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            strings
        })
    }

    fn danger_order_strings(&self, column: &Column, plain: &Plain) -> Strings {
        let (orders, mut strings) = (self.danger_orders(column.id), Strings::default());
        // A code takes a walk of 64 steps, and a column often has a value many times.
        let mut known = HashMap::new();
        for ordinal in ordinals(column, plain) {
            match ordinal {
                Some(ordinal) => strings.push(known.entry(ordinal).or_insert_with(|| orders.code(ordinal))),
                None => strings.push(&[]),
            }
        }
        strings
    }

    fn opener(&self, column: u16, epoch: Epoch) -> Cells {
        Cells::new(&self.key(Purpose::Seal, column, 0, epoch), &self.declaration.table, column)
    }

    /// The values in cells of rows, which are in any order; none where a cell does not open or holds no value of its kind.
    pub fn open<'a>(
        &self,
        epochs: &Epochs,
        column: &Column,
        rows: &[u64],
        cells: impl ExactSizeIterator<Item = &'a [u8]>,
        values: &mut Plain,
    ) -> Result<(), NotSealedHere> {
        if rows.len() != cells.len() {
            return Err(NotSealedHere);
        }
        let (mut openers, mut plain) = (Openers::new(self, epochs, column), Vec::new());
        for (row, cell) in rows.iter().zip(cells) {
            let is_value = openers.of(*row)?.open(*row, cell, &mut plain)?;
            if !values.push(column.kind, is_value.then_some(&plain[..])) {
                return Err(NotSealedHere);
            }
        }
        Ok(())
    }

    /// The same from pieces of the cells: `piece` gives that of the nth row with a number, if it is there. Numbers of pieces that are
    /// not of their cell are named, also where there is no answer. `goes_on` is asked now and then.
    pub fn join<'a>(
        &self,
        epochs: &Epochs,
        column: &Column,
        rows: &[u64],
        piece: impl Fn(usize, usize) -> Option<&'a [u8]>,
        (wrong, values): (&mut BTreeSet<usize>, &mut Plain),
        goes_on: impl Fn() -> bool,
    ) -> Result<(), NotSealedHere> {
        let cut = self.declaration.pieces(column).ok_or(NotSealedHere)?;
        let mut joiner = cut.joiner();
        let (mut openers, mut plain) = (Openers::new(self, epochs, column), Vec::new());
        for (at, row) in rows.iter().enumerate() {
            if at.is_multiple_of(256) && !goes_on() {
                return Err(NotSealedHere);
            }
            let opener = openers.of(*row)?;
            let mut join = |pieces: &[Option<&[u8]>]| {
                joiner.join(pieces, self.declaration.may_fail, |cell| opener.open(*row, cell, &mut plain).ok())
            };
            let all: Vec<Option<&[u8]>> = (0..cut.count()).map(|number| piece(at, number)).collect();
            // Whoever gave a wrong one before is believed when it takes his, and not sooner.
            let mut trusted = all.clone();
            wrong.iter().for_each(|number| trusted[*number] = None);
            let joined = join(&trusted).or_else(|error| if wrong.is_empty() { Err(error) } else { join(&all) });
            let joined = joined.map_err(|_| NotSealedHere)?;
            wrong.extend(joined.wrong);
            if !values.push(column.kind, joined.opened.then_some(&plain[..])) {
                return Err(NotSealedHere);
            }
        }
        Ok(())
    }

    /// The coefficients of a sum of shares over rows, ascending.
    #[must_use]
    pub fn hidden(&self, epochs: &Epochs, column: u16, coding: Coding, rows: &[u64]) -> Vec<Element> {
        let mut sums = vec![Element::ZERO; (self.declaration.threshold() - 1).max(1)];
        for (epoch, stretch) in epochs.stretches(rows) {
            let own = self.coefficients(column, coding, epoch).sums(stretch.iter().copied());
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        sums
    }

    /// What a cloud's sum of shares says the sum is, given the coefficients over its rows.
    #[must_use]
    pub fn shown(&self, hidden: &[Element], cloud: usize, share: Element) -> Element {
        share - hiding_of(hidden, self.x(cloud))
    }

    /// What a cloud is asked for rows whose value is one of these; none: it has no tags of the column.
    #[must_use]
    pub fn tagged(&self, cloud: usize, column: &Column, values: &[Value]) -> Option<Test> {
        self.placement.fragment(column.id, Coding::Tag).filter(|tags| tags.holders.contains(&cloud))?;
        let tags = self.tags(column.id);
        let mut tags: Vec<Tag> =
            values.iter().filter_map(|value| value.comparable(column.kind)).map(|value| tags.of(&value)).collect();
        // In an order of their own: the order of a question's values is nobody's business.
        tags.sort_unstable();
        Some(Test::Tagged { column: self.column_name(cloud, column.id, Coding::Tag), at: 0, tags })
    }

    /// What a cloud is asked for rows whose text begins so: of a longer beginning the first characters; of an empty one nothing.
    #[must_use]
    pub fn begun(&self, cloud: usize, column: &Column, prefix: &str) -> Option<Test> {
        self.placement.fragment(column.id, Coding::Prefix).filter(|tags| tags.holders.contains(&cloud))?;
        let length = prefix.chars().count().min(PREFIX_CHARACTERS_MAX);
        let end = prefix.char_indices().nth(length).map_or(prefix.len(), |(end, _)| end);
        let at = length.checked_sub(1)? * 16;
        let tags = vec![self.tags(column.id).of_prefix(length as u16, &prefix[..end])];
        Some(Test::Tagged { column: self.column_name(cloud, column.id, Coding::Prefix), at, tags })
    }

    /// What a cloud is asked for rows of which the value compares in one of these ways with what is stored: less, equal, greater.
    #[must_use]
    pub fn compared(&self, cloud: usize, column: &Column, value: &Value, allowed: [bool; 3]) -> Option<Test> {
        self.placement.fragment(column.id, Coding::Order).filter(|orders| orders.holders.contains(&cloud))?;
        let (ordinal, is_alone) = value.ordinal(column.kind);
        // Where another value is there as well, whoever asks compares the opened ones.
        let allowed = [allowed[0], allowed[1] || !is_alone, allowed[2]];
        let asked = Box::new(self.orders(column.id).asked(ordinal));
        Some(Test::Compared { column: self.column_name(cloud, column.id, Coding::Order), asked, allowed })
    }

    /// What a cloud is asked for rows whose value lies between two, each of which counts or does not; none: it has no codes that are in
    /// order by themselves.
    #[must_use]
    pub fn between(
        &self,
        cloud: usize,
        column: &Column,
        low: Option<(&Value, bool)>,
        high: Option<(&Value, bool)>,
    ) -> Option<Test> {
        self.placement.fragment(column.id, Coding::DangerOrder).filter(|codes| codes.holders.contains(&cloud))?;
        let orders = self.danger_orders(column.id);
        // Where another value is there as well, whoever asks compares the opened ones.
        let ordinal = |(value, counts): (&Value, bool)| {
            let (ordinal, is_alone) = value.ordinal(column.kind);
            (ordinal, counts || !is_alone)
        };
        let least = low.map_or(Some([0; CODE_BYTES]), |low| match ordinal(low) {
            (ordinal, true) => Some(orders.code(ordinal)),
            (ordinal, false) => ordinal.checked_add(1).map(|next| orders.code(next)),
        });
        let greatest = high.map_or(Some([0xFF; CODE_BYTES]), |high| match ordinal(high) {
            (ordinal, true) => Some(orders.code(ordinal)),
            (ordinal, false) => ordinal.checked_sub(1).map(|last| orders.code(last)),
        });
        // Nothing is beyond the last one.
        let nothing = ([0xFF; CODE_BYTES], [0; CODE_BYTES]);
        let (least, greatest) = least.zip(greatest).unwrap_or(nothing);
        Some(Test::Between { column: self.column_name(cloud, column.id, Coding::DangerOrder), least, greatest })
    }

    /// How numbers of a column are cut.
    pub(crate) fn limbs(&self, column: &Column) -> Option<Limbs> {
        self.declaration.limbs(column)
    }
}

/// What opens cells of a column, by the epochs of their rows.
struct Openers<'a> {
    coder: &'a Coder,
    epochs: &'a Epochs,
    column: u16,
    by_epoch: Vec<Option<Cells>>,
}

impl<'a> Openers<'a> {
    fn new(coder: &'a Coder, epochs: &'a Epochs, column: &Column) -> Self {
        Self { coder, epochs, column: column.id, by_epoch: epochs.iter().map(|_| None).collect() }
    }

    fn of(&mut self, row: u64) -> Result<&Cells, NotSealedHere> {
        let at = self.epochs.at(row).ok_or(NotSealedHere)?;
        Ok(self.by_epoch[at].get_or_insert_with(|| self.coder.opener(self.column, self.epochs.0[at].1)))
    }
}

/// Where values are in the order of their column's kind; none: NULL.
fn ordinals(column: &Column, plain: &Plain) -> impl Iterator<Item = Option<u64>> {
    (0..plain.len()).map(|at| match plain {
        Plain::Numbers(numbers) => numbers[at].map(|number| ordinal_of_number(column.kind, number)),
        Plain::Strings { values, nulls } => (!nulls[at]).then(|| ordinal_of_string(values.get(at))),
    })
}

fn codes(orders: &Orders, rows: &[u64], ordinals: &[Option<u64>]) -> Strings {
    let mut strings = Strings::default();
    for (row, ordinal) in rows.iter().zip(ordinals) {
        strings.push_with(|string| {
            if let Some(ordinal) = ordinal {
                string.extend_from_slice(&orders.stored(*row, *ordinal));
            }
        });
    }
    strings
}

fn whole(rows: &[u64], coded: usize) -> Result<(), Unfit> {
    if coded == rows.len() { Ok(()) } else { Err(Unfit::Row(rows.first().copied().unwrap_or(0))) }
}
