//! The DRM benchmark of the GnatDb paper (section 6.1) on the chip: what each call costs on the counted clock, and how deep
//! the stack was.
//!
//! One to five counters of songs are read, incremented and committed, on a NAND chip of 128 KB that holds so many of them.
//! The same prices and dice as in `crates/record/tests/alone/drm.rs`, which runs more of it on a host.
#![no_std]
#![no_main]

use core::cell::Cell;

use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use counterfoil_firmware::{Account, Buffers, Dice, HostedNand, Meters, Prices, RamCounter, stack};
use counterfoil_record::RecordId;
use counterfoil_record::alone::{Error, Purged, Shape, Standalone, Surroundings};
use counterfoil_vault::{DatabaseId, Suite, Vault, VolumeKey};

/// Nanoseconds of one pass of the cipher over a page (Figure 6, encryption).
const CIPHER: u64 = 1_144_000;
const PRICES: Prices = Prices::GNATDB_NAND;
/// Ids of names, before those of the counters.
const NAMES: u32 = 20;
const SHAPE: Shape =
    Shape { first_block: 0, block_count: 16, index_blocks: 3, page_entries: 17, names: NAMES, is_salted: false };
/// Transactions before the rings have come round, and after.
const UNMEASURED: usize = 500;
const MEASURED: usize = 1000;
const CHANGES_MAX: usize = 5;
const RECORD_BYTES: usize = 24;

/// 120 changes of the index wait; 13 leaves are enough for 3000 records; a bit for each of 13 * 16 * 17 entries.
type Memory = Buffers<120, 13, 442>;
type Store<'a, 'm> = Standalone<'a, HostedNand<'m>, u16>;

/// Which counters a transaction increments, and what it read of them.
struct Transaction {
    ids: [u32; CHANGES_MAX],
    records: [[u8; RECORD_BYTES]; CHANGES_MAX],
    count: usize,
}

impl Transaction {
    /// One to five counters, in order, none of them twice.
    fn drawn(dice: &mut Dice, counters: u32) -> Self {
        let mut ids = [u32::MAX; CHANGES_MAX];
        let drawn = 1 + dice.below(CHANGES_MAX as u64) as usize;
        ids[..drawn].fill_with(|| dice.below(u64::from(counters)) as u32);
        ids.sort_unstable();
        let mut count = 1;
        for next in 1..drawn {
            if ids[next] != ids[count - 1] {
                ids[count] = ids[next];
                count += 1;
            }
        }
        Transaction { ids, records: [[0; RECORD_BYTES]; CHANGES_MAX], count }
    }

    fn changes(&self) -> [(RecordId, Option<&[u8]>); CHANGES_MAX] {
        core::array::from_fn(|index| (RecordId(NAMES.wrapping_add(self.ids[index])), Some(&self.records[index][..])))
    }
}

/// What accounts are kept of.
#[derive(Clone, Copy)]
enum Call {
    Format,
    Open,
    Allocate,
    Read,
    Commit,
    Deallocate,
    PutNamed,
    ReadNamed,
    DeleteNamed,
    Prepare,
    SpaceLeft,
    Purge,
}

/// Their names, in that order.
const CALLS: [&str; 12] = [
    "format",
    "open",
    "allocate",
    "read",
    "commit",
    "deallocate",
    "put_named",
    "read_named",
    "delete_named",
    "prepare",
    "space_left",
    "purge",
];

/// The accounts of a run, and the meters that they are kept by.
struct Run<'a> {
    meters: &'a Cell<Meters>,
    calls: [Account; CALLS.len()],
    transaction: Account,
}

/// What was done, in nanoseconds.
fn price(done: &Meters, steps: u64) -> u64 {
    done.nanoseconds(&PRICES) + (done.reads + done.programs) * CIPHER + steps * PRICES.counter_step
}

impl<'a> Run<'a> {
    fn new(meters: &'a Cell<Meters>) -> Self {
        Run { meters, calls: CALLS.map(Account::new), transaction: Account::new("transaction") }
    }

    /// One call on its account; `steps` tells from what it gave how often it stepped the counter.
    fn call<T>(
        &mut self,
        call: Call,
        steps: impl FnOnce(&T) -> u64,
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let before = self.meters.get();
        let (result, stack) = stack::measured(work);
        let steps = result.as_ref().map_or(0, steps);
        self.calls[call as usize].add(price(&self.meters.get().since(&before), steps), stack);
        result
    }

    fn transact(&mut self, store: &mut Store<'_, '_>, dice: &mut Dice, counters: u32) -> Result<(), Error> {
        let before = self.meters.get();
        let mut transaction = Transaction::drawn(dice, counters);
        for (id, record) in transaction.ids.iter().zip(&mut transaction.records).take(transaction.count) {
            self.call(Call::Read, |_| 0, || store.read(RecordId(NAMES + *id), record))?;
            record[20] = record[20].wrapping_add(1);
        }
        let changes = transaction.changes();
        self.call(Call::Commit, |_| 1, || store.commit(&changes[..transaction.count]))?;
        // Its stack is that of its calls.
        self.transaction.add(price(&self.meters.get().since(&before), 1), 0);
        Ok(())
    }

