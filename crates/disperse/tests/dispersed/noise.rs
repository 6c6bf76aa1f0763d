//! What is noise in views is as even as noise: each byte comes about as often as any other, alone and where two things are laid over one
//! another that hide equal values.
//!
//! Counts are held to six standard deviations, and all that is drawn is the same each time.

use std::collections::{BTreeMap, BTreeSet};

use counterfoil_disperse::fragments::{Data, Fragments, Test};
use counterfoil_disperse::{Coder, Coding};

use crate::ledger::{ALL, drawn, ledger, questions};
use crate::owner::{Line, Owner};
use crate::random::Random;
use crate::simulated::is_full;
use crate::watching::Event;

/// What a cloud of a table was told: by column and coding, a column for each time.
type Held = BTreeMap<(u16, Coding), Vec<Data>>;

fn coder(owner: &Owner) -> Coder {
    owner.kept.current().coder().expect("a placement")
}

fn put(owner: &Owner, cloud: usize) -> Vec<Fragments> {
    let name = coder(owner).table_name(cloud);
    let seen = owner.seen(&owner.kept.declaration().clouds[cloud]);
    seen.events
        .into_iter()
        .filter_map(|event| match event {
            Event::Put(table, put) if table == name => Some(put),
            _ => None,
        })
        .collect()
}

/// What a cloud holds, in the order of rows, so that columns and clouds can be laid over one another.
fn held(owner: &Owner, cloud: usize) -> Held {
    let coder = coder(owner);
    let labels = &owner.labels[&(owner.kept.declaration().clouds[cloud].clone(), coder.table_name(cloud))];
    let mut held = Held::new();
    for put in put(owner, cloud) {
        let mut order: Vec<usize> = (0..put.places.len()).collect();
        order.sort_by_key(|at| labels[&put.places[*at]]);
        let put = put.chosen(&order);
        for fragment in coder.placement().held_by(cloud) {
            let data = put.column(&coder.column_name(cloud, fragment.column, fragment.coding)).expect("a column");
            held.entry((fragment.column, fragment.coding)).or_default().push(data.clone());
        }
    }
    held
}

/// An owner of many lines.
fn owner(lines: &[Line]) -> Owner {
    let mut owner = Owner::new(5, ledger((3, 1, 1)));
    owner.insert(lines);
    owner.tell();
    questions(lines).iter().for_each(|question| owner.ask(question, &ALL));
    owner
}

/// Everybody is the same; and all are different.
fn owners() -> [Owner; 2] {
    let lines = drawn(&mut Random(21), if is_full() { 4000 } else { 300 });
    let whole = lines.iter().find(|line| line.iter().all(Option::is_some)).expect("a line without NULL").clone();
    [owner(&vec![whole; lines.len()]), owner(&lines)]
}

/// That of 256 values each comes about as often as another; few of them say nothing.
fn is_even(bytes: &[u8], what: &str) {
    if bytes.len() < 1280 {
        return;
    }
    let mut counts = [0_f64; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1.0);
    let expected = bytes.len() as f64 / 256.0;
    let deviation: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
    // 255 degrees of freedom: 255, and six standard deviations of 22.6.
    assert!((120.0..390.0).contains(&deviation), "{what}: {deviation} of {} bytes", bytes.len());
}

/// The parts of a column that are noise.
fn noise(coding: Coding, data: &Data) -> Vec<Vec<u8>> {
    let Data::Strings(strings) = data else { return Vec::new() };
    let strings = strings.iter().filter(|string| !string.is_empty());
    match coding {
        // Its first bytes say how long its cell is.
        Coding::Piece(_) => strings.map(|piece| piece[4..].to_vec()).collect(),
        // Of equal values one: that they are equal shows.
        Coding::Tag | Coding::Prefix => strings
            .flat_map(|string| string.as_chunks::<16>().0)
            .map(|tag| tag.to_vec())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect(),
        Coding::Order => strings.map(|code| code[..16].to_vec()).collect(),
        Coding::DangerOrder => Vec::new(),
        _ => strings.map(<[u8]>::to_vec).collect(),
    }
}

fn laid_over(one: &[u8], other: &[u8]) -> Vec<u8> {
    one.iter().zip(other).map(|(one, other)| one ^ other).collect()
}

#[test]
fn cells_tags_and_nonces_are_even() {
    for owner in owners() {
        for cloud in 0..3 {
            for ((column, coding), data) in held(&owner, cloud) {
                let noise: Vec<Vec<u8>> = data.iter().flat_map(|data| noise(coding, data)).collect();
                let what = format!("column {column} as {coding:?} at {cloud}");
                is_even(&noise.concat(), &what);
                if matches!(coding, Coding::Tag | Coding::Prefix) {
                    // These are sorted.
                    continue;
                }
                // One key stream for two rows would leave the difference of their values.
                let neighbours = noise.windows(2).flat_map(|pair| laid_over(&pair[0], &pair[1]));
                is_even(&neighbours.collect::<Vec<u8>>(), &format!("neighbours of {what}"));
            }
        }
    }
}

