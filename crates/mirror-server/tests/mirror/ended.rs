//! How a mirror ends: its store's connections wait while they close, which no task of its runtime may do.

use std::sync::{Arc, Mutex};
use std::thread;

use counterfoil_mirror_server::{Decide, Embedded, Reading, Refused, Store, StoreError, TableName, Touched};

use crate::client::once;
use crate::world::{World, listen};

/// A store that notes the name of the thread that drops it.
struct Noting(Embedded, Arc<Mutex<Option<String>>>);

impl Store for Noting {
    fn read(&self, name: &TableName) -> Result<Option<Box<dyn Reading>>, StoreError> {
        self.0.read(name)
    }

    fn update(
        &self,
        names: &[TableName],
        tables_max: u64,
        decide: &Decide<'_>,
    ) -> Result<Result<Touched, Refused>, StoreError> {
        self.0.update(names, tables_max, decide)
    }
}

impl Drop for Noting {
    fn drop(&mut self) {
        *self.1.lock().expect("a name") = Some(thread::current().name().unwrap_or_default().into());
    }
}

#[test]
fn the_store_is_dropped_by_whoever_ends_the_mirror() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = thread::current().name().map(String::from);
    for shuts_down in [true, false] {
        let dropped = Arc::default();
        let store = Embedded::open(&folder.path().join("store")).expect("a store");
        let listener = listen(Arc::new(Noting(store, Arc::clone(&dropped))), World::new().owner, |_| ());
        assert_eq!(once(listener.address(), "GET /nothing", b"").status, 404);
        if shuts_down {
            listener.shut_down()
        } else {
            drop(listener)
        }
        assert_eq!(*dropped.lock().expect("a name"), here);
    }
}
