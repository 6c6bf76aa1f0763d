//! An owner over clouds that write down what they see. What it does is what SQL does (`sql/src/dispersed`: push, moving, repair, catalogue),
//! in the same order; what of it is public it notes as deeds.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use counterfoil_disperse::fragments::{Data, Name, Strings};
use counterfoil_disperse::{
    Asking, Catalogue, Condition, Declaration, Epoch, Goal, Kept, Kind, Layout, Patient, Plain, Provider, Report, Rows,
    Secret, State, Table, Told, Value,
};
use sha2::{Digest as _, Sha256};

use crate::watching::{Seen, Watching};

/// The values of a row.
pub type Line = Vec<Option<Value>>;

/// What an owner did, as far as clouds had to do with it. Rows are called by labels, which no two values have.
pub enum Deed {
    Put {
        layout: u32,
        clouds: Vec<usize>,
        rows: Vec<u64>,
    },
    Removed {
        layout: u32,
        clouds: Vec<usize>,
        rows: Vec<u64>,
    },
    Asked {
        layout: u32,
        condition: Condition,
    },
    Fetched {
        layout: u32,
        columns: Vec<u16>,
        rows: Vec<u64>,
        is_all: bool,
        goal: Goal,
    },
    Added {
        layout: u32,
        column: u16,
        rows: Vec<u64>,
        is_all: bool,
        goal: Goal,
    },
    Listed {
        layout: u32,
    },
    Dropped {
        layout: u32,
    },
    /// Entries of the catalogue came to a cloud, so long, and others went: those with these numbers, in the order in which they came.
    Told {
        cloud: String,
        lengths: Vec<usize>,
        gone: Vec<usize>,
    },
    /// A cloud that has none of the table's rows any more lets go of the catalogue.
    Left {
        cloud: String,
    },
}

/// What rows are called where they lie: by cloud and table, the label of each place.
pub type Labels = HashMap<(String, Name), HashMap<u64, u64>>;

pub struct Owner {
    pub kept: Kept,
    pub deeds: Vec<Deed>,
    /// The values of rows by their labels.
    pub lines: BTreeMap<u64, Line>,
    /// All declarations there have been, by the numbers of their layouts.
    pub declared: BTreeMap<u32, Declaration>,
    pub labels: Labels,
    pub catalogue: Catalogue,
    clouds: BTreeMap<String, Arc<Watching>>,
    /// Places of entries of the catalogue, by cloud, in the order in which they came.
    entries: BTreeMap<String, Vec<u64>>,
    seed: u8,
    drawn: u32,
    epoch: Option<Epoch>,
    epochs: Vec<Epoch>,
    next: u64,
}

/// A copy of a database, as somebody puts it back.
pub struct Copy {
    kept: Kept,
    next: u64,
}

impl Owner {
    pub fn new(seed: u8, declaration: Declaration) -> Self {
        let secret = Secret::new(Sha256::digest([seed, 1]).into());
        Self {
            kept: Kept::new(secret, declaration.clone(), 0),
            deeds: Vec::new(),
            lines: BTreeMap::new(),
            declared: [(0, declaration)].into(),
            labels: Labels::new(),
            catalogue: Catalogue::new(Secret::new(Sha256::digest([seed, 2]).into())),
            clouds: BTreeMap::new(),
            entries: BTreeMap::new(),
            seed,
            drawn: 0,
            epoch: None,
            epochs: Vec::new(),
            next: 0,
        }
    }

    /// The view of a cloud.
    pub fn seen(&self, cloud: &str) -> Seen {
        self.clouds[cloud].seen()
    }

    /// The epoch under which rows came, the nth of all that there were.
    pub fn epoch(&self, nth: usize) -> Epoch {
        self.epochs[nth]
    }

    /// All clouds that there are.
    pub fn clouds(&self) -> Vec<&str> {
        self.clouds.keys().map(String::as_str).collect()
    }

    fn draw(&mut self) -> [u8; 16] {
        self.drawn += 1;
        let whole = Sha256::digest([&[self.seed, 3][..], &self.drawn.to_be_bytes()].concat());
        std::array::from_fn(|at| whole[at])
    }

    fn cloud(&mut self, name: &str) -> Arc<Watching> {
        self.clouds.entry(name.to_owned()).or_default().clone()
    }

    fn opened(&mut self, layout: &Layout) -> Table {
        let clouds = layout.declaration.clouds.iter().map(|name| self.cloud(name) as Arc<dyn Provider>).collect();
        Table::new(layout.coder().expect("a placement"), clouds)
    }

