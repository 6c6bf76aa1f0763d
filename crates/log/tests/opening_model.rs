//! The opening rule, explored exhaustively against one who keeps every image and puts any of them back.
//!
//! What is modelled: frames that name the one before them, each of two pages that reach the medium one by one and in any
//! order before a flush; a counter that only goes up; processes that open, commit, are cut between any two steps; and
//! an attacker who has seen every page that ever reached the medium and lays out before any step what he likes. Since
//! each frame names its predecessor, every mixture of pages is read as *some* path of frames, so he chooses a path.
//!
//! The law: no commit that was acknowledged, or shown after a completed opening, is missing from anything that an
//! opening (for reading or writing) accepts.
//!
//! What is not modelled: the counter's own insides (a step is atomic), pages below a frame that it lists (a frame
//! without one of them is not believed), checkpoints (a frame names its checkpoint).
//!
//! Each rule that is simpler than ours is explored too, and must break: that shows that the model can.

use std::collections::HashMap;
use std::fmt;

/// An index into the frames of an exploration.
type FrameId = u16;
const GENESIS: FrameId = 0;
const NOTHING: FrameId = FrameId::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Content {
    Genesis,
    Opening,
    Commit(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Frame {
    parent: FrameId,
    depth: u8,
    version: u8,
    content: Content,
}

/// Which roots two ahead of the counter are accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TwoAhead {
    Never,
    OpeningRoots,
    Any,
}

/// When a commit is acknowledged and what the counter counts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Counting {
    /// Every commit is counted before it is acknowledged.
    Commits,
    /// Up to so many commits share a version and are acknowledged when flushed; the step comes later.
    Groups(u8),
}

/// An opening rule.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// Whether the counter is stepped up to the root before the opening root is written.
    completes: bool,
    /// How far above the counter the opening root stands, where there is one.
    opening_root: Option<u8>,
    /// Steps after the opening root is durable.
    steps: u8,
    two_ahead: TwoAhead,
    counting: Counting,
    /// Whether the counter holds the tag of the newest frame at or below its value, and openings compare it.
    is_tagged: bool,
    /// Whether a step fails when the counter does not stand just below its target.
    is_step_checked: bool,
}

/// How much is explored.
#[derive(Clone, Copy)]
struct Bounds {
    commits: u8,
    openings: u8,
    /// With two, a clone of the file may be opened beside it, and a process may be forked.
    processes: usize,
}

const OURS: Rule = Rule {
    completes: true,
    opening_root: Some(2),
    steps: 2,
    two_ahead: TwoAhead::OpeningRoots,
    counting: Counting::Commits,
    is_tagged: false,
    is_step_checked: true,
};
const ALONE: Bounds = Bounds { commits: 3, openings: 4, processes: 1 };
const BESIDE: Bounds = Bounds { commits: 2, openings: 3, processes: 2 };

/// What a process is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Process {
    Gone,
    /// Steps the counter to its root.
    Completing { root: FrameId, base: u8 },
    /// Writes its opening root; a bit for each page that reached the medium.
    Rooting { frame: FrameId, base: u8, reached: u8 },
    /// Steps the counter towards its opening root.
    Stepping { frame: FrameId, base: u8, left: u8 },
    /// Has shown `frame`; `base` is the counter as it knows it, `grouped` counts commits since the last step.
    Idle { frame: FrameId, base: u8, grouped: u8 },
    /// Writes a commit.
    Committing { frame: FrameId, base: u8, grouped: u8, reached: u8 },
    /// Has flushed a commit and steps the counter before acknowledging it.
    Counting { frame: FrameId, base: u8 },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    counter: u8,
    tag: FrameId,
    /// For each depth the frames whose first and second page stand there.
    medium: Vec<[FrameId; 2]>,
    /// Every page that ever reached the medium, as frame * 2 + part, sorted.
    seen: Vec<u16>,
    /// Commits acknowledged, or shown by a completed opening.
    promised: u16,
    commits: u8,
    openings: u8,
    processes: Vec<Process>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Move {
    PutBack(FrameId),
    Open(usize),
    Fork,
    PageReaches { process: usize, frame: FrameId, part: u8 },
    Step { process: usize, to: u8 },
    StepRefused(usize),
    Begin { process: usize, commit: u8 },
    Acknowledge { process: usize, commit: u8 },
    Cut(usize),
}

