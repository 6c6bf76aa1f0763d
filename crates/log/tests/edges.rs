//! Edges of the law that the sweeping tests do not reach by chance: one history each.

mod bench;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bench::{Bench, Mortal, fill, grow, holds, put, record};
use counterfoil_flash::{self as flash, Geometry, PageNumber, Read};
use counterfoil_flash_sim::{Attacker, Dice, Fault, Part, Scenario, Survivors, Tearing};
use counterfoil_log::{Captured, Cause, ContainerId, Error, GroupId, Recovered, View, Writer};
use counterfoil_vault::{Counter, witness};

#[test]
fn a_process_that_died_and_then_a_power_cut_leave_a_database_that_opens() {
    // The process dies between programming its frame and the end of the flush; the frame stands in the system's
    // cache. The next process finds it there, and the power fails while it opens.
    for dies_after in 0..4 {
        for at in 1..8 {
            for survivors in [Survivors::None, Survivors::Any, Survivors::All] {
                for tearing in [Tearing::Untouched, Tearing::Complete] {
                    let mut bench = Bench::file(200, 8);
                    let mut writer = bench.create();
                    put(&mut writer, "a", b"1").unwrap();
                    drop(writer);
                    let mortal = Mortal { device: bench.device.clone(), left: Arc::new(AtomicU64::new(1000)) };
                    let mut writer = bench.open_on(Box::new(mortal.clone())).unwrap();
                    mortal.left.store(dies_after, Ordering::Relaxed);
                    let acknowledged = grow(&mut writer, 1000).is_ok();
                    drop(writer);
                    let cut = Fault::Cut { at: bench.device.writes() + at, tearing, survivors };
                    bench.device.set_scenario(Scenario::one(at * 31 + dies_after, cut));
                    drop(bench.open());
                    bench.device.power_on();
                    bench.device.set_scenario(Scenario::calm(1));
                    let id = format!("dies after {dies_after}, cut at {at}, {survivors:?}, {tearing:?}");
                    bench.judged().unwrap_or_else(|error| panic!("{id}: reading answers {error}"));
                    let writer = bench.open().unwrap_or_else(|error| panic!("{id}: {error}"));
                    assert_eq!(record(&writer, "a").as_deref(), Some(&b"1"[..]));
                    assert!(!acknowledged || writer.length(ContainerId(1)).is_ok(), "{id}: missing");
                }
            }
        }
    }
}

#[test]
fn a_commit_that_stands_is_not_answered_with_full() {
    let mut bench = Bench::file(200, 8);
    let mut writer = bench.create();
    for number in 0..5 {
        put(&mut writer, &format!("large {number}"), &[7; 1800]).unwrap();
    }
    let too_large = put(&mut writer, "larger", &[7; 9000]);
    assert!(matches!(too_large.as_ref().map_err(Error::cause), Err(Cause::TooLarge { .. })), "{too_large:?}");
    writer.rollback();
    put(&mut writer, "small", b"1").unwrap();
    drop(writer);
    let mut writer = bench.open().unwrap();
    assert_eq!(record(&writer, "large 4"), Some(vec![7; 1800]));
    writer.close().unwrap();
}

