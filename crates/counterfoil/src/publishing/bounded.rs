//! A server's bytes, within the memory that a statement may take, and as long as somebody waits for them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use counterfoil_mirror::site::Fetch;
use parking_lot::Mutex;

/// What is known of a question while it is asked, on both sides of the walk through a server's files.
#[derive(Default)]
pub(super) struct Bounds {
    /// Bytes that may still be brought.
    room: AtomicUsize,
    /// Bytes that were brought and not told of yet.
    brought: AtomicUsize,
    is_exhausted: AtomicBool,
    wanted: Mutex<Weak<()>>,
}

impl Bounds {
    /// From now on so many bytes may be brought, for whoever holds `wanted`.
    pub fn begin(&self, room: usize, wanted: Weak<()>) {
        self.room.store(room, Ordering::Relaxed);
        *self.wanted.lock() = wanted;
    }

    /// Bytes that were brought since this was asked last.
    pub fn brought(&self) -> usize {
        self.brought.swap(0, Ordering::Relaxed)
    }

    /// Whether a server had more to bring than there was room for.
    pub fn is_exhausted(&self) -> bool {
        self.is_exhausted.load(Ordering::Relaxed)
    }

    fn bring(
        &self,
        most: usize,
        fetch: impl FnOnce(usize) -> Result<Option<Vec<u8>>, String>,
    ) -> Result<Option<Vec<u8>>, String> {
        if self.wanted.lock().strong_count() == 0 {
            return Err("nobody waits for the answer any more".into());
        }
        let room = self.room.load(Ordering::Relaxed);
        let brought = fetch(most.min(room));
        if let Err(error) = &brought
            && room < most
            && error.ends_with(&format!("more than {room} bytes"))
        {
            self.is_exhausted.store(true, Ordering::Relaxed);
        }
        let bytes = brought.as_ref().map_or(0, |bytes| bytes.as_ref().map_or(0, Vec::len));
        self.room.store(room.saturating_sub(bytes), Ordering::Relaxed);
        self.brought.fetch_add(bytes, Ordering::Relaxed);
        brought
    }
}

/// What brings a server's bytes within bounds.
pub(super) struct Bounded {
    pub fetch: Box<dyn Fetch + Send>,
    pub bounds: Arc<Bounds>,
}

impl Fetch for Bounded {
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        let fetch = &mut self.fetch;
        self.bounds.bring(most, |most| fetch.fetch(path, most))
    }

    fn ask(&mut self, path: &str, question: &[u8], most: usize) -> Result<Option<Vec<u8>>, String> {
        let fetch = &mut self.fetch;
        self.bounds.bring(most, |most| fetch.ask(path, question, most))
    }

    fn soon(&mut self, level: usize, paths: &mut dyn Iterator<Item = String>) {
        self.fetch.soon(level, paths);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Files;

    impl Fetch for Files {
        fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
            let bytes = vec![0; path.len()];
            if bytes.len() > most { Err(format!("{path}: more than {most} bytes")) } else { Ok(Some(bytes)) }
        }
    }

    #[test]
    fn no_more_is_brought_than_there_is_room_for() {
        let bounds = Arc::new(Bounds::default());
        let mut bounded = Bounded { fetch: Box::new(Files), bounds: bounds.clone() };
        let wanted = Arc::new(());
        bounds.begin(10, Arc::downgrade(&wanted));
        assert_eq!(bounded.fetch("seven77", 100), Ok(Some(vec![0; 7])));
        assert!(bounded.fetch("four", 2).is_err() && !bounds.is_exhausted(), "the server's fault");
        assert!(bounded.fetch("four", 100).is_err() && bounds.is_exhausted());
        assert_eq!((bounds.brought(), bounds.brought()), (7, 0));
        drop(wanted);
        assert!(bounded.fetch("", 1).is_err(), "nobody waits");
    }
}