struct Exploration {
    rule: Rule,
    bounds: Bounds,
    frames: Vec<Frame>,
    interned: HashMap<Frame, FrameId>,
    /// Versions of lost commits above the counter at which their loss was accepted, worst case in one opening.
    most_groups_lost: usize,
}

struct Outcome {
    states: usize,
    /// The shortest attack, if there is one.
    attack: Option<Attack>,
    most_groups_lost: usize,
}

struct Attack {
    moves: Vec<Move>,
    frames: Vec<Frame>,
    missing: u16,
}

impl Exploration {
    fn run(rule: Rule, bounds: Bounds) -> Outcome {
        let mut exploration =
            Self { rule, bounds, frames: Vec::new(), interned: HashMap::new(), most_groups_lost: 0 };
        exploration.intern(Frame { parent: GENESIS, depth: 0, version: 0, content: Content::Genesis });
        let start = State {
            counter: 0,
            tag: GENESIS,
            medium: Vec::new(),
            seen: Vec::new(),
            promised: 0,
            commits: 0,
            openings: 0,
            processes: vec![Process::Gone; bounds.processes],
        };
        exploration.breadth_first(start)
    }

    fn breadth_first(&mut self, start: State) -> Outcome {
        let mut known = HashMap::from([(start.clone(), ())]);
        // Each state with the one before it and the move between them.
        let mut states: Vec<(State, usize, Option<Move>)> = vec![(start, 0, None)];
        let mut next = 0;
        while next < states.len() {
            let state = states[next].0.clone();
            let missing = self.breach(&state);
            if missing != 0 {
                return self.outcome(&states, next, missing);
            }
            for (way, successor) in self.successors(&state) {
                if known.insert(successor.clone(), ()).is_none() {
                    states.push((successor, next, Some(way)));
                }
            }
            next += 1;
        }
        Outcome { states: states.len(), attack: None, most_groups_lost: self.most_groups_lost }
    }

    fn outcome(&self, states: &[(State, usize, Option<Move>)], end: usize, missing: u16) -> Outcome {
        let mut moves = Vec::new();
        let mut at = end;
        while let (_, before, Some(way)) = &states[at] {
            moves.push(*way);
            at = *before;
        }
        moves.reverse();
        let attack = Some(Attack { moves, frames: self.frames.clone(), missing });
        Outcome { states: states.len(), attack, most_groups_lost: self.most_groups_lost }
    }

    fn intern(&mut self, frame: Frame) -> FrameId {
        let frames = &mut self.frames;
        *self.interned.entry(frame).or_insert_with(|| {
            frames.push(frame);
            frames.len() as FrameId - 1
        })
    }

    fn child(&mut self, parent: FrameId, version: u8, content: Content) -> FrameId {
        let depth = self.frame(parent).depth + 1;
        self.intern(Frame { parent, depth, version, content })
    }

    fn frame(&self, id: FrameId) -> Frame {
        self.frames[id as usize]
    }