    /// Fills a new store with counters, and uses it; opens it again, and makes all other calls.
    fn run(&mut self, counters: u32) -> Result<(), Error> {
        let vault = Vault::new(&VolumeKey::from_bytes(&[3; 32]), DatabaseId([4; 32]), Suite::AsconAead128);
        let mut nand = HostedNand::new(self.meters).ok_or(Error::Device)?;
        let (mut counter, mut memory, mut dice) = (RamCounter::default(), Memory::new(), Dice::new(5));

        let around = Surroundings { device: &mut nand, vault: &vault, counter: Some(&mut counter), entropy: None };
        let mut store = self.call(Call::Format, |_| 3, || Store::format(around, SHAPE, memory.memory()))?;
        let record = [7; RECORD_BYTES];
        for first in (NAMES..NAMES + counters).step_by(10) {
            let changes: [_; 10] = core::array::from_fn(|index| (RecordId(first + index as u32), Some(&record[..])));
            store.commit(&changes[..(NAMES + counters - first).min(10) as usize])?;
        }
        for _ in 0..UNMEASURED {
            self.transact(&mut store, &mut dice, counters)?;
        }
        for call in [Call::Read, Call::Commit] {
            self.calls[call as usize] = Account::new(CALLS[call as usize]);
        }
        self.transaction = Account::new("transaction");
        for _ in 0..MEASURED {
            self.transact(&mut store, &mut dice, counters)?;
        }

        let around = Surroundings { device: &mut nand, vault: &vault, counter: Some(&mut counter), entropy: None };
        let mut store = self.call(Call::Open, |_| 0, || Store::open(around, SHAPE, memory.memory()))?;
        for _ in 0..20 {
            let id = self.call(Call::Allocate, |_| 0, || store.allocate())?;
            store.commit(&[(id, Some(&record))])?;
            self.call(Call::Deallocate, |_| 1, || store.commit(&[(id, None)]))?;
        }
        self.use_names(&mut store)?;
        self.look_after(&mut store)
    }

    /// Records by name.
    fn use_names(&mut self, store: &mut Store<'_, '_>) -> Result<(), Error> {
        // A record with its name before it.
        let mut buffer = [0; 2 * RECORD_BYTES];
        for number in 0..10 {
            let name = [b's', b'o', b'n', b'g', b'0' + number];
            self.call(Call::PutNamed, |_| 1, || store.put_named(&name, &[number; RECORD_BYTES], &mut buffer))?;
            self.call(Call::ReadNamed, |_| 0, || store.read_named(&name, &mut buffer))?;
            self.call(Call::DeleteNamed, |_| 1, || store.delete_named(&name, &mut buffer))?;
        }
        Ok(())
    }

    /// What a device does while it has time.
    fn look_after(&mut self, store: &mut Store<'_, '_>) -> Result<(), Error> {
        let mut is_more = true;
        while is_more {
            is_more = self.call(Call::Prepare, |_| 1, || store.prepare())?;
        }
        self.call(Call::SpaceLeft, |_| 0, || store.space_left(RECORD_BYTES))?;
        let purge = || {
            let before = store.counted();
            store.purge().map(|purged| (purged, store.counted() - before))
        };
        let (purged, _) = self.call(Call::Purge, |(_, steps)| *steps, purge)?;
        if purged == Purged::Done { Ok(()) } else { Err(Error::Device) }
    }

    /// Prints the accounts; whether a transaction costs what it should.
    fn report(&self, counters: u32, goal: u64) -> bool {
        hprintln!("{} counters of 24 bytes, NAND of 128 KB, {} transactions:", counters, MEASURED);
        for account in &self.calls {
            hprintln!("  {}", account);
        }
        hprintln!("  {}", self.transaction);
        // Less than a third of it would be too good to be true.
        let is_good = (goal / 3..goal).contains(&self.transaction.mean());
        if !is_good {
            hprintln!("error: a transaction should cost less than {} ns, and not much less", goal);
        }
        is_good
    }
}

#[entry]
fn main() -> ! {
    let (mut is_good, mut stack_max) = (true, 0);
    for (counters, goal) in [(40, 10_000_000), (1500, 18_000_000), (2600, 25_000_000)] {
        let meters = Cell::new(Meters::default());
        let mut run = Run::new(&meters);
        match run.run(counters) {
            Ok(()) => is_good &= run.report(counters, goal),
            Err(error) => {
                hprintln!("error: {} counters: {}", counters, error);
                is_good = false;
            }
        }
        stack_max = run.calls.iter().map(Account::stack_max).fold(stack_max, usize::max);
    }
    // What the caller keeps for a store while it is open: its buffers, the store itself, its keys.
    let (buffers, store, keys) = (size_of::<Memory>(), size_of::<Store<'_, '_>>(), size_of::<Vault>());
    let sum = stack_max + buffers + store + keys;
    hprintln!("stack {}, buffers {}, store {}, keys {}: {} bytes, no heap", stack_max, buffers, store, keys, sum);
    loop {
        debug::exit(if is_good { debug::EXIT_SUCCESS } else { debug::EXIT_FAILURE });
    }
}
