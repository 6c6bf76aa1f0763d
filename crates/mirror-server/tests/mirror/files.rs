//! Plain files in memory: a folder of many tables, as any web server serves it, written by whom it pleases.

use std::collections::BTreeMap;
use std::io;

use counterfoil_mirror::MemoryShelf;
use counterfoil_mirror::site::{Destination, Fetch, write_to};
use counterfoil_proof::bytes::{Reader, Writer};

/// Files by their paths.
#[derive(Clone, Default)]
pub struct Files(BTreeMap<String, Vec<u8>>);

impl Files {
    /// Puts a table in its place as its owner's program would write it.
    pub fn write(&mut self, place: &str, shelf: &MemoryShelf, manifest: &[u8], summaries: &[Vec<u8>]) {
        self.0.retain(|path, _| !path.starts_with(place));
        write_to(shelf, manifest, summaries, &mut Below { files: self, place }).expect("a folder");
    }

    /// Has the head of a table say other periods, the last one and that of the oldest signature.
    pub fn stand(&mut self, place: &str, last: u64, first: u64) {
        self.with_head(place, |_, _, roots| (last, first, roots));
    }

    /// Exchanges two trees of a table, which are named in its head.
    pub fn exchange_trees(&mut self, place: &str, one: usize, other: usize) {
        self.with_head(place, |last, first, mut roots| {
            roots.swap(one, other);
            (last, first, roots)
        });
    }

    fn with_head(&mut self, place: &str, change: impl FnOnce(u64, u64, Vec<[u8; 16]>) -> (u64, u64, Vec<[u8; 16]>)) {
        let head = self.0.get_mut(&format!("{place}head")).expect("a head");
        let mut reader = Reader::new(head, "a head");
        let mut number = || reader.number().expect("a number");
        let (version, last, first, count) = (number(), number(), number(), number());
        let roots = (0..count).map(|_| reader.array().expect("a name")).collect();
        let (last, first, roots) = change(last, first, roots);
        let mut writer = Writer::default();
        writer.number(version).number(last).number(first).number(count).raw(roots.as_flattened());
        *head = writer.0;
    }

    /// The paths of a table's pages.
    pub fn pages(&self, place: &str) -> Vec<String> {
        let pages = format!("{place}pages/");
        self.0.keys().filter(|path| path.starts_with(&pages)).cloned().collect()
    }

    pub fn remove(&mut self, path: &str) -> Option<Vec<u8>> {
        self.0.remove(path)
    }

    pub fn put(&mut self, path: String, bytes: Vec<u8>) {
        self.0.insert(path, bytes);
    }
}

impl Fetch for Files {
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        match self.0.get(path) {
            Some(bytes) if bytes.len() > most => Err(format!("{path}: more than {most} bytes")),
            found => Ok(found.cloned()),
        }
    }
}

/// The files of one table.
struct Below<'a> {
    files: &'a mut Files,
    place: &'a str,
}

impl Destination for Below<'_> {
    fn has(&mut self, path: &str, bytes: &[u8]) -> io::Result<bool> {
        Ok(self.read(path)?.is_some_and(|known| known == bytes))
    }

    fn put(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        self.files.put(format!("{}{path}", self.place), bytes.to_vec());
        Ok(())
    }

    fn settle(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn read(&mut self, path: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.files.0.get(&format!("{}{path}", self.place)).cloned())
    }

    fn pages(&mut self) -> io::Result<Vec<String>> {
        let pages = self.files.pages(self.place);
        Ok(pages.into_iter().map(|path| path[self.place.len()..].into()).collect())
    }

    fn remove(&mut self, path: &str) -> io::Result<()> {
        self.files.remove(&format!("{}{path}", self.place));
        Ok(())
    }
}
