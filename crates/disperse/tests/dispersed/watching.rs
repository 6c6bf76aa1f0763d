//! A cloud that writes down all that it is told and asked: its view.

use std::sync::Mutex;

use counterfoil_disperse::fragments::{Answer, Fragments, Name, Question};
use counterfoil_disperse::{Failure, MemoryProvider, Provider};

/// What a cloud is told or asked. What it answers follows from these.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Put(Name, Fragments),
    Removed(Name, Vec<u64>),
    Asked(Name, Question),
    Dropped(Name),
}

impl Event {
    pub fn table(&self) -> &Name {
        match self {
            Self::Put(table, _) | Self::Removed(table, _) | Self::Asked(table, _) | Self::Dropped(table) => table,
        }
    }
}

#[derive(Default)]
pub struct Watching {
    inner: MemoryProvider,
    seen: Mutex<Seen>,
}

/// The view of one cloud, in the order in which it came.
#[derive(Clone, Default)]
pub struct Seen {
    pub events: Vec<Event>,
    pub answers: Vec<Answer>,
}

impl Seen {
    pub fn put(&self) -> impl Iterator<Item = &Fragments> {
        self.events.iter().filter_map(|event| match event {
            Event::Put(_, rows) => Some(rows),
            _ => None,
        })
    }

    pub fn questions(&self) -> impl Iterator<Item = &Question> {
        self.events.iter().filter_map(|event| match event {
            Event::Asked(_, question) => Some(question),
            _ => None,
        })
    }
}

impl Watching {
    fn note(&self, event: Event) {
        self.seen.lock().expect("nobody panicked").events.push(event);
    }

    pub fn seen(&self) -> Seen {
        self.seen.lock().expect("nobody panicked").clone()
    }

    /// It loses rows, of which it knows nothing.
    pub fn forget(&self, table: &Name, places: &[u64]) {
        self.inner.remove(table, places).expect("memory");
    }

    /// What it has seen until now, which it forgets.
    pub fn take_seen(&self) -> Seen {
        std::mem::take(&mut self.seen.lock().expect("nobody panicked"))
    }
}

impl Provider for Watching {
    fn put(&self, table: &Name, rows: &Fragments) -> Result<(), Failure> {
        self.note(Event::Put(table.clone(), rows.clone()));
        self.inner.put(table, rows)
    }

    fn remove(&self, table: &Name, places: &[u64]) -> Result<(), Failure> {
        self.note(Event::Removed(table.clone(), places.to_vec()));
        self.inner.remove(table, places)
    }

    fn ask(
        &self,
        table: &Name,
        question: &Question,
        take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.note(Event::Asked(table.clone(), question.clone()));
        self.inner.ask(table, question, &mut |answer| {
            self.seen.lock().expect("nobody panicked").answers.push(answer.clone());
            take(answer)
        })
    }

    fn drop_table(&self, table: &Name) -> Result<(), Failure> {
        self.note(Event::Dropped(table.clone()));
        self.inner.drop_table(table)
    }
}
