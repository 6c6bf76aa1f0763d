//! When a nameless page may be written again, explored exhaustively: processes that write, undo, commit, are counted, die
//! or are cut; readers that stay; and one who keeps images of the medium and puts them back.
//!
//! What is modelled: a medium of a few pages, each of which holds what was last flushed and what was written since; roots
//! that point to one nameless page each, the newest of which a commit makes durable; a counter; a writer with what it
//! believes to be free, waiting and tried; one reader.
//!
//! Three laws are checked in every state:
//! 1. What the last counted root and those after it point to is on the medium, whatever a cut leaves of unflushed writes.
//! 2. What the reader sees is there.
//! 3. No two writes share epoch, page and number: a page opens as one thing only, whatever is put back.
//!
//! Not modelled: extents (they bring allocation numbers, which are never used again), several pools, and the opening rule,
//! which `opening_model` has.
//!
//! Rules that are simpler than ours are explored too, and break: that shows that the model can.

use std::collections::{BTreeSet, HashSet};

const PAGES: u8 = 3;

/// What is sealed into a page, as its parent knows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct Leaf {
    page: u8,
    epoch: u8,
    write: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Page {
    stable: Option<Leaf>,
    unflushed: Option<Leaf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Root {
    commit: u8,
    version: u8,
    leaf: Option<Leaf>,
    next_write: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Waiting {
    page: u8,
    commit: u8,
    version: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Process {
    epoch: u8,
    next_write: u8,
    free: BTreeSet<u8>,
    waiting: Vec<Waiting>,
    /// The commit under way: its page, and those that it tried.
    pending: Option<Leaf>,
    tried: Vec<u8>,
    /// Pages of the commit under way that it freed itself.
    untold: Vec<u8>,
}

/// A reader pinned to a commit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Reader {
    commit: u8,
    leaf: Leaf,
    /// Whether it sees the commit in the making.
    preview: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct World {
    pages: Vec<Page>,
    /// The last counted root, and those after it.
    roots: Vec<Root>,
    counter: u8,
    process: Option<Process>,
    reader: Option<Reader>,
    /// Everything ever sealed.
    sealed: BTreeSet<Leaf>,
    twice: bool,
    openings: u8,
    images: Vec<(Vec<Page>, Vec<Root>)>,
    restores: u8,
}

/// What must be so before a page is written again.
#[derive(Clone, Copy)]
struct Rule {
    waits_for_the_counter: bool,
    waits_for_readers: bool,
    holds_after_opening: bool,
    waits_for_previews: bool,
    numbers_outlive_rollback: bool,
    new_epochs: bool,
    keeps_what_a_commit_wrote_and_freed: bool,
}

const OURS: Rule = Rule {
    waits_for_the_counter: true,
    waits_for_readers: true,
    holds_after_opening: true,
    waits_for_previews: true,
    numbers_outlive_rollback: true,
    new_epochs: true,
    keeps_what_a_commit_wrote_and_freed: true,
};

#[derive(Clone, Copy)]
struct Bounds {
    writes: usize,
    commits: u8,
    openings: u8,
    restores: u8,
}

const BOUNDS: Bounds = Bounds { writes: 4, commits: 3, openings: 2, restores: 1 };
/// What is explored with `COUNTERFOIL_PROOF=full`: 1.7 million states.
const FULL: Bounds = Bounds { writes: 5, commits: 4, openings: 2, restores: 1 };

impl World {
    fn new() -> World {
        World {
            pages: vec![Page::default(); usize::from(PAGES)],
            roots: vec![Root { commit: 0, version: 0, leaf: None, next_write: 1 }],
            counter: 0,
            process: None,
            reader: None,
            sealed: BTreeSet::new(),
            twice: false,
            openings: 0,
            images: Vec::new(),
            restores: 0,
        }
    }

    fn newest(&self) -> Root {
        *self.roots.last().unwrap()
    }

    fn flush(&mut self) {
        for page in &mut self.pages {
            page.stable = page.unflushed.take().or(page.stable);
        }
    }

    /// Where a law is broken, which one.
    fn broken(&self) -> Option<&'static str> {
        let is_safe = |leaf: &Leaf| {
            let page = &self.pages[usize::from(leaf.page)];
            page.stable == Some(*leaf) && page.unflushed.is_none()
        };
        if !self.roots.iter().filter_map(|root| root.leaf.as_ref()).all(is_safe) {
            return Some("a root that a cut may leave has lost its page");
        }
        let is_seen = |reader: &Reader| {
            let page = &self.pages[usize::from(reader.leaf.page)];
            page.unflushed.or(page.stable) == Some(reader.leaf)
        };
        if self.reader.as_ref().is_some_and(|reader| !is_seen(reader)) {
            return Some("a reader has lost its page");
        }
        self.twice.then_some("two writes share epoch, page and number")
    }

    fn open(&mut self, rule: &Rule) {
        let newest = self.newest();
        self.flush();
        self.openings += 1;
        // The opening root is two above, and counted.
        let version = newest.version + 2;
        self.counter = version;
        let root = Root { version, ..newest };
        self.roots = vec![root];
        let live = root.leaf.map(|leaf| leaf.page);
        let not_live = (0..PAGES).filter(|page| Some(*page) != live);
        let held = |page| Waiting { page, commit: if rule.holds_after_opening { root.commit } else { 0 }, version: 0 };
        self.process = Some(Process {
            epoch: if rule.new_epochs { self.openings } else { 1 },
            next_write: root.next_write,
            free: BTreeSet::new(),
            waiting: not_live.map(held).collect(),
            pending: None,
            tried: Vec::new(),
            untold: Vec::new(),
        });
    }

    /// Lets what waits become free.
    fn look(&mut self, rule: &Rule) {
        let pin = self.reader.map_or(u8::MAX, |reader| reader.commit);
        let counter = self.counter;
        let process = self.process.as_mut().unwrap();
        let may = |waiting: &Waiting| {
            (!rule.waits_for_the_counter || waiting.version <= counter)
                && (!rule.waits_for_readers || waiting.commit <= pin)
        };
        let (free, waiting) = std::mem::take(&mut process.waiting).into_iter().partition(may);
        process.waiting = waiting;
        let free: Vec<Waiting> = free;
        process.free.extend(free.into_iter().map(|waiting| waiting.page));
    }

    fn write(&mut self, page: u8, rule: &Rule) {
        let process = self.process.as_mut().unwrap();
        process.free.remove(&page);
        let leaf = Leaf { page, epoch: process.epoch, write: process.next_write };
        process.next_write += 1;
        process.tried.push(page);
        if let Some(before) = process.pending.replace(leaf) {
            process.untold.push(before.page);
            if !rule.keeps_what_a_commit_wrote_and_freed {
                process.free.insert(before.page);
            }
        }
        self.twice |= !self.sealed.insert(leaf);
        self.pages[usize::from(page)].unflushed = Some(leaf);
    }

    fn commit(&mut self) {
        let before = self.newest();
        let (commit, version) = (before.commit + 1, self.counter + 1);
        self.flush();
        let process = self.process.as_mut().unwrap();
        let leaf = process.pending.take();
        let freed = before.leaf.map(|leaf| leaf.page).into_iter().chain(process.untold.drain(..));
        process.waiting.extend(freed.map(|page| Waiting { page, commit, version }));
        process.tried.clear();
        let next_write = process.next_write;
        self.roots.push(Root { commit, version, leaf, next_write });
        self.images.push((self.pages.clone(), self.roots.clone()));
    }

    fn rollback(&mut self, rule: &Rule) {
        let newest = self.newest();
        let is_seen = self.reader.is_some_and(|reader| reader.preview);
        let process = self.process.as_mut().unwrap();
        process.pending = None;
        process.untold.clear();
        let tried: BTreeSet<u8> = process.tried.drain(..).collect();
        if is_seen && rule.waits_for_previews {
            let waits = |page| Waiting { page, commit: newest.commit + 1, version: 0 };
            process.waiting.extend(tried.into_iter().map(waits));
        } else {
            process.free.extend(tried);
        }
        if !rule.numbers_outlive_rollback {
            process.next_write = newest.next_write;
        }
    }

    fn count(&mut self) {
        self.counter = self.newest().version;
        self.roots = vec![self.newest()];
    }

    /// The power fails: of what was not flushed any part is there.
    fn cut(&self) -> Vec<World> {
        let mut worlds = vec![World { process: None, reader: None, ..self.clone() }];
        for page in 0..usize::from(PAGES) {
            if let Some(leaf) = self.pages[page].unflushed {
                let mut kept = worlds.clone();
                kept.iter_mut().for_each(|world| world.pages[page] = Page { stable: Some(leaf), unflushed: None });
                worlds.iter_mut().for_each(|world| world.pages[page].unflushed = None);
                worlds.extend(kept);
            }
        }
        worlds
    }

    fn next(&self, rule: &Rule, bounds: &Bounds) -> Vec<World> {
        let mut worlds = Vec::new();
        let mut step = |change: &dyn Fn(&mut World)| {
            let mut world = self.clone();
            change(&mut world);
            worlds.push(world);
        };
        let newest = self.newest();
        if self.reader.is_some() {
            step(&|world| world.reader = None);
        } else if let Some(leaf) = newest.leaf {
            step(&|world| world.reader = Some(Reader { commit: newest.commit, leaf, preview: false }));
        }
        let Some(process) = &self.process else {
            if self.openings < bounds.openings {
                step(&|world| world.open(rule));
            }
            let is_accepted = |roots: &[Root]| roots.last().is_some_and(|root| root.version >= self.counter);
            for (pages, roots) in self.images.iter().filter(|(_, roots)| is_accepted(roots)) {
                if self.restores < bounds.restores {
                    step(&|world| {
                        (world.pages, world.roots) = (pages.clone(), roots.clone());
                        (world.reader, world.restores) = (None, world.restores + 1);
                    });
                }
            }
            return worlds;
        };
        if self.sealed.len() < bounds.writes {
            let mut looked = self.clone();
            looked.look(rule);
            for page in looked.process.as_ref().unwrap().free.clone() {
                let mut world = looked.clone();
                world.write(page, rule);
                worlds.push(world);
            }
        }
        let mut step = |change: &dyn Fn(&mut World)| {
            let mut world = self.clone();
            change(&mut world);
            worlds.push(world);
        };
        if let Some(leaf) = process.pending {
            if newest.commit < bounds.commits {
                step(&World::commit);
            }
            step(&|world| world.rollback(rule));
            if self.reader.is_none() {
                step(&|world| world.reader = Some(Reader { commit: newest.commit, leaf, preview: true }));
            }
        } else if self.counter < newest.version {
            step(&World::count);
        }
        // The process dies: what it wrote stays, and readers of other processes with it.
        step(&|world| {
            world.process = None;
            world.reader = world.reader.filter(|reader| !reader.preview);
        });
        worlds.extend(self.cut());
        worlds
    }
}

/// How many states there are, or a broken law and how many moves lead to it.
fn explore(rule: &Rule, bounds: &Bounds) -> Result<usize, (&'static str, usize)> {
    let mut seen = HashSet::from([World::new()]);
    let mut edge = vec![World::new()];
    for moves in 0.. {
        let mut further = Vec::new();
        for world in &edge {
            if let Some(law) = world.broken() {
                return Err((law, moves));
            }
            for next in world.next(rule, bounds) {
                if seen.insert(next.clone()) {
                    further.push(next);
                }
            }
        }
        if further.is_empty() {
            break;
        }
        edge = further;
    }
    Ok(seen.len())
}

#[test]
fn the_rule_holds_in_every_state() {
    let is_full = std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full");
    let states = explore(&OURS, if is_full { &FULL } else { &BOUNDS })
        .unwrap_or_else(|(law, moves)| panic!("{law}, after {moves} moves"));
    println!("{states} states");
    assert!(states > 10_000, "{states}");
}

#[test]
fn simpler_rules_break() {
    let rules = [
        ("the counter", Rule { waits_for_the_counter: false, ..OURS }),
        ("readers", Rule { waits_for_readers: false, ..OURS }),
        ("readers, after an opening", Rule { holds_after_opening: false, ..OURS }),
        ("previews", Rule { waits_for_previews: false, ..OURS }),
        ("numbers", Rule { numbers_outlive_rollback: false, ..OURS }),
        ("epochs", Rule { new_epochs: false, ..OURS }),
        ("what was written and freed", Rule { keeps_what_a_commit_wrote_and_freed: false, ..OURS }),
    ];
    for (name, rule) in rules {
        let (law, moves) = explore(&rule, &BOUNDS).expect_err(name);
        println!("without {name}: {law}, after {moves} moves");
    }
}
