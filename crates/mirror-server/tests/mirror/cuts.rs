//! A mirror cut at every write of its store: no answer that is verified is wrong, and the owner catches up.

use std::io;
use std::sync::{Arc, Mutex};

use counterfoil_mirror_server::{Embedded, StoreError};
use redb::StorageBackend;

use crate::world::{Dice, Unread, World, listen, row};

/// A disk whose power fails after so many writes. What was not flushed is there, or not, as the dice say.
#[derive(Debug, Default)]
pub struct Disk {
    flushed: Vec<u8>,
    written: Vec<u8>,
    pending: Vec<(usize, Vec<u8>)>,
    left: Option<usize>,
}

/// It, as a store's file.
#[derive(Clone, Debug, Default)]
pub struct Medium(Arc<Mutex<Disk>>);

impl Medium {
    fn spend(disk: &mut Disk) -> io::Result<()> {
        match &mut disk.left {
            None => Ok(()),
            Some(0) => Err(io::Error::other("no power")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    pub fn cut_after(&self, left: usize) {
        self.0.lock().expect("a disk").left = Some(left);
    }

    /// Power is back.
    pub fn again(&self, dice: &mut Dice) -> Medium {
        let disk = self.0.lock().expect("a disk");
        let mut bytes = disk.flushed.clone();
        for (at, part) in &disk.pending {
            if dice.below(2) == 0 {
                bytes.resize(bytes.len().max(at + part.len()), 0);
                // And of a write, only the first bytes.
                let length = if dice.below(4) == 0 { dice.below(part.len() as u64 + 1) as usize } else { part.len() };
                bytes[*at..at + length].copy_from_slice(&part[..length]);
            }
        }
        let length = bytes.len().max(disk.written.len());
        bytes.resize(length, 0);
        Medium(Arc::new(Mutex::new(Disk { flushed: bytes.clone(), written: bytes, ..Disk::default() })))
    }
}

impl StorageBackend for Medium {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().expect("a disk").written.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let disk = self.0.lock().expect("a disk");
        let from = offset as usize;
        out.copy_from_slice(disk.written.get(from..from + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut disk = self.0.lock().expect("a disk");
        Self::spend(&mut disk)?;
        disk.written.resize(length as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut disk = self.0.lock().expect("a disk");
        Self::spend(&mut disk)?;
        disk.flushed = disk.written.clone();
        disk.pending.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut disk = self.0.lock().expect("a disk");
        Self::spend(&mut disk)?;
        let from = offset as usize;
        disk.written[from..from + data.len()].copy_from_slice(data);
        disk.pending.push((from, data.to_vec()));
        Ok(())
    }
}

#[test]
fn cut_at_any_write_it_has_all_of_an_update_or_nothing() {
    let full = std::env::var("COUNTERFOIL_PROOF").is_ok_and(|size| size == "full");
    let mut dice = Dice(3);
    let mut world = World::new();
    world.insert((0..30).map(|day| row("A", day, day)).collect());
    world.close();
    let mut medium = Medium::default();
    let (mut cuts, mut left) = (0, 0);
    let first = listen(Arc::new(Embedded::on(medium.clone()).expect("a store")), world.owner, |_| ());
    world.push(first.address(), 1 << 20);
    first.shut_down();
    loop {
        medium = medium.again(&mut dice);
        let listener = listen(Arc::new(Embedded::on(medium.clone()).expect("a store")), world.owner, |_| ());
        let address = listener.address();
        world.push(address, 1 << 20);
        world.holds(address);
        world.change(&mut dice);
        world.close();
        let (before, rows) = (world.state(address), world.rows(0));
        medium.cut_after(left);
        let update = world.publication.update_for(&before, 1 << 20).expect("an update").expect("news");
        let status = world.post(address, "update", &update).status;
        // Whatever it says meanwhile, it is not believed if it is wrong.
        match world.ask(address, &world.all(0)) {
            Ok(verified) if verified.as_of == world.now => assert!(verified.rows == rows),
            Ok(_) | Err(Unread::Status) => (),
            Err(Unread::Refused(refusal)) => panic!("an honest mirror after {left} writes: {refusal}"),
        }
        listener.shut_down();
        medium = medium.again(&mut dice);
        let listener = listen(Arc::new(Embedded::on(medium.clone()).expect("a store")), world.owner, |_| ());
        let after = world.state(listener.address());
        let is_done = after != before;
        assert!(is_done || status != 200, "an update that was acknowledged is gone, after {left} writes");
        let verified = world.ask(listener.address(), &world.all(0)).expect("an honest answer");
        assert_eq!(verified.as_of == world.now, is_done);
        world.push(listener.address(), 1 << 20);
        world.holds(listener.address());
        listener.shut_down();
        cuts += 1;
        if status == 200 && left > 0 {
            break;
        }
        left += if full { 1 } else { 1 + left / 8 };
    }
    println!("{cuts} cuts, {left} writes");
    assert!(cuts > 5);
}

#[test]
fn a_damaged_file_is_no_wrong_answer_and_no_end_of_the_server() {
    let full = std::env::var("COUNTERFOIL_PROOF").is_ok_and(|size| size == "full");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let mut world = World::new();
    world.insert((0..200).map(|day| row("A", day, day)).collect());
    world.close();
    let listener = listen(Arc::new(Embedded::open(&path).expect("a store")), world.owner, |_| ());
    world.push(listener.address(), 1 << 20);
    listener.shut_down();
    let whole = std::fs::read(&path).expect("a file");
    let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
    let mut dice = Dice(4);
    let (mut refused, mut unopened, mut believed) = (0, 0, 0);
    for round in 0..if full { 2000 } else { 60 } {
        let mut bytes = whole.clone();
        for _ in 0..=round % 30 {
            bytes[used[dice.below(used.len() as u64) as usize]] ^= 1 << dice.below(8);
        }
        std::fs::write(&path, &bytes).expect("a file");
        let store = match Embedded::open(&path) {
            Ok(store) => store,
            Err(StoreError::Damaged(_) | StoreError::Failed(_)) => {
                unopened += 1;
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let listener = listen(Arc::new(store), world.owner, |_| ());
        match world.ask(listener.address(), &world.all(0)) {
            Ok(verified) => {
                assert!(verified.rows == world.rows(0), "round {round}");
                believed += 1;
            }
            Err(_) => refused += 1,
        }
        assert_eq!(crate::client::once(listener.address(), "GET /health", b"").status, 200);
        listener.shut_down();
    }
    println!("{refused} refused, {unopened} not opened, {believed} not hurt");
    assert!(refused > 0);
}
