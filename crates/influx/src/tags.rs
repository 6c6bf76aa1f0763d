//! The tag sets of a table in a batch: a dictionary, so that a row needs one small number.

use std::collections::HashMap;

use crate::line::Line;
use crate::text::Text;

/// Tag sets, each once, numbered from 0.
#[derive(Clone, Debug, Default)]
pub struct TagSets {
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    /// Pairs of all sets, and where the pairs of each set end.
    pairs: Vec<Pair>,
    ends: Vec<u32>,
    text: String,
    by_pairs: HashMap<Vec<u8>, u32>,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    name: u32,
    start: u32,
    end: u32,
}

impl TagSets {
    /// The names of all tags, in the order in which they came.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Sets in it.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The tags of a set: the place of the name among [`names`](TagSets::names), ascending, and the value. A name that
    /// does not come has no value there.
    pub fn set(&self, set: u32) -> impl ExactSizeIterator<Item = (usize, &str)> {
        let index = set as usize;
        let end = self.ends[index] as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        self.pairs[start..end]
            .iter()
            .map(|pair| (pair.name as usize, &self.text[pair.start as usize..pair.end as usize]))
    }

    pub(crate) fn knows(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The number of a line's tag set, in whatever order its tags come; a new one where it is new.
    pub(crate) fn number(&mut self, line: &Line<'_>) -> u32 {
        let start = self.pairs.len();
        let text_start = self.text.len();
        for (name, value) in line.tags() {
            let name = self.name(name);
            let start = self.text.len() as u32;
            value.push_to(&mut self.text);
            self.pairs.push(Pair { name, start, end: self.text.len() as u32 });
        }
        self.pairs[start..].sort_unstable_by_key(|pair| pair.name);
        let key = self.key(start);
        if let Some(&set) = self.by_pairs.get(&key) {
            self.pairs.truncate(start);
            self.text.truncate(text_start);
            return set;
        }
        let set = self.ends.len() as u32;
        self.ends.push(self.pairs.len() as u32);
        self.by_pairs.insert(key, set);
        set
    }

    fn name(&mut self, name: Text<'_>) -> u32 {
        let name = name.unescaped();
        if let Some(&known) = self.by_name.get(&*name) {
            return known;
        }
        let number = self.names.len() as u32;
        self.names.push(name.clone().into_owned());
        self.by_name.insert(name.into_owned(), number);
        number
    }

    /// The pairs from `start` on as bytes that two sets share only where they are equal.
    fn key(&self, start: usize) -> Vec<u8> {
        let mut key = Vec::new();
        for pair in &self.pairs[start..] {
            key.extend(pair.name.to_le_bytes());
            key.extend((pair.end - pair.start).to_le_bytes());
            key.extend(&self.text.as_bytes()[pair.start as usize..pair.end as usize]);
        }
        key
    }
}