    /// What a row of a layout is called: its number, and whose it is.
    fn label(&mut self, state: &State, row: u64) -> u64 {
        let epoch = state.epochs.iter().take_while(|(first, _)| *first <= row).last().expect("an epoch").1;
        if !self.epochs.contains(&epoch) {
            self.epochs.push(epoch);
        }
        (self.epochs.iter().position(|own| *own == epoch).expect("it is there") as u64) << 40 | row
    }

    fn labelled(&mut self, state: &State, rows: &[u64]) -> Vec<u64> {
        rows.iter().map(|row| self.label(state, *row)).collect()
    }

    /// INSERT; the rows' numbers.
    pub fn insert(&mut self, lines: &[Line]) -> Vec<u64> {
        if self.epoch.is_none() || self.kept.current().state.epochs.iter().last().map(|(_, epoch)| epoch) != self.epoch
        {
            let epoch = Epoch(self.draw());
            self.epoch = Some(epoch);
            let first = self.next.max(self.kept.current().state.after_all());
            self.kept.current_mut().state.epochs.begin(first, epoch);
        }
        let rows: Vec<u64> = (self.next..).take(lines.len()).collect();
        self.next += lines.len() as u64;
        self.kept.current_mut().state.leaving(rows.iter().copied());
        let clouds = (0..self.kept.declaration().clouds.len()).collect();
        self.put(&rows, lines, clouds);
        let all: Rows = rows.iter().copied().collect();
        self.kept.current_mut().state.settle(&all);
        rows
    }

    /// Puts rows where they are lacked, at some clouds of the current layout.
    fn put(&mut self, rows: &[u64], lines: &[Line], clouds: Vec<usize>) {
        let layout = self.kept.current().clone();
        let table = self.opened(&layout);
        let columns = plains(&layout.declaration, lines);
        let coded = table.code(&layout.state, rows, &columns).expect("rows");
        let labels = self.labelled(&layout.state, rows);
        self.lines.extend(labels.iter().copied().zip(lines.iter().cloned()));
        for cloud in &clouds {
            table.put(&layout.state, *cloud, &coded).expect("a cloud");
            let name = (layout.declaration.clouds[*cloud].clone(), table.coder().table_name(*cloud));
            let places =
                rows.iter().map(|row| table.coder().place(&layout.state.epochs, *cloud, *row).expect("a place"));
            self.labels.entry(name).or_default().extend(places.zip(labels.iter().copied()));
            self.kept.current_mut().state.arrived(*cloud, &rows.iter().copied().collect());
        }
        self.deeds.push(Deed::Put { layout: layout.number, clouds, rows: labels });
    }

    /// DELETE.
    pub fn delete(&mut self, rows: &[u64]) {
        self.kept.gone(&rows.iter().copied().collect());
        for layout in self.kept.layouts().to_vec() {
            let table = self.opened(&layout);
            let gone: Vec<u64> = layout.state.untold[0].keeps.iter().collect();
            if gone.is_empty() {
                continue;
            }
            let set: Rows = gone.iter().copied().collect();
            for cloud in 0..layout.declaration.clouds.len() {
                table.remove(&layout.state, cloud, &set).expect("a cloud");
                self.kept.layout_mut(layout.number).expect("a layout").state.removed(cloud, &set);
            }
            let (rows, clouds) = (self.labelled(&layout.state, &gone), (0..layout.declaration.clouds.len()).collect());
            self.deeds.push(Deed::Removed { layout: layout.number, clouds, rows });
        }
    }

    /// UPDATE: other rows.
    pub fn update(&mut self, rows: &[u64], lines: &[Line]) -> Vec<u64> {
        self.delete(rows);
        self.insert(lines)
    }

    /// SELECT ... WHERE.
    pub fn ask(&mut self, condition: &Condition, columns: &[u16]) {
        self.ask_for(Goal::Ordinary, condition, columns);
    }

    /// SELECT ... WHERE ... OPTIMIZE FOR.
    pub fn ask_for(&mut self, goal: Goal, condition: &Condition, columns: &[u16]) {
        for layout in self.kept.layouts().to_vec().iter().filter(|layout| !layout.state.live.is_empty()) {
            let (table, state) = (self.opened(layout), &layout.state);
            self.deeds.push(Deed::Asked { layout: layout.number, condition: condition.clone() });
            let report = &mut Report::default();
            let asking = Asking { goal, ..asking(state) };
            let found = table.read(asking, columns, std::slice::from_ref(condition), report).expect("rows");
            assert_eq!(report.faults, []);
            self.note_fetched((layout, goal), columns, &found.rows);
        }
    }

