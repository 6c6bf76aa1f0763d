//! Clouds over a network, at which dispersed tables lie.

use std::collections::HashMap;
use std::sync::Arc;

use counterfoil_clouds::{self as clouds, Postgres};
use counterfoil_disperse::{Provider, Secret, Store, StoredProvider};
use counterfoil_provider::{Address, Remote};
use counterfoil_sql::{CloudSecret, Clouds};
use parking_lot::Mutex;
use zeroize::Zeroizing;

/// The clouds that were reached so far, by their addresses: their connections wait for the next statement.
#[derive(Default)]
pub(crate) struct Reached(Mutex<HashMap<String, Known>>);

/// A cloud, and the secret that it was reached with: its file, and what that held.
struct Known {
    secret: Option<(String, Zeroizing<String>)>,
    cloud: Cloud,
}

impl Known {
    fn is_of(&self, secret: Option<CloudSecret<'_>>) -> bool {
        let own = self.secret.as_ref().map(|(file, text)| (file.as_str(), text.as_str()));
        own == secret.map(|secret| (secret.file, secret.text))
    }
}

/// What a cloud can do.
#[derive(Clone)]
enum Cloud {
    /// It answers questions.
    Answers(Arc<dyn Provider>),
    /// It keeps objects: questions are answered here, and whose they are depends on who asks.
    Keeps(Arc<dyn Store>),
}

impl Cloud {
    /// The cloud at an address; none: no address of a kind that is known here.
    fn at(url: &str, secret: Option<CloudSecret<'_>>) -> Option<Result<Self, String>> {
        fn answers(cloud: impl Provider + 'static) -> Cloud {
            Cloud::Answers(Arc::new(cloud))
        }
        let text = secret.map(|secret| secret.text);
        match () {
            () if is_postgres(url) => Some(Postgres::new(url, text).map(answers)),
            () if Address::is_one(url) => Some(Remote::new(url, text).map(answers)),
            () if clouds::is_store(url) => {
                let secret = secret.map(|secret| clouds::CloudSecret { file: secret.file, text: secret.text });
                Some(clouds::open_store(url, secret).map(Self::Keeps))
            }
            () => None,
        }
    }

    fn provider(self, key: Secret) -> Arc<dyn Provider> {
        match self {
            Self::Answers(provider) => provider,
            Self::Keeps(store) => Arc::new(StoredProvider::new(store, key)),
        }
    }
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

impl Clouds for Reached {
    fn whole_url(&self, url: &str) -> Option<Result<String, String>> {
        if clouds::is_store(url) {
            return Some(clouds::whole_store_url(url));
        }
        Cloud::at(url, None).map(|cloud| cloud.map(|_| url.to_owned()))
    }

    fn open(
        &self,
        url: &str,
        secret: Option<CloudSecret<'_>>,
        key: Secret,
    ) -> Option<Result<Arc<dyn Provider>, String>> {
        let mut reached = self.0.lock();
        if let Some(known) = reached.get(url).filter(|known| known.is_of(secret)) {
            return Some(Ok(known.cloud.clone().provider(key)));
        }
        // Of one address the newest secret counts.
        Some(Cloud::at(url, secret)?.map(|cloud| {
            let secret = secret.map(|secret| (secret.file.to_owned(), Zeroizing::new(secret.text.to_owned())));
            reached.insert(url.to_owned(), Known { secret, cloud: cloud.clone() });
            cloud.provider(key)
        }))
    }
}
