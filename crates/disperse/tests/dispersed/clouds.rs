//! A table at clouds whose behaviour a test chooses, and the same rows in the clear.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use counterfoil_disperse::fragments::{Answer, Data, Fragments, Name, Question, Strings};
use counterfoil_disperse::{
    Asking, Coder, Column, Declaration, Distribution, Epoch, Failure, Goal, Kind, Lateness, MemoryProvider, Operations,
    Patient, Placement, Plain, Provider, ROWS_MAX_DEFAULT, Rows, Secret, State, Table,
};

/// How a cloud behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mood {
    Honest,
    /// It does not answer.
    Silent,
    /// It shows every other row alone, and adds up no more.
    Forgetful,
    /// It changes a bit of every string, and every sum.
    Lying,
    /// It shows the cells of each row's neighbour, and a sum that no values have.
    Shuffling,
    /// It says that no row matches.
    Denying,
    /// It says everything twice.
    Repeating,
    /// It does not answer, and does not say so either, until it is in another mood.
    Stuck,
}

impl Mood {
    pub const BAD: [Mood; 6] =
        [Mood::Silent, Mood::Forgetful, Mood::Lying, Mood::Shuffling, Mood::Denying, Mood::Repeating];

    fn of(number: u8) -> Self {
        [Mood::Honest, Mood::Stuck].into_iter().chain(Mood::BAD).find(|mood| *mood as u8 == number).expect("a mood")
    }
}

#[derive(Default)]
pub struct Cloud {
    inner: MemoryProvider,
    mood: AtomicU8,
    lateness: Lateness,
    /// Questions that it was asked.
    asked: AtomicUsize,
    /// Questions that it answers before it is stuck; none: it answers all.
    sticks_after: AtomicUsize,
}

impl Cloud {
    /// It answers so many questions more, and is stuck then until it is in another mood.
    pub fn stick_after(&self, questions: usize) {
        self.sticks_after.store(self.asked() + questions, Ordering::Relaxed);
    }

    pub fn set(&self, mood: Mood) {
        self.mood.store(mood as u8, Ordering::Relaxed);
    }

    /// How many questions it was asked so far.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    fn mood(&self) -> Mood {
        Mood::of(self.mood.load(Ordering::Relaxed))
    }
}

fn changed(data: &Data, mood: Mood) -> Data {
    let Data::Strings(strings) = data else { return data.clone() };
    let mut changed = Strings::default();
    for row in 0..strings.len() {
        let shown = if mood == Mood::Shuffling { (row + 1) % strings.len() } else { row };
        changed.push_with(|bytes| {
            let start = bytes.len();
            bytes.extend_from_slice(strings.get(shown));
            if mood == Mood::Lying && bytes.len() > start {
                bytes[start] ^= 1;
            }
        });
    }
    Data::Strings(changed)
}

fn worsened(mut answer: Answer, mood: Mood, is_asked: bool) -> Answer {
    match mood {
        Mood::Forgetful => {
            let kept: Vec<usize> = (0..answer.rows.places.len()).step_by(2).collect();
            answer.rows = answer.rows.chosen(&kept);
            answer.added /= 2;
        }
        Mood::Denying if is_asked => answer = Answer { sums: vec![0; answer.sums.len()], ..Answer::default() },
        Mood::Lying | Mood::Shuffling => {
            answer.rows.columns.iter_mut().for_each(|(_, data)| *data = changed(data, mood));
            match mood {
                // Of the values alone: how many there are stays as it is.
                Mood::Shuffling => answer.sums.first_mut().into_iter().for_each(|sum| *sum ^= 1 << 55),
                _ => answer.sums.iter_mut().for_each(|sum| *sum ^= 1),
            }
        }
        _ => {}
    }
    answer
}

impl Provider for Cloud {
    fn put(&self, table: &Name, rows: &Fragments) -> Result<(), Failure> {
        match self.mood() {
            Mood::Silent => Err(Failure::Unreachable("it is silent".into())),
            _ => self.inner.put(table, rows),
        }
    }

    fn remove(&self, table: &Name, places: &[u64]) -> Result<(), Failure> {
        self.inner.remove(table, places)
    }

