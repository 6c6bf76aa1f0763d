//! The shape of the nodes over an order: which parts there are on each level, after rows came and went.
//!
//! ```text
//! level 2    [01 ........................ x) [x ................. 02)      each node is over 6 to 16 nodes of the level below
//! level 1    [01 ..... a) [a ....... b) [b x) [x .... c) [c ..... 02)      each node is over 6 to 16 rows
//! ```
//! 1. The nodes of a level tile the order, from `01` to `02`; the last level has one node.
//! 2. A node begins where one of the level below begins, and ends where one ends.
//! 3. A node that is not alone on its level is over 6 to 16 parts: what has fewer is joined with a neighbour, what has more is cut.
//!
//! Only what changed is looked at, and a level only where the one below changed.

use counterfoil_mirror::{MemoryShelf, NodeEntry};
use counterfoil_proof::{Interval, Malformed, Node, Totals};

/// Rows or nodes under a node, unless it is alone on its level.
const PARTS_MIN: usize = 6;
/// Rows or nodes under a node at most.
const PARTS_MAX: usize = 16;
/// Under each where more are cut, so that both pieces may grow and shrink.
const PARTS_CUT: usize = 12;

/// Where an order begins and ends.
const ALL: (&[u8], &[u8]) = (&[1], &[2]);

/// Neighbouring nodes of a level that are looked at together, and what they are to become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Where it begins.
    pub start: Vec<u8>,
    /// Where it ends.
    pub end: Vec<u8>,
    /// Where the nodes begin that it is to have.
    pub lows: Vec<Vec<u8>>,
}

/// The part of a whole order.
pub(crate) fn all() -> (Vec<u8>, Vec<u8>) {
    (ALL.0.to_vec(), ALL.1.to_vec())
}

/// A level of an order's nodes, as it is before it is brought up to date; the level below is up to date already.
pub(crate) struct Level<'a> {
    pub shelf: &'a MemoryShelf,
    pub order: u8,
    pub level: u8,
}

impl Level<'_> {
    /// The windows of what changed: `changed` are sorted parts of the order in which rows, or nodes of the level below, did.
    pub fn windows(&self, changed: &[(Vec<u8>, Vec<u8>)]) -> Vec<Window> {
        let mut windows: Vec<Window> = Vec::new();
        for (start, end) in changed {
            for (start, end) in self.nodes_over(start, end) {
                match windows.last_mut() {
                    Some(last) if last.end > start => {}
                    // A boundary that is none any more on the level below.
                    Some(last) if last.end == start && !self.is_boundary(&start) => last.end = end,
                    _ => windows.push(Window { start, end, lows: Vec::new() }),
                }
            }
        }
        let mut filled: Vec<Window> = Vec::new();
        for mut window in windows {
            // The one before was widened into this one: what is left of it belongs together with that.
            if let Some(last) = filled.pop_if(|last| last.end > window.start) {
                window.start = last.start;
                window.end = window.end.max(last.end);
            }
            self.fill(window, &mut filled);
        }
        filled
    }

    /// Widens a window until it has enough parts, and cuts it into nodes.
    fn fill(&self, mut window: Window, filled: &mut Vec<Window>) {
        let mut parts = self.parts(&window.start, &window.end);
        while parts.len() < PARTS_MIN {
            if let Some((_, end)) = self.node_at(&window.end) {
                window.end = end;
            } else if let Some(before) = filled.pop_if(|before| before.end == window.start) {
                window.start = before.start;
            } else if let Some((start, _)) = self.node_before(&window.start) {
                window.start = start;
            } else {
                break;
            }
            parts = self.parts(&window.start, &window.end);
        }
        let pieces = if parts.len() > PARTS_MAX { parts.len().div_ceil(PARTS_CUT) } else { 1 };
        window.lows = (0..pieces).map_while(|piece| parts.get(piece * parts.len() / pieces).cloned()).collect();
        match window.lows.first_mut() {
            Some(first) => first.clone_from(&window.start),
            None => window.lows.push(window.start.clone()),
        }
        filled.push(window);
    }

    /// The nodes of this level that reach into a part; the whole order where there is none yet.
    fn nodes_over(&self, start: &[u8], end: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let Some(first) = self.shelf.nodes.holding(self.order, self.level, start) else { return vec![all()] };
        let from = first.node.part.start();
        let over = self.shelf.nodes.level(self.order, self.level, from);
        over.take_while(|entry| entry.node.part.start() < end).map(ends).collect()
    }

    fn node_at(&self, start: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let next = self.shelf.nodes.level(self.order, self.level, start).next();
        next.filter(|entry| entry.node.part.start() == start).map(ends)
    }

    fn node_before(&self, start: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let before = self.shelf.nodes.before(self.order, self.level, start);
        before.map(ends)
    }

    /// Where the parts of a window begin: its rows, or the nodes below.
    fn parts(&self, start: &[u8], end: &[u8]) -> Vec<Vec<u8>> {
        match self.level {
            1 => self.shelf.within(self.order, start, end).map(|(position, _)| position.to_vec()).collect(),
            _ => self.below(start, end).map(|entry| entry.node.part.start().to_vec()).collect(),
        }
    }

    fn below<'a>(&'a self, start: &[u8], end: &'a [u8]) -> impl Iterator<Item = &'a NodeEntry> {
        let below = self.shelf.nodes.level(self.order, self.level - 1, start);
        below.take_while(move |entry| entry.node.part.start() < end)
    }

    /// Whether a node may begin here: anywhere between rows, and only where one of the level below does.
    fn is_boundary(&self, at: &[u8]) -> bool {
        let below = || self.shelf.nodes.level(self.order, self.level - 1, at).next();
        self.level == 1 || below().is_some_and(|entry| entry.node.part.start() == at)
    }

    /// The nodes that a window is to have.
    pub fn nodes(&self, window: &Window) -> Result<Vec<Node>, Malformed> {
        let ends = window.lows.iter().skip(1).chain([&window.end]);
        window.lows.iter().zip(ends).map(|(low, end)| self.node(low, end)).collect()
    }

    fn node(&self, low: &[u8], end: &[u8]) -> Result<Node, Malformed> {
        let (order, level) = (self.order, self.level);
        let definition = counterfoil_mirror::Shelf::definition(self.shelf);
        let kinds = definition.node_kinds(order).ok_or(Malformed("an order without nodes"))?;
        let columns = definition.node_columns(order).ok_or(Malformed("an order without nodes"))?;
        let mut totals = Totals::none(&kinds);
        if level == 1 {
            for (_, entry) in self.shelf.within(order, low, end) {
                let record = entry.record.as_ref().ok_or(Malformed("a head or tail between records"))?;
                totals.add_row(&kinds, columns.iter().map(|column| &record.values[usize::from(*column)]))?;
            }
        } else {
            self.below(low, end).try_for_each(|entry| totals.add(&kinds, &entry.node.totals))?;
        }
        Ok(Node { order, level, part: Interval::from_bytes(low, end)?, totals })
    }
}

fn ends(entry: &NodeEntry) -> (Vec<u8>, Vec<u8>) {
    (entry.node.part.start().to_vec(), entry.node.part.end().to_vec())
}
