//! Clouds over a network, at which dispersed tables lie.

use std::collections::HashMap;
use std::sync::Arc;

use counterfoil_clouds::Postgres;
use counterfoil_disperse::Provider;
use counterfoil_sql::Clouds;
use parking_lot::Mutex;

/// The clouds that were reached so far: their connections wait for the next statement.
#[derive(Default)]
pub(crate) struct Reached(Mutex<HashMap<(String, Option<String>), Arc<dyn Provider>>>);

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

impl Clouds for Reached {
    fn whole_url(&self, url: &str) -> Option<Result<String, String>> {
        is_postgres(url).then(|| Postgres::new(url, None).map(|_| url.to_owned()))
    }

    fn open(&self, url: &str, secret: Option<&str>) -> Option<Result<Arc<dyn Provider>, String>> {
        if !is_postgres(url) {
            return None;
        }
        let known = (url.to_owned(), secret.map(str::to_owned));
        let mut reached = self.0.lock();
        if let Some(cloud) = reached.get(&known) {
            return Some(Ok(cloud.clone()));
        }
        Some(Postgres::new(url, secret).map(|cloud| {
            let cloud: Arc<dyn Provider> = Arc::new(cloud);
            // Of one address the newest secret counts.
            reached.retain(|(other, _), _| other != url);
            reached.insert(known, cloud.clone());
            cloud
        }))
    }
}
