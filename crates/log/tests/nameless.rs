//! Nameless pools: single histories, each of which shows one thing.

mod bench;

use std::sync::Arc;

use bench::{Bench, Shared, grow};
use counterfoil_flash_sim::Part;
use counterfoil_log::{
    Cause, Error, NamelessPage, Owner, PoolId, PoolOptions, PoolOwner, Recovered, Snapshot, View, Visit, Writer,
};
use counterfoil_vault::witness;

fn payload(number: u64) -> Vec<u8> {
    let mut bytes = vec![number as u8; 496];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn read(view: &dyn View, pool: PoolId, page: NamelessPage) -> Result<u64, Error> {
    let mut bytes = [0; 496];
    view.read_nameless(pool, page, &mut bytes)?;
    let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert_eq!(bytes[..], payload(number));
    Ok(number)
}

fn pool(writer: &mut Writer) -> PoolId {
    writer.begin().unwrap();
    let pool = writer.create_pool(PoolOptions::default()).unwrap();
    writer.commit().unwrap();
    pool
}

/// Writes pages of these numbers in a commit of their own.
fn write(writer: &mut Writer, pool: PoolId, numbers: impl Iterator<Item = u64>) -> Vec<NamelessPage> {
    writer.begin().unwrap();
    let pages = numbers.map(|number| writer.write_nameless(pool, &payload(number)).unwrap()).collect();
    writer.commit().unwrap();
    writer.check();
    pages
}

fn free(writer: &mut Writer, pool: PoolId, pages: &[NamelessPage]) {
    writer.begin().unwrap();
    pages.iter().for_each(|page| writer.free_nameless(pool, *page).unwrap());
    writer.commit().unwrap();
    writer.check();
}

fn is_stale(view: &dyn View, pool: PoolId, page: NamelessPage) -> bool {
    matches!(read(view, pool, page).as_ref().map_err(Error::cause), Err(Cause::Tampered { .. }))
}

fn benches() -> [Bench; 2] {
    [Bench::file(200, 8), Bench::new(Part::nand(512, 4, 400), 8)]
}

#[test]
fn pages_are_there_again_after_every_way_of_opening() {
    for mut bench in benches() {
        let mut writer = bench.create();
        let pool = pool(&mut writer);
        let mut pages = Vec::new();
        for round in 0..6u64 {
            pages.extend(write(&mut writer, pool, (0..30).map(|number| round * 100 + number)));
            free(&mut writer, pool, &pages.drain(..10).collect::<Vec<_>>());
            let numbers: Vec<u64> = pages.iter().map(|page| read(&writer, pool, *page).unwrap()).collect();
            match round % 3 {
                0 => writer.close().unwrap(),
                1 => writer.checkpoint().unwrap(),
                _ => {}
            }
            drop(writer);
            let snapshot = bench.judged().unwrap();
            writer = bench.open().unwrap();
            writer.check();
            for (page, number) in pages.iter().zip(&numbers) {
                assert_eq!(read(&snapshot, pool, *page), Ok(*number));
                assert_eq!(read(&writer, pool, *page), Ok(*number));
            }
            assert_eq!(snapshot.pools(), [(pool, pages.len() as u64)]);
        }
        assert_eq!(witness::duplicates(), []);
    }
}

#[test]
fn an_address_that_is_not_the_last_one_given_is_refused() {
    for mut bench in benches() {
        let mut writer = bench.create();
        let (first, second) = (pool(&mut writer), pool(&mut writer));
        let pages = write(&mut writer, first, 0..4);
        write(&mut writer, second, 10..12);
        let other = |page: NamelessPage| NamelessPage { write: page.write + 1, ..page };
        for wrong in [
            other(pages[0]),
            NamelessPage { write: pages[1].write, ..pages[0] },
            NamelessPage { page: pages[3].page + 1, write: pages[3].write + 1 },
            NamelessPage { write: 0, ..pages[0] },
            NamelessPage { write: u64::MAX, ..pages[0] },
            NamelessPage { page: u64::MAX, write: 1 },
        ] {
            assert!(is_stale(&writer, first, wrong), "{wrong:?}");
            writer.begin().unwrap();
            let freed = writer.free_nameless(first, wrong);
            let known = pages.iter().any(|page| page.page == wrong.page && wrong.write == page.write);
            assert!(known || freed.is_err() || wrong.write < 5, "{wrong:?}");
            writer.rollback();
        }
        assert!(is_stale(&writer, second, pages[3]), "a page of another pool");
        assert!(matches!(
            read(&writer, PoolId(99), pages[0]).as_ref().map_err(Error::cause),
            Err(Cause::Corrupt { .. })
        ));
        assert!(matches!(
            writer.read_nameless(first, pages[0], &mut [0; 497]).as_ref().map_err(Error::cause),
            Err(Cause::Misuse(_))
        ));
        writer.begin().unwrap();
        assert!(matches!(
            writer.write_nameless(first, &[0; 495]).as_ref().map_err(Error::cause),
            Err(Cause::Misuse(_))
        ));
        writer.rollback();

        free(&mut writer, first, &pages[..2]);
        assert!(is_stale(&writer, first, pages[0]), "freed, whether written again or not");
        writer.begin().unwrap();
        assert!(
            matches!(writer.free_nameless(first, pages[0]).as_ref().map_err(Error::cause), Err(Cause::Tampered { .. })),
            "freed twice"
        );
        writer.rollback();
        assert_eq!(read(&writer, first, pages[2]), Ok(2));
    }
}

#[test]
fn the_page_of_an_older_write_that_is_put_back_does_not_open() {
    let mut bench = Bench::file(200, 8);
    let mut writer = bench.create();
    let pool = pool(&mut writer);
    let pages = write(&mut writer, pool, 0..8);
    let before = bench.device.image();
    free(&mut writer, pool, &pages);
    // All around until the same places are written again, in the same epoch.
    let mut again = Vec::new();
    while again.len() < 8 {
        let page = write(&mut writer, pool, 50..51)[0];
        match pages.iter().any(|old| old.page == page.page) {
            true => again.push(page),
            false => free(&mut writer, pool, &[page]),
        }
    }
    // A frame that lists no page comes last: what the last one lists must be there for it to count.
    bench::put(&mut writer, "last", b"1").unwrap();
    let mut mixture = bench.device.image();
    let extents = writer.report().extents;
    let is_pool = |page: &u64| extents[*page as usize / 8].owner == Owner::Pool(pool);
    let of_pool: Vec<u64> = before.differing(&mixture).into_iter().filter(is_pool).collect();
    assert!(of_pool.len() >= 8);
    of_pool.iter().for_each(|page| mixture.take(*page, &before));
    bench.device.restore(mixture);
    let snapshot = bench.judged().unwrap();
    assert!(again.iter().all(|page| is_stale(&snapshot, pool, *page)));
}

#[test]
fn a_freed_page_waits_for_the_counter() {
    let mut bench = Bench::file(200, 8);
    bench.clock = Some(Default::default());
    let mut writer = bench.create();
    let pool = pool(&mut writer);
    let pages = write(&mut writer, pool, 0..8);
    free(&mut writer, pool, &pages[1..]);
    assert_eq!(writer.pool_use(pool).unwrap().waiting_pages, 7);
    let used = |writer: &Writer| writer.pool_use(pool).map(|used| (used.extents, used.live_pages)).unwrap();
    let (extents, _) = used(&writer);
    let new = write(&mut writer, pool, 10..11)[0];
    assert!(pages.iter().all(|page| page.page != new.page), "not before the commit that freed it is counted");
    assert!(used(&writer).0 > extents);
    writer.count().unwrap();
    let more = write(&mut writer, pool, 20..50);
    assert!(pages[1..].iter().any(|old| more.iter().any(|page| page.page == old.page)), "and then it is");
    assert_eq!(writer.pool_use(pool).unwrap().waiting_pages, 0);
    assert_eq!(read(&writer, pool, pages[0]), Ok(0));
}

#[test]
fn readers_keep_the_pages_that_they_see() {
    for elsewhere in [false, true] {
        let mut bench = Bench::file(200, 8);
        let mut writer = bench.create();
        let pool = pool(&mut writer);
        let mut pages = write(&mut writer, pool, 0..20);
        let pin = writer.report().commit;
        let (mut here, mut beside) = (None, None);
        if elsewhere {
            *bench.pins.0.lock().unwrap() = Some(pin);
            // Without a cache, which would hide what is on the medium.
            let media = Arc::new(bench.device.clone());
            beside = Some(Recovered::recover(media, bench.vault.clone(), bench.layout(), 0).unwrap());
        } else {
            here = Some(writer.snapshot());
        }
        let seen = pages.clone();
        // Every other page is written anew, several times over, by this opening and by the next one: no extent is given back.
        for round in 1..8u64 {
            for index in (1..20).step_by(2) {
                let new = write(&mut writer, pool, std::iter::once(round * 100 + index))[0];
                free(&mut writer, pool, &[pages[index as usize]]);
                pages[index as usize] = new;
            }
            if !elsewhere && round < 7 {
                continue;
            }
            let snapshot = here.clone().unwrap_or_else(|| beside.as_ref().unwrap().snapshot());
            let read_again: Vec<_> = seen.iter().map(|page| read(&snapshot, pool, *page)).collect();
            assert_eq!(read_again, (0..20).map(Ok).collect::<Vec<_>>(), "round {round}");
            if elsewhere && round == 4 {
                drop(writer);
                writer = bench.open().unwrap();
            }
        }
        let held = writer.pool_use(pool).unwrap();
        (here, beside) = (None, None);
        assert!(here.is_none() && beside.is_none());
        *bench.pins.0.lock().unwrap() = None;
        for index in (1..20).step_by(2) {
            let new = write(&mut writer, pool, std::iter::once(index))[0];
            free(&mut writer, pool, &[pages[index as usize]]);
            pages[index as usize] = new;
        }
        let after = writer.pool_use(pool).unwrap();
        assert!(after.waiting_pages < held.waiting_pages, "{held:?} {after:?}");
        assert!(after.extents <= held.extents);
    }
    assert_eq!(witness::duplicates(), []);
}

#[test]
fn what_is_undone_may_be_written_again_under_another_number() {
    for mut bench in benches() {
        let mut writer = bench.create();
        let pool = pool(&mut writer);
        let kept = write(&mut writer, pool, 0..3);
        let mut tried = Vec::new();
        for round in 0..5u64 {
            writer.begin().unwrap();
            tried.extend((0..12).map(|number| writer.write_nameless(pool, &payload(round * 50 + number)).unwrap()));
            writer.free_nameless(pool, kept[0]).unwrap();
            let savepoint = writer.savepoint().unwrap();
            tried.push(writer.write_nameless(pool, &payload(7)).unwrap());
            writer.free_nameless(pool, kept[1]).unwrap();
            writer.rollback_to(&savepoint).unwrap();
            assert!(is_stale(&writer, pool, *tried.last().unwrap()));
            assert_eq!(read(&writer, pool, kept[1]), Ok(1));
            assert!(is_stale(&writer, pool, kept[0]));
            let within = *tried.get(tried.len() - 2).unwrap();
            assert_eq!(read(&writer, pool, within), Ok(round * 50 + 11));
            tried.push(writer.write_nameless(pool, &payload(8)).unwrap());
            writer.rollback();
            writer.check();
            assert!(tried.iter().all(|page| is_stale(&writer, pool, *page)));
            assert_eq!((read(&writer, pool, kept[0]), read(&writer, pool, kept[2])), (Ok(0), Ok(2)));
        }
        let used = writer.pool_use(pool).unwrap();
        assert_eq!(used.live_pages, 3);
        assert!(bench.device.part().geometry.erase_before_program || used.extents < 5, "{used:?}");
        let last = write(&mut writer, pool, 100..101)[0];
        assert!(tried.iter().all(|page| page.write < last.write), "a number is tried once");
        drop(writer);
        let writer = bench.open().unwrap();
        assert!(tried.iter().all(|page| is_stale(&writer, pool, *page)));
        assert_eq!(read(&writer, pool, last), Ok(100));
    }
    assert_eq!(witness::duplicates(), []);
}

#[test]
fn who_sees_a_commit_in_the_making_keeps_its_pages() {
    let mut bench = Bench::file(200, 8);
    let mut writer = bench.create();
    let pool = pool(&mut writer);
    write(&mut writer, pool, 0..3);
    writer.begin().unwrap();
    let undone: Vec<_> = (10..14).map(|number| writer.write_nameless(pool, &payload(number)).unwrap()).collect();
    let preview = writer.pending();
    writer.rollback();
    for round in 0..20 {
        let pages = write(&mut writer, pool, 20 + round..24 + round);
        free(&mut writer, pool, &pages);
    }
    for (page, number) in undone.iter().zip(10..) {
        assert_eq!(read(&preview, pool, *page), Ok(number));
    }
}

#[test]
fn a_pool_that_is_dropped_gives_its_extents_back() {
    for mut bench in benches() {
        let mut writer = bench.create();
        let mut reached = Vec::new();
        for round in 0..10u64 {
            let pool = pool(&mut writer);
            let pages = write(&mut writer, pool, 0..60);
            writer.begin().unwrap();
            // What is made and dropped in the commit that drops leaves nothing either.
            let short = writer.create_pool(PoolOptions { free_percent: 50 }).unwrap();
            writer.write_nameless(short, &payload(1)).unwrap();
            writer.write_nameless(pool, &payload(1)).unwrap();
            writer.free_nameless(pool, pages[0]).unwrap();
            let savepoint = writer.savepoint().unwrap();
            writer.drop_pool(short).unwrap();
            writer.drop_pool(pool).unwrap();
            assert!(matches!(
                writer.write_nameless(pool, &payload(1)).as_ref().map_err(Error::cause),
                Err(Cause::Corrupt { .. })
            ));
            writer.rollback_to(&savepoint).unwrap();
            assert_eq!(read(&writer, pool, pages[1]), Ok(1));
            writer.drop_pool(short).unwrap();
            writer.drop_pool(pool).unwrap();
            writer.commit().unwrap();
            writer.check();
            assert!(read(&writer, pool, pages[1]).is_err());
            if round % 3 == 0 {
                drop(writer);
                writer = bench.open().unwrap();
            }
            // The spine of the commits so far is no longer needed.
            writer.checkpoint().unwrap();
            reached.push(writer.extents());
        }
        assert_eq!(reached[4], reached[9], "{reached:?}");
        assert!(writer.report().pools.is_empty());
    }
    assert_eq!(witness::duplicates(), []);
}

#[test]
fn whole_free_extents_are_given_back() {
    let mut bench = Bench::file(300, 8);
    let mut writer = bench.create();
    let pool = pool(&mut writer);
    let pages = write(&mut writer, pool, 0..400);
    let full = writer.pool_use(pool).unwrap();
    free(&mut writer, pool, &pages[40..]);
    let after = writer.pool_use(pool).unwrap();
    assert!(full.extents >= 50 && after.extents < 9, "{full:?} {after:?}");
    for (page, number) in pages.iter().zip(0..40) {
        assert_eq!(read(&writer, pool, *page), Ok(number));
    }
    let reached = writer.extents();
    writer.begin().unwrap();
    let group = writer.create_group().unwrap();
    bench::fill(&mut writer, group, 300 * 496).unwrap();
    writer.commit().unwrap();
    assert_eq!(writer.extents(), reached, "others have them");
    drop(writer);
    let writer = bench.open().unwrap();
    assert_eq!(writer.pool_use(pool).unwrap().extents, after.extents);
}

#[test]
fn the_next_page_is_the_nearest_free_one() {
    let mut bench = Bench::file(300, 8);
    let mut writer = bench.create();
    let pool = pool(&mut writer);
    let mut pages = write(&mut writer, pool, 0..400);
    let used = writer.pool_use(pool).unwrap();
    assert_eq!((used.pages_written, used.distances.writes), (400, 399));
    assert!(used.distances.average() < 1.2, "{used:?}");
    let before = used.distances;
    let mut dice = counterfoil_flash_sim::Dice::new(3);
    for _ in 0..800 {
        let index = dice.below(400) as usize;
        let new = write(&mut writer, pool, std::iter::once(1))[0];
        free(&mut writer, pool, &[pages[index]]);
        pages[index] = new;
    }
    let used = writer.pool_use(pool).unwrap();
    let average = (used.distances.pages - before.pages) as f64 / (used.distances.writes - before.writes) as f64;
    let share = 1.0 - 400.0 / (f64::from(used.extents) * 8.0);
    println!("{average:.2} pages from write to write, {share:.3} of the pool free: {used:?}");
    assert!(average < 1.5 / share, "as far as the share says");
    assert!(share < 0.3, "{used:?}");
}

#[test]
fn raw_flash_gets_room_by_relocating() {
    let mut bench = Bench::new(Part::nand(512, 4, 400), 32);
    let mut writer = bench.create();
    let pool = pool(&mut writer);
    let mut pages: Vec<(NamelessPage, u64)> = write(&mut writer, pool, 0..200).into_iter().zip(0..).collect();
    let mut dice = counterfoil_flash_sim::Dice::new(4);
    let (mut relocated, mut most) = (0, 0);
    for round in 0..1500u64 {
        writer.begin().unwrap();
        let index = dice.below(200) as usize;
        writer.free_nameless(pool, pages[index].0).unwrap();
        pages[index] = (writer.write_nameless(pool, &payload(round)).unwrap(), round);
        if writer.pool_use(pool).unwrap().extents > 40 {
            for old in writer.pages_to_relocate(pool, 8).unwrap() {
                let place = pages.iter_mut().find(|(page, _)| *page == old).expect("a live page, by its very number");
                assert_eq!(read(&writer, pool, old), Ok(place.1));
                place.0 = writer.write_nameless(pool, &payload(place.1)).unwrap();
                writer.free_nameless(pool, old).unwrap();
                relocated += 1;
            }
        }
        writer.commit().unwrap();
        writer.check();
        most = most.max(writer.pool_use(pool).unwrap().extents);
        if round % 100 == 99 {
            drop(writer);
            writer = bench.open().unwrap();
        }
    }
    println!("{relocated} pages relocated for 1500 writes, at most {most} extents");
    assert!(relocated > 100 && most < 60, "{relocated} {most}");
    for (page, number) in &pages {
        assert_eq!(read(&writer, pool, *page), Ok(*number));
    }
    assert_eq!(witness::duplicates(), []);
}

#[test]
fn a_full_volume_takes_deletions_of_nameless_pages() {
    for (full, mut bench) in [Bench::file(120, 8), Bench::new(Part::nand(512, 4, 240), 8)].into_iter().enumerate() {
        let mut writer = bench.create();
        let pool = pool(&mut writer);
        let mut pages = Vec::new();
        loop {
            writer.begin().unwrap();
            match writer.write_nameless(pool, &payload(pages.len() as u64)) {
                Ok(page) => pages.push(page),
                Err(error) if error.is_full() => {
                    writer.rollback();
                    break;
                }
                Err(error) => panic!("{error}"),
            }
            writer.commit().unwrap();
            assert!(pages.len() < 2000, "medium {full}");
        }
        // As a tree would: a few pages are written anew and many freed.
        for chunk in pages.chunks(10) {
            writer.begin_to_free().unwrap();
            writer.write_nameless(pool, &payload(0)).unwrap_or_else(|error| panic!("medium {full}: {error}"));
            chunk.iter().for_each(|page| writer.free_nameless(pool, *page).unwrap());
            writer.commit().unwrap();
        }
        write(&mut writer, pool, 0..50);
        writer.check();
    }
}

/// Writes pages, each a commit, until there is no room; their addresses.
fn write_until_full(writer: &mut Writer, pool: PoolId) -> Vec<NamelessPage> {
    let mut pages = Vec::new();
    loop {
        writer.begin().unwrap();
        // A commit needs a page of the spine, too.
        match writer.write_nameless(pool, &payload(0)).and_then(|page| writer.commit().map(|_| page)) {
            Ok(page) => pages.push(page),
            Err(error) if error.is_full() => {
                writer.rollback();
                return pages;
            }
            Err(error) => panic!("{error}"),
        }
        assert!(pages.len() < 4000, "the medium has an end");
    }
}

#[test]
fn a_disk_that_others_fill_has_the_room_that_was_given_back() {
    let mut bench = Bench::file(600, 8);
    drop(bench.create());
    let shared = Shared::of(&bench.device, 90 * 8);
    let mut writer = bench.open_on(Box::new(shared.clone())).unwrap();
    let (goes, stays) = (pool(&mut writer), pool(&mut writer));
    write(&mut writer, goes, 0..160);
    write_until_full(&mut writer, stays);
    assert!(writer.pages_left() < 64 && writer.pages_max() == 90 * 8, "{} left", writer.pages_left());
    writer.begin_to_free().unwrap();
    writer.drop_pool(goes).unwrap();
    writer.commit().unwrap();
    // The pool's own extents lie behind all that was given back.
    let more = write_until_full(&mut writer, stays).len();
    assert!(more >= 80, "room for {more} pages of 160");
    assert!(writer.extents() <= 90, "what was refused is in no map");
    // Others leave: the limit is what it was.
    shared.leave(600 * 8);
    write(&mut writer, stays, 0..64);
    assert!(writer.pages_left() > 300 * 8, "{} left", writer.pages_left());
    writer.check();
}

#[test]
fn a_disk_that_others_fill_takes_deletions_wherever_it_ends() {
    for end in 60..76 {
        let mut bench = Bench::file(600, 8);
        drop(bench.create());
        let shared = Shared::of(&bench.device, 600 * 8);
        let mut writer = bench.open_on(Box::new(shared.clone())).unwrap();
        let pool = pool(&mut writer);
        // It ends where the file is, or somewhat further on.
        let mut pages = write(&mut writer, pool, 0..100);
        shared.leave(end * 8);
        pages.extend(write_until_full(&mut writer, pool));
        for (round, chunk) in pages.chunks(10).enumerate() {
            // Each opening takes an extent for its root, each commit a page of the spine.
            if round % 2 == 1 {
                drop(writer);
                writer = bench.open_on(Box::new(shared.clone())).unwrap_or_else(|error| panic!("end {end}: {error}"));
            }
            writer.begin_to_free().unwrap();
            let freed = writer.write_nameless(pool, &payload(0)).and_then(|_| {
                chunk.iter().try_for_each(|page| writer.free_nameless(pool, *page))?;
                writer.commit()
            });
            freed.unwrap_or_else(|error| panic!("end {end}, round {round}: {error}"));
        }
        assert!(bench.device.writes() > 0 && writer.extents() <= end as u32);
        write(&mut writer, pool, 0..50);
        writer.check();
    }
}

#[test]
fn the_record_store_moves_only_where_the_medium_has_room_for_it() {
    let mut bench = Bench::file(600, 8).with_keeper(0);
    drop(bench.create());
    let shared = Shared::of(&bench.device, 40 * 8);
    let mut writer = bench.open_on(Box::new(shared.clone())).unwrap();
    let records = |writer: &mut Writer| {
        (0..80).map(|number: u32| bench::put(writer, &number.to_string(), &[7; 100])).filter(Result::is_ok).count()
    };
    assert!(records(&mut writer) > 50);
    assert!(writer.extents() <= 40 && bench.layout().window_extents == 8, "no part of a window that was refused");
    shared.leave(600 * 8);
    writer.checkpoint().unwrap();
    assert_eq!(records(&mut writer), 80);
    grow(&mut writer, 4000).unwrap();
    assert!(bench.layout().window_extents > 8);
    writer.check();
}

#[test]
fn a_backup_has_the_nameless_pages() {
    let mut bench = Bench::file(300, 8);
    let mut writer = bench.create();
    let pool = pool(&mut writer);
    let pages = write(&mut writer, pool, 0..50);
    free(&mut writer, pool, &pages[..10]);
    let recovered = bench.recover().unwrap();
    let mut target =
        counterfoil_flash_sim::SimulatedDevice::new(Part::file(512, 4, 600), counterfoil_flash_sim::Scenario::calm(1));
    assert!(recovered.copy_pages(&mut target, &mut |_, _| true).unwrap());
    bench.device = target;
    let copy = bench.judged().unwrap();
    for (page, number) in pages.iter().zip(0..).skip(10) {
        assert_eq!(read(&copy, pool, *page), Ok(number));
    }
}

/// An owner whose pages are a list.
struct Listed(PoolId, Vec<NamelessPage>);

impl PoolOwner for Listed {
    fn visit_pages(&self, _: &Snapshot, pool: PoolId, visit: Visit<'_>) -> Result<(), Error> {
        let ours = self.1.iter().filter(|_| pool == self.0);
        ours.copied().try_for_each(visit)
    }
}

#[test]
fn pages_keep_their_addresses_under_another_key() {
    let mut bench = Bench::file(300, 8);
    let mut writer = bench.create();
    let (pool, empty) = (pool(&mut writer), pool(&mut writer));
    let mut pages = write(&mut writer, pool, 0..300);
    free(&mut writer, pool, &pages.drain(20..280).collect::<Vec<_>>());
    pages.extend(write(&mut writer, pool, 40..60));
    let mut other = Bench::file(300, 8);
    let mut copy = other.create();
    let snapshot = writer.snapshot();
    assert!(
        matches!(
            copy.fill_from(&snapshot, &mut |_, _| true).as_ref().map_err(Error::cause),
            Err(Cause::Tampered { .. })
        ),
        "nobody told of them"
    );
    assert!(copy.fill_from_with(&snapshot, &Listed(pool, pages.clone()), &mut |_, _| true).unwrap());
    copy.check();
    assert_eq!(
        copy.snapshot().pools(),
        [(pool, 60), (empty, 0)].map(|(id, _)| (id, writer.pool_use(id).unwrap().live_pages))
    );
    for page in &pages {
        assert_eq!(read(&copy, pool, *page), read(&writer, pool, *page));
    }
    drop(copy);
    let mut copy = other.open().unwrap();
    let more = write(&mut copy, pool, 0..40);
    for page in &pages {
        assert_eq!(read(&copy, pool, *page), read(&writer, pool, *page));
        assert!(more.iter().all(|new| new.page != page.page && new.write > page.write));
    }
    assert_eq!(witness::duplicates(), []);
}

#[test]
fn a_pool_outlives_a_move_of_the_record_store() {
    let mut bench = Bench::file(600, 8).with_keeper(0);
    let mut writer = bench.create();
    let pool = pool(&mut writer);
    let mut pages: Vec<(NamelessPage, u64)> = write(&mut writer, pool, 0..30).into_iter().zip(0..).collect();
    let window = bench.layout().window_extents;
    for step in 0..12u64 {
        bench::put(&mut writer, &format!("large {step}"), &[7; 1500]).unwrap();
        free(&mut writer, pool, &[pages.remove(0).0]);
        pages.push((write(&mut writer, pool, std::iter::once(step))[0], step));
    }
    assert!(bench.layout().window_extents > window);
    drop(writer);
    let writer = bench.open().unwrap();
    for (page, number) in &pages {
        assert_eq!(read(&writer, pool, *page), Ok(*number));
    }
    assert_eq!(witness::duplicates(), []);
}