    fn note_fetched(&mut self, (layout, goal): (&Layout, Goal), columns: &[u16], rows: &[u64]) {
        if rows.is_empty() {
            return;
        }
        let is_all = layout.state.live.len() == rows.len() as u64;
        let rows = self.labelled(&layout.state, rows);
        self.deeds.push(Deed::Fetched { layout: layout.number, columns: columns.to_vec(), rows, is_all, goal });
    }

    /// SUM, of all rows or of every other one.
    pub fn sum(&mut self, column: u16, is_all: bool) {
        self.sum_for(Goal::Ordinary, column, is_all);
    }

    /// SUM ... OPTIMIZE FOR.
    pub fn sum_for(&mut self, goal: Goal, column: u16, is_all: bool) {
        let layout = self.kept.current().clone();
        let (table, state) = (self.opened(&layout), &layout.state);
        let rows: Vec<u64> = state.live.iter().step_by(if is_all { 1 } else { 2 }).collect();
        table.sum(Asking { goal, ..asking(state) }, column, &rows, &mut Report::default()).expect("a sum");
        let rows = self.labelled(state, &rows);
        self.deeds.push(Deed::Added { layout: layout.number, column, rows, is_all, goal });
    }

    /// ALTER TABLE, REFRESH TABLE: rows come to another layout from here on.
    pub fn begin(&mut self, declaration: Declaration) {
        let secret = Secret::new(Sha256::digest([&[self.seed, 4][..], &self.drawn.to_be_bytes()].concat()).into());
        let epoch = Epoch(self.draw());
        self.kept.begin(secret, declaration.clone(), epoch);
        self.declared.insert(self.kept.current().number, declaration);
    }

    /// Some rows move; whether there were any.
    pub fn move_some(&mut self, most: usize) -> bool {
        let Some((from, rows)) = self.kept.to_move(most) else { return false };
        let rows = self.kept.moving(from, &rows);
        let before = self.kept.layouts().iter().find(|layout| layout.number == from).expect("a layout").clone();
        let table = self.opened(&before);
        let ids: Vec<u16> = before.declaration.columns.iter().map(|column| column.id).collect();
        let found = table.read_rows(asking(&before.state), &ids, &rows, &mut Report::default()).expect("rows");
        self.note_fetched((&before, Goal::Ordinary), &ids, &found.rows);
        let lines = lines(&found.columns, found.rows.len());
        self.put(&found.rows, &lines, (0..self.kept.declaration().clouds.len()).collect());
        self.kept.moved(from, &rows);
        true
    }

    /// All of them move, so many at a time, and what they leave is dropped.
    pub fn relay(&mut self, declaration: Declaration, most: usize) {
        self.begin(declaration);
        while self.move_some(most) {}
        self.tell();
        let before = self.kept.layouts().split_last().expect("a layout").1.to_vec();
        for layout in before {
            let table = self.opened(&layout);
            for (cloud, name) in layout.declaration.clouds.iter().enumerate() {
                if !self.kept.declaration().clouds.contains(name) {
                    self.leave(name);
                }
                table.drop_at(cloud).expect("a cloud");
                self.kept.dropped(layout.number, cloud);
            }
            self.deeds.push(Deed::Dropped { layout: layout.number });
        }
        self.tell();
    }

    /// A cloud lets go of the catalogue, which is of this table alone.
    fn leave(&mut self, name: &str) {
        let cloud = self.cloud(name);
        let shown = self.catalogue.read(&*cloud, &Patient).expect("a cloud");
        assert_eq!(shown.len(), 1);
        cloud.drop_table(&self.catalogue.name()).expect("a cloud");
        self.deeds.push(Deed::Left { cloud: name.to_owned() });
    }

    /// The catalogue is told, where it differs.
    pub fn tell(&mut self) {
        let (parts, table) = (self.kept.to_parts(), self.kept.declaration().table);
        for name in self.kept.declaration().clouds.clone() {
            let told = self.kept.told.get(&name).cloned().unwrap_or_default();
            if told.is(&parts) {
                continue;
            }
            self.kept.version += 1;
            // Salts of two owners are alike, so that numbers of places take as many bytes.
            let mut drawn = self.kept.version << 8;
            let draw = || {
                drawn += 1;
                let whole = Sha256::digest([name.as_bytes(), &drawn.to_be_bytes()].concat());
                Ok::<_, ()>(std::array::from_fn(|at| whole[at]))
            };
            let (coded, newer) = self.catalogue.code(table, self.kept.version, &parts, &told, draw).expect("salts");
            let (cloud, called) = (self.cloud(&name), self.catalogue.name());
            cloud.put(&called, &coded).expect("a cloud");
            let replaced = told.replaced_by(&newer);
            if !replaced.is_empty() {
                cloud.remove(&called, &replaced).expect("a cloud");
            }
            self.note_told(name.clone(), (&coded.places, &coded.columns[0].1), &replaced);
            self.kept.told.insert(name, newer);
        }
    }

