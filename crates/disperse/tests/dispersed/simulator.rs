//! A view that is made of what a coalition is said to learn, without any value and any key: leakage.rs is true if nobody tells it from a
//! real one.
//!
//! What is public goes in as it is: what was declared, where fragments lie, which rows came, went and were asked for when, how long the
//! entries of the catalogue are. Of values and constants in questions there are facts alone (facts.rs); all else is drawn.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use counterfoil_disperse::coding::orders::{ASKED_BYTES, BLOCKS, STORED_BYTES};
use counterfoil_disperse::fragments::{Data, Fragments, Name, Question, Strings, Test};
use counterfoil_disperse::{Coding, Column, Condition, Declaration, Placement};

use crate::facts::{Constant, Facts, bounds, cell_bytes, width};
use crate::likeness::trit;
use crate::owner::{Deed, Labels};
use crate::random::Random;
use crate::routes::Routes;
use crate::watching::Event;

/// What is asked of an order for a block: where it stands, and its label.
type Block = (u8, [u8; 16]);

/// One layout.
struct Simulated<'a> {
    declaration: &'a Declaration,
    placement: Placement,
    facts: &'a BTreeMap<u16, Facts>,
    tables: BTreeMap<usize, Name>,
    columns: BTreeMap<(usize, u16, Coding), Name>,
    places: BTreeMap<(usize, u64), u64>,
    strings: BTreeMap<(u16, Coding, u64), Vec<u8>>,
    shares: BTreeMap<(u16, Coding, u64, usize), u64>,
    /// By column, characters (nought: all) and group.
    tags: BTreeMap<(u16, usize, usize), [u8; 16]>,
    asked: BTreeMap<(u16, Constant), Vec<Block>>,
    codes: BTreeMap<u16, Vec<[u8; 12]>>,
}

pub struct Simulator<'a> {
    random: Random,
    layouts: BTreeMap<u32, Simulated<'a>>,
    coalition: &'a [&'a str],
    /// What the table and the column of the catalogue are called.
    pub catalogue: (Name, Name),
    entries: BTreeMap<String, Vec<u64>>,
    /// What each cloud of the coalition sees.
    pub views: BTreeMap<String, Vec<Event>>,
    pub labels: Labels,
}