    fn ask(
        &self,
        table: &Name,
        question: &Question,
        take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        if asked > 0 && asked == self.sticks_after.load(Ordering::Relaxed) {
            self.set(Mood::Stuck);
        }
        while self.mood() == Mood::Stuck {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let mood = self.mood();
        if mood == Mood::Silent {
            return Err(Failure::Unreachable("it is silent".into()));
        }
        self.inner.ask(table, question, &mut |answer| {
            let answer = worsened(answer, mood, !question.tests.is_empty());
            if mood == Mood::Repeating {
                take(answer.clone())?;
            }
            take(answer)
        })
    }

    fn drop_table(&self, table: &Name) -> Result<(), Failure> {
        self.inner.drop_table(table)
    }

    fn lateness(&self) -> Option<&Lateness> {
        Some(&self.lateness)
    }
}

/// A table of people at clouds, and what is in it.
pub struct World {
    pub table: Table,
    pub state: State,
    pub clouds: Vec<Arc<Cloud>>,
    pub rows: Vec<u64>,
    pub columns: Vec<Plain>,
}

pub const ID: u16 = 0;
pub const NAME: u16 = 1;
pub const SALARY: u16 = 2;
pub const NOTE: u16 = 3;

pub fn declaration(clouds: usize, may_fail: usize, may_collude: usize) -> Declaration {
    let number = |bits| Kind::Number { bits, wide: false, adds: true };
    let column = |id, name: &str, kind, operations| Column {
        id,
        name: name.into(),
        kind,
        nullable: id != ID,
        operations,
        distribution: Distribution::default(),
        clouds: (0..clouds as u16).collect(),
    };
    let none = Operations::default();
    Declaration {
        table: [42; 16],
        columns: vec![
            column(ID, "id", number(64), Operations { equality: true, ..none }),
            column(NAME, "name", Kind::Text, Operations { equality: true, prefix: true, range: true, ..none }),
            column(SALARY, "salary", number(34), Operations { sum: true, range: true, ..none }),
            column(NOTE, "note", Kind::Text, none),
        ],
        clouds: (0..clouds).map(|cloud| format!("cloud{cloud}")).collect(),
        may_fail,
        may_collude,
        rows_max: ROWS_MAX_DEFAULT,
    }
}

/// The same with codes that are in order by themselves in place of those that questions are compared with.
pub fn in_order(mut declaration: Declaration) -> Declaration {
    for Operations { range, danger_order, .. } in declaration.columns.iter_mut().map(|column| &mut column.operations) {
        (*danger_order, *range) = (*range, false);
    }
    declaration
}

pub type Person = (i64, Option<String>, Option<i64>, Option<String>);

fn strings<'a>(values: impl Iterator<Item = Option<&'a str>>) -> Plain {
    let (mut strings, mut nulls) = (Strings::default(), Vec::new());
    for value in values {
        strings.push(value.unwrap_or_default().as_bytes());
        nulls.push(value.is_none());
    }
    Plain::Strings { values: strings, nulls }
}

pub fn columns(people: &[Person]) -> Vec<Plain> {
    vec![
        Plain::Numbers(people.iter().map(|person| Some(i128::from(person.0))).collect()),
        strings(people.iter().map(|person| person.1.as_deref())),
        Plain::Numbers(people.iter().map(|person| person.2.map(i128::from)).collect()),
        strings(people.iter().map(|person| person.3.as_deref())),
    ]
}

impl World {
    pub fn new(shape: (usize, usize, usize), people: &[Person]) -> Self {
        Self::declared(declaration(shape.0, shape.1, shape.2), people)
    }

    /// A table whose cells are distributed so.
    pub fn distributed(shape: (usize, usize, usize), distribution: Distribution, people: &[Person]) -> Self {
        let mut declaration = declaration(shape.0, shape.1, shape.2);
        declaration.columns.iter_mut().for_each(|column| column.distribution = distribution);
        Self::declared(declaration, people)
    }

    /// A table whose ranges are asked of codes that are in order by themselves.
    pub fn in_order(shape: (usize, usize, usize), people: &[Person]) -> Self {
        Self::declared(in_order(declaration(shape.0, shape.1, shape.2)), people)
    }

    fn declared(declaration: Declaration, people: &[Person]) -> Self {
        let count = declaration.clouds.len();
        let placement = Placement::plan(&declaration).expect("a placement");
        let clouds: Vec<Arc<Cloud>> = (0..count).map(|_| Arc::default()).collect();
        let providers = clouds.iter().map(|cloud| cloud.clone() as Arc<dyn Provider>).collect();
        let coder = Coder::new(declaration, placement, Secret::new([3; 32]));
        let mut state = State::new(count);
        // Two who wrote, one after the other.
        state.epochs.begin(0, Epoch([1; 16]));
        state.epochs.begin(people.len() as u64 / 2, Epoch([2; 16]));
        let rows: Vec<u64> = (0..people.len() as u64).collect();
        let mut world = Self { table: Table::new(coder, providers), state, clouds, rows, columns: columns(people) };
        world.put();
        world
    }

    pub fn asking(&self) -> Asking<'_> {
        Asking { state: &self.state, watch: &Patient, goal: Goal::Ordinary }
    }

    pub fn put(&mut self) {
        let all: Rows = self.rows.iter().copied().collect();
        self.state.leaving(self.rows.iter().copied());
        let coded = self.table.code(&self.state, &self.rows, &self.columns).expect("rows");
        for cloud in 0..self.clouds.len() {
            self.table.put(&self.state, cloud, &coded).expect("an honest cloud");
            self.state.arrived(cloud, &all);
        }
        assert_eq!(self.state.settle(&all), all);
    }
}