/// A medium that fails behind a commit, while what it left is put in order: the commit is acknowledged, and nothing after it is.
#[test]
fn a_commit_that_stands_is_not_answered_with_what_went_wrong_behind_it() {
    const PLENTY: u64 = 1 << 40;
    let name = |number: usize| format!("r{}", number % 50);
    let value = |number: usize| number.to_string().into_bytes();
    let opened = |bench: &mut Bench| {
        bench.create();
        let mortal = Mortal { device: bench.device.clone(), left: Arc::new(AtomicU64::new(PLENTY)) };
        let writer = bench.open_on(Box::new(mortal.clone())).unwrap();
        mortal.left.store(PLENTY, Ordering::Relaxed);
        (mortal, writer)
    };
    // What each commit takes: two writes, and now and then a checkpoint behind them.
    let (mortal, mut writer) = opened(&mut Bench::file(200, 8));
    let mut taken = Vec::new();
    while taken.last().is_none_or(|last| *last <= 2) {
        let before = mortal.left.load(Ordering::Relaxed);
        put(&mut writer, &name(taken.len()), &value(taken.len())).unwrap();
        taken.push(before - mortal.left.load(Ordering::Relaxed));
    }
    let (last, before) = (taken.len() - 1, taken[..taken.len() - 1].iter().sum::<u64>());
    for fails_after in 0..taken[last] {
        let mut bench = Bench::file(200, 8);
        let (mortal, mut writer) = opened(&mut bench);
        mortal.left.store(before + fails_after, Ordering::Relaxed);
        (0..last).for_each(|number| put(&mut writer, &name(number), &value(number)).unwrap());
        let committed = put(&mut writer, &name(last), &value(last));
        assert_eq!(committed.is_ok(), fails_after >= 2, "after {fails_after} writes");
        assert!(put(&mut writer, "another", b"1").is_err(), "after {fails_after} writes");
        drop(writer);
        let writer = bench.open().unwrap();
        assert!(committed.is_err() || record(&writer, &name(last)) == Some(value(last)), "after {fails_after} writes");
        assert_eq!(record(&writer, "another"), None);
    }
}

/// Gives every container of these a little more, in a commit each.
fn touch(writer: &mut Writer, ids: &[ContainerId]) {
    for id in ids {
        writer.begin().unwrap();
        writer.append(*id, &[id.0 as u8; 3]).unwrap();
        writer.commit().unwrap();
    }
}

#[test]
fn a_checkpoint_that_found_no_room_loses_nothing() {
    for keeper in [false, true] {
        let mut bench = Bench::file(130, 32);
        if keeper {
            // There is somebody to move the record store, but nowhere to move it to.
            bench = bench.with_keeper(0);
        }
        let mut writer = bench.create();
        while writer.extents() < 80 {
            grow(&mut writer, 8000).unwrap();
        }
        writer.checkpoint().unwrap();
        let mut groups = Vec::new();
        let full = loop {
            let made = grow(&mut writer, 400).unwrap();
            groups.push(made);
            if groups.len() % 4 == 0
                && let Err(error) = writer.checkpoint()
            {
                break error;
            }
        };
        assert!(matches!(full.cause(), Cause::Full { .. }), "{full:?}");
        // Room is made; what the failed checkpoint was to tell must be in the next one.
        let gone = groups.split_off(groups.len() - 3);
        let kept = groups.split_off(groups.len() - 1);
        for (group, _) in gone {
            writer.begin().unwrap();
            writer.drop_group(group).unwrap();
            writer.commit().unwrap();
        }
        writer.checkpoint().unwrap();
        let ids: Vec<ContainerId> = kept.iter().map(|(_, id)| *id).collect();
        touch(&mut writer, &ids[..1]);
        drop(writer);
        let writer = bench.open().unwrap();
        writer.check();
        ids.iter().for_each(|id| holds(&writer, *id, 400));
    }
}

#[test]
fn checkpoints_that_must_make_room_first_are_found_again() {
    let mut bench = Bench::file(400, 8);
    let mut writer = bench.create();
    let mut last = None;
    for step in 0u64..600 {
        let name = format!("{}", step * 7 % 40);
        put(&mut writer, &name, &vec![step as u8; 150 + (step * 37 % 60) as usize]).unwrap();
        let (group, id) = grow(&mut writer, 6000).unwrap();
        if let Some(before) = last.replace(group) {
            writer.begin().unwrap();
            writer.drop_group(before).unwrap();
            writer.commit().unwrap();
        }
        match writer.checkpoint() {
            Err(error) if !error.is_full() => panic!("step {step}: {error}"),
            _ => {}
        }
        let snapshot = bench.judged().unwrap_or_else(|error| panic!("step {step}: {error}"));
        assert_eq!(record(&snapshot, &name).unwrap()[0], step as u8);
        holds(&snapshot, id, 6000);
    }
}

