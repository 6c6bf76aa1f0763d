//! Rows come back as they were, whatever `may_fail` clouds do.

use std::time::Duration;

use counterfoil_disperse::{
    Asking, Condition, Distribution, Epoch, Failure, Fault, Goal, Plain, Report, Rows, State, Unanswered, Value, Watch,
};
use proptest::prelude::*;

use crate::clouds::{ID, Mood, NAME, NOTE, Person, SALARY, World};

pub fn people() -> impl Strategy<Value = Vec<Person>> {
    let text = || prop::option::weighted(0.9, "[a-cä]{0,9}");
    let person = (any::<i64>(), text(), prop::option::weighted(0.9, -3_i64..1 << 33), text());
    prop::collection::vec(person, 1..40)
}

fn text(plain: &Plain, row: usize) -> Option<&str> {
    let Plain::Strings { values, nulls } = plain else { panic!("texts are strings") };
    (!nulls[row]).then(|| std::str::from_utf8(values.get(row)).expect("a text"))
}

/// A condition, and the same of a person.
type Both = (Condition, Box<dyn Fn(&Person) -> bool>);

pub fn conditions(people: &[Person], pick: usize) -> Vec<Both> {
    let (id, name, salary, _) = people[pick % people.len()].clone();
    let name = name.unwrap_or_else(|| "ab".into());
    let prefix: String = name.chars().take(1 + pick % 8).collect();
    let salary = salary.unwrap_or(7);
    let number = |number: i64| Value::Number(i128::from(number));
    let string = |text: &str| Value::String(text.as_bytes().to_vec());
    let range = |low, high| Condition::Range { column: SALARY, low, high };
    let mut all: Vec<Both> = vec![
        (
            Condition::Equal { column: ID, values: vec![number(id), number(1)] },
            Box::new(move |of| of.0 == id || of.0 == 1),
        ),
        (range(Some((number(salary), true)), None), Box::new(move |of| of.2.is_some_and(|own| own >= salary))),
        (
            range(Some((number(-1), false)), Some((number(salary), false))),
            Box::new(move |of| of.2.is_some_and(|own| own > -1 && own < salary)),
        ),
    ];
    let equal = Condition::Equal { column: NAME, values: vec![string(&name)] };
    let upto = Condition::Range { column: NAME, low: None, high: Some((string(&name), false)) };
    let begun = Condition::Prefix { column: NAME, text: prefix.clone() };
    let other = name.clone();
    all.push((equal, Box::new(move |of| of.1.as_ref() == Some(&other))));
    all.push((upto, Box::new(move |of| of.1.as_ref().is_some_and(|own| *own < name))));
    all.push((begun, Box::new(move |of| of.1.as_ref().is_some_and(|own| own.starts_with(&prefix)))));
    all
}

const DISTRIBUTIONS: [Distribution; 3] = [Distribution::Spare, Distribution::Replicated, Distribution::Dispersed];

proptest! {
    #[test]
    fn what_was_put_is_read(
        people in people(),
        pick in any::<usize>(),
        (shape, distribution) in (0_usize..4, 0_usize..4),
        bad in any::<usize>(),
    ) {
        let shape @ (clouds, may_fail, _) = [(1, 0, 0), (3, 1, 1), (4, 1, 2), (5, 2, 2)][shape];
        let world = match DISTRIBUTIONS.get(distribution) {
            Some(distribution) => World::distributed(shape, *distribution, &people),
            None => World::in_order(shape, &people),
        };
        for failing in 0..may_fail {
            world.clouds[(bad + failing) % clouds].set(Mood::BAD[(bad + failing) % Mood::BAD.len()]);
        }
        let mut report = Report::default();
        let found = world.table.read(world.asking(), &[ID, NAME, SALARY, NOTE], &[], &mut report);
        let found = found.expect("all rows");
        prop_assert_eq!(&found.rows, &world.rows);
        prop_assert!(found.columns == world.columns);
        for (condition, is_true) in conditions(&people, pick) {
            let mut report = Report::default();
            let found = world.table.read(world.asking(), &[NOTE], &[condition], &mut report).expect("rows");
            for (row, person) in people.iter().enumerate() {
                let at = found.rows.iter().position(|own| *own == row as u64);
                // All that match are there; what else is there has the right values too.
                prop_assert!(at.is_some() || !is_true(person), "row {} is missing", row);
                if let Some(at) = at {
                    prop_assert_eq!(text(&found.columns[0], at), person.3.as_deref());
                }
            }
            prop_assert!(report.faults.iter().all(|(cloud, _)| (0..may_fail).any(|of| *cloud == (bad + of) % clouds)));
        }
    }
}

