//! Clouds over a network, at which dispersed tables lie.

use std::collections::HashMap;
use std::sync::Arc;

use counterfoil_clouds::Postgres;
use counterfoil_disperse::Provider;
use counterfoil_provider::{Address, Remote};
use counterfoil_sql::Clouds;
use parking_lot::Mutex;
use zeroize::Zeroizing;

/// The clouds that were reached so far, by their addresses: their connections wait for the next statement.
#[derive(Default)]
pub(crate) struct Reached(Mutex<HashMap<String, Known>>);

/// A cloud, and the secret that it was reached with.
struct Known {
    secret: Option<Zeroizing<String>>,
    cloud: Arc<dyn Provider>,
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

/// The cloud at an address; none: no address of a kind that is known here.
fn cloud(url: &str, secret: Option<&str>) -> Option<Result<Arc<dyn Provider>, String>> {
    fn shared(cloud: impl Provider + 'static) -> Arc<dyn Provider> {
        Arc::new(cloud)
    }
    match () {
        () if is_postgres(url) => Some(Postgres::new(url, secret).map(shared)),
        () if Address::is_one(url) => Some(Remote::new(url, secret).map(shared)),
        () => None,
    }
}

impl Clouds for Reached {
    fn whole_url(&self, url: &str) -> Option<Result<String, String>> {
        cloud(url, None).map(|cloud| cloud.map(|_| url.to_owned()))
    }

    fn open(&self, url: &str, secret: Option<&str>) -> Option<Result<Arc<dyn Provider>, String>> {
        let mut reached = self.0.lock();
        if let Some(known) = reached.get(url).filter(|known| known.secret.as_ref().map(|own| own.as_str()) == secret) {
            return Some(Ok(known.cloud.clone()));
        }
        // Of one address the newest secret counts.
        Some(cloud(url, secret)?.inspect(|cloud| {
            let secret = secret.map(|secret| Zeroizing::new(secret.to_owned()));
            reached.insert(url.to_owned(), Known { secret, cloud: cloud.clone() });
        }))
    }
}