    /// The frames from `id` down to the first.
    fn path(&self, id: FrameId) -> impl Iterator<Item = FrameId> + '_ {
        std::iter::successors(Some(id), |id| (*id != GENESIS).then(|| self.frame(*id).parent))
    }

    fn commits_of(&self, id: FrameId) -> u16 {
        self.path(id).fold(0, |commits, id| match self.frame(id).content {
            Content::Commit(number) => commits | 1 << number,
            _ => commits,
        })
    }

    /// What recovery takes for the newest root.
    fn recover(&self, medium: &[[FrameId; 2]]) -> FrameId {
        let follow = |root, pages: &[FrameId; 2]| match *pages {
            [first, second] if first == second && first != NOTHING && self.frame(first).parent == root => Ok(first),
            _ => Err(root),
        };
        match medium.iter().try_fold(GENESIS, follow) {
            Ok(root) | Err(root) => root,
        }
    }

    /// The newest frame of a path that the counter at `value` has counted.
    fn newest_counted(&self, root: FrameId, value: u8) -> FrameId {
        self.path(root).find(|id| self.frame(*id).version <= value).unwrap_or(GENESIS)
    }

    fn accepts(&self, root: FrameId, counter: u8, tag: FrameId) -> bool {
        let Frame { version, content, .. } = self.frame(root);
        let is_near = match version.checked_sub(counter) {
            Some(0 | 1) => true,
            Some(2) => match self.rule.two_ahead {
                TwoAhead::Never => false,
                TwoAhead::OpeningRoots => content == Content::Opening,
                TwoAhead::Any => true,
            },
            _ => false,
        };
        is_near && (!self.rule.is_tagged || self.newest_counted(root, counter) == tag)
    }

    /// The promised commits that whoever opened the medium now would miss without noticing, and should not.
    fn breach(&mut self, state: &State) -> u16 {
        let root = self.recover(&state.medium);
        if !self.accepts(root, state.counter, state.tag) {
            return 0;
        }
        let missing = state.promised & !self.commits_of(root);
        if self.rule.counting == Counting::Commits || missing == 0 {
            return missing;
        }
        // What may be lost where groups are counted: a counter without a tag cannot tell the frames of the version
        // that it closed apart, and no counter knows those of the version that is open.
        let first_exposed = if self.rule.is_tagged { state.counter + 1 } else { state.counter };
        let mut groups = Vec::new();
        let mut breach = 0;
        for frame in &self.frames {
            if let Content::Commit(number) = frame.content
                && missing & 1 << number != 0
            {
                groups.push(frame.version);
                breach |= if frame.version < first_exposed { 1 << number } else { 0 };
            }
        }
        groups.sort_unstable();
        groups.dedup();
        self.most_groups_lost = self.most_groups_lost.max(groups.len());
        breach
    }

    fn successors(&mut self, state: &State) -> Vec<(Move, State)> {
        let mut found = Vec::new();
        self.attacks(state, &mut found);
        for process in 0..state.processes.len() {
            if state.processes[process] == Process::Gone {
                self.open(state, process, &mut found);
            } else {
                let mut after = state.clone();
                after.processes[process] = Process::Gone;
                found.push((Move::Cut(process), after));
                self.advance(state, process, &mut found);
            }
        }
        found
    }

    /// All that can be laid out from the pages seen, and a process forked where there may be two.
    fn attacks(&self, state: &State, found: &mut Vec<(Move, State)>) {
        let present = self.recover(&state.medium);
        let is_whole = |id: &FrameId| state.seen.contains(&(id * 2)) && state.seen.contains(&(id * 2 + 1));
        for root in 0..self.frames.len() as FrameId {
            let path: Vec<FrameId> = self.path(root).filter(|id| *id != GENESIS).collect();
            if root != present && path.iter().all(is_whole) {
                let medium = path.iter().rev().map(|id| [*id, *id]).collect();
                found.push((Move::PutBack(root), State { medium, ..state.clone() }));
            }
        }
        if let [process @ Process::Idle { .. }, Process::Gone] = state.processes[..] {
            found.push((Move::Fork, State { processes: vec![process; 2], ..state.clone() }));
        }
    }

    fn open(&mut self, state: &State, process: usize, found: &mut Vec<(Move, State)>) {
        let root = self.recover(&state.medium);
        if state.openings == self.bounds.openings || !self.accepts(root, state.counter, state.tag) {
            return;
        }
        let mut after = state.clone();
        after.openings += 1;
        // Where groups are counted, what is lost at this point within the stated bound is lost.
        after.promised &= self.commits_of(root);
        after.processes[process] = if self.rule.completes && self.frame(root).version > state.counter {
            Process::Completing { root, base: state.counter }
        } else {
            self.after_completing(root, state.counter, &mut after)
        };
        found.push((Move::Open(process), after));
    }

    /// What follows when the counter has reached the root, or need not.
    fn after_completing(&mut self, root: FrameId, base: u8, state: &mut State) -> Process {
        match self.rule.opening_root {
            Some(ahead) => {
                let frame = self.child(root, base + ahead, Content::Opening);
                Process::Rooting { frame, base, reached: 0 }
            }
            None => {
                state.promised |= self.commits_of(root);
                Process::Idle { frame: root, base, grouped: 0 }
            }
        }
    }

    /// The moves of a process that is running.
    fn advance(&mut self, state: &State, process: usize, found: &mut Vec<(Move, State)>) {
        match state.processes[process] {
            Process::Gone => {}
            Process::Completing { root, base } => self.step(state, process, root, base, found, |this, after| {
                if this.frame(root).version > base + 1 {
                    Process::Completing { root, base: base + 1 }
                } else {
                    this.after_completing(root, base + 1, after)
                }
            }),
            Process::Rooting { frame, base, reached: 3 } | Process::Stepping { frame, base, left: 0 } => {
                // Flushed, or stepped: the same move takes both on, because neither is seen from outside.
                unreachable!("{frame} at {base} went on at once")
            }
            Process::Rooting { frame, base, reached } => {
                let left = self.rule.steps;
                reach(state, process, frame, self.frame(frame).depth, reached, found, |now| match now {
                    3 => Process::Stepping { frame, base, left },
                    _ => Process::Rooting { frame, base, reached: now },
                });
            }
            Process::Stepping { frame, base, left } => {
                self.step(state, process, frame, base, found, |this, after| {
                    if left > 1 {
                        return Process::Stepping { frame, base: base + 1, left: left - 1 };
                    }
                    after.promised |= this.commits_of(frame);
                    Process::Idle { frame, base: base + 1, grouped: 0 }
                });
            }
            Process::Idle { frame, base, grouped } => self.idle(state, process, frame, base, grouped, found),
            Process::Committing { frame, base, grouped, reached } if reached < 3 => {
                let is_counted = self.rule.counting == Counting::Commits;
                reach(state, process, frame, self.frame(frame).depth, reached, found, |now| match now {
                    3 if is_counted => Process::Counting { frame, base },
                    _ => Process::Committing { frame, base, grouped, reached: now },
                });
            }
            Process::Committing { frame, base, grouped, .. } => {
                let mut after = state.clone();
                let commit = self.promise(frame, &mut after);
                after.processes[process] = Process::Idle { frame, base, grouped: grouped + 1 };
                found.push((Move::Acknowledge { process, commit }, after));
            }
            Process::Counting { frame, base } => self.step(state, process, frame, base, found, |this, after| {
                this.promise(frame, after);
                Process::Idle { frame, base: base + 1, grouped: 0 }
            }),
        }
    }

    fn idle(
        &mut self,
        state: &State,
        process: usize,
        frame: FrameId,
        base: u8,
        grouped: u8,
        found: &mut Vec<(Move, State)>,
    ) {
        let room = match self.rule.counting {
            Counting::Commits => true,
            Counting::Groups(most) => grouped < most,
        };
        if room && state.commits < self.bounds.commits {
            let commit = state.commits;
            let mut after = state.clone();
            after.commits += 1;
            let frame = self.child(frame, base + 1, Content::Commit(commit));
            after.processes[process] = Process::Committing { frame, base, grouped, reached: 0 };
            found.push((Move::Begin { process, commit }, after));
        }
        if grouped > 0 {
            self.step(state, process, frame, base, found, |_, _| Process::Idle { frame, base: base + 1, grouped: 0 });
        }
    }

    fn promise(&self, frame: FrameId, state: &mut State) -> u8 {
        let Content::Commit(number) = self.frame(frame).content else { unreachable!("only commits are promised") };
        state.promised |= 1 << number;
        number
    }

    /// Steps the counter from what the process believes it to be, on behalf of `frame`.
    fn step(
        &mut self,
        state: &State,
        process: usize,
        frame: FrameId,
        base: u8,
        found: &mut Vec<(Move, State)>,
        then: impl FnOnce(&mut Self, &mut State) -> Process,
    ) {
        let to = base + 1;
        let mut after = state.clone();
        if self.rule.is_step_checked && state.counter != base {
            after.processes[process] = Process::Gone;
            found.push((Move::StepRefused(process), after));
            return;
        }
        if state.counter < to {
            after.counter = to;
            if self.rule.is_tagged {
                after.tag = self.newest_counted(frame, to);
            }
        }
        after.processes[process] = then(self, &mut after);
        found.push((Move::Step { process, to }, after));
    }
}

