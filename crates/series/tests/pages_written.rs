//! k ordered points write k/L leaves and k/(L(F-1)) nodes (Chronos, Property 1), and none of them a second time (Property 2).

use counterfoil_log::{Memory, PoolId, Storage, View};
use counterfoil_series::{Batch, Kind, Leaf, Options, Page, SeriesTables, TableNumber, Value};

const KINDS: [Kind; 2] = [Kind::Double, Kind::Integer];
const TABLE: TableNumber = TableNumber(1);
const POINTS: i64 = 1_200_000;
/// Points of one commit.
const COMMIT: i64 = 4000;

/// Times that jitter and values of 21 bits of chance: hardly to be packed.
fn commit(tables: &SeriesTables, disk: &mut Memory, from: i64) {
    let mut batch = Batch::new(&KINDS);
    for at in from..from + COMMIT {
        let noise = (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let noise = (noise ^ noise >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20;
        let value = (noise % (1 << 21)) as f64 / 4096.0;
        let quality = if noise.is_multiple_of(97) { 64 } else { 192 };
        let time = at * 1000 + (noise >> 21) as i64 % 900;
        batch.push(0, time, [Some(Value::Double(value)), Some(Value::Integer(quality))]);
    }
    tables.insert(disk, TABLE, &batch).expect("stored");
    tables.committed(disk);
    if tables.maintain(disk).expect("kept") {
        tables.committed(disk);
    }
}

fn points_of(disk: &Memory, pool: PoolId, page: Page) -> f64 {
    let mut payload = vec![0; disk.page_bytes()];
    disk.read_nameless(pool, page.into(), &mut payload).expect("there");
    Leaf::new(&payload).expect("a leaf").count as f64
}

#[test]
fn ordered_points_write_as_many_leaves_and_nodes_as_the_paper_says() {
    let (tables, mut disk) = (SeriesTables::new(), Memory::default());
    disk.page_bytes = Some(256);
    tables.create(&mut disk, TABLE, &KINDS, Options::default()).expect("made");
    tables.number(&mut disk, TABLE, [&b"sensor"[..]]).expect("named");
    tables.committed(&disk);
    (0..POINTS).step_by(COMMIT as usize).for_each(|from| commit(&tables, &mut disk, from));

    let pages = tables.pages(&disk, TABLE).expect("counted");
    let (leaves, nodes) = (pages[0], pages[1..].iter().sum::<u64>());
    assert_eq!(disk.pages_written, leaves + nodes, "a page was written a second time");
    assert!(pages.len() >= 3, "the tree has nodes above nodes: {pages:?}");

    // L is not made of the number of leaves: each page says how many points it has.
    let survey = tables.survey(&disk, TABLE).expect("counted");
    let in_leaves: Vec<f64> =
        survey.newest.iter().filter(|page| page.level == 0).map(|page| points_of(&disk, survey.pool, *page)).collect();
    let l = in_leaves.iter().sum::<f64>() / in_leaves.len() as f64;
    let edge: usize = tables.levels(&disk, TABLE, 0).expect("there").iter().sum();
    let f = (leaves + nodes - edge as u64) as f64 / nodes as f64;
    let k = POINTS as f64;
    let near = |found: u64, wanted: f64| (found as f64 / wanted - 1.0).abs() < 0.01;
    assert!(near(leaves, k / l), "{leaves} leaves, k/L is {}", k / l);
    assert!(near(nodes, k / (l * (f - 1.0))), "{nodes} nodes, k/(L(F-1)) is {}", k / (l * (f - 1.0)));
}
