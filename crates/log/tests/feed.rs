//! The change feed: a follower that reads it has at all times what the volume had.

mod bench;

use std::collections::{BTreeMap, BTreeSet};

use bench::{Bench, grow, put};
use counterfoil_flash_sim::{Dice, Fault, Part, Scenario, Survivors, Tearing};
use counterfoil_log::{
    Cause, Change, Changes, ContainerId, Error, GroupId, NamelessPage, PoolId, PoolOptions, Snapshot, View, Writer,
    record_space,
};

/// What a follower made of the changes.
#[derive(Clone, Default, PartialEq, Debug)]
struct Replica {
    records: BTreeMap<Vec<u8>, Vec<u8>>,
    containers: BTreeMap<ContainerId, (GroupId, u64)>,
    groups: Vec<GroupId>,
    pools: BTreeMap<PoolId, BTreeSet<NamelessPage>>,
    commit: u64,
}

impl Replica {
    fn apply(&mut self, change: Change) {
        match change {
            Change::RecordPut { space, name, value } => {
                assert_eq!(space, record_space::USER);
                self.records.insert(name, value);
            }
            // One that was made and deleted by one commit was never there.
            Change::RecordDeleted { name, .. } => drop(self.records.remove(&name)),
            Change::GroupCreated(id) => self.groups.push(id),
            Change::GroupDropped(id) => {
                self.groups.retain(|group| *group != id);
                self.containers.retain(|_, (group, _)| *group != id);
            }
            Change::ContainerCreated { id, group } => drop(self.containers.insert(id, (group, 0))),
            Change::Grown { id, length } => {
                let known = &mut self.containers.get_mut(&id).unwrap().1;
                assert!(length > *known, "containers only grow");
                *known = length;
            }
            Change::PoolCreated(id) => drop(self.pools.insert(id, BTreeSet::new())),
            Change::PoolDropped(id) => drop(self.pools.remove(&id).unwrap()),
            Change::PagesWritten { pool, first, pages } => {
                let writes = (0..u64::from(pages))
                    .map(|index| NamelessPage { page: first.page + index, write: first.write + index });
                self.pools.get_mut(&pool).unwrap().extend(writes);
            }
            Change::PageFreed { pool, page } => assert!(self.pools.get_mut(&pool).unwrap().remove(&page)),
        }
    }

    fn read(&mut self, changes: &mut Changes) -> Result<(), Error> {
        while let Some(commit) = changes.next_commit()? {
            assert!(commit.number.0 > self.commit, "each commit once");
            self.commit = commit.number.0;
            commit.changes.into_iter().for_each(|change| self.apply(change));
        }
        Ok(())
    }

    fn agrees(&self, view: &Snapshot) {
        let records = view.records(record_space::USER, b"").into_iter();
        assert_eq!(records.map(|(name, value)| (name, value.to_vec())).collect::<BTreeMap<_, _>>(), self.records);
        assert_eq!(view.containers(), self.containers.keys().copied().collect::<Vec<_>>());
        for (id, (_, length)) in &self.containers {
            assert_eq!(view.length(*id).unwrap(), *length, "{id:?}");
        }
        let live = self.pools.iter().map(|(id, pages)| (*id, pages.len() as u64));
        assert_eq!(view.pools(), live.collect::<Vec<_>>());
        for (id, page) in self.pools.iter().flat_map(|(id, pages)| pages.iter().map(move |page| (id, page))) {
            view.read_nameless(*id, *page, &mut [0; 8]).unwrap();
        }
    }
}

/// A commit of a few changes.
fn change(writer: &mut Writer, dice: &mut Dice) -> Result<(), Error> {
    writer.begin()?;
    let view = writer.pending();
    let containers = view.containers();
    for _ in 0..1 + dice.below(3) {
        let name = format!("record {}", dice.below(9)).into_bytes();
        match dice.below(7) {
            0 => {
                let group = writer.create_group()?;
                writer.create_container(group)?;
                writer.create_container(group)?;
            }
            1 => writer.put_record(record_space::USER, &name, &vec![7; dice.below(300) as usize])?,
            2 => writer.delete_record(record_space::USER, &name)?,
            3 => change_pages(writer, dice)?,
            _ => {
                if let Some(id) = containers.get(dice.below(containers.len().max(1) as u64) as usize) {
                    writer.append(*id, &vec![1; [3, 40, 700, 9000][dice.below(4) as usize]])?;
                }
            }
        }
    }
    if dice.below(9) == 0 {
        writer.rollback();
        return Ok(());
    }
    writer.commit().map(drop)
}

