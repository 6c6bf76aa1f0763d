//! Sums are right or there are none, whatever clouds do.

use counterfoil_disperse::{Condition, Fault, Report, Sum, Unanswered, Value};
use proptest::prelude::*;

use crate::answers::people;
use crate::clouds::{ID, Mood, Person, SALARY, World};

fn expected(people: &[Person], rows: &[u64]) -> Sum {
    let salaries: Vec<i64> = rows.iter().filter_map(|row| people[*row as usize].2).collect();
    Sum { total: Some(salaries.iter().map(|own| i128::from(*own)).sum()), values: salaries.len() as u64 }
}

proptest! {
    #[test]
    fn sums_are_those_of_the_rows(people in people(), mask in any::<u64>(), shape in 0_usize..4, bad in any::<usize>()) {
        let shape @ (clouds, may_fail, _) = [(1, 0, 0), (3, 1, 1), (4, 1, 2), (5, 2, 2)][shape];
        let world = World::new(shape, &people);
        let some: Vec<u64> = world.rows.iter().copied().filter(|row| mask >> row & 1 == 1).collect();
        for failing in 0..may_fail {
            world.clouds[(bad + failing) % clouds].set(Mood::BAD[(bad + failing) % Mood::BAD.len()]);
        }
        for rows in [&world.rows, &some] {
            let mut report = Report::default();
            let sum = world.table.sum(world.asking(), SALARY, rows, &mut report).expect("clouds that agree");
            prop_assert_eq!(sum, Some(expected(&people, rows)));
            prop_assert!(report.faults.iter().all(|(cloud, _)| (0..may_fail).any(|of| *cloud == (bad + of) % clouds)));
        }
        prop_assert_eq!(world.table.sum(world.asking(), ID, &some, &mut Report::default()), Ok(None));
    }
}

fn some_people() -> Vec<Person> {
    (0..30).map(|id| (id, None, (id % 4 > 0).then_some(id * 1000 - 5000), None)).collect()
}

#[test]
fn a_wrong_sum_is_named_if_the_others_agree() {
    let people = some_people();
    let world = World::new((3, 1, 1), &people);
    for bad in 0..3 {
        world.clouds[bad].set(Mood::Lying);
        let mut report = Report::default();
        let sum = world.table.sum(world.asking(), SALARY, &world.rows, &mut report);
        assert_eq!(sum, Ok(Some(expected(&people, &world.rows))));
        // The third is not asked where the first two agree.
        let named = if bad < 2 { vec![(bad, Fault::WrongSum)] } else { Vec::new() };
        assert_eq!(report.faults, named);
        world.clouds[bad].set(Mood::Honest);
    }
}

#[test]
fn rows_that_are_on_their_way_are_not_added_up() {
    let people = some_people();
    let mut world = World::new((3, 1, 1), &people);
    // Two rows more, which one cloud has not got.
    let (more, last) = (vec![(98, None, Some(7), None), (99, None, Some(8), None)], world.rows.len() as u64);
    let (rows, columns) = (vec![last, last + 1], crate::clouds::columns(&more));
    world.state.leaving(rows.iter().copied());
    for cloud in 0..2 {
        let coded = world.table.code(&world.state, &rows, &columns).expect("rows");
        world.table.put(&world.state, cloud, &coded).expect("an honest cloud");
        world.state.arrived(cloud, &rows.iter().copied().collect());
    }
    let mut report = Report::default();
    let sum = world.table.sum(world.asking(), SALARY, &world.rows, &mut report);
    assert_eq!((sum, report), (Ok(Some(expected(&people, &world.rows))), Report::default()));
}

#[test]
fn more_failures_than_declared_are_no_wrong_sum() {
    let people = some_people();
    let all = expected(&people, &(0..30).collect::<Vec<_>>());
    let moods: Vec<Mood> = [Mood::Honest].into_iter().chain(Mood::BAD).collect();
    for shape @ (clouds, may_fail, _) in [(2, 1, 0), (3, 1, 0), (3, 1, 1), (3, 2, 0)] {
        let world = World::new(shape, &people);
        for number in 0..moods.len().pow(clouds as u32) {
            let own: Vec<Mood> =
                (0..clouds).map(|at| moods[number / moods.len().pow(at as u32) % moods.len()]).collect();
            world.clouds.iter().zip(&own).for_each(|(cloud, mood)| cloud.set(*mood));
            let mut report = Report::default();
            let sum = world.table.sum(world.asking(), SALARY, &world.rows, &mut report);
            // Who denies is honest where no row is tested. Two who lie alike are more than were declared to, and may agree.
            let is_bad = |mood: &&Mood| !matches!(mood, Mood::Honest | Mood::Denying);
            let bad = own.iter().filter(is_bad).count();
            if own.iter().filter(|mood| matches!(mood, Mood::Lying | Mood::Shuffling)).count() <= may_fail {
                assert!(sum.as_ref().is_err() || sum == Ok(Some(all)), "{shape:?} {own:?}: {sum:?}");
            }
            if bad <= may_fail {
                assert_eq!(sum, Ok(Some(all)), "{shape:?} {own:?}");
                let is_known = |(cloud, _): &(usize, Fault)| is_bad(&&own[*cloud]);
                assert!(report.faults.iter().all(is_known), "{shape:?} {own:?}: {report:?}");
            }
        }
    }
}

