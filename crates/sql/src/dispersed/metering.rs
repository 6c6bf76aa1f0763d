//! What each cloud was asked for a query, for EXPLAIN ANALYZE.

use std::sync::Arc;

use counterfoil_disperse::{Metered, Provider, Used};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use parking_lot::Mutex;

/// The clouds of a query that were asked, by name.
#[derive(Default)]
pub(super) struct Metering(Mutex<Vec<(String, Arc<Used>)>>);

impl Metering {
    /// A cloud of which it is counted what it is asked.
    pub fn of(&self, name: &str, cloud: Arc<dyn Provider>) -> Arc<dyn Provider> {
        let used = Arc::new(Used::default());
        self.0.lock().push((name.to_owned(), used.clone()));
        Arc::new(Metered::new(cloud, used))
    }

    /// Tells of clouds that were asked something.
    pub fn tell(&self, metrics: &ExecutionPlanMetricsSet) {
        for (name, used) in self.0.lock().iter().filter(|(_, used)| used.questions() > 0) {
            let count = |what: &str, number: u64| {
                let counter = MetricBuilder::new(metrics).global_counter(format!("{name}_{what}"));
                counter.add(usize::try_from(number).unwrap_or(usize::MAX));
            };
            count("questions", used.questions());
            count("bytes", used.bytes());
            MetricBuilder::new(metrics).subset_time(format!("{name}_time"), 0).add_duration(used.time());
        }
    }
}
