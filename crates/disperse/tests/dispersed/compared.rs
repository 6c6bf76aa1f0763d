//! What clouds show beside what they were given, fragment for fragment.

use counterfoil_disperse::fragments::{Data, Question, Strings};
use counterfoil_disperse::{Provider as _, Report, Rows};

use crate::answers::some_people;
use crate::clouds::{ID, Mood, NAME, NOTE, SALARY, World};

const ALL: [u16; 4] = [ID, NAME, SALARY, NOTE];

/// The rows that a cloud shows otherwise than it was given them.
fn changed(world: &World, cloud: usize) -> Rows {
    let mut changed = Rows::new();
    for rows in world.table.neighbours(&world.state, cloud, 7) {
        assert!(rows.len() <= 7);
        let found = world.table.read_rows(world.asking(), &ALL, &rows, &mut Report::default()).expect("all rows");
        let coded = world.table.code(&world.state, &found.rows, &found.columns).expect("coded");
        let compared = world.table.compared_at(world.asking(), cloud, &coded).expect("compared");
        assert!(compared.hidden.is_empty() && compared.damage.is_none(), "{compared:?}");
        changed |= compared.changed;
    }
    changed
}

#[test]
fn whoever_shows_something_else_is_seen_to() {
    let world = World::new((3, 1, 1), &some_people());
    let all: Rows = world.rows.iter().copied().collect();
    for cloud in 0..3 {
        assert!(changed(&world, cloud).is_empty(), "{cloud} shows what it was given");
        world.clouds[cloud].set(Mood::Lying);
        assert_eq!(changed(&world, cloud), all, "{cloud} lies");
        world.clouds[cloud].set(Mood::Repeating);
        assert!(changed(&world, cloud).is_empty(), "{cloud} says it twice");
        world.clouds[cloud].set(Mood::Honest);
    }
}

#[test]
fn one_fragment_of_one_row_is_noticed_and_put_there_anew() {
    let world = World::new((3, 1, 1), &some_people());
    for cloud in 0..3 {
        let name = world.table.coder().table_name(cloud);
        let row = world.rows[world.rows.len() / 2];
        let place = world.table.coder().sorted_places(&world.state.epochs, cloud, [row]);
        let columns: Vec<_> = {
            let rows: Rows = [row].into_iter().collect();
            let found = world.table.read_rows(world.asking(), &ALL, &rows, &mut Report::default()).expect("the row");
            let coded = world.table.code(&world.state, &found.rows, &found.columns).expect("coded");
            world.table.put(&world.state, cloud, &coded).expect("it is there already");
            let placement = world.table.coder().placement();
            let own: Vec<_> = placement.held_by(cloud).map(|fragment| (fragment.column, fragment.coding)).collect();
            own.iter().map(|(column, coding)| world.table.coder().column_name(cloud, *column, *coding)).collect()
        };
        for spoiled in 0..columns.len() {
            let mut fragments = None;
            let question = Question { columns: columns.clone(), places: Some(place.clone()), ..Question::default() };
            let mut take = |answer: counterfoil_disperse::fragments::Answer| {
                if !answer.rows.places.is_empty() {
                    fragments = Some(answer.rows);
                }
                Ok(())
            };
            world.clouds[cloud].ask(&name, &question, &mut take).expect("the row's fragments");
            let mut fragments = fragments.expect("the row");
            let data = &mut fragments.columns[spoiled].1;
            *data = match &*data {
                Data::Shares(shares) => Data::Shares(shares.iter().map(|share| share ^ 1).collect()),
                Data::Strings(strings) => {
                    let mut other = Strings::default();
                    strings.iter().for_each(|string| other.push(&[string, b"x"].concat()));
                    Data::Strings(other)
                }
            };
            world.clouds[cloud].remove(&name, &place).expect("gone");
            world.clouds[cloud].put(&name, &fragments).expect("spoiled");
            let found = changed(&world, cloud);
            assert_eq!(found.iter().collect::<Vec<_>>(), [row], "column {spoiled} at {cloud}");
            // As REPAIR does it.
            let read = world.table.read_rows(world.asking(), &ALL, &found, &mut Report::default()).expect("the row");
            let coded = world.table.code(&world.state, &read.rows, &read.columns).expect("coded");
            world.table.remove(&world.state, cloud, &found).expect("gone");
            world.table.put(&world.state, cloud, &coded).expect("as it was");
            assert!(changed(&world, cloud).is_empty(), "column {spoiled} at {cloud} is mended");
        }
    }
}
