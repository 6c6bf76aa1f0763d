//! An owner and an attacker take turns at random on the real code: commits, cuts, openings on one side, every image
//! that ever was put back on the other. After every opening what was promised before is there, or somebody says so.
//!
//! The exhaustive model (`opening_model.rs`) shows which attacks there are; this shows that the code answers them.

mod bench;

use std::collections::BTreeSet;

use bench::Bench;
use counterfoil_flash_sim::{Attacker, Dice, Fault, Image, Scenario, SimulatedDevice, Survivors, Tearing};
use counterfoil_log::{Error, Settings, View, Writer, record_space};
use counterfoil_vault::{Counter, CounterError, CounterKind, CounterValue, Tag, witness};

fn full() -> bool {
    std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full")
}

/// A counter that loses its power after so many steps, and before one of which the attacker puts an image back.
struct Disturbed {
    counter: Box<dyn Counter + Send>,
    steps_left: u64,
    device: SimulatedDevice,
    put_back: Option<(u64, Image)>,
}

impl Counter for Disturbed {
    fn kind(&self) -> CounterKind {
        self.counter.kind()
    }

    fn value(&mut self) -> Result<CounterValue, CounterError> {
        self.counter.value()
    }

    fn step(&mut self, to: u64, tag: &Tag) -> Result<(), CounterError> {
        if let Some((0, image)) = &self.put_back {
            self.device.restore(image.clone());
        }
        self.put_back = self.put_back.take().and_then(|(steps, image)| Some((steps.checked_sub(1)?, image)));
        let Some(left) = self.steps_left.checked_sub(1) else {
            return Err(CounterError::Device { operation: "stepped", code: 5 });
        };
        self.steps_left = left;
        self.counter.step(to, tag)
    }

    fn adopt(&mut self, value: u64, tag: &Tag) -> Result<(), CounterError> {
        self.counter.adopt(value, tag)
    }
}

/// One history.
struct Walk {
    bench: Bench,
    attacker: Attacker,
    dice: Dice,
    /// The transactions that were acknowledged, or shown by an opening that was completed.
    promised: BTreeSet<u64>,
    next: u64,
    openings: u64,
    refusals: u64,
    /// What the owner left behind last.
    left: Image,
    trace: Vec<String>,
}

fn name(transaction: u64) -> [u8; 8] {
    transaction.to_be_bytes()
}

impl Walk {
    fn new(seed: u64, tagless: bool) -> Walk {
        let mut bench = Bench::file(96, 8);
        bench.tagless = tagless;
        let attacker = Attacker::new();
        bench.device.watch(&attacker);
        drop(bench.create());
        let left = bench.device.image();
        Walk {
            bench,
            attacker,
            dice: Dice::new(seed),
            promised: BTreeSet::new(),
            next: 0,
            openings: 0,
            refusals: 0,
            left,
            trace: vec![format!("seed {seed}, tagless {tagless}")],
        }
    }

    fn say(&mut self, what: String) {
        self.trace.push(what);
    }

    /// The next few writes or counter steps are the last ones, most of the time.
    fn arm(&mut self) -> u64 {
        let at = self.bench.device.writes() + 1 + self.dice.below(12);
        let tearing = [Tearing::Untouched, Tearing::Complete, Tearing::Byte(100)][self.dice.below(3) as usize];
        let survivors = [Survivors::All, Survivors::None, Survivors::Any][self.dice.below(3) as usize];
        let seed = self.dice.below(1 << 32);
        match self.dice.below(3) {
            0 => self.bench.device.set_scenario(Scenario::one(seed, Fault::Cut { at, tearing, survivors })),
            _ => self.bench.device.set_scenario(Scenario::calm(seed)),
        }
        let steps = if self.dice.below(3) == 0 { self.dice.below(5) } else { u64::MAX };
        self.say(format!("owner: cut armed at write {at}, counter steps left {steps}"));
        steps
    }

    fn open(&mut self) -> Result<Writer, Error> {
        let steps_left = self.arm();
        let put_back = (self.dice.below(3) == 0).then(|| (self.dice.below(5), self.earlier_image()));
        if let Some((step, _)) = &put_back {
            self.say(format!("attacker: will put it back before step {step} of the counter"));
        }
        let plain = self.bench.settings();
        let device = self.bench.device.clone();
        let disturb = |counter| Box::new(Disturbed { counter, steps_left, device, put_back });
        let counter = plain.counter.map(|counter| disturb(counter) as Box<dyn Counter + Send>);
        let settings = Settings { counter, ..plain };
        let device = Box::new(self.bench.device.clone());
        self.bench.recover()?.open(device, settings, &mut self.bench.entropy)
    }