    fn note_told(&mut self, cloud: String, (places, sealed): (&[u64], &Data), replaced: &[u64]) {
        let Data::Strings(sealed) = sealed else { panic!("entries") };
        let known = self.entries.entry(cloud.clone()).or_default();
        let gone = replaced.iter().map(|place| known.iter().position(|own| own == place).expect("an entry"));
        let gone = gone.collect::<BTreeSet<_>>().into_iter().collect();
        let labels = self.labels.entry((cloud.clone(), self.catalogue.name())).or_default();
        labels.extend(places.iter().copied().zip(known.len() as u64..));
        known.extend(places);
        self.deeds.push(Deed::Told { cloud, lengths: sealed.iter().map(<[u8]>::len).collect(), gone });
    }

    /// A copy, to be put back.
    pub fn copy(&self) -> Copy {
        Copy { kept: self.kept.clone(), next: self.next }
    }

    /// The database is what it was. What clouds were told of the catalogue they are told anew.
    pub fn put_back(&mut self, copy: Copy) {
        let version = self.kept.version;
        (self.kept, self.next, self.epoch) = (copy.kept, copy.next, None);
        self.kept.version = version;
        for (name, told) in &mut self.kept.told {
            let places = self.entries[name].iter().copied().collect();
            *told = Told::anew(&self.catalogue.name(), version, &places);
        }
    }

    /// A cloud loses rows, and does not know it.
    pub fn lose(&mut self, cloud: usize, rows: &[u64]) {
        let layout = self.kept.current().clone();
        let coder = layout.coder().expect("a placement");
        let places = coder.sorted_places(&layout.state.epochs, cloud, rows.iter().copied());
        self.cloud(&layout.declaration.clouds[cloud]).forget(&coder.table_name(cloud), &places);
    }

    /// REPAIR TABLE.
    pub fn repair(&mut self) {
        let layout = self.kept.current().clone();
        let (table, state) = (self.opened(&layout), &layout.state);
        let clouds = 0..layout.declaration.clouds.len();
        let seen: Vec<_> = clouds.clone().map(|cloud| table.rows_at(asking(state), cloud).expect("rows")).collect();
        self.deeds.push(Deed::Listed { layout: layout.number });
        for (cloud, (there, others)) in clouds.zip(seen) {
            let name = (layout.declaration.clouds[cloud].clone(), table.coder().table_name(cloud));
            if !others.is_empty() {
                table.remove_places(cloud, &others).expect("a cloud");
                let rows = others.iter().map(|place| self.labels[&name][place]).collect();
                self.deeds.push(Deed::Removed { layout: layout.number, clouds: vec![cloud], rows });
            }
            let lacking = &state.live - &there;
            if !lacking.is_empty() {
                let ids: Vec<u16> = layout.declaration.columns.iter().map(|column| column.id).collect();
                // From the others: it is asked of a state in which it has none of them.
                let found = table.read_rows(asking(state), &ids, &lacking, &mut Report::default()).expect("rows");
                self.note_fetched((&layout, Goal::Ordinary), &ids, &found.rows);
                let lines = lines(&found.columns, found.rows.len());
                self.put(&found.rows, &lines, vec![cloud]);
            }
        }
    }
}

fn asking(state: &State) -> Asking<'_> {
    Asking { state, watch: &Patient, goal: Goal::Ordinary }
}

fn plains(declaration: &Declaration, lines: &[Line]) -> Vec<Plain> {
    let column = |at: usize, kind: Kind| {
        let values = lines.iter().map(|line| &line[at]);
        match kind {
            Kind::Number { .. } | Kind::Float => {
                let number = |value: &Option<Value>| match value {
                    Some(Value::Number(number)) => Some(*number),
                    _ => None,
                };
                Plain::Numbers(values.map(number).collect())
            }
            Kind::Text | Kind::Bytes | Kind::Uuid => {
                let (mut strings, mut nulls) = (Strings::default(), Vec::new());
                for value in values {
                    let bytes = match value {
                        Some(Value::String(bytes)) => &bytes[..],
                        _ => &[],
                    };
                    strings.push(bytes);
                    nulls.push(value.is_none());
                }
                Plain::Strings { values: strings, nulls }
            }
        }
    };
    declaration.columns.iter().enumerate().map(|(at, of)| column(at, of.kind)).collect()
}

fn lines(columns: &[Plain], count: usize) -> Vec<Line> {
    (0..count).map(|row| columns.iter().map(|column| column.value(row)).collect()).collect()
}