proptest! {
    #[test]
    fn what_is_known_exactly_is_what_matches(
        people in people(),
        (pick, bad) in any::<(usize, usize)>(),
        (shape, is_in_order) in (0_usize..4, any::<bool>()),
    ) {
        let shape @ (clouds, may_fail, _) = [(1, 0, 0), (3, 1, 1), (4, 1, 2), (5, 2, 2)][shape];
        let world = if is_in_order { World::in_order(shape, &people) } else { World::new(shape, &people) };
        for is_honest in [true, false] {
            if !is_honest {
                for failing in 0..may_fail {
                    world.clouds[(bad + failing) % clouds].set(Mood::BAD[(bad + failing) % Mood::BAD.len()]);
                }
            }
            for (condition, is_true) in conditions(&people, pick) {
                let knows = world.table.knows(&condition);
                // Of the order of texts eight bytes are known, of beginnings six characters.
                let is_short = !matches!(&condition, Condition::Prefix { text, .. } if !(1..=6).contains(&text.chars().count()));
                let is_text = matches!(condition, Condition::Range { column: NAME, .. });
                prop_assert_eq!(knows, is_short && !is_text, "{:?}", condition.column());
                let given = [condition];
                let rows = world.table.exactly(world.asking(), &given, &mut Report::default()).expect("an answer");
                prop_assert!(rows.is_some() == knows || !is_honest);
                let expected = || world.rows.iter().filter(|row| is_true(&people[**row as usize]));
                prop_assert!(rows.is_none_or(|rows| rows.iter().eq(expected().copied())));
                // And whoever has the values open sees the same.
                let found = world.table.read(world.asking(), &[ID, NAME, SALARY], &[], &mut Report::default());
                let matching = found.expect("all rows").matching(&[ID, NAME, SALARY], &given);
                prop_assert!(matching.iter().map(|row| *row as u64).eq(expected().copied()));
            }
        }
    }
}

pub fn some_people() -> Vec<Person> {
    (0..30)
        .map(|id| (id, Some(format!("n{}", id % 3)), Some(id * 1000 - 5000), Some("x".repeat(id as usize))))
        .collect()
}

#[test]
fn codes_of_honest_clouds_are_exact_for_numbers_and_tags() {
    let people = some_people();
    let world = World::new((3, 1, 1), &people);
    for (condition, is_true) in conditions(&people, 17).into_iter().take(4) {
        let found = world.table.read(world.asking(), &[ID], &[condition], &mut Report::default()).expect("rows");
        let true_of: Vec<u64> = (0..30).filter(|row| is_true(&people[*row as usize])).collect();
        assert_eq!(found.rows, true_of);
    }
}

#[test]
fn each_way_of_lying_is_named() {
    let world = World::new((3, 1, 1), &some_people());
    for (mood, fault) in
        [(Mood::Forgetful, Fault::Lacks), (Mood::Lying, Fault::Forged), (Mood::Shuffling, Fault::Forged)]
    {
        for bad in 0..3 {
            world.clouds[bad].set(mood);
            let mut report = Report::default();
            let found = world.table.read(world.asking(), &[ID, NAME, SALARY, NOTE], &[], &mut report).expect("rows");
            assert!(found.columns == world.columns);
            // A cloud that nobody had to ask says nothing.
            assert!(report.faults.iter().all(|found| *found == (bad, fault.clone())), "{report:?}");
            world.clouds[bad].set(Mood::Honest);
        }
    }
}