#[test]
fn nothing_is_checkpointed_while_the_record_store_moves() {
    for small in 55..75 {
        let mut bench = Bench::file(400, 8).with_keeper(7);
        let mut writer = bench.create();
        for number in 0..small {
            put(&mut writer, "small", &[number]).unwrap();
        }
        put(&mut writer, "large", &[1; 7000]).unwrap();
        assert!(bench.layout().window_extents > 8, "it moved");
        for number in 0..100 {
            put(&mut writer, "small", &[number]).unwrap();
        }
        let snapshot = bench.judged().unwrap_or_else(|error| panic!("{small} small ones: {error}"));
        assert_eq!(record(&snapshot, "small"), Some(vec![99]));
        assert_eq!(witness::duplicates(), [], "{small} small ones: a (key, nonce) pair was used twice");
    }
}

/// A volume of 200 extents with one old group, and how many extents it reaches up to.
fn with_an_old_group(bench: &mut Bench) -> (Writer, GroupId, ContainerId) {
    let mut writer = bench.create();
    let (group, id) = grow(&mut writer, 6000).unwrap();
    (writer, group, id)
}

#[test]
fn what_is_rolled_back_gives_its_space_back() {
    let mut bench = Bench::file(200, 8);
    let (mut writer, group, id) = with_an_old_group(&mut bench);
    let mut extents = 0;
    for round in 0..30 {
        // Rolled back as a whole, and to a savepoint.
        writer.begin().unwrap();
        writer.append(id, &[id.0 as u8; 30_000]).unwrap();
        fill(&mut writer, group, 20_000).unwrap();
        writer.rollback();
        writer.begin().unwrap();
        let savepoint = writer.savepoint().unwrap();
        let made = writer.create_group().unwrap();
        fill(&mut writer, made, 10_000).unwrap();
        writer.append(id, &[id.0 as u8; 30_000]).unwrap();
        writer.rollback_to(&savepoint).unwrap();
        writer.append(id, &[id.0 as u8; 10]).unwrap();
        // Made and dropped by one commit.
        let made = writer.create_group().unwrap();
        fill(&mut writer, made, 10_000).unwrap();
        writer.drop_group(made).unwrap();
        writer.commit().unwrap();
        writer.check();
        holds(&writer, id, 6000 + 10 * (round + 1));
        if round == 9 {
            extents = writer.extents();
        }
    }
    assert!(writer.extents() <= extents + 4, "{extents} extents became {}", writer.extents());
    drop(writer);
    let writer = bench.open().unwrap();
    writer.check();
    holds(&writer, id, 6300);
    let used =
        writer.report().extents.iter().filter(|used| matches!(used.owner, counterfoil_log::Owner::Group(_))).count();
    assert!(used < 8, "{used} extents for 6300 bytes");
    assert_eq!(witness::duplicates(), []);
}

#[test]
fn a_stale_savepoint_is_refused() {
    let mut bench = Bench::file(200, 8);
    let (mut writer, group, id) = with_an_old_group(&mut bench);
    writer.begin().unwrap();
    let first = writer.savepoint().unwrap();
    fill(&mut writer, group, 5000).unwrap();
    let second = writer.savepoint().unwrap();
    writer.append(id, &[id.0 as u8; 600]).unwrap();
    writer.rollback_to(&second).unwrap();
    writer.rollback_to(&second).unwrap();
    writer.rollback_to(&first).unwrap();
    assert!(matches!(writer.rollback_to(&second).as_ref().map_err(Error::cause), Err(Cause::Misuse(_))));
    writer.append(id, &[id.0 as u8; 600]).unwrap();
    writer.commit().unwrap();
    writer.begin().unwrap();
    assert!(matches!(writer.rollback_to(&first).as_ref().map_err(Error::cause), Err(Cause::Misuse(_))));
    writer.rollback();
    holds(&writer, id, 6600);
}