impl<'a> Simulator<'a> {
    /// Of some layouts, with what is known of their columns.
    pub fn new(
        seed: u64,
        declared: &'a BTreeMap<u32, Declaration>,
        facts: &'a BTreeMap<u32, BTreeMap<u16, Facts>>,
        coalition: &'a [&'a str],
    ) -> Self {
        let mut random = Random(seed);
        let catalogue = (random.name('t'), random.name('c'));
        let simulated = |(number, declaration): (&u32, &'a Declaration)| {
            let simulated = Simulated {
                declaration,
                placement: Placement::plan(declaration).expect("a placement"),
                facts: &facts[number],
                tables: BTreeMap::new(),
                columns: BTreeMap::new(),
                places: BTreeMap::new(),
                strings: BTreeMap::new(),
                shares: BTreeMap::new(),
                tags: BTreeMap::new(),
                asked: BTreeMap::new(),
                codes: BTreeMap::new(),
            };
            (*number, simulated)
        };
        let layouts = declared.iter().map(simulated).collect();
        let views = coalition.iter().map(|name| ((*name).to_owned(), Vec::new())).collect();
        Self { random, layouts, coalition, catalogue, entries: BTreeMap::new(), views, labels: Labels::new() }
    }

    /// Does what was done, as far as the coalition sees it.
    pub fn run(&mut self, deeds: &[Deed]) {
        for (at, deed) in deeds.iter().enumerate() {
            match deed {
                Deed::Put { layout, clouds, rows } => self.put(*layout, clouds, rows),
                Deed::Told { cloud, lengths, gone } => self.told(cloud, lengths, gone),
                Deed::Left { cloud } => self.left(cloud),
                Deed::Removed { layout, clouds, rows } => self.each(*layout, |simulated, random, cloud| {
                    let is_told = clouds.contains(&cloud);
                    is_told.then(|| Event::Removed(simulated.table(random, cloud), simulated.places_of(cloud, rows)))
                }),
                Deed::Asked { layout, condition } => self.each(*layout, |simulated, random, cloud| {
                    let tests = simulated.tests(random, cloud, (at, condition))?;
                    Some(Event::Asked(simulated.table(random, cloud), Question { tests, ..Question::default() }))
                }),
                Deed::Fetched { layout, columns, rows, is_all, goal } => {
                    for asked in self.layouts[layout].routes().asked_for_cells(columns, *goal) {
                        self.each(*layout, |simulated, random, cloud| {
                            let own = asked.iter().find(|(own, _)| *own == cloud)?;
                            let columns = own.1.iter().map(|of| simulated.name(random, cloud, *of)).collect();
                            let places = (!is_all).then(|| simulated.places_of(cloud, rows));
                            let question = Question { columns, places, ..Question::default() };
                            Some(Event::Asked(simulated.table(random, cloud), question))
                        });
                    }
                }
                Deed::Added { layout, column, rows, is_all, goal } => self.each(*layout, |simulated, random, cloud| {
                    let sums = simulated.routes().added(*column, cloud, *goal)?;
                    let sums = sums.into_iter().map(|of| simulated.name(random, cloud, (*column, of))).collect();
                    let places = (!is_all).then(|| simulated.places_of(cloud, rows));
                    let question = Question { sums, places, ..Question::default() };
                    Some(Event::Asked(simulated.table(random, cloud), question))
                }),
                Deed::Listed { layout } => self.each(*layout, |simulated, random, cloud| {
                    Some(Event::Asked(simulated.table(random, cloud), Question::default()))
                }),
                Deed::Dropped { layout } => {
                    self.each(*layout, |simulated, random, cloud| Some(Event::Dropped(simulated.table(random, cloud))))
                }
            }
        }
    }

    /// What each cloud of a layout sees, those of the coalition.
    fn each(&mut self, layout: u32, mut see: impl FnMut(&mut Simulated<'a>, &mut Random, usize) -> Option<Event>) {
        let simulated = self.layouts.get_mut(&layout).expect("a layout");
        for (cloud, name) in simulated.declaration.clouds.iter().enumerate() {
            if let Some(view) = self.views.get_mut(name) {
                view.extend(see(simulated, &mut self.random, cloud));
            }
        }
    }

    fn put(&mut self, layout: u32, clouds: &[usize], rows: &[u64]) {
        let simulated = self.layouts.get_mut(&layout).expect("a layout");
        for cloud in clouds.iter().copied() {
            let declaration = simulated.declaration;
            let name = &declaration.clouds[cloud];
            if !self.coalition.contains(&name.as_str()) {
                continue;
            }
            let table = simulated.table(&mut self.random, cloud);
            let put = simulated.fragments(&mut self.random, cloud, rows);
            let labels = self.labels.entry((name.clone(), table.clone())).or_default();
            labels.extend(rows.iter().map(|row| (simulated.places[&(cloud, *row)], *row)));
            self.views.get_mut(name).expect("one of the coalition").push(Event::Put(table, put));
        }
    }

    /// The catalogue is looked at, and goes.
    fn left(&mut self, cloud: &str) {
        let Some(view) = self.views.get_mut(cloud) else { return };
        let (table, column) = self.catalogue.clone();
        let question = Question { columns: vec![column], ..Question::default() };
        view.extend([Event::Asked(table.clone(), question), Event::Dropped(table)]);
    }

    /// Entries of the catalogue: of one name at all clouds, and noise but for their lengths.
    fn told(&mut self, cloud: &str, lengths: &[usize], gone: &[usize]) {
        let Some(view) = self.views.get_mut(cloud) else { return };
        let known = self.entries.entry(cloud.to_owned()).or_default();
        let (table, column) = &self.catalogue;
        let mut put = Fragments::default();
        let mut sealed = Strings::default();
        let labels = self.labels.entry((cloud.to_owned(), table.clone())).or_default();
        for length in lengths {
            let entry = self.random.bytes(*length);
            let place = u64::from_be_bytes(std::array::from_fn(|at| entry[at]));
            labels.insert(place, known.len() as u64);
            known.push(place);
            put.places.push(place);
            sealed.push(&entry);
        }
        put.columns.push((column.clone(), Data::Strings(sealed)));
        view.push(Event::Put(table.clone(), put));
        if !gone.is_empty() {
            let mut places: Vec<u64> = gone.iter().map(|at| known[*at]).collect();
            places.sort_unstable();
            view.push(Event::Removed(table.clone(), places));
        }
    }
}