#[test]
fn who_leaves_rows_out_of_a_condition_is_named() {
    let people = some_people();
    let world = World::new((3, 1, 1), &people);
    let mut named = 0;
    for (condition, is_true) in conditions(&people, 17) {
        let given = [condition];
        let expected: Vec<u64> = (0..30).filter(|row| is_true(&people[*row as usize])).collect();
        for (mood, bad) in
            [Mood::Denying, Mood::Forgetful].into_iter().flat_map(|mood| (0..3).map(move |bad| (mood, bad)))
        {
            world.clouds[bad].set(mood);
            let mut report = Report::default();
            // Whatever is wanted of the rows, and whether or not it is said that it is to be sure.
            for goal in [Goal::Ordinary, Goal::Reliability(None)] {
                let asking = Asking { goal, ..world.asking() };
                let found = world.table.read(asking, &[], &given, &mut report).expect("rows");
                assert!(expected.iter().all(|row| found.rows.contains(row)));
            }
            assert!(report.faults.iter().all(|(cloud, _)| *cloud == bad), "{report:?}");
            named += usize::from(report.faults.contains(&(bad, Fault::LeavesOut)));
            world.clouds[bad].set(Mood::Honest);
        }
        let mut report = Report::default();
        world.table.read(world.asking(), &[], &given, &mut report).expect("rows");
        assert_eq!(report, Report::default());
    }
    // Each condition has a code at two of three clouds, and of each some rows are true.
    assert_eq!(named, 6 * 2 * 2);
}

#[test]
fn more_failures_than_declared_are_no_wrong_answer() {
    let world = World::new((3, 1, 1), &some_people());
    for mood in [Mood::Silent, Mood::Forgetful, Mood::Lying, Mood::Shuffling] {
        world.clouds.iter().for_each(|cloud| cloud.set(mood));
        let mut report = Report::default();
        let found = world.table.read(world.asking(), &[NAME], &[], &mut report);
        assert!(matches!(found, Err(Unanswered::Column { ref column, .. }) if column == "name"), "{mood:?}");
        assert_eq!(report.faults.len(), 2, "both clouds that have names");
    }
}

#[test]
fn a_database_that_was_put_back_gives_numbers_again_and_loses_nothing() {
    let people = some_people();
    let mut world = World::new((3, 1, 1), &people[..10]);
    // Put back to nothing, it goes on in another epoch with the same numbers, at clouds that still have the rows of before.
    world.state = State::new(3);
    world.state.epochs.begin(0, Epoch([9; 16]));
    world.rows = (0..12).collect();
    world.columns = crate::clouds::columns(&people[12..24]);
    world.put();
    let mut report = Report::default();
    let found = world.table.read(world.asking(), &[ID, NAME, SALARY, NOTE], &[], &mut report).expect("rows");
    assert!(found.columns == world.columns && report == Report::default(), "{report:?}");
    let name = Condition::Equal { column: NAME, values: vec![Value::String(b"n1".to_vec())] };
    let found = world.table.read(world.asking(), &[ID], &[name], &mut report).expect("rows");
    assert_eq!((found.rows, &report), (vec![1, 4, 7, 10], &Report::default()));
    let sum = world.table.sum(world.asking(), SALARY, &world.rows, &mut report).expect("a sum").expect("shares");
    assert_eq!(
        (sum.values, sum.total, &report),
        (12, Some((12..24).map(|id| id * 1000 - 5000).sum()), &Report::default())
    );
    for cloud in 0..3 {
        let (rows, others) = world.table.rows_at(world.asking(), cloud).expect("places");
        assert_eq!((rows, others.len()), (world.rows.iter().copied().collect(), 10));
        world.table.remove_places(cloud, &others).expect("removed");
        assert!(world.table.rows_at(world.asking(), cloud).expect("places").1.is_empty());
    }
}

/// Lets so many bytes through.
struct Room(std::sync::atomic::AtomicUsize);

impl Watch for Room {
    fn part(&self, bytes: usize) -> Result<(), Failure> {
        let take = |left: usize| left.checked_sub(bytes);
        let order = std::sync::atomic::Ordering::Relaxed;
        self.0.fetch_update(order, order, take).map(drop).map_err(|_| Failure::CalledOff)
    }
}

