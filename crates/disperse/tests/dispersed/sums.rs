//! Sums are right or there are none, whatever clouds do.

use counterfoil_disperse::{Fault, Report, Sum, Unanswered};
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
    let world = World::new((3, 1, 1), &some_people());
    for moods in [
        [Mood::Lying, Mood::Silent, Mood::Forgetful],
        [Mood::Lying, Mood::Denying, Mood::Forgetful],
        [Mood::Silent, Mood::Silent, Mood::Lying],
        [Mood::Silent, Mood::Silent, Mood::Honest],
        [Mood::Silent, Mood::Lying, Mood::Honest],
    ] {
        world.clouds.iter().zip(moods).for_each(|(cloud, mood)| cloud.set(mood));
        let sum = world.table.sum(world.asking(), SALARY, &world.rows, &mut Report::default());
        // Who denies is honest where no row is tested: the liar is outvoted by nobody, and so there is no sum.
        assert!(matches!(sum, Err(Unanswered::Sum { .. })), "{moods:?}: {sum:?}");
    }
}
