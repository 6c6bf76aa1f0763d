//! The relational engine on a chip: the tables of the MILo-DB paper on its token, from the first row to a reorganization.
//!
//! Every row that is added one by one is committed, durable and counted before the next one; the 18 queries of the paper are asked,
//! as plans that were compiled on the host, and must say the same as there; all tables are reorganized, a step and a commit at a
//! time, and the queries asked again; the power goes in the midst of a page; a header of the host's is put there. What each of it takes of RAM is printed. Build and
//! run: `scripts/run-firmware relation`.
#![no_std]
#![no_main]

extern crate alloc;

mod digest;
#[path = "../../../../crates/bench/src/relation/figure7.rs"]
mod figure7;
mod plans;
mod volume;

use alloc::string::{String, ToString};

use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use counterfoil_firmware::token::Token;
use counterfoil_firmware::{heap, stack};

use plans::Plans;
use volume::Volume;

/// Whether there are T1 and T2 alone, and as little memory is taken as it can be done with.
const IS_LITTLE: bool = cfg!(feature = "little");
/// Rows that T0 has or would have, and rows of the root that are added one by one.
const ROWS: u64 = if IS_LITTLE { ROWS_OF_LITTLE } else { ROWS_OF_ALL };
const ROWS_OF_ALL: u64 = 2000;
const ROWS_OF_LITTLE: u64 = 1000;
const SINGLE: u64 = 40;
/// Pages that are programmed before the power goes.
const CUT: u32 = 25;

/// The most that was taken of RAM beside static data: of heap and stack, and of both at one time.
#[derive(Default)]
struct Most {
    heap: usize,
    stack: usize,
    both: usize,
}

impl Most {
    /// Does `work` and says what it took.
    fn of<T>(&mut self, what: &str, token: Token, work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let before = token.meters();
        let (done, stack) = stack::deepest(heap::watch(), work, heap::end);
        let (taken, after) = (heap::taken(), token.meters());
        self.heap = self.heap.max(taken.reach);
        self.stack = self.stack.max(stack);
        self.both = self.both.max(taken.reach + stack);
        hprintln!(
            "{:<12} heap {:>6} bytes, {:>6} left, reach {:>6}  stack {:>5} bytes  pages read {:>6}  written {:>5}",
            what,
            taken.peak,
            taken.now,
            taken.reach,
            stack,
            after.reads - before.reads,
            after.programs - before.programs
        );
        done
    }
}

/// Asks what was compiled on the host; each answer must say what it does there.
#[inline(never)]
fn ask_all(most: &mut Most, token: Token, volume: &mut Volume) -> Result<(), String> {
    let mut asked = 0;
    for question in Plans::open().ok_or("no plans")? {
        let (rows, digest) = most.of(&question.name, token, || volume.ask(&question.plan))?;
        if rows != question.rows {
            return Err(alloc::format!("{}: {rows} rows, and {} on the host", question.name, question.rows));
        }
        if digest != question.digest {
            return Err(alloc::format!("{}: other rows than on the host", question.name));
        }
        asked += 1;
    }
    hprintln!("{} plans: the same rows as on the host", asked);
    Ok(())
}

/// Not within `main`: what lies there lies below everything.
#[inline(never)]
fn life(most: &mut Most) -> Result<(), String> {
    let token = Token::erased().ok_or("no file for the token")?;
    let mut volume = most.of("create", token, || Volume::create(token))?;
    most.of("tables", token, || volume.define())?;
    most.of("load", token, || volume.load(SINGLE))?;
    most.of("insert", token, || volume.insert(SINGLE))?;
    ask_all(most, token, &mut volume)?;
    most.of("reorganize", token, || volume.reorganize())?;
    ask_all(most, token, &mut volume)?;
    token.cut_after(CUT);
    let acknowledged = most.of("cut", token, || volume.insert_until_the_power_goes())?;
    drop(volume);
    token.power_on();
    let mut volume = most.of("open", token, || Volume::open(token))?;
    let rows = most.of("count", token, || volume.count())?;
    if rows != acknowledged && rows != acknowledged + 1 {
        return Err(alloc::format!("{acknowledged} rows were acknowledged and {rows} are there"));
    }
    hprintln!("the power went: every row that was acknowledged is there");
    most.of("reorganize", token, || volume.reorganize())?;
    most.of("header", token, || volume.put_header())?;
    hprintln!("{}: {} rows", volume.root_name(), rows);
    Ok(())
}

#[entry]
fn main() -> ! {
    heap::ready();
    let mut most = Most::default();
    let status = match life(&mut most) {
        Ok(()) => debug::EXIT_SUCCESS,
        Err(error) => {
            hprintln!("{}", error.to_string());
            debug::EXIT_FAILURE
        }
    };
    let statics = stack::static_bytes();
    hprintln!(
        "RAM: heap {} bytes, stack {} bytes, both at one time {} bytes, static {} bytes: {}",
        most.heap,
        most.stack,
        most.both,
        statics,
        most.both + statics
    );
    loop {
        debug::exit(status);
    }
}