/// Pages of a pool come and go; the addresses of the live ones are a record.
fn change_pages(writer: &mut Writer, dice: &mut Dice) -> Result<(), Error> {
    let known = View::record(writer, record_space::USER, b"pages").unwrap_or_default();
    let mut numbers: Vec<u64> = known.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect();
    if numbers.is_empty() || dice.below(15) == 0 {
        if let Some(pool) = numbers.first() {
            writer.drop_pool(PoolId(*pool))?;
        }
        numbers = vec![writer.create_pool(PoolOptions::default())?.0];
    }
    let pool = PoolId(numbers[0]);
    for _ in 0..dice.below(6) {
        let page = writer.write_nameless(pool, &[7; 496])?;
        if dice.below(6) == 0 {
            writer.free_nameless(pool, page)?;
        } else {
            numbers.extend([page.page, page.write]);
        }
    }
    while numbers.len() > 21 {
        let gone: Vec<u64> = numbers.drain(1..3).collect();
        writer.free_nameless(pool, NamelessPage { page: gone[0], write: gone[1] })?;
    }
    let addresses: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
    writer.put_record(record_space::USER, b"pages", &addresses)
}

fn follow(writer: &mut Writer) -> Result<(), Error> {
    writer.begin()?;
    writer.follow(b"backup")?;
    writer.commit().map(drop)
}

/// Reads what is new and says so.
fn catch_up(writer: &mut Writer, replica: &mut Replica) -> Result<(), Error> {
    let mut changes = writer.changes(b"backup")?;
    replica.read(&mut changes)?;
    replica.agrees(changes.snapshot());
    writer.begin()?;
    writer.read_up_to(b"backup", &changes.position())?;
    writer.commit().map(drop)
}

#[test]
fn a_follower_has_what_the_volume_has_over_checkpoints_and_reopenings() {
    for seed in 0..6 {
        let part = if seed % 2 == 0 { Part::file(512, 4, 8192) } else { Part::nand(512, 4, 8192) };
        let mut bench = Bench::new(part, 64);
        let mut writer = bench.create();
        let (mut dice, mut replica) = (Dice::new(seed), Replica::default());
        follow(&mut writer).unwrap();
        for _ in 0..300 {
            change(&mut writer, &mut dice).unwrap();
            if dice.below(9) == 0 {
                let mut beside = replica.clone();
                beside.read(&mut bench.recover().unwrap().changes(b"backup").unwrap()).unwrap();
                catch_up(&mut writer, &mut replica).unwrap();
                assert_eq!(beside, replica, "read from the image");
            }
            match dice.below(30) {
                0 => writer.checkpoint().unwrap(),
                1 => {
                    drop(writer);
                    writer = bench.open().unwrap();
                }
                2 => {
                    writer.close().unwrap();
                    drop(writer);
                    writer = bench.open().unwrap();
                }
                _ => {}
            }
            writer.check();
        }
        catch_up(&mut writer, &mut replica).unwrap();
        writer.begin().unwrap();
        writer.unfollow(b"backup").unwrap();
        writer.commit().unwrap();
        assert!(matches!(writer.changes(b"backup").as_ref().map_err(Error::cause), Err(Cause::Misuse(_))));
        assert!(writer.followers().is_empty());
        writer.checkpoint().unwrap();
        let spine =
            writer.report().extents.iter().filter(|extent| extent.owner == counterfoil_log::Owner::Spine).count();
        assert!(spine <= 3, "{spine} extents are kept for nobody");
    }
}