/// One more page of a frame reaches the medium and the attacker's collection.
fn reach(
    state: &State,
    process: usize,
    frame: FrameId,
    depth: u8,
    reached: u8,
    found: &mut Vec<(Move, State)>,
    then: impl Fn(u8) -> Process,
) {
    for part in (0..2).filter(|part| reached & 1 << part == 0) {
        let mut after = state.clone();
        let place = depth as usize - 1;
        if after.medium.len() <= place {
            after.medium.resize(place + 1, [NOTHING; 2]);
        }
        after.medium[place][part as usize] = frame;
        let page = frame * 2 + u16::from(part);
        if let Err(at) = after.seen.binary_search(&page) {
            after.seen.insert(at, page);
        }
        after.processes[process] = then(reached | 1 << part);
        found.push((Move::PageReaches { process, frame, part }, after));
    }
}

impl Attack {
    /// A frame as its history: versions, with commits as letters and opening roots as `o`.
    fn name(&self, id: FrameId) -> String {
        let frame = self.frames[id as usize];
        let version = frame.version;
        match frame.content {
            Content::Genesis => "start".to_owned(),
            Content::Opening => format!("{} > o{version}", self.name(frame.parent)),
            Content::Commit(number) => format!("{} > {}{version}", self.name(frame.parent), letter(number)),
        }
    }
}

