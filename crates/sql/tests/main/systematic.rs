//! The paper's systematic suite (StealthDB, section III.A): the same statements over all sensible combinations of coding, distribution and
//! place, each held against the same table here. With COUNTERFOIL_PROOF=full all of them, else every nineteenth.

use std::collections::BTreeSet;

use crate::database::is_full;
use crate::dispersed::{FLOATS, ROWS, World, ask_all, create_both, same};

/// Clouds, and how many of them may fail and collude.
const SHAPES: [(usize, usize, usize); 7] =
    [(1, 0, 0), (2, 0, 0), (2, 1, 0), (3, 1, 1), (3, 0, 2), (4, 1, 2), (5, 2, 2)];
const DISTRIBUTIONS: [&str; 3] = ["encryption", "encryption, replication", "encryption, dispersion"];
/// What texts, numbers, and times and fractions are for.
const USES: [[&str; 3]; 5] = [
    ["", "", ""],
    [" FOR (equality)", " FOR (sum)", ""],
    [" FOR (prefix)", " FOR (range)", " FOR (range)"],
    [" FOR (equality, prefix, range)", " FOR (sum, range, equality)", " FOR (range)"],
    [" FOR (danger order)", " FOR (sum, danger order)", " FOR (danger order)"],
];
const CLOUDS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Where clouds are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Memory,
    Folders,
    /// Every other one.
    Both,
}

const PLACES: [Place; 3] = [Place::Memory, Place::Folders, Place::Both];

impl Place {
    fn is_folder(self, cloud: usize) -> bool {
        self == Place::Folders || self == Place::Both && cloud.is_multiple_of(2)
    }
}

/// A combination, by the places of what it is made of.
type Combination = [usize; 4];

fn combinations() -> Vec<Combination> {
    let mut all = Vec::new();
    for shape in 0..SHAPES.len() {
        for distribution in 0..DISTRIBUTIONS.len() {
            for uses in 0..USES.len() {
                all.extend((0..PLACES.len()).map(|place| [shape, distribution, uses, place]));
            }
        }
    }
    all.into_iter().step_by(if is_full() { 1 } else { 19 }).collect()
}

fn world(at: usize, [shape, distribution, uses, place]: Combination) -> World {
    let ((clouds, may_fail, may_collude), place) = (SHAPES[shape], PLACES[place]);
    let mut world = World::without_clouds();
    for (nth, cloud) in CLOUDS.iter().enumerate().take(clouds) {
        match place.is_folder(nth) {
            true => world.add_folder(cloud),
            false => world.add(cloud, &format!("memory:systematic-{at}-{cloud}")),
        }
    }
    let told = format!(
        "clouds = '{}', may_fail = {may_fail}, may_collude = {may_collude}, coding = '{}'",
        CLOUDS[..clouds].join(", "),
        DISTRIBUTIONS[distribution]
    );
    create_both(&mut world, USES[uses], &told);
    world
}

#[test]
fn all_combinations_answer_as_a_relation_does() {
    let all = combinations();
    for (of, count) in [SHAPES.len(), DISTRIBUTIONS.len(), USES.len(), PLACES.len()].into_iter().enumerate() {
        let tried: BTreeSet<usize> = all.iter().map(|combination| combination[of]).collect();
        assert_eq!(tried.len(), count, "each is tried");
    }
    for (at, combination) in all.into_iter().enumerate() {
        let mut world = world(at, combination);
        same(&mut world, &format!("INSERT INTO TABLE VALUES {ROWS}"));
        same(&mut world, &format!("INSERT INTO TABLE (id, weight, real) VALUES {FLOATS}"));
        same(&mut world, "UPDATE TABLE SET salary = salary + 1, name = name || 'x' WHERE small > 0");
        same(&mut world, "DELETE FROM TABLE WHERE id IN (3, 21)");
        ask_all(&mut world);
        let ((clouds, may_fail, _), place) = (SHAPES[combination[0]], PLACES[combination[3]]);
        let down: Vec<&str> =
            (0..clouds).filter(|cloud| place.is_folder(*cloud)).map(|cloud| CLOUDS[cloud]).take(may_fail).collect();
        down.iter().for_each(|cloud| world.set_there(cloud, false));
        same(&mut world, "SELECT * FROM TABLE ORDER BY id");
        same(&mut world, "SELECT sum(salary), count(*) FROM TABLE WHERE name LIKE 'Ad%'");
        same(&mut world, "SELECT id FROM TABLE WHERE name = 'Ädä' OR born < '1900-01-01' ORDER BY id");
        same(&mut world, "SELECT sum(small), avg(salary), avg(big), min(big), max(name) FROM TABLE");
        // What a cloud that is down is told later it has when it is back.
        same(&mut world, "INSERT INTO TABLE (id, name, small) VALUES (50, 'late', 5)");
        same(&mut world, "DELETE FROM TABLE WHERE id = 1");
        down.iter().for_each(|cloud| world.set_there(cloud, true));
        let repaired = world.database.ask("REPAIR TABLE people");
        assert!(repaired.lines().all(|line| line.ends_with("|complete")), "{combination:?}: {repaired}");
        same(&mut world, "SELECT * FROM TABLE ORDER BY id");
        same(&mut world, "SELECT sum(small), count(*) FROM TABLE WHERE name = 'late'");
    }
}
