//! A cloud that cannot be asked, since the file with its secret is not there: it fails as others do that do not answer, and so a query goes
//! on without it.

use counterfoil_disperse::fragments::{Answer, Fragments, Name, Question};
use counterfoil_disperse::{Failure, Provider};

/// Why, for people.
pub(super) struct Closed(pub String);

impl Closed {
    fn refuse(&self) -> Result<(), Failure> {
        Err(Failure::Unreachable(self.0.clone()))
    }
}

impl Provider for Closed {
    fn put(&self, _table: &Name, _rows: &Fragments) -> Result<(), Failure> {
        self.refuse()
    }

    fn remove(&self, _table: &Name, _places: &[u64]) -> Result<(), Failure> {
        self.refuse()
    }

    fn ask(
        &self,
        _table: &Name,
        _question: &Question,
        _take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.refuse()
    }

    fn drop_table(&self, _table: &Name) -> Result<(), Failure> {
        self.refuse()
    }
}
