//! A child that inherited a writer by `fork` seals nothing and counts nothing: a real child of a real fork.
//!
//! One test in a binary of its own: a child has the thread that forked and no other, so no other may hold a lock.

use std::sync::Arc;

use counterfoil_flash::{Geometry, MemoryDevice, PageNumber, Read};
use counterfoil_log::{
    Cause, CommitNumber, Counting, Error, Layout, Media, NoPins, Recovered, Settings, create, record_space,
};
use counterfoil_vault::{
    Counter, CounterValue, DangerFixedEntropy, DatabaseId, MemoryCounter, Suite, Vault, VolumeKey, witness,
};
use fork::{Fork, fork, waitpid};

const SHAPE: Geometry =
    Geometry { page_bytes: 512, block_pages: 4, block_count: 4096, erase_before_program: false, grows: true };

fn settings(counter: &MemoryCounter) -> Settings {
    let counter: Box<dyn Counter + Send> = Box::new(counter.clone());
    Settings { counter: Some(counter), counting: Counting::EveryCommit, pins: Box::new(NoPins), headers: None }
}

/// Everything that sealing would change.
fn state(device: &MemoryDevice, counter: &MemoryCounter) -> (Vec<u8>, Result<CounterValue, String>, usize) {
    let mut bytes = vec![0; 512 * 4 * 256];
    device.read(PageNumber(0), 0, &mut bytes).expect("reads");
    (bytes, counter.clone().value().map_err(|error| error.to_string()), witness::distinct())
}

fn refused<T>(result: Result<T, Error>) {
    assert!(
        matches!(result.as_ref().map_err(Error::cause), Err(Cause::Misuse(what)) if what.contains("forked")),
        "{:?}",
        result.err()
    );
}

/// Does something in a child; whether nothing in it panicked.
fn in_child(work: impl FnOnce()) -> bool {
    match fork().expect("forks") {
        Fork::Child => {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            std::process::exit(i32::from(done.is_err()));
        }
        Fork::Parent(child) => waitpid(child).expect("ends") == 0,
    }
}

#[test]
fn a_forked_child_seals_and_counts_nothing() {
    let device = MemoryDevice::new(SHAPE).expect("a device");
    let vault = Arc::new(Vault::new(&VolumeKey::from_bytes(&[1; 32]), DatabaseId([2; 32]), Suite::Aes256GcmSiv));
    let layout = Layout::new(&SHAPE, 8, 64).expect("a layout");
    let counter = MemoryCounter::at(0, None);
    let mut entropy = DangerFixedEntropy::seeded(1);
    let media = Media { reader: Arc::new(device.clone()), writer: Box::new(device.clone()) };
    let mut writer =
        create(media, vault.clone(), layout, settings(&counter), &mut entropy, 0, 1 << 16).expect("created");
    writer.begin().expect("begins");
    let group = writer.create_group().expect("a group");
    let container = writer.create_container(group).expect("a container");
    writer.append(container, &[7; 100]).expect("appends");
    let before = state(&device, &counter);

    assert!(in_child(|| {
        // In the middle of the commit that the parent began.
        refused(writer.append(container, &[8; 2000]));
        writer.put_record(record_space::SETTING, b"name", b"value").expect("in memory only");
        refused(writer.commit());
        refused(writer.count());
        writer.rollback();
        // And from the beginning.
        refused(writer.begin());
        refused(writer.begin_to_free());
        refused(writer.checkpoint());
        refused(writer.write_header(PageNumber(0), &[0; 512]));
        refused(writer.close());
        // Reading is harmless; opening for writing with the parent's vault is not.
        let recover =
            || Recovered::recover(Arc::new(device.clone()), vault.clone(), layout, 1 << 16).expect("recovers");
        let writer_of = || Box::new(device.clone());
        refused(recover().open(writer_of(), settings(&counter), &mut DangerFixedEntropy::seeded(2)).map(drop));
        refused(
            recover()
                .adopt(writer_of(), settings(&counter), &mut DangerFixedEntropy::seeded(2), 9, |_| Ok::<_, Error>(()))
                .map(drop),
        );
        assert!(state(&device, &counter) == before, "something was sealed, written or counted");
    }));

    writer.append(container, &[8; 2000]).expect("the parent goes on");
    assert_eq!(writer.commit().expect("commits"), CommitNumber(2));
    assert!(witness::duplicates().is_empty());
}