impl<'a> Simulated<'a> {
    fn routes(&self) -> Routes<'_> {
        Routes { declaration: self.declaration, placement: &self.placement }
    }

    fn table(&mut self, random: &mut Random, cloud: usize) -> Name {
        self.tables.entry(cloud).or_insert_with(|| random.name('t')).clone()
    }

    fn name(&mut self, random: &mut Random, cloud: usize, (column, coding): (u16, Coding)) -> Name {
        self.columns.entry((cloud, column, coding)).or_insert_with(|| random.name('c')).clone()
    }

    fn places_of(&self, cloud: usize, rows: &[u64]) -> Vec<u64> {
        let mut places: Vec<u64> = rows.iter().map(|row| self.places[&(cloud, *row)]).collect();
        places.sort_unstable();
        places
    }

    fn holds(&self, cloud: usize, column: u16, coding: Coding) -> bool {
        self.placement.fragment(column, coding).is_some_and(|of| of.holders.contains(&cloud))
    }

    fn fragments(&mut self, random: &mut Random, cloud: usize, rows: &[u64]) -> Fragments {
        for row in rows {
            self.places.entry((cloud, *row)).or_insert_with(|| random.number());
        }
        let mut rows = rows.to_vec();
        rows.sort_by_key(|row| self.places[&(cloud, *row)]);
        let mut put = Fragments { places: self.places_of(cloud, &rows), columns: Vec::new() };
        let declaration = self.declaration;
        for column in &declaration.columns {
            let held: Vec<Coding> =
                self.placement.held_by(cloud).filter(|of| of.column == column.id).map(|of| of.coding).collect();
            for coding in held {
                let data = self.data(random, cloud, (column, coding), &rows);
                put.columns.push((self.name(random, cloud, (column.id, coding)), data));
            }
        }
        put
    }

    fn data(&mut self, random: &mut Random, cloud: usize, (column, coding): (&Column, Coding), rows: &[u64]) -> Data {
        if matches!(coding, Coding::Share(_) | Coding::Present) {
            // Where one would be the value all have the same.
            let cloud = if self.declaration.threshold() > 1 { cloud } else { 0 };
            let share = |row: &u64| {
                let shares = self.shares.entry((column.id, coding, *row, cloud));
                *shares.or_insert_with(|| random.number() % ((1 << 61) - 1))
            };
            return Data::Shares(rows.iter().map(share).collect());
        }
        let mut strings = Strings::default();
        for row in rows {
            if !self.strings.contains_key(&(column.id, coding, *row)) {
                self.draw(random, (column, coding), *row);
            }
            strings.push(&self.strings[&(column.id, coding, *row)]);
        }
        Data::Strings(strings)
    }

    /// Draws what is the same at all clouds.
    fn draw(&mut self, random: &mut Random, (column, coding): (&Column, Coding), row: u64) {
        let facts: &'a Facts = &self.facts[&column.id];
        let is_null = facts.nulls.as_ref().is_some_and(|nulls| nulls.contains(&row));
        let cell = |random: &mut Random| {
            let length = facts.lengths.as_ref().map(|lengths| lengths[&row]);
            random.bytes(length.or(width(column.kind).map(cell_bytes)).expect("a length"))
        };
        let drawn = match coding {
            Coding::Cell => cell(random),
            Coding::Piece(_) => {
                let cut = self.declaration.pieces(column).expect("pieces").cut(&cell(random)).expect("pieces");
                for (number, piece) in (0..).zip(cut) {
                    self.strings.insert((column.id, Coding::Piece(number), row), piece);
                }
                return;
            }
            Coding::Tag => {
                let group = facts.equal.as_ref().and_then(|equal| equal.rows.get(&row).copied());
                self.tag(random, (column.id, 0), group).to_vec()
            }
            Coding::Prefix => {
                let groups = facts.begins.iter().flatten().map(|of| of.rows.get(&row).copied());
                let tags = (1..).zip(groups.collect::<Vec<_>>());
                tags.flat_map(|(characters, group)| self.tag(random, (column.id, characters), group)).collect()
            }
            Coding::Order | Coding::DangerOrder if is_null => Vec::new(),
            Coding::Order => self.stored(random, column.id, row),
            Coding::DangerOrder => {
                let rank = facts.ranks.as_ref().expect("ranks").0.get(&row).copied().unwrap_or(0);
                self.code(random, column.id, rank).to_vec()
            }
            Coding::Share(_) | Coding::Present => panic!("shares are drawn by cloud"),
        };
        self.strings.insert((column.id, coding, row), drawn);
    }

    /// The tag of a group, or one of its own.
    fn tag(&mut self, random: &mut Random, (column, characters): (u16, usize), group: Option<usize>) -> [u8; 16] {
        match group {
            Some(group) => *self.tags.entry((column, characters, group)).or_insert_with(|| random.array()),
            None => random.array(),
        }
    }

    /// The code of a rank: all are drawn at once, and sorted.
    fn code(&mut self, random: &mut Random, column: u16, rank: usize) -> [u8; 12] {
        let ranks = self.facts[&column].ranks.as_ref().expect("ranks");
        let count = ranks.0.values().chain(ranks.1.values()).max().map_or(0, |most| most + 1);
        self.codes.entry(column).or_insert_with(|| {
            let mut codes: Vec<[u8; 12]> = (0..count).map(|_| random.array()).collect();
            codes.sort_unstable();
            codes
        })[rank]
    }

    /// What is asked of an order: equal labels as far as two constants are equal, other places behind that.
    fn constant(&mut self, random: &mut Random, column: u16, constant: Constant) -> Vec<Block> {
        if let Some(known) = self.asked.get(&(column, constant)) {
            return known.clone();
        }
        let common = &self.facts[&column].order.as_ref().expect("an order").constants;
        let others: Vec<(usize, &Vec<Block>)> = self
            .asked
            .range((column, (0, 0))..=(column, (usize::MAX, usize::MAX)))
            .map(|((_, other), blocks)| (common[&(constant, *other)], blocks))
            .collect();
        let mut own = Vec::with_capacity(BLOCKS);
        for block in 0..BLOCKS {
            let same = others.iter().find(|(common, _)| *common > block).map(|(_, blocks)| blocks[block]);
            own.push(same.unwrap_or_else(|| {
                let taken: Vec<u8> =
                    others.iter().filter(|(common, _)| *common == block).map(|(_, blocks)| blocks[block].0).collect();
                let left: Vec<u8> = (0..16).filter(|place| !taken.contains(place)).collect();
                (left[random.below(left.len())], random.array())
            }));
        }
        self.asked.insert((column, constant), own.clone());
        own
    }

    /// A code that compares as it must with all that will be asked, and is noise otherwise.
    fn stored(&mut self, random: &mut Random, column: u16, row: u64) -> Vec<u8> {
        let nonce: [u8; 16] = random.array();
        let mut trits: Vec<u8> = (0..BLOCKS * 16).map(|_| random.below(3) as u8).collect();
        let compared = &self.facts[&column].order.as_ref().expect("an order").rows;
        let own: Vec<(Constant, (usize, Ordering))> =
            compared.iter().filter(|((_, other), _)| *other == row).map(|((of, _), how)| (*of, *how)).collect();
        for (constant, (first, how)) in own {
            let blocks = self.constant(random, column, constant);
            for block in 0..=first.min(BLOCKS - 1) {
                let outcome = match how {
                    _ if block < first => 0,
                    Ordering::Equal => 0,
                    Ordering::Less => 1,
                    Ordering::Greater => 2,
                };
                let (place, label) = blocks[block];
                trits[block * 16 + usize::from(place)] = (outcome + trit(&label, &nonce)) % 3;
            }
        }
        let mut stored = nonce.to_vec();
        stored.extend(trits.chunks(4).map(|four| four.iter().fold(0, |byte, trit| byte << 2 | trit)));
        assert_eq!(stored.len(), STORED_BYTES);
        stored
    }

    fn compared(&mut self, random: &mut Random, cloud: usize, of: (&Column, Constant), allowed: [bool; 3]) -> Test {
        let blocks = self.constant(random, of.0.id, of.1);
        let asked: Vec<u8> = blocks.iter().flat_map(|(place, label)| [&[*place][..], label].concat()).collect();
        let asked: [u8; ASKED_BYTES] = asked.try_into().expect("as many bytes");
        Test::Compared { column: self.name(random, cloud, (of.0.id, Coding::Order)), asked: Box::new(asked), allowed }
    }

    /// What a cloud is asked for a condition; none if it has no code for it.
    fn tests(
        &mut self,
        random: &mut Random,
        cloud: usize,
        (deed, condition): (usize, &Condition),
    ) -> Option<Vec<Test>> {
        let column = self.declaration.column(condition.column()).expect("a column").clone();
        let exists = |coding| self.placement.fragment(column.id, coding).is_some();
        let is_tagged =
            matches!(condition, Condition::Equal { values, .. } if exists(Coding::Tag) || values.len() != 1);
        let coding = match condition {
            Condition::Prefix { .. } => Coding::Prefix,
            _ if is_tagged => Coding::Tag,
            _ if exists(Coding::DangerOrder) => Coding::DangerOrder,
            _ => Coding::Order,
        };
        if !self.holds(cloud, column.id, coding) {
            return None;
        }
        let facts: &'a Facts = &self.facts[&column.id];
        let name = self.name(random, cloud, (column.id, coding));
        match coding {
            Coding::Tag => {
                let groups = facts.equal.as_ref().expect("equality").asked[&deed].clone();
                let mut tags: Vec<_> =
                    groups.into_iter().map(|group| self.tag(random, (column.id, 0), Some(group))).collect();
                tags.sort_unstable();
                Some(vec![Test::Tagged { column: name, at: 0, tags }])
            }
            Coding::Prefix => {
                let count = *facts.characters.get(&deed)?;
                let group = facts.begins.as_ref().expect("prefixes")[count - 1].asked[&deed][0];
                let tags = vec![self.tag(random, (column.id, count), Some(group))];
                Some(vec![Test::Tagged { column: name, at: (count - 1) * 16, tags }])
            }
            Coding::DangerOrder => {
                let ranks = facts.ranks.as_ref().expect("ranks").1.clone();
                let mut code = |side: usize| ranks.get(&(deed, side)).map(|rank| self.code(random, column.id, *rank));
                let (least, greatest) = (code(0).unwrap_or([0; 12]), code(1).unwrap_or([0xFF; 12]));
                Some(vec![Test::Between { column: name, least, greatest }])
            }
            _ if matches!(condition, Condition::Equal { .. }) => {
                Some(vec![self.compared(random, cloud, (&column, (deed, 0)), [false, true, false])])
            }
            _ => {
                let mut tests = Vec::new();
                for (side, bound) in bounds(condition).into_iter().enumerate() {
                    let Some((_, counts)) = bound else { continue };
                    // Texts of the same beginning are compared by whoever asks.
                    let mut allowed = [false, counts || width(column.kind).is_none(), false];
                    allowed[2 * side] = true;
                    tests.push(self.compared(random, cloud, (&column, (deed, side)), allowed));
                }
                (!tests.is_empty()).then_some(tests)
            }
        }
    }
}