#[test]
fn a_follower_misses_nothing_when_the_power_fails() {
    let script = |bench: &mut Bench, replica: &mut Replica| -> Result<(), Error> {
        let mut writer = bench.create();
        follow(&mut writer)?;
        let mut dice = Dice::new(3);
        for step in 0..25 {
            change(&mut writer, &mut dice)?;
            if step % 6 == 5 {
                // What was read counts when the commit that says so does.
                let before = replica.clone();
                catch_up(&mut writer, replica).inspect_err(|_| *replica = before)?;
            }
            if step % 8 == 7 {
                writer.checkpoint()?;
            }
            if step == 14 {
                drop(writer);
                writer = bench.open()?;
            }
        }
        Ok(())
    };
    let mut calm = Bench::file(4000, 16);
    let created = {
        drop(calm.create());
        calm.device.writes()
    };
    let mut calm = Bench::file(4000, 16);
    script(&mut calm, &mut Replica::default()).unwrap();
    let writes = calm.device.writes();
    let mut tried = 0;
    for at in (created + 1..=writes).step_by(3) {
        for tearing in [Tearing::Untouched, Tearing::Complete, Tearing::Bits] {
            for survivors in [Survivors::None, Survivors::Any] {
                let mut bench = Bench::file(4000, 16);
                bench.device.set_scenario(Scenario::one(at, Fault::Cut { at, tearing, survivors }));
                let mut replica = Replica::default();
                assert!(script(&mut bench, &mut replica).is_err());
                bench.device.power_on();
                bench.device.set_scenario(Scenario::calm(1));
                let mut writer = bench.open().unwrap();
                match catch_up_from_its_record(&mut writer, &replica) {
                    Err(error) if matches!(error.cause(), Cause::Misuse(_)) => {
                        assert_eq!(replica, Replica::default(), "it was not registered yet")
                    }
                    other => other.unwrap(),
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried}");
}

/// The commit that said how far was read may stand although its answer was cut off: then nothing older is told again.
fn catch_up_from_its_record(writer: &mut Writer, replica: &Replica) -> Result<(), Error> {
    let read_before = writer.followers().first().map_or(0, |(_, commit)| commit.0);
    let mut changes = writer.changes(b"backup")?;
    if read_before < replica.commit || replica.commit == 0 && read_before < 3 {
        let mut replica = replica.clone();
        replica.read(&mut changes)?;
        replica.agrees(changes.snapshot());
    } else {
        while changes.next_commit()?.is_some() {}
    }
    Ok(())
}

#[test]
fn a_follower_far_behind_is_told_so_and_never_stops_the_writer() {
    let mut bench = Bench::file(400, 16);
    let mut writer = bench.create();
    follow(&mut writer).unwrap();
    let commit = writer.commit_number();
    let mut most = 0;
    for round in 0..60u32 {
        for number in 0..20u32 {
            put(&mut writer, "note", &(round * 20 + number).to_le_bytes()).unwrap();
        }
        writer.checkpoint().unwrap();
        let spine =
            writer.report().extents.iter().filter(|extent| extent.owner == counterfoil_log::Owner::Spine).count();
        most = most.max(spine);
    }
    assert!(most > 20 && most <= 400 / 16 + 2, "{most} extents of spine");
    assert!(matches!(writer.changes(b"backup").as_ref().map_err(Error::cause), Err(Cause::Gone { .. })));
    assert!(matches!(writer.changes_since(commit).as_ref().map_err(Error::cause), Err(Cause::Gone { .. })));
    drop(writer);
    let mut writer = bench.open().unwrap();
    assert!(matches!(writer.changes(b"backup").as_ref().map_err(Error::cause), Err(Cause::Gone { .. })));
    assert!(matches!(
        bench.recover().unwrap().changes(b"backup").as_ref().map_err(Error::cause),
        Err(Cause::Gone { .. })
    ));
    // It begins again from a snapshot.
    follow(&mut writer).unwrap();
    let since = writer.commit_number();
    put(&mut writer, "note", b"last").unwrap();
    let mut changes = writer.changes(b"backup").unwrap();
    let told = changes.next_commit().unwrap().unwrap();
    assert_eq!((told.number, told.changes.len()), (writer.commit_number(), 1));
    assert_eq!(changes.next_commit().unwrap(), None);
    assert_eq!(changes.position().commit(), writer.commit_number());
    assert_eq!(writer.changes_since(since).unwrap().next_commit().unwrap(), Some(told));
    let now = writer.commit_number();
    assert_eq!(writer.changes_since(now).unwrap().next_commit().unwrap(), None);
}

#[test]
fn what_is_being_read_stays_while_the_writer_goes_on() {
    let mut bench = Bench::file(4000, 64);
    let mut writer = bench.create();
    follow(&mut writer).unwrap();
    for _ in 0..30 {
        grow(&mut writer, 2000).unwrap();
    }
    let mut changes = writer.changes(b"backup").unwrap();
    changes.next_commit().unwrap().unwrap();
    writer.begin().unwrap();
    writer.unfollow(b"backup").unwrap();
    writer.commit().unwrap();
    for _ in 0..40 {
        writer.checkpoint().unwrap();
        grow(&mut writer, 9000).unwrap();
    }
    let mut told = 1;
    while changes.next_commit().unwrap().is_some() {
        told += 1;
    }
    assert_eq!(told, 30);
}

#[test]
fn the_settings_cannot_make_a_follower_of_nonsense() {
    let mut bench = Bench::file(400, 16);
    let mut writer = bench.create();
    writer.begin().unwrap();
    assert!(matches!(writer.follow(b"").as_ref().map_err(Error::cause), Err(Cause::Misuse(_))));
    assert!(matches!(writer.follow(&[b'x'; 65]).as_ref().map_err(Error::cause), Err(Cause::Misuse(_))));
    writer.put_record(record_space::SETTING, b"follower/odd", b"nonsense").unwrap();
    writer.follow(b"backup").unwrap();
    writer.commit().unwrap();
    assert!(matches!(writer.changes(b"odd").as_ref().map_err(Error::cause), Err(Cause::Corrupt { .. })));
    let behind = writer.changes(b"backup").unwrap().position();
    put(&mut writer, "note", b"1").unwrap();
    catch_up(&mut writer, &mut Replica::default()).unwrap();
    writer.begin().unwrap();
    assert!(matches!(writer.read_up_to(b"backup", &behind).as_ref().map_err(Error::cause), Err(Cause::Misuse(_))));
    assert!(matches!(writer.read_up_to(b"odd", &behind).as_ref().map_err(Error::cause), Err(Cause::Corrupt { .. })));
    writer.rollback();
    assert_eq!(writer.followers().len(), 1);
    writer.checkpoint().unwrap();
}
