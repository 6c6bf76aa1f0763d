//! The dishonest mirror: each of its ways is noticed, wherever it strikes.

use counterfoil_proof::{Refusal, Scheme};
use counterfoil_reader::Error;
use counterfoil_verifier::{Corruption, Same, Session};

use crate::world::{Dice, World, row};

const ALL: &str = "SELECT * FROM prices";
const SOME: &str = "SELECT symbol, day, price FROM prices WHERE symbol = 'NES' ORDER BY day DESC LIMIT 5";

/// By nodes, of all rows and of a part with rows at its edges.
const TOTALS: [&str; 3] = [
    "SELECT sum(price) FROM prices",
    "SELECT count(*), sum(price) FROM prices WHERE symbol = 'NES' AND day BETWEEN '1970-01-03' AND '1970-06-20'",
    "SELECT symbol, count(*), max(day) FROM prices GROUP BY symbol",
];

fn sessions(world: &World) -> Vec<Session> {
    let asked = [ALL, SOME, "SELECT max(note) FROM prices"].into_iter().chain(TOTALS);
    asked.flat_map(|sql| [world.ask(sql), world.ask_mirror(sql)]).collect()
}

fn refused(session: &Session, corruption: &Corruption) -> Error {
    let corrupted = session.corrupt(corruption).unwrap_or_else(|| panic!("{corruption:?}: nothing of this kind"));
    match corrupted.outcome {
        Err(error) => error,
        Ok(same) => panic!("{corruption:?} was taken ({same:?}): {}", corrupted.what),
    }
}

#[test]
fn another_value_and_a_row_left_out_are_noticed() {
    let schemes = [Scheme::PerRecord, Scheme::PerAttribute, Scheme::Group(2), Scheme::Group(16)];
    schemes.into_iter().for_each(another_value_and_a_row_left_out);
}

fn another_value_and_a_row_left_out(scheme: Scheme) {
    let world = World::signed(scheme, 60);
    let mut dice = Dice(3);
    for session in sessions(&world) {
        for _ in 0..6 {
            let value = Corruption::Value { row: dice.next(), column: dice.next() };
            assert!(matches!(refused(&session, &value), Error::Refused(_)), "{value:?}");
            let row = Corruption::Row { row: dice.next() };
            let error = refused(&session, &row);
            let is_told = matches!(error, Error::Refused(Refusal::Forged(_) | Refusal::Incomplete(_)));
            // Without a node, rows on both sides of it would stand in two parts.
            let is_in_parts =
                matches!(error, Error::Refused(Refusal::Malformed("rows in two parts where one would do")));
            assert!(is_told || is_in_parts, "{row:?}: {error}");
        }
    }
    // What no order holds is caught by the signature alone, and the words say what was done.
    let session = world.ask(ALL);
    let corrupted = session.corrupt(&Corruption::Value { row: 1, column: 3 }).expect("a row");
    assert!(matches!(corrupted.outcome, Err(Error::Refused(Refusal::Forged(_)))));
    assert!(corrupted.what.starts_with("note of row 2 of the answer was <img"), "{}", corrupted.what);
    let corrupted = session.corrupt(&Corruption::Row { row: 5 }).expect("a row");
    assert!(corrupted.what.ends_with("and its signature with it"), "{}", corrupted.what);
}

#[test]
fn totals_nodes_and_the_rows_beside_them_are_held_by_their_signatures() {
    let world = World::of(200);
    for (sql, has_edges) in TOTALS.into_iter().zip([false, true, true]) {
        for (session, is_folder) in [(world.ask(sql), true), (world.ask_mirror(sql), false)] {
            let (mut sums, mut nodes, mut rows) = (0, 0, 0);
            for number in 0..30 {
                for column in 0..2 {
                    let corrupted = session.corrupt(&Corruption::Value { row: number, column }).expect("something");
                    let error = corrupted.outcome.expect_err("another total");
                    assert!(matches!(error, Error::Refused(_)), "{sql}: {error}");
                    if corrupted.what.contains("sum of price") || corrupted.what.contains("made one of") {
                        assert!(matches!(error, Error::Refused(Refusal::Forged(_))), "{sql}: {error}");
                        sums += 1;
                    }
                }
                let corrupted = session.corrupt(&Corruption::Row { row: number }).expect("something");
                assert!(matches!(corrupted.outcome, Err(Error::Refused(_))), "{sql}: {}", corrupted.what);
                // The first has one node, and nothing at its edges.
                let end = if has_edges { "and its signature with it" } else { "and nothing is left" };
                assert_eq!(corrupted.what.ends_with(end), is_folder, "{}", corrupted.what);
                nodes += usize::from(corrupted.what.starts_with("a node of"));
                rows += usize::from(corrupted.what.starts_with("a row at the edge"));
            }
            assert!(sums > 0 && nodes > 0 && (rows > 0) == has_edges, "{sql}: {sums} sums, {nodes} nodes, {rows} rows");
        }
    }
}

#[test]
fn summaries_are_missed() {
    let world = World::of(60);
    let mut dice = Dice(4);
    for session in sessions(&world) {
        for _ in 0..6 {
            let error = refused(&session, &Corruption::Summary { bit: dice.next() });
            assert!(matches!(error, Error::Refused(_) | Error::Damaged(..)), "{error}");
        }
        assert!(matches!(refused(&session, &Corruption::Yesterday), Error::Refused(Refusal::Stale(_))));
    }
}

#[test]
fn no_bit_of_what_was_fetched_makes_other_rows() {
    let world = World::of(60);
    let mut dice = Dice(5);
    for session in sessions(&world) {
        let mut same = 0;
        for _ in 0..24 {
            let corrupted = session.corrupt(&Corruption::Bit { path: None, bit: dice.next() }).expect("files");
            match corrupted.outcome {
                Ok(Same::OtherRows) => panic!("not noticed: {}", corrupted.what),
                Ok(Same::Rows) => same += 1,
                Err(_) => {}
            }
        }
        // The root of the other order, and summaries from before the oldest signature, say nothing here.
        assert!(same < 6, "{same} of 24 bits are not looked at");
    }
    // Each bit of a small file, by its name. Its third byte says from where on summaries are needed: fetching one more does no
    // harm. The second root is that of the other order.
    let session = world.ask(SOME);
    for bit in (0..8 * 20).filter(|bit| bit / 8 != 2) {
        refused(&session, &Corruption::Bit { path: Some("head".into()), bit });
    }
    assert!(session.corrupt(&Corruption::Bit { path: Some("nowhere".into()), bit: 0 }).is_none());
}

#[test]
fn what_is_not_there_cannot_be_corrupted_and_nothing_is_changed_by_trying() {
    let mut world = World::new();
    world.publish((0..3).map(row).collect());
    let mut fresh = world.session(ALL, None);
    assert!(fresh.corrupt(&Corruption::Yesterday).is_none(), "nothing was fetched");
    let _ = fresh.step();
    assert!(fresh.corrupt(&Corruption::Bit { path: None, bit: 3 }).is_none());
    let empty = world.ask("SELECT * FROM prices WHERE symbol = 'nobody'");
    assert!(empty.corrupt(&Corruption::Row { row: 0 }).is_none());
    assert!(empty.corrupt(&Corruption::Value { row: 0, column: 0 }).is_none());
    let session = world.ask(ALL);
    let before = session.memory().cloned();
    refused(&session, &Corruption::Row { row: 0 });
    assert!(session.memory() == before.as_ref());
}