#[test]
fn readers_keep_what_they_see_while_the_record_store_moves_and_commits_are_undone() {
    let mut bench = Bench::file(400, 8).with_keeper(3);
    let (mut writer, group, id) = with_an_old_group(&mut bench);
    let snapshot = writer.snapshot();
    writer.begin().unwrap();
    writer.drop_group(group).unwrap();
    writer.commit().unwrap();
    writer.begin().unwrap();
    let made = writer.create_group().unwrap();
    let undone = fill(&mut writer, made, 6000).unwrap();
    let preview = writer.pending();
    writer.rollback();
    put(&mut writer, "large", &[1; 7000]).unwrap();
    assert!(bench.layout().window_extents > 8, "it moved");
    for number in 0..60 {
        put(&mut writer, "small", &[number]).unwrap();
        grow(&mut writer, 3000).unwrap();
    }
    holds(&snapshot, id, 6000);
    assert!(snapshot.verify_pages(&mut |_, _| {}).is_empty());
    assert!(preview.verify_pages(&mut |_, _| {}).is_empty());
    holds(&preview, undone, 6000);
}

#[test]
fn a_full_volume_takes_deletions_and_openings_and_is_used_again() {
    for part in [Part::file(512, 4, 240), Part::nand(512, 4, 240)] {
        let mut bench = Bench::new(part, 32);
        let mut writer = bench.create();
        let mut groups = Vec::new();
        let full = loop {
            match grow(&mut writer, 12_000) {
                Ok(made) => groups.push(made),
                Err(error) => break error,
            }
        };
        assert!(matches!(full.cause(), Cause::Full { .. }), "{full:?}");
        assert!(groups.len() > 8);
        // Still full, and commits that need no extent go on.
        assert!(matches!(grow(&mut writer, 12_000).as_ref().map_err(Error::cause), Err(Cause::Full { .. })));
        for number in 0..100 {
            put(&mut writer, "note", &[number]).unwrap();
        }
        // Killed again and again right after opening, or after a commit.
        for round in 0..40 {
            drop(writer);
            writer = bench.open().unwrap_or_else(|error| panic!("opening {round}: {error}"));
            if round % 3 == 0 {
                put(&mut writer, "note", &[round]).unwrap();
            }
        }
        // A deletion may write a little first.
        writer.begin_to_free().unwrap();
        let (group, _) = groups[0];
        fill(&mut writer, group, 3000).unwrap();
        writer.commit().unwrap();
        writer.begin().unwrap();
        writer.drop_group(group).unwrap();
        writer.commit().unwrap();
        grow(&mut writer, 10_000).unwrap();
        groups[1..].iter().for_each(|(_, id)| holds(&writer, *id, 12_000));
        writer.close().unwrap();
        drop(writer);
        bench.open().unwrap().check();
    }
}

#[test]
fn openings_that_are_cut_short_do_not_fill_the_volume() {
    let mut bench = Bench::file(1000, 32);
    let mut writer = bench.create();
    for _ in 0..100 {
        put(&mut writer, "note", b"1").unwrap();
        drop(writer);
        writer = bench.open().unwrap();
    }
    assert!(writer.extents() < 66 + 40, "{} extents", writer.extents());
}

/// The highest commit of these notes that an image shows, to readers and to writers alike, or none if it is refused.
fn shown(bench: &mut Bench, image: counterfoil_flash_sim::Image) -> Option<u8> {
    let counter = bench.counter.clone().value().unwrap();
    bench.device.restore(image.clone());
    let read = bench.judged().ok().and_then(|snapshot| record(&snapshot, "note")).map(|value| value[0]);
    let written = bench.open().ok().and_then(|writer| record(&writer, "note")).map(|value| value[0]);
    bench.counter.danger_set(Some(counter));
    bench.device.restore(image);
    assert_eq!(read, written, "readers and writers judge alike");
    read
}

