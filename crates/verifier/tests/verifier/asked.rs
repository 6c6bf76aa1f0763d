//! Honest mirrors, silent ones, old ones, and some without end.

use counterfoil_mirror::site::Folder;
use counterfoil_proof::Refusal;
use counterfoil_reader::{Error, read};
use counterfoil_verifier::{BYTES_MAX, Brought, FILES_MAX, Session, Wanted};

use crate::world::{Counted, World, row, run};

const ALL: &str = "SELECT * FROM prices";

#[test]
fn a_page_gets_what_a_reader_of_the_folder_gets() {
    let world = World::of(600);
    for sql in [
        ALL,
        "SELECT day, price FROM prices WHERE symbol = 'NES' AND day BETWEEN 100 AND 300"
            .replace("100", "'1970-04-11'")
            .replace("300", "'1970-10-28'")
            .as_str(),
        "SELECT symbol FROM prices ORDER BY price DESC LIMIT 3",
        "SELECT count(*), sum(price) FROM prices WHERE symbol IN ('ABB', 'ROG')",
        "SELECT * FROM prices WHERE symbol = 'nobody'",
        "SELECT * FROM prices WHERE symbol < 'A' AND symbol > 'B'",
    ] {
        let mut folder = Folder(world.folder.path().into());
        let there = read(&mut folder, sql, &world.terms(), &mut None).expect("rows");
        for session in [world.ask(sql), world.ask_mirror(sql)] {
            let mut session = session;
            let here = run(&mut session, &mut |_| unreachable!("all is here")).expect("rows");
            assert!(here.table == there.table && here.verdict == there.verdict && here.plan == there.plan, "{sql}");
            assert!(here.kept.check(&world.terms().owner, 5).expect("still right").0 == there.table);
            assert!(session.memory().is_some());
        }
    }
}

#[test]
fn files_come_in_few_rounds_each_once_and_few_that_are_not_needed() {
    let world = World::of(3000);
    let asked = |sql: &str| {
        let (mut session, mut counted) = (world.session(sql, None), Counted::default());
        run(&mut session, &mut |wanted| {
            counted.note(wanted);
            world.folder_sends(wanted)
        })
        .expect("rows");
        assert!(counted.0.values().all(|times| *times == 1), "{sql}: a file twice");
        (session.effort(), counted.0.len())
    };
    let (all, files) = asked(ALL);
    println!("all rows: {all:?}");
    assert!(files > 80 && all.rounds < 20, "{all:?}");
    let (one, files) = asked("SELECT * FROM prices WHERE symbol = 'NES' AND day = '1973-01-02'");
    println!("one row: {one:?}");
    assert!(files < 20 && one.rounds < 10, "{one:?}");
}

#[test]
fn places_of_many_tables_are_found() {
    let world = World::of(40);
    let prefix = format!("{}/prices/", world.publication.owner());
    let mut session = world.session(ALL, None);
    let reading = run(&mut session, &mut |wanted| match wanted.path.strip_prefix(&prefix) {
        Some(path) => world.folder_sends(&Wanted { path: path.into(), ..wanted.clone() }),
        None => Brought::Nothing,
    });
    assert_eq!(reading.expect("rows").table.rows.len(), 40);
}

#[test]
fn yesterday_is_refused_by_who_has_seen_today() {
    let mut world = World::new();
    world.publish((0..10).map(row).collect());
    let mut yesterday = World::new();
    yesterday.publish((0..10).map(row).collect());
    world.publish((10..20).map(row).collect());
    let today = world.ask(ALL);
    let memory = today.memory().cloned();
    let mut again = world.session(ALL, memory.clone());
    let refused = run(&mut again, &mut |wanted| yesterday.folder_sends(wanted)).expect_err("an old state");
    assert!(matches!(refused, Error::Refused(Refusal::Stale(_))), "{refused}");
    assert!(again.memory() == memory.as_ref());
    // Two pages: what one has seen is kept if it is newer than what the other one kept.
    let old = yesterday.ask(ALL);
    let kept = |session: &Session| session.memory().expect("something was seen").to_bytes();
    assert!(old.newer(Some(&kept(&today))).expect("a memory") == memory);
    assert!(today.newer(Some(&kept(&old))).expect("a memory") == memory);
    assert!(today.newer(None).expect("a memory") == memory);
    assert!(today.newer(Some(&[0])).is_err());
}

#[test]
fn a_folder_that_was_brought_up_to_date_meanwhile_is_asked_again() {
    let mut world = World::of(200);
    let mut session = world.session(ALL, None);
    let mut before = Vec::new();
    let mut is_first = true;
    let reading = run(&mut session, &mut |wanted| {
        if wanted.path.starts_with("pages/") && is_first {
            is_first = false;
            return Brought::Nothing;
        }
        before.push(wanted.path.clone());
        world.folder_sends(wanted)
    });
    assert_eq!(reading.expect("rows").table.rows.len(), 200);
    assert_eq!(before.iter().filter(|path| *path == "head").count(), 2);
    // Who holds a page back for ever is asked twice, and not again.
    world.publish(vec![row(7)]);
    let mut session = world.session(ALL, None);
    let mut heads = 0;
    let refused = run(&mut session, &mut |wanted| {
        heads += usize::from(wanted.path == "head");
        if wanted.path.starts_with("pages/") { Brought::Nothing } else { world.folder_sends(wanted) }
    });
    assert!(matches!(refused, Err(Error::Withheld(_))));
    assert_eq!(heads, 2);
}

#[test]
fn what_fails_is_told_and_what_never_ends_is_ended() {
    let world = World::of(20);
    let refused = |bring: &mut dyn FnMut(&Wanted) -> Brought| {
        run(&mut world.session(ALL, None), bring).expect_err("no rows").to_string()
    };
    assert!(refused(&mut |_| Brought::Nothing).starts_with("no published table is here"));
    assert_eq!(refused(&mut |wanted| Brought::Failed(format!("{}: no network", wanted.path))), "manifest: no network");
    let large = refused(&mut |wanted| Brought::Bytes(vec![0; wanted.most + 1]));
    assert!(large.contains("more than"), "{large}");
    // Summaries without end, each file as it should be.
    let mut files = 0;
    let endless = refused(&mut |wanted| match &wanted.path[..] {
        "head" => Brought::Bytes([&[1][..], &[0xff; 8], &[0x7f, 0, 0]].concat()),
        path if path.starts_with("summaries/") => {
            files += 1;
            Brought::Bytes([0; 64].to_vec())
        }
        _ => world.folder_sends(wanted),
    });
    assert!(endless.contains("too much for a page"), "{endless}");
    assert!(files <= FILES_MAX);
    // Few files, but large ones.
    let mut bytes = 0;
    let endless = refused(&mut |wanted| match &wanted.path[..] {
        "head" => Brought::Bytes([&[1][..], &[0xff; 8], &[0x7f, 0, 0]].concat()),
        path if path.starts_with("summaries/") => {
            bytes += 40 << 20;
            let mut file = vec![0x80, 0x80, 0x80, 0x13];
            file.resize(40 << 20, 0);
            Brought::Bytes(file)
        }
        _ => world.folder_sends(wanted),
    });
    assert!(endless.contains("too much for a page"), "{endless}");
    assert!(bytes <= BYTES_MAX + (40 << 20));
}
