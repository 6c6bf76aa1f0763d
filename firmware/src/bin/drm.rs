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
use counterfoil_record::alone::{Error, Shape, Standalone, Surroundings};
use counterfoil_vault::{DatabaseId, Suite, Vault, VolumeKey};

/// Nanoseconds of one pass of the cipher over a page (Figure 6, encryption).
const CIPHER: u64 = 1_144_000;
const PRICES: Prices = Prices::GNATDB_NAND;
const SHAPE: Shape =
    Shape { first_block: 0, block_count: 16, index_blocks: 3, page_entries: 17, names: 0, is_salted: false };
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
        core::array::from_fn(|index| (RecordId(self.ids[index]), Some(&self.records[index][..])))
    }
}

/// The accounts of a run, and the meters that they are kept by.
struct Run<'a> {
    meters: &'a Cell<Meters>,
    format: Account,
    open: Account,
    allocate: Account,
    read: Account,
    commit: Account,
    deallocate: Account,
    transaction: Account,
}

/// What was done, in nanoseconds.
fn price(done: &Meters, steps: u64) -> u64 {
    done.nanoseconds(&PRICES) + (done.reads + done.programs) * CIPHER + steps * PRICES.counter_step
}

impl<'a> Run<'a> {
    fn new(meters: &'a Cell<Meters>) -> Self {
        let [format, open, allocate, read, commit, deallocate, transaction] =
            ["format", "open", "allocate", "read", "commit", "deallocate", "transaction"].map(Account::new);
        Run { meters, format, open, allocate, read, commit, deallocate, transaction }
    }

    /// One call on an account; `steps` is how often it steps the counter.
    fn call<T>(
        meters: &Cell<Meters>,
        account: &mut Account,
        steps: u64,
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let before = meters.get();
        let (result, stack) = stack::measured(work);
        account.add(price(&meters.get().since(&before), steps), stack);
        result
    }

    fn transact(&mut self, store: &mut Store<'_, '_>, dice: &mut Dice, counters: u32) -> Result<(), Error> {
        let before = self.meters.get();
        let mut transaction = Transaction::drawn(dice, counters);
        for (id, record) in transaction.ids.iter().zip(&mut transaction.records).take(transaction.count) {
            Self::call(self.meters, &mut self.read, 0, || store.read(RecordId(*id), record))?;
            record[20] = record[20].wrapping_add(1);
        }
        let changes = transaction.changes();
        Self::call(self.meters, &mut self.commit, 1, || store.commit(&changes[..transaction.count]))?;
        // Its stack is that of its calls.
        self.transaction.add(price(&self.meters.get().since(&before), 1), 0);
        Ok(())
    }

    /// Fills a new store with counters, and uses it; opens it again, and allocates and deallocates in it.
    fn run(&mut self, counters: u32) -> Result<(), Error> {
        let vault = Vault::new(&VolumeKey::from_bytes(&[3; 32]), DatabaseId([4; 32]), Suite::AsconAead128);
        let mut nand = HostedNand::new(self.meters).ok_or(Error::Device)?;
        let (mut counter, mut memory, mut dice) = (RamCounter::default(), Memory::new(), Dice::new(5));

        let around = Surroundings { device: &mut nand, vault: &vault, counter: Some(&mut counter), entropy: None };
        let mut store = Self::call(self.meters, &mut self.format, 2, || Store::format(around, SHAPE, memory.memory()))?;
        let record = [7; RECORD_BYTES];
        for first in (0..counters).step_by(10) {
            let changes: [_; 10] = core::array::from_fn(|index| (RecordId(first + index as u32), Some(&record[..])));
            store.commit(&changes[..(counters - first).min(10) as usize])?;
        }
        for _ in 0..UNMEASURED {
            self.transact(&mut store, &mut dice, counters)?;
        }
        [self.read, self.commit, self.transaction] = ["read", "commit", "transaction"].map(Account::new);
        for _ in 0..MEASURED {
            self.transact(&mut store, &mut dice, counters)?;
        }

        let around = Surroundings { device: &mut nand, vault: &vault, counter: Some(&mut counter), entropy: None };
        let mut store = Self::call(self.meters, &mut self.open, 0, || Store::open(around, SHAPE, memory.memory()))?;
        for _ in 0..20 {
            let id = Self::call(self.meters, &mut self.allocate, 0, || store.allocate())?;
            store.commit(&[(id, Some(&record))])?;
            Self::call(self.meters, &mut self.deallocate, 1, || store.commit(&[(id, None)]))?;
        }
        Ok(())
    }

    fn calls(&self) -> [&Account; 6] {
        [&self.format, &self.open, &self.allocate, &self.read, &self.commit, &self.deallocate]
    }

    /// Prints the accounts; whether a transaction costs what it should.
    fn report(&self, counters: u32, goal: u64) -> bool {
        hprintln!("{} counters of 24 bytes, NAND of 128 KB, {} transactions:", counters, MEASURED);
        for account in self.calls() {
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
        stack_max = run.calls().into_iter().map(Account::stack_max).fold(stack_max, usize::max);
    }
    // What the caller keeps for a store while it is open: its buffers, the store itself, its keys.
    let (buffers, store, keys) = (size_of::<Memory>(), size_of::<Store<'_, '_>>(), size_of::<Vault>());
    let sum = stack_max + buffers + store + keys;
    hprintln!("stack {}, buffers {}, store {}, keys {}: {} bytes, no heap", stack_max, buffers, store, keys, sum);
    loop {
        debug::exit(if is_good { debug::EXIT_SUCCESS } else { debug::EXIT_FAILURE });
    }
}