#[test]
fn of_commits_counted_in_groups_only_those_of_the_open_group_are_exposed() {
    for tagless in [false, true] {
        let mut bench = Bench::file(400, 32);
        bench.tagless = tagless;
        let clock = Arc::new(AtomicU64::new(5));
        bench.clock = Some(clock.clone());
        let mut images = Vec::new();
        let mut writer = bench.create();
        // Groups: 1 to 4 (the clock is looked at when a commit comes), 5 to 7, and 8 to 10 is open.
        for number in 1..=10u8 {
            if [4, 7].contains(&number) {
                clock.fetch_add(1000, Ordering::Relaxed);
            }
            // What openings below write while the counter is put back again is none of the attacker's.
            let attacker = Attacker::new();
            bench.device.watch(&attacker);
            put(&mut writer, "note", &[number]).unwrap();
            bench.device.watch(&Attacker::new());
            images.extend((0..attacker.image_count()).filter_map(|index| attacker.whole(index)));
            let closed = match number {
                _ if tagless => number,
                0..4 => 0,
                4..7 => 4,
                _ => 7,
            };
            let last = bench.device.image();
            let counter = bench.counter.clone().value().unwrap();
            for image in &images {
                let accepted = shown(&mut bench, image.clone());
                assert!(accepted.is_none_or(|note| note >= closed), "after {number}: {accepted:?} of {closed}");
            }
            // Not one image of the open group is refused: it is what a cut would leave.
            assert_eq!(shown(&mut bench, last.clone()), Some(number));
            bench.device.restore(last);
            assert_eq!(bench.counter.clone().value().unwrap(), counter);
        }
        writer.count().unwrap();
        let last = bench.device.image();
        for image in &images {
            let accepted = shown(&mut bench, image.clone());
            assert!(accepted.is_none_or(|note| note == 10), "the group is closed");
        }
        bench.device.restore(last);
    }
}

/// A medium of which one page cannot be read.
struct Unreadable {
    device: counterfoil_flash_sim::SimulatedDevice,
    page: u64,
}

impl Read for Unreadable {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), flash::Error> {
        let pages = page.0..page.0 + (buffer.len() as u64).div_ceil(512).max(1);
        if pages.contains(&self.page) {
            return Err(flash::Error::Device { operation: flash::Operation::Read, page, code: 5 });
        }
        self.device.read(page, offset, buffer)
    }
}

#[test]
fn a_group_of_commits_that_nobody_adds_to_is_closed_in_time() {
    let mut bench = Bench::file(200, 8);
    let clock = Arc::new(AtomicU64::new(5));
    bench.clock = Some(clock.clone());
    let mut writer = bench.create();
    let counted = |bench: &Bench| bench.counter.clone().value().unwrap().value;
    writer.close_group_if_due().unwrap();
    let before = counted(&bench);
    put(&mut writer, "note", b"1").unwrap();
    clock.store(1004, Ordering::Relaxed);
    writer.close_group_if_due().unwrap();
    assert_eq!(counted(&bench), before);
    clock.store(1005, Ordering::Relaxed);
    writer.close_group_if_due().unwrap();
    assert_eq!(counted(&bench), before + 1);
    // So does a commit that takes long, for those before it.
    put(&mut writer, "note", b"2").unwrap();
    writer.begin().unwrap();
    let group = writer.create_group().unwrap();
    clock.store(3000, Ordering::Relaxed);
    fill(&mut writer, group, 5000).unwrap();
    assert_eq!(counted(&bench), before + 2);
    writer.commit().unwrap();
    assert_eq!(record(&bench.judged().unwrap(), "note").as_deref(), Some(&b"2"[..]));
}

#[test]
fn what_the_open_group_of_commits_freed_is_counted_when_it_is_needed() {
    let mut bench = Bench::file(60, 8);
    bench.clock = Some(Arc::new(AtomicU64::new(5)));
    let mut writer = bench.create();
    let mut groups = Vec::new();
    loop {
        match grow(&mut writer, 12_000) {
            Ok((group, _)) => groups.push(group),
            Err(error) if error.is_full() => break writer.rollback(),
            Err(other) => panic!("{other}"),
        }
    }
    assert!(groups.len() > 3, "{}", groups.len());
    for _ in 0..10 {
        writer.begin_to_free().unwrap();
        groups.drain(..).for_each(|group| writer.drop_group(group).unwrap());
        writer.commit().unwrap();
        // The clock stands still: no group of commits is ever due.
        (0..3).for_each(|_| groups.push(grow(&mut writer, 12_000).unwrap().0));
    }
    drop(writer);
    bench.judged().unwrap();
}