#[test]
fn a_cloud_that_shows_too_much_is_cut_short() {
    let world = World::new((3, 1, 1), &some_people());
    let read = |room: usize| {
        let watch = Room(room.into());
        let asking = Asking { state: &world.state, watch: &watch, goal: Goal::Ordinary };
        world.table.read(asking, &[NAME, NOTE], &[], &mut Report::default()).map(|found| found.rows.len())
    };
    assert_eq!((read(1 << 20), read(1000)), (Ok(30), Err(Unanswered::CalledOff)));
    // The same rows again and again are not kept again.
    world.clouds.iter().for_each(|cloud| cloud.set(Mood::Repeating));
    let mut report = Report::default();
    let found = world.table.read(world.asking(), &[NAME], &[], &mut report);
    assert!(matches!(found, Err(Unanswered::Column { .. })));
    assert!(report.faults.iter().all(|(_, fault)| matches!(fault, Fault::Failed(Failure::Malformed(_)))), "{report:?}");
}

#[test]
fn a_cloud_that_is_slow_holds_nobody_up() {
    let people = some_people();
    let world = World::new((3, 1, 1), &people);
    for stuck in 0..3 {
        world.clouds[stuck].set(Mood::Stuck);
        let mut report = Report::default();
        let found = world.table.read(world.asking(), &[ID, NAME, SALARY, NOTE], &[], &mut report).expect("all rows");
        assert!(found.columns == world.columns, "without {stuck}");
        let sum = world.table.sum(world.asking(), SALARY, &world.rows, &mut report).expect("a sum");
        assert!(sum.is_some_and(|sum| sum.values > 0));
        // It is named if it was asked, and for nothing worse.
        assert!(report.faults.iter().all(|fault| *fault == (stuck, Fault::Slow)), "{:?}", report.faults);
        world.clouds[stuck].set(Mood::Honest);
    }
    // Two that are slow are waited for; whoever waits can call it off.
    world.clouds[0].set(Mood::Stuck);
    world.clouds[1].set(Mood::Stuck);
    let begun = std::time::Instant::now();
    let watch = Impatient(begun);
    let asking = Asking { watch: &watch, ..world.asking() };
    let told = world.table.read(asking, &[ID, NAME, SALARY, NOTE], &[], &mut Report::default());
    assert!(matches!(told, Err(Unanswered::CalledOff)));
    let condition = Condition::Equal { column: ID, values: vec![Value::Number(1)] };
    let told = world.table.read(asking, &[ID], &[condition], &mut Report::default());
    assert!(matches!(told, Err(Unanswered::CalledOff)));
    let told = world.table.sum(asking, SALARY, &world.rows, &mut Report::default());
    assert!(matches!(told, Err(Unanswered::CalledOff)));
    world.clouds.iter().for_each(|cloud| cloud.set(Mood::Honest));
}

/// Three clouds have the cells of a column, and each has lost some. The third one hangs when it is asked what it shows of them, in vain or
/// until it is waited for.
#[test]
fn what_several_show_does_not_wait_for_one_that_hangs_if_it_is_all() {
    for lost in [[[0_u64, 2, 4], [1, 3, 5], [0, 2, 4]], [[0, 3, 0], [0, 3, 1], [2, 5, 5]]] {
        let world = World::new((5, 2, 1), &some_people());
        let holders = world.table.coder().placement().cell_holders(NOTE);
        let is_all = lost[0].iter().all(|row| !lost[1].contains(row));
        for (cloud, lost) in holders.iter().zip(lost) {
            let lost: Rows = world.rows.iter().copied().filter(|row| lost.contains(&(row % 6))).collect();
            world.table.remove(&world.state, *cloud, &lost).expect("an honest cloud");
        }
        let third = holders[2];
        world.clouds[third].stick_after(1);
        let mut report = Report::default();
        let watch = Until(std::time::Instant::now() + Duration::from_secs(120));
        let asking = Asking { watch: &watch, ..world.asking() };
        let found = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_all && world.clouds[third].asked() < 2 {
                    std::thread::sleep(Duration::from_millis(5));
                }
                if !is_all {
                    // Long enough for it to be slow.
                    std::thread::sleep(Duration::from_secs(4));
                    world.clouds[third].set(Mood::Honest);
                }
            });
            world.table.read(asking, &[NOTE], &[], &mut report).expect("all rows")
        });
        assert!(found.rows == world.rows && found.columns[0] == world.columns[usize::from(NOTE)], "{lost:?}");
        assert_eq!(report.faults.contains(&(third, Fault::Slow)), is_all, "{:?}", report.faults);
        world.clouds[third].set(Mood::Honest);
    }
}

