//! Rows that some clouds lack, as it is known: they are read from the others, and nobody is at fault.

use counterfoil_disperse::{Asking, Distribution, Fault, Goal, Report, Rows, Sum};
use proptest::prelude::*;

use crate::answers::{conditions, people};
use crate::clouds::{ID, Mood, NAME, NOTE, Person, SALARY, World};

const DISTRIBUTIONS: [Distribution; 3] = [Distribution::Spare, Distribution::Replicated, Distribution::Dispersed];

/// A table of which clouds lack rows: each row at most so many of them, as a number says.
fn lacking(mut world: World, most: usize, which: &[usize]) -> World {
    let clouds = world.clouds.len();
    world.state.leaving(std::iter::empty());
    for (row, which) in world.rows.clone().into_iter().zip(which.iter().cycle()) {
        let own: Rows = [row].into_iter().collect();
        for cloud in (0..which % (most + 1)).map(|nth| (which / 7 + nth) % clouds) {
            world.table.remove(&world.state, cloud, &own).expect("an honest cloud");
            world.state.untold[cloud].owed.insert(row);
        }
    }
    world
}

fn expected_sum(people: &[Person]) -> Sum {
    let salaries = people.iter().filter_map(|person| person.2);
    Sum { total: Some(salaries.clone().map(i128::from).sum()), values: salaries.count() as u64 }
}

proptest! {
    #[test]
    fn what_clouds_are_owed_the_others_show(
        people in people(),
        (pick, bad) in any::<(usize, usize)>(),
        which in prop::collection::vec(any::<usize>(), 1..9),
        (shape, distribution) in (0_usize..3, 0_usize..4),
        is_bad in any::<bool>(),
    ) {
        let shape @ (clouds, may_fail, _) = [(3, 1, 1), (4, 1, 2), (5, 2, 2)][shape];
        let world = match DISTRIBUTIONS.get(distribution) {
            Some(distribution) => World::distributed(shape, *distribution, &people),
            None => World::in_order(shape, &people),
        };
        // What is owed and what is bad are no more than may fail, together.
        let failing = usize::from(is_bad);
        let world = lacking(world, may_fail - failing, &which);
        let bad = bad % clouds;
        if is_bad {
            world.clouds[bad].set(Mood::BAD[pick % Mood::BAD.len()]);
        }
        let is_fair = |report: &Report| report.faults.iter().all(|(cloud, fault)| {
            is_bad && *cloud == bad || *fault == Fault::Slow
        });
        let mut report = Report::default();
        let found = world.table.read(world.asking(), &[ID, NAME, SALARY, NOTE], &[], &mut report).expect("all rows");
        prop_assert_eq!(&found.rows, &world.rows);
        prop_assert!(found.columns == world.columns);
        prop_assert!(is_fair(&report), "{:?}", report);
        for (condition, is_true) in conditions(&people, pick) {
            let matching: Vec<u64> =
                world.rows.iter().copied().filter(|row| is_true(&people[*row as usize])).collect();
            let mut report = Report::default();
            let given = [condition];
            let found = world.table.read(world.asking(), &[NOTE], &given, &mut report).expect("rows");
            prop_assert!(matching.iter().all(|row| found.rows.contains(row)));
            let exactly = world.table.exactly(world.asking(), &given, &mut report).expect("an answer");
            prop_assert!(exactly.is_none_or(|rows| rows.iter().eq(matching.iter().copied())));
            if !is_bad {
                // One cloud that is honest is enough for whoever wants it soon, and is not to be the one that lacks rows.
                let soon = Asking { goal: Goal::Performance, ..world.asking() };
                let exactly = world.table.exactly(soon, &given, &mut Report::default()).expect("an answer");
                prop_assert!(exactly.is_none_or(|rows| rows.iter().eq(matching.iter().copied())));
                let found = world.table.read(soon, &[NOTE], &given, &mut Report::default()).expect("rows");
                prop_assert!(matching.iter().all(|row| found.rows.contains(row)));
            }
            prop_assert!(is_fair(&report), "{:?}", report);
        }
        let mut report = Report::default();
        let sum = world.table.sum(world.asking(), SALARY, &world.rows, &mut report).expect("a sum");
        prop_assert_eq!(sum, Some(expected_sum(&people)));
        prop_assert!(is_fair(&report), "{:?}", report);
    }
}

#[test]
fn clouds_that_each_lack_another_row_give_all_of_them_together() {
    let people: Vec<Person> = (0..9).map(|id| (id, Some("ab".into()), Some(id), None)).collect();
    let mut world = World::new((3, 1, 1), &people);
    for cloud in 0..3 {
        let row: Rows = [cloud as u64].into_iter().collect();
        world.table.remove(&world.state, cloud, &row).expect("an honest cloud");
    }
    let read = |world: &World| world.table.read(world.asking(), &[ID], &[], &mut Report::default());
    // No cloud has all: each is asked which rows it shows.
    assert!(read(&world).expect("rows").columns == [world.columns[0].clone()]);
    // What clouds say they have is enough to know whom to ask for what.
    let there: Vec<Rows> = (0..3).map(|cloud| world.table.rows_at(world.asking(), cloud).expect("rows").0).collect();
    world.state = world.state.as_shown(there.iter().map(Some));
    assert_eq!(world.state.owed(), (0..3).collect::<Rows>());
    assert!(read(&world).expect("rows").columns == [world.columns[0].clone()]);
}