#[test]
fn a_page_that_cannot_be_read_is_waited_for_unless_the_counter_vouches() {
    let mut bench = Bench::file(200, 8);
    let mut writer = bench.create();
    put(&mut writer, "note", b"1").unwrap();
    grow(&mut writer, 5000).unwrap();
    put(&mut writer, "note", b"2").unwrap();
    drop(writer);
    let counter = bench.counter.clone().value().unwrap();
    let (mut vouched, mut refused) = (0, 0);
    for page in 144..8 * 24 {
        let unreadable = Unreadable { device: bench.device.clone(), page };
        let Ok(recovered) = Recovered::recover(Arc::new(unreadable), bench.vault.clone(), bench.layout(), bench::CACHE)
        else {
            panic!("page {page}: what cannot be read is no reason to give up");
        };
        match recovered.judge(&counter) {
            Ok(()) => {
                assert_eq!(record(&recovered.snapshot(), "note").as_deref(), Some(&b"2"[..]), "page {page}");
                vouched += u32::from(recovered.unreadable().is_some());
            }
            Err(error) => {
                assert!(matches!(error.cause(), Cause::Device(_)), "page {page}: {error}");
                let settings = bench.settings();
                let opened = recovered.open(Box::new(bench.device.clone()), settings, &mut bench.entropy);
                assert!(matches!(opened.as_ref().map_err(Error::cause), Err(Cause::Device(_))), "page {page}");
                refused += 1;
            }
        }
    }
    assert!(vouched >= 1 && refused >= 3, "{vouched} vouched for, {refused} refused");
    // Torn where the next frame or opening was to go: opened on the counter's word, and without one not at all.
    let torn = (144..8 * 24).filter(|page| {
        let unreadable = Unreadable { device: bench.device.clone(), page: *page };
        let found = Recovered::recover(Arc::new(unreadable), bench.vault.clone(), bench.layout(), bench::CACHE);
        found.is_ok_and(|found| found.unreadable().is_some() && found.judge(&counter).is_ok())
    });
    for page in torn.collect::<Vec<_>>() {
        let recover = || {
            let unreadable = Unreadable { device: bench.device.clone(), page };
            Recovered::recover(Arc::new(unreadable), bench.vault.clone(), bench.layout(), bench::CACHE).unwrap()
        };
        let uncounted = counterfoil_log::Settings { counter: None, ..bench.settings() };
        let opened = recover().open(Box::new(bench.device.clone()), uncounted, &mut bench.entropy.clone());
        assert!(matches!(opened.as_ref().map_err(Error::cause), Err(Cause::Device(_))), "page {page}");
        let image = bench.device.image();
        let opened = recover().open(Box::new(bench.device.clone()), bench.settings(), &mut bench.entropy.clone());
        assert!(opened.is_ok(), "page {page}");
        bench.device.restore(image);
        bench.counter.danger_set(Some(counter));
    }
}

#[test]
fn a_group_that_was_dropped_and_came_back_remembers_what_was_tried() {
    let mut bench = Bench::file(200, 8);
    let (mut writer, group, id) = with_an_old_group(&mut bench);
    writer.begin().unwrap();
    writer.append(id, &[9; 600]).unwrap();
    writer.rollback();
    writer.begin().unwrap();
    writer.drop_group(group).unwrap();
    let savepoint = writer.savepoint().unwrap();
    writer.rollback_to(&savepoint).unwrap();
    writer.rollback();
    writer.begin().unwrap();
    writer.append(id, &[id.0 as u8; 600]).unwrap();
    writer.commit().unwrap();
    holds(&writer, id, 6600);
    assert_eq!(witness::duplicates(), []);
}