#[test]
fn a_cloud_that_kept_somebody_waiting_is_asked_after_the_others() {
    let mut kept_waiting = 0;
    for stuck in 0..3 {
        let world = World::new((3, 1, 1), &some_people());
        world.clouds[stuck].set(Mood::Stuck);
        let read = || {
            let mut report = Report::default();
            let all = [ID, NAME, SALARY, NOTE];
            let found = world.table.read(world.asking(), &all, &[], &mut report).expect("all rows");
            assert!(found.columns == world.columns, "without {stuck}");
            world.table.sum(world.asking(), SALARY, &world.rows, &mut report).expect("a sum");
            (world.clouds[stuck].asked(), report.faults.contains(&(stuck, Fault::Slow)))
        };
        let (asked, was_slow) = read();
        kept_waiting += usize::from(was_slow);
        if was_slow {
            assert_eq!(read(), (asked, false), "{stuck} is not asked again");
        }
        world.clouds[stuck].set(Mood::Honest);
    }
    assert!(kept_waiting > 0, "one of them is asked at first");
}

#[test]
fn an_index_answer_does_not_wait_for_a_cloud_that_hangs() {
    let world = World::new((3, 1, 1), &some_people());
    let mut waited = 0;
    for stuck in 0..3 {
        world.clouds[stuck].set(Mood::Stuck);
        let watch = Until(std::time::Instant::now() + Duration::from_secs(120));
        let asking = Asking { watch: &watch, ..world.asking() };
        let condition = Condition::Equal { column: ID, values: vec![Value::Number(7)] };
        let mut report = Report::default();
        let found = world.table.read(asking, &[NAME], &[condition], &mut report).expect("a row");
        assert_eq!((found.rows, text(&found.columns[0], 0)), (vec![7], Some("n1")));
        // It counts as one that fails, where it was needed.
        let is_silent =
            |(cloud, fault): &(usize, Fault)| *cloud == stuck && matches!(fault, Fault::Failed(_) | Fault::Slow);
        assert!(report.faults.iter().all(is_silent), "{:?}", report.faults);
        waited += usize::from(report.faults.iter().any(|(_, fault)| matches!(fault, Fault::Failed(_))));
        world.clouds[stuck].set(Mood::Honest);
    }
    assert_eq!(waited, 2, "two of them have the tags");
}

/// Waits until then.
struct Until(std::time::Instant);

impl Watch for Until {
    fn part(&self, _: usize) -> Result<(), Failure> {
        if std::time::Instant::now() < self.0 { Ok(()) } else { Err(Failure::CalledOff) }
    }
}

/// Waits for a moment and no longer.
struct Impatient(std::time::Instant);

impl Watch for Impatient {
    fn part(&self, _bytes: usize) -> Result<(), Failure> {
        match self.0.elapsed().as_millis() < 300 {
            true => Ok(()),
            false => Err(Failure::CalledOff),
        }
    }
}

/// Some people of whom no two are alike.
fn a_few() -> Vec<Person> {
    (0..20).map(|at| (at, Some(format!("n{at}")), Some(at * 3), Some("x".repeat(at as usize)))).collect()
}

#[test]
fn who_wants_it_reliable_hears_of_every_cloud_that_shows_something_else() {
    let all = [ID, NAME, SALARY, NOTE];
    for mood in [Mood::Silent, Mood::Forgetful, Mood::Lying, Mood::Shuffling, Mood::Repeating] {
        for cloud in 0..3 {
            let world = World::new((3, 1, 1), &a_few());
            let asking = |quorum| Asking { goal: Goal::Reliability(quorum), ..world.asking() };
            let honest = world.table.read(asking(Some(2)), &all, &[], &mut Report::default()).expect("all rows");
            assert!(honest.columns == world.columns);
            world.clouds[cloud].set(mood);
            let mut report = Report::default();
            let found = world.table.read(asking(Some(1)), &all, &[], &mut report).expect("all rows");
            assert!(found.columns == world.columns);
            assert!(report.blames(cloud) && report.faults.len() == 1, "{mood:?} of {cloud}: {report:?}");
            for quorum in [None, Some(2)] {
                let found = world.table.read(asking(quorum), &all, &[], &mut Report::default()).map(|found| found.rows);
                let Err(Unanswered::Quorum { wanted: 2, there: 1, report, .. }) = found else {
                    panic!("{mood:?} of {cloud}: {found:?}")
                };
                assert!(report.blames(cloud));
            }
            let sum = world.table.sum(asking(Some(3)), SALARY, &world.rows, &mut Report::default());
            assert!(matches!(sum, Err(Unanswered::Quorum { wanted: 3, there: 2, .. })), "{mood:?} of {cloud}: {sum:?}");
            // Less than what is right anyway is not to be had.
            let sum = world.table.sum(asking(Some(1)), SALARY, &world.rows, &mut Report::default());
            assert_eq!(sum.expect("a sum").expect("a sum").total, Some(19 * 20 / 2 * 3));
        }
    }
}