#[test]
fn columns_of_a_row_are_hidden_by_different_noise() {
    for owner in owners() {
        let all: Vec<Held> = (0..3).map(|cloud| held(&owner, cloud)).collect();
        let cells = |held: &Held| -> BTreeMap<u16, Vec<Vec<u8>>> {
            let cells = held.iter().filter(|((_, coding), _)| matches!(coding, Coding::Cell | Coding::Piece(_)));
            cells
                .map(|((column, coding), data)| (*column, data.iter().flat_map(|of| noise(*coding, of)).collect()))
                .collect()
        };
        let columns: Vec<(usize, u16, Vec<Vec<u8>>)> = (0..3)
            .flat_map(|cloud| cells(&all[cloud]).into_iter().map(move |(column, own)| (cloud, column, own)))
            .collect();
        for (at, (cloud, column, own)) in columns.iter().enumerate() {
            // A copy of a cell is the same one.
            for (other_cloud, other_column, other) in columns[..at].iter().filter(|other| other.1 != *column) {
                let both: Vec<u8> = own.iter().zip(other).flat_map(|(own, other)| laid_over(own, other)).collect();
                is_even(&both, &format!("column {column} at {cloud} and {other_column} at {other_cloud}"));
            }
        }
    }
}

#[test]
fn shares_of_a_coalition_are_even_and_so_is_what_lies_between_them() {
    for owner in owners() {
        let all: Vec<Held> = (0..3).map(|cloud| held(&owner, cloud)).collect();
        let shares = |cloud: usize| -> BTreeMap<(u16, Coding), Vec<u64>> {
            let shares = all[cloud].iter().filter_map(|(of, data)| match &data[0] {
                Data::Shares(own) => Some((*of, own.clone())),
                Data::Strings(_) => None,
            });
            shares.collect()
        };
        // The lowest seven bytes of a number of the field, of which each is as likely as another.
        let bytes = |numbers: Vec<u64>| {
            numbers.iter().flat_map(|number| number.to_le_bytes()[..7].to_vec()).collect::<Vec<u8>>()
        };
        let prime = (1 << 61) - 1;
        for (cloud, next) in [(0, 1), (1, 2), (2, 0)] {
            let (own, others) = (shares(cloud), shares(next));
            assert!(own.len() > 4);
            for (of, own) in own {
                is_even(&bytes(own.clone()), &format!("shares {of:?} at {cloud}"));
                let between = own.iter().zip(&others[&of]).map(|(own, other)| (own + prime - other) % prime);
                is_even(&bytes(between.collect()), &format!("between shares {of:?} at {cloud} and {next}"));
                let neighbours = own.windows(2).map(|pair| (pair[0] + prime - pair[1]) % prime);
                is_even(&bytes(neighbours.collect()), &format!("neighbours of shares {of:?} at {cloud}"));
            }
        }
    }
}

#[test]
fn order_codes_are_even_trits() {
    let owners = owners();
    for (owner, cloud) in owners.iter().flat_map(|owner| (0..3).map(move |cloud| (owner, cloud))) {
        for ((column, _), data) in held(owner, cloud).into_iter().filter(|((_, coding), _)| *coding == Coding::Order) {
            // Of each place among the trits of a code.
            let mut counts = vec![[0_usize; 4]; 256];
            let Data::Strings(codes) = &data[0] else { panic!("codes") };
            for code in codes.iter().filter(|code| !code.is_empty()) {
                for (at, count) in counts.iter_mut().enumerate() {
                    count[usize::from(code[16 + at / 4] >> (6 - 2 * (at % 4)) & 3)] += 1;
                }
            }
            let codes = counts[0].iter().sum::<usize>() as f64;
            let (expected, deviation) = (codes / 3.0, (codes * 2.0 / 9.0).sqrt());
            for (at, [zeros, ones, twos, none]) in counts.into_iter().enumerate() {
                assert_eq!(none, 0, "there are three");
                for count in [zeros, ones, twos] {
                    let is_likely = (count as f64 - expected).abs() < 6.0 * deviation;
                    assert!(is_likely, "column {column}, trit {at} at {cloud}: {count} of {codes}");
                }
            }
        }
    }
}

#[test]
fn places_and_entries_and_labels_are_even() {
    let [_, owner] = owners();
    let (mut places, mut entries, mut labels) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (cloud, name) in owner.kept.declaration().clouds.iter().enumerate() {
        places.extend(put(&owner, cloud).iter().flat_map(|put| put.places.clone()));
        for event in owner.seen(name).events {
            match event {
                Event::Put(table, put) if table == owner.catalogue.name() => {
                    let Data::Strings(sealed) = &put.columns[0].1 else { panic!("entries") };
                    entries.extend(sealed.iter().flatten().copied());
                }
                Event::Asked(_, question) => {
                    for test in question.tests {
                        let Test::Compared { asked, .. } = test else { continue };
                        // Those of a column are the same at all clouds that have its codes.
                        labels.extend(asked.chunks_exact(17).map(|block| block[1..].to_vec()));
                    }
                }
                _ => {}
            }
        }
    }
    is_even(&places.iter().flat_map(|place| place.to_be_bytes()).collect::<Vec<u8>>(), "places");
    // Nor does the place of a row at one cloud lie near that of the next one, or near its own at another cloud.
    let near = |of: &[u64], step: usize| {
        let pairs = of.iter().zip(&of[step..]);
        pairs.flat_map(|(one, other)| other.wrapping_sub(*one).to_be_bytes()[1..].to_vec()).collect::<Vec<u8>>()
    };
    let by_row: Vec<u64> = (0..3)
        .flat_map(|cloud| {
            let (coder, epochs) = (coder(&owner), &owner.kept.current().state.epochs);
            owner.kept.live().iter().map(|row| coder.place(epochs, cloud, row).expect("a place")).collect::<Vec<u64>>()
        })
        .collect();
    is_even(&near(&by_row, 1), "places of neighbours");
    is_even(&near(&by_row, by_row.len() / 3), "places at two clouds");
    assert!(entries.len() > 1000);
    is_even(&entries, "entries");
    let labels: Vec<u8> = labels.into_iter().flatten().collect();
    assert!(labels.len() > 1280, "{}", labels.len());
    is_even(&labels, "labels");
}