    /// Opens, looks whether all is there, and commits until the power fails or enough is done.
    fn owner_works(&mut self) {
        let opened = self.open();
        self.say(format!("owner: opening {:?}", opened.as_ref().map(|writer| writer.commit_number().0)));
        let Ok(mut writer) = opened else {
            self.refusals += 1;
            self.power();
            // Often the owner finds the right file after that.
            if self.dice.below(3) > 0 {
                self.say("owner: finds what was left last".into());
                self.bench.device.restore(self.left.clone());
            }
            return;
        };
        self.openings += 1;
        self.look(&writer, "opened for writing");
        // What a completed opening shows is promised from then on.
        self.promised.extend((0..self.next).filter(|id| writer.record(record_space::USER, &name(*id)).is_some()));
        for _ in 0..self.dice.below(4) {
            let id = self.next;
            self.next += 1;
            let done = writer.begin().and_then(|()| {
                writer.put_record(record_space::USER, &name(id), b"done")?;
                writer.commit().map(drop)
            });
            self.say(format!("owner: transaction {id} {done:?}"));
            if done.is_err() {
                break;
            }
            self.promised.insert(id);
        }
        drop(writer);
        self.power();
        self.left = self.bench.device.image();
    }

    /// The power comes back; if it had not failed, whatever was not flushed may be lost.
    fn power(&mut self) {
        let survivors = [Survivors::All, Survivors::None, Survivors::Any][self.dice.below(3) as usize];
        let seed = self.dice.below(1 << 32);
        if !self.bench.device.is_cut() {
            self.bench.device.restore(self.bench.device.image_if_cut(survivors, seed));
        }
        self.bench.device.power_on();
        self.bench.device.set_scenario(Scenario::calm(seed));
    }

    /// Everything that was promised is there.
    fn look(&self, view: &dyn View, who: &str) {
        for id in &self.promised {
            let found = view.record(record_space::USER, &name(*id)).is_some();
            assert!(found, "{who}: transaction {id} is gone unnoticed\n{}", self.trace.join("\n"));
        }
    }

    fn reader_looks(&mut self) {
        if let Ok(snapshot) = self.bench.judged() {
            self.say("reader: shown".into());
            self.look(&snapshot, "opened for reading");
        }
    }

    /// An image that was: mostly one of the last, sometimes any, sometimes a mixture.
    fn earlier_image(&mut self) -> Image {
        let kept = self.attacker.image_count();
        let recent = kept.saturating_sub(1 + self.dice.below(9) as usize);
        let any = self.dice.below(kept as u64) as usize;
        self.say(format!("attacker: thinks of image {recent} or {any} of {kept}"));
        let image = match self.dice.below(8) {
            0 => self.attacker.whole(any),
            1 => self.attacker.mixture_of(&[recent, any], self.dice.below(1 << 32)),
            _ => self.attacker.whole(recent),
        };
        image.expect("an image that was kept")
    }

    fn attacker_puts_back(&mut self) {
        let image = self.earlier_image();
        self.say("attacker: puts it back".into());
        self.bench.device.restore(image);
    }

    fn run(&mut self, moves: u64) {
        let mut openings = self.openings;
        let mut refused_since = self.refusals;
        for _ in 0..moves {
            if self.openings > openings {
                (openings, refused_since) = (self.openings, self.refusals);
            } else if self.refusals > refused_since + 3 {
                // The right image is lost for good, and everybody knows.
                return;
            }
            match self.dice.below(5) {
                0 | 1 => self.attacker_puts_back(),
                2 => self.reader_looks(),
                _ => self.owner_works(),
            }
        }
    }
}

/// One test, because the memory of (key, nonce) pairs is one for the process.
#[test]
fn what_was_promised_is_there_or_somebody_says_so() {
    let (mut openings, mut refusals) = (0, 0);
    // A planted fault of the opening rule shows in one walk of some thousands, and where the counter holds a tag in none.
    let walks = if full() { 200_000 } else { 16_000 };
    for seed in 0..walks {
        witness::reset();
        let mut walk = Walk::new(seed, seed % 4 != 0);
        walk.run(40);
        assert_eq!(witness::duplicates(), [], "a (key, nonce) pair was used twice\n{}", walk.trace.join("\n"));
        openings += walk.openings;
        refusals += walk.refusals;
    }
    println!("{openings} openings, {refusals} refusals");
    assert!(openings > walks && refusals > walks, "a walk in which nobody meets the other shows nothing");
}