#[test]
fn who_wants_it_soon_is_told_that_it_is_not_verified() {
    let moods = [Mood::Honest, Mood::Silent, Mood::Forgetful, Mood::Lying, Mood::Shuffling, Mood::Denying];
    for (mood, cloud) in moods.into_iter().flat_map(|mood| (0..3).map(move |cloud| (mood, cloud))) {
        let world = World::new((3, 1, 1), &a_few());
        world.clouds[cloud].set(mood);
        let asking = Asking { goal: Goal::Performance, ..world.asking() };
        let mut report = Report::default();
        let condition = Condition::Range { column: SALARY, low: Some((Value::Number(30), true)), high: None };
        let found = world.table.read(asking, &[NOTE], &[condition], &mut report).expect("rows");
        assert!(report.is_unverified);
        // Rows may be missing, and values are right.
        let mut notes = found.rows.iter().enumerate().filter(|(_, row)| world.rows.contains(row));
        assert!(
            notes
                .all(|(at, row)| text(&found.columns[0], at).map(str::len)
                    == world.rows.iter().position(|own| own == row))
        );
        assert!(mood != Mood::Honest || found.rows.len() >= 10);
        let sum = world.table.sum(asking, SALARY, &world.rows, &mut report);
        let is_right = sum.is_ok_and(|sum| sum.is_some_and(|sum| sum.total == Some(19 * 20 / 2 * 3)));
        // A sum that cannot be is nobody's word.
        assert!(is_right || mood != Mood::Honest && mood != Mood::Shuffling, "{mood:?} of {cloud}");
    }
}

#[test]
fn pieces_are_read_from_as_many_clouds_as_it_takes() {
    let people = some_people();
    let world = World::distributed((5, 2, 2), Distribution::Dispersed, &people);
    let read = |goal| {
        let mut report = Report::default();
        let asking = Asking { goal, ..world.asking() };
        let found = world.table.read(asking, &[NOTE, NAME], &[], &mut report);
        (found.map(|found| found.columns == [world.columns[3].clone(), world.columns[1].clone()]), report)
    };
    let certain = Goal::Reliability(None);
    assert_eq!(read(Goal::Ordinary), (Ok(true), Report::default()));
    assert_eq!(read(certain), (Ok(true), Report::default()));
    // Who lies is found when what he gave does not open; who was not needed is not asked.
    world.clouds[1].set(Mood::Lying);
    world.clouds[4].set(Mood::Shuffling);
    let (columns, report) = read(Goal::Ordinary);
    assert_eq!((columns, report.faults), (Ok(true), vec![(1, Fault::Forged)]));
    let (columns, report) = read(certain);
    assert_eq!((columns, report.faults), (Ok(true), vec![(1, Fault::Forged), (4, Fault::Forged)]));
    let (columns, _) = read(Goal::Reliability(Some(4)));
    assert!(matches!(columns, Err(Unanswered::Quorum { wanted: 4, there: 3, .. })));
    world.clouds[0].set(Mood::Silent);
    for goal in [Goal::Ordinary, certain] {
        let (columns, report) = read(goal);
        assert!(matches!(columns, Err(Unanswered::Pieces { ref column, .. }) if column == "note"), "{report:?}");
    }
    world.clouds[1].set(Mood::Honest);
    assert_eq!(read(Goal::Ordinary).0, Ok(true));
}