#[test]
fn one_of_two_that_lies_is_named_and_the_sum_is_right() {
    let people = some_people();
    let world = World::new((2, 1, 0), &people);
    for bad in 0..2 {
        world.clouds[bad].set(Mood::Lying);
        let mut report = Report::default();
        let sum = world.table.sum(world.asking(), SALARY, &world.rows, &mut report);
        assert_eq!(sum, Ok(Some(expected(&people, &world.rows))));
        assert!(report.faults.contains(&(bad, Fault::WrongSum)), "{report:?}");
        // With the other one silent there is nobody's word but this, and its cells do not open.
        world.clouds[1 - bad].set(Mood::Silent);
        let sum = world.table.sum(world.asking(), SALARY, &world.rows, &mut Report::default());
        assert!(matches!(sum, Err(Unanswered::Column { .. })), "{sum:?}");
        world.clouds.iter().for_each(|cloud| cloud.set(Mood::Honest));
    }
}

#[test]
fn where_none_is_to_fail_no_cloud_is_believed_alone_unless_it_is_said() {
    let people = some_people();
    let all = expected(&people, &(0..30).collect::<Vec<_>>());
    for shape in [(2, 0, 0), (3, 0, 1), (3, 0, 2)] {
        let world = World::new(shape, &people);
        let sum = |report: &mut Report| world.table.sum(world.asking(), SALARY, &world.rows, report);
        let mut report = Report::default();
        assert_eq!((sum(&mut report), report), (Ok(Some(all)), Report::default()));
        for (mood, bad) in Mood::BAD.into_iter().flat_map(|mood| (0..shape.0).map(move |cloud| (mood, cloud))) {
            world.clouds[bad].set(mood);
            let mut report = Report::default();
            match sum(&mut report) {
                Ok(told) => assert_eq!(told, Some(all), "{shape:?} {mood:?} of {bad}"),
                Err(error) => assert!(matches!(error, Unanswered::Column { .. }), "{error:?}"),
            }
            // Of two who contradict each other neither is believed; of one who does not answer it is said.
            let is_named = report.faults.iter().any(|(cloud, _)| *cloud == bad);
            assert!(
                !report.is_unverified || is_named && mood != Mood::Lying,
                "{shape:?} {mood:?} of {bad}: {report:?}"
            );
            world.clouds[bad].set(Mood::Honest);
        }
    }
    // The cloud with the values is silent: the other one's word is there, and is called so.
    let world = World::new((2, 0, 0), &people);
    let told: Vec<bool> = (0..2)
        .map(|silent| {
            world.clouds.iter().for_each(|cloud| cloud.set(Mood::Honest));
            world.clouds[silent].set(Mood::Silent);
            let mut report = Report::default();
            assert_eq!(world.table.sum(world.asking(), SALARY, &world.rows, &mut report), Ok(Some(all)));
            report.is_unverified
        })
        .collect();
    assert!(told.contains(&true) && told.contains(&false), "{told:?}");
    // And there may be no other.
    let (world, mut report) = (World::new((1, 0, 0), &people), Report::default());
    assert_eq!(world.table.sum(world.asking(), SALARY, &world.rows, &mut report), Ok(Some(all)));
    assert!(report.is_unverified);
}

#[test]
fn what_one_cloud_alone_says_of_a_condition_is_said_to_be_so() {
    let condition = Condition::Range { column: SALARY, low: Some((Value::Number(0), true)), high: None };
    for (shape, is_one) in [((1, 0, 0), true), ((2, 0, 0), true), ((3, 0, 1), true), ((3, 1, 1), false)] {
        let world = World::new(shape, &some_people());
        let conditions = std::slice::from_ref(&condition);
        let mut report = Report::default();
        world.table.read(world.asking(), &[ID], conditions, &mut report).expect("rows");
        assert_eq!((report.is_unverified, report.faults), (is_one, Vec::new()), "{shape:?}");
        let mut report = Report::default();
        assert!(world.table.exactly(world.asking(), conditions, &mut report).expect("rows").is_some());
        assert_eq!((report.is_unverified, report.faults), (is_one, Vec::new()), "{shape:?}");
        // Of all rows it is known here which there are.
        let mut report = Report::default();
        world.table.read(world.asking(), &[ID], &[], &mut report).expect("rows");
        assert_eq!(report, Report::default());
    }
}