/// A new window counts its versions anew: the frames of the move still name the old one's, which are higher.
#[test]
fn a_backup_taken_after_the_record_store_moved_lacks_nothing() {
    let mut bench = Bench::file(400, 8).with_keeper(3);
    let mut writer = bench.create();
    for _ in 0..500 {
        put(&mut writer, "note", b"before").unwrap();
        writer.checkpoint().unwrap();
    }
    put(&mut writer, "large", &[1; 7000]).unwrap();
    assert!(bench.layout().window_extents > 8, "it moved");
    for number in 0..5 {
        put(&mut writer, "note", &[number]).unwrap();
        let captured = Captured::new(Arc::new(bench.device.clone()), &bench.layout()).unwrap();
        let found = Recovered::recover_captured(captured, bench.vault.clone(), bench.layout(), bench::CACHE).unwrap();
        assert_eq!(found.commit(), writer.commit_number());
        assert_eq!(record(&found.snapshot(), "note"), Some(vec![number]));
    }
}

#[test]
fn windows_that_a_cut_left_behind_are_given_back() {
    let grow_window = |bench: &mut Bench| -> (u64, Result<(), Error>) {
        let mut writer = bench.create();
        put(&mut writer, "a", b"1").unwrap();
        (bench.device.writes(), put(&mut writer, "large", &[1; 7000]))
    };
    let mut calm = Bench::file(400, 8).with_keeper(2);
    let (before, done) = grow_window(&mut calm);
    done.unwrap();
    let writes = calm.device.writes();
    assert!(calm.layout().window_extents > 8 && writes > before + 20);
    let mut moved = 0;
    for at in before + 1..=writes {
        for tearing in [Tearing::Untouched, Tearing::Complete] {
            let mut bench = Bench::file(400, 8).with_keeper(2);
            bench.device.set_scenario(Scenario::one(at, Fault::Cut { at, tearing, survivors: Survivors::Any }));
            let done = grow_window(&mut bench).1;
            assert!(bench.device.is_cut());
            bench.device.power_on();
            bench.device.set_scenario(Scenario::calm(1));
            let mut writer = bench.open().unwrap_or_else(|error| panic!("cut at {at}: {error}"));
            assert_eq!(record(&writer, "a").as_deref(), Some(&b"1"[..]));
            // The window grows behind the commit, which stands.
            assert!(done.is_err() || record(&writer, "large") == Some(vec![1; 7000]), "cut at {at}");
            writer.checkpoint().unwrap();
            writer.check();
            let fixed =
                writer.report().extents.iter().filter(|used| used.owner == counterfoil_log::Owner::Fixed).count();
            assert_eq!(fixed as u32, 2 + 2 * bench.layout().window_extents, "cut at {at}");
            moved += u32::from(bench.layout().window_extents > 8);
            drop(writer);
            bench.open().unwrap().check();
        }
    }
    assert!(moved > 1, "{moved}");
}

/// What commits left behind that did not wait: the first so many of them, each whole.
fn whole_commits(writer: &Writer, lengths: &[u64], id: &str) -> usize {
    let there = |commit: &usize| record(writer, &commit.to_string()).is_some();
    let whole = (0..lengths.len()).take_while(there).count();
    assert_eq!((whole..lengths.len()).filter(there).count(), 0, "{id}: one stands without the one before it");
    let Some(length) = lengths[..whole].last() else { return 0 };
    assert_eq!(writer.length(ContainerId(1)), Ok(*length), "{id}: half a commit");
    let mut bytes = vec![0; *length as usize];
    writer.read(ContainerId(1), 0, &mut bytes).unwrap_or_else(|error| panic!("{id}: {error}"));
    whole
}

