//! What tables are: their manifests' definitions, checked once and remembered for a while.

use std::collections::HashMap;
use std::sync::Arc;

use counterfoil_proof::{Definition, Digest, Owner, TrustedManifest};
use parking_lot::Mutex;

use crate::store::{Kept, StoreError};

/// Definitions that are remembered; all are forgotten when there are more.
const REMEMBERED_MAX: usize = 256;

/// Definitions by their digests.
#[derive(Default)]
pub(crate) struct Definitions(Mutex<HashMap<Digest, Arc<Definition>>>);

impl Definitions {
    /// The definition of a table that is kept.
    pub(crate) fn of(&self, kept: &Kept, owner: &Owner) -> Result<Arc<Definition>, StoreError> {
        if let Some(known) = self.0.lock().get(&kept.definition) {
            return Ok(known.clone());
        }
        let damaged = |_| StoreError::Damaged("the manifest of a table");
        let manifest = TrustedManifest::check(&kept.manifest, owner, 0).map_err(damaged)?;
        let definition = Arc::new(manifest.manifest().definition.clone());
        if definition.digest() != kept.definition {
            return Err(StoreError::Damaged("the definition of a table"));
        }
        let mut known = self.0.lock();
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert(kept.definition, definition.clone());
        Ok(definition)
    }
}