fn letter(commit: u8) -> char {
    char::from(b'A' + commit)
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, way) in (1..).zip(&self.moves) {
            write!(f, "{number:4}. ")?;
            match *way {
                Move::PutBack(id) => writeln!(f, "the attacker puts back [{}]", self.name(id)),
                Move::Open(process) => writeln!(f, "process {process} opens and accepts the root"),
                Move::Fork => writeln!(f, "process 0 is forked"),
                Move::PageReaches { process, frame, part } => {
                    writeln!(f, "process {process}: page {part} of [{}] reaches the medium", self.name(frame))
                }
                Move::Step { process, to } => writeln!(f, "process {process} steps the counter to {to}"),
                Move::StepRefused(process) => writeln!(f, "process {process} finds the counter moved and ends"),
                Move::Begin { process, commit } => writeln!(f, "process {process} begins commit {}", letter(commit)),
                Move::Acknowledge { process, commit } => {
                    writeln!(f, "process {process} acknowledges commit {}", letter(commit))
                }
                Move::Cut(process) => writeln!(f, "process {process} is cut"),
            }?;
        }
        let missing: String = (0..16).filter(|number| self.missing & 1 << number != 0).map(letter).collect();
        writeln!(f, "      and what is there now would be accepted, without {missing}")
    }
}

#[track_caller]
fn holds(name: &str, rule: Rule, bounds: Bounds, states_min: usize) -> Outcome {
    let outcome = Exploration::run(rule, bounds);
    println!("{name}: {} states", outcome.states);
    if let Some(attack) = &outcome.attack {
        panic!("{name} breaks in {} moves:\n{attack}", attack.moves.len());
    }
    assert!(outcome.states >= states_min, "{name}: only {} states", outcome.states);
    outcome
}

#[track_caller]
fn breaks(name: &str, rule: Rule, bounds: Bounds, moves: usize) {
    let outcome = Exploration::run(rule, bounds);
    let Some(attack) = outcome.attack else { panic!("{name} held in all {} states", outcome.states) };
    println!("{name} breaks in {} moves, after {} states:\n{attack}", attack.moves.len(), outcome.states);
    assert_eq!(attack.moves.len(), moves, "{name}");
}

#[test]
fn our_rule_holds() {
    holds("ours", OURS, ALONE, 1);
}

#[test]
fn without_an_opening_root_it_breaks() {
    breaks("no opening root", Rule { opening_root: None, steps: 0, ..OURS }, ALONE, 0);
}

#[test]
fn with_an_opening_root_one_above_it_breaks() {
    breaks("opening root at + 1", Rule { opening_root: Some(1), steps: 1, ..OURS }, ALONE, 0);
}

#[test]
fn without_the_second_step_it_breaks() {
    breaks("one step", Rule { steps: 1, ..OURS }, ALONE, 0);
}

#[test]
fn accepting_anything_two_ahead_it_breaks() {
    breaks("two ahead for anything", Rule { two_ahead: TwoAhead::Any, ..OURS }, ALONE, 0);
}

#[test]
fn accepting_nothing_two_ahead() {
    holds("nothing two ahead", Rule { two_ahead: TwoAhead::Never, ..OURS }, ALONE, 0);
}

#[test]
fn without_completing_it_breaks() {
    breaks("not completing", Rule { completes: false, ..OURS }, ALONE, 0);
}

#[test]
fn groups() {
    let rule = Rule { counting: Counting::Groups(2), ..OURS };
    let outcome = holds("groups", rule, ALONE, 0);
    println!("lost {}", outcome.most_groups_lost);
    let outcome = holds("groups, tagged", Rule { is_tagged: true, ..rule }, ALONE, 0);
    println!("lost {}", outcome.most_groups_lost);
}

#[test]
fn beside() {
    for (is_tagged, is_step_checked) in [(false, false), (false, true), (true, false), (true, true)] {
        let outcome = Exploration::run(Rule { is_tagged, is_step_checked, ..OURS }, BESIDE);
        println!("tagged {is_tagged} checked {is_step_checked}: {} states", outcome.states);
        if let Some(attack) = outcome.attack { println!("{} moves\n{attack}", attack.moves.len()); }
    }
}