#[test]
fn of_commits_that_do_not_wait_a_cut_undoes_the_last_ones_only() {
    let mut undone = 0;
    for seed in 0..400 {
        let mut dice = Dice::new(seed);
        let mut bench = Bench::file(400, 8).with_keeper(1);
        let clock = Arc::new(AtomicU64::new(0));
        bench.clock = Some(clock.clone());
        let mut writer = bench.create();
        let (mut lengths, mut durable, mut length) = (Vec::new(), 0, 0);
        for commit in 0..dice.below(60) as usize {
            writer.begin().unwrap();
            if commit == 0 {
                let group = writer.create_group().unwrap();
                assert_eq!(writer.create_container(group).unwrap(), ContainerId(1));
            }
            let bytes = vec![7; dice.below(200) as usize];
            writer.append(ContainerId(1), &bytes).unwrap();
            writer.put_record(counterfoil_log::record_space::USER, commit.to_string().as_bytes(), &bytes).unwrap();
            length += bytes.len() as u64;
            lengths.push(length);
            if dice.below(8) == 0 {
                writer.commit().unwrap();
                durable = commit + 1;
            } else {
                writer.commit_soon().unwrap();
            }
            if dice.below(10) == 0 {
                clock.fetch_add(600, Ordering::Relaxed);
            }
            if dice.below(25) == 0 {
                writer.checkpoint().unwrap();
                durable = commit + 1;
            }
        }
        drop(writer);
        let id = format!("seed {seed}");
        bench.device.restore(bench.device.image_if_cut(Survivors::Any, seed));
        let writer = bench.open().unwrap_or_else(|error| panic!("{id}: {error}"));
        let whole = whole_commits(&writer, &lengths, &id);
        assert!(whole >= durable, "{id}: {whole} of {} are there, {durable} were durable", lengths.len());
        undone += lengths.len() - whole;
        drop(writer);
        let again = bench.open().unwrap();
        assert_eq!(whole_commits(&again, &lengths[..whole], &id), whole);
    }
    assert!(undone > 100, "{undone} were undone: the cuts came too late");
    assert_eq!(witness::duplicates(), []);
}

#[test]
fn containers_that_grow_side_by_side_on_flash_are_programmed_in_order() {
    let mut bench = Bench::new(Part::nand(512, 8, 400), 8);
    let mut writer = bench.create();
    writer.begin().unwrap();
    let group = writer.create_group().unwrap();
    let ids = [0; 3].map(|_| fill(&mut writer, group, 0).unwrap());
    writer.commit().unwrap();
    let piece = 300;
    for _ in 0..60 {
        writer.begin().unwrap();
        for id in ids {
            writer.append(id, &vec![id.0 as u8; piece]).unwrap();
        }
        writer.commit().unwrap();
    }
    ids.iter().for_each(|id| holds(&writer, *id, 60 * piece));
    assert_eq!(bench.device.refused(), None);
}

/// Whatever is rolled back, dropped or closed: no page is programmed twice or out of order, and all that was committed is there.
#[test]
fn groups_on_flash_are_gone_on_with_behind_what_was_tried() {
    for seed in 0..20 {
        let mut bench = Bench::new(Part::nand(512, 8, 400), 8);
        let mut writer = bench.create();
        let mut dice = Dice::new(seed);
        // Of each container its group and how long it is.
        let mut there: Vec<(GroupId, ContainerId, usize)> = Vec::new();
        for _ in 0..150 {
            let mut now = there.clone();
            writer.begin().unwrap();
            if now.len() < 6 || dice.below(8) == 0 {
                let group = writer.create_group().unwrap();
                let ids = [0; 2].map(|_| (group, writer.create_container(group).unwrap(), 0));
                now.extend(ids);
            }
            let savepoint = (dice.below(3) == 0).then(|| (writer.savepoint().unwrap(), now.clone()));
            for _ in 0..1 + dice.below(4) {
                let place = dice.below(now.len() as u64) as usize;
                let bytes = dice.below(1500) as usize;
                writer.append(now[place].1, &vec![now[place].1.0 as u8; bytes]).unwrap();
                now[place].2 += bytes;
                if dice.below(20) == 0 {
                    writer.close_group(now[place].0);
                }
            }
            if now.len() > 8 {
                let group = now[dice.below(8) as usize].0;
                writer.drop_group(group).unwrap();
                now.retain(|(of, _, _)| *of != group);
            }
            if let Some((savepoint, before)) = savepoint
                && dice.below(2) == 0
            {
                writer.rollback_to(&savepoint).unwrap();
                now = before;
            }
            if dice.below(3) == 0 {
                writer.rollback();
            } else {
                writer.commit().unwrap();
                there = now;
            }
        }
        there.iter().for_each(|(_, id, bytes)| holds(&writer, *id, *bytes));
        assert_eq!(bench.device.refused(), None, "seed {seed}");
    }
    assert_eq!(witness::duplicates(), []);
}
