//! What clouds were asked, and what it took: for whoever wants to see where a question's time goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::fragments::{Answer, Data, Fragments, Name, Question};
use crate::lateness::Lateness;
use crate::provider::{Failure, Provider};

/// What was asked of a cloud so far.
#[derive(Debug, Default)]
pub struct Used {
    questions: AtomicU64,
    bytes: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Used {
    /// How many questions it was asked.
    #[must_use]
    pub fn questions(&self) -> u64 {
        self.questions.load(Ordering::Relaxed)
    }

    /// How many bytes of fragments it answered with.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How long its answers were waited for; of questions at the same time, each counts.
    #[must_use]
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }
}

/// A cloud of which it is counted what it is asked.
pub struct Metered {
    cloud: Arc<dyn Provider>,
    used: Arc<Used>,
}

impl Metered {
    /// Counts what a cloud is asked in `used`.
    #[must_use]
    pub fn new(cloud: Arc<dyn Provider>, used: Arc<Used>) -> Self {
        Self { cloud, used }
    }
}

fn bytes_of(answer: &Answer) -> usize {
    let data = |data: &Data| match data {
        Data::Shares(shares) => shares.len() * size_of::<u64>(),
        Data::Strings(strings) => strings.all().len(),
    };
    let columns: usize = answer.rows.columns.iter().map(|(_, column)| data(column)).sum();
    columns + (answer.rows.places.len() + answer.sums.len()) * size_of::<u64>()
}

impl Provider for Metered {
    fn put(&self, table: &Name, rows: &Fragments) -> Result<(), Failure> {
        self.cloud.put(table, rows)
    }

    fn remove(&self, table: &Name, places: &[u64]) -> Result<(), Failure> {
        self.cloud.remove(table, places)
    }

    fn ask(
        &self,
        table: &Name,
        question: &Question,
        take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.used.questions.fetch_add(1, Ordering::Relaxed);
        let (begun, mut taking) = (Instant::now(), Duration::ZERO);
        let answered = self.cloud.ask(table, question, &mut |answer| {
            self.used.bytes.fetch_add(bytes_of(&answer) as u64, Ordering::Relaxed);
            let begun = Instant::now();
            let taken = take(answer);
            // What is done with a part here is not the cloud's time.
            taking += begun.elapsed();
            taken
        });
        let waited = begun.elapsed().saturating_sub(taking);
        self.used.nanoseconds.fetch_add(waited.as_nanos() as u64, Ordering::Relaxed);
        answered
    }

    fn drop_table(&self, table: &Name) -> Result<(), Failure> {
        self.cloud.drop_table(table)
    }

    fn is_near_fragments(&self) -> bool {
        self.cloud.is_near_fragments()
    }

    fn lateness(&self) -> Option<&Lateness> {
        self.cloud.lateness()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Metered, Used};
    use crate::fragments::{Data, Fragments, Name, Question};
    use crate::provider::{MemoryProvider, Provider as _};

    #[test]
    fn questions_and_bytes_are_counted() {
        let name = |text: &str| Name::parse(text).expect("a name");
        let (table, column) = (name("t0000000000000001"), name("c0000000000000001"));
        let used = Arc::new(Used::default());
        let cloud = Metered::new(Arc::new(MemoryProvider::default()), used.clone());
        let rows = Fragments { places: vec![1, 2], columns: vec![(column.clone(), Data::Shares(vec![5, 6]))] };
        cloud.put(&table, &rows).expect("put");
        let whole = Question { columns: vec![column.clone()], ..Question::default() };
        let sum = Question { sums: vec![column], ..Question::default() };
        for (question, bytes) in [(whole, 32), (sum, 8)] {
            let before = used.bytes();
            cloud.ask(&table, &question, &mut |_| Ok(())).expect("an answer");
            assert_eq!(used.bytes() - before, bytes);
        }
        assert_eq!(used.questions(), 2);
    }
}
