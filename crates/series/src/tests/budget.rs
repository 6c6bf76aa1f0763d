//! Open points stay within their budget, and the journal does not grow for ever.

use super::*;

#[test]
fn ten_thousand_series_stay_within_the_budget() {
    const SERIES: u32 = 10_000;
    let limits = Limits { open_bytes: 6 << 20, ..Limits::default() };
    let (tables, mut disk) = (SeriesTables::with_limits(limits), Memory::default());
    disk.page_bytes = Some(4072);
    tables.create(&mut disk, TABLE, &KINDS, Options::default()).expect("made");
    let keys: Vec<[u8; 4]> = (0..SERIES).map(u32::to_le_bytes).collect();
    tables.number(&mut disk, TABLE, keys.iter().map(|key| key.as_slice())).expect("named");
    let mut packed = 0;
    for round in 0..30_i64 {
        let mut batch = Batch::new(&KINDS);
        for series in 0..SERIES {
            for point in 0..7 {
                let time = (round * 7 + point) * 1_000_000 + i64::from(series);
                let (value, quality) = values(time, series);
                batch.push(series, time, [value.map(Value::Double), quality.map(Value::Integer)]);
            }
        }
        tables.insert(&mut disk, TABLE, &batch).expect("stored");
        tables.committed(&disk);
        let open = tables.open_bytes();
        assert!(open <= limits.open_bytes, "{open} bytes in round {round}");
        packed = packed.max(open);
    }
    // Values without a rule: of 2.5 bytes each with their times and states, and still less than memory would take.
    assert!(packed > limits.open_bytes / 2, "{packed}");
    let pages = tables.pages(&disk, TABLE).expect("counted");
    assert_eq!(tables.count(&disk, TABLE), Ok((u64::from(SERIES) * 210, true)));
    let again = SeriesTables::with_limits(limits);
    assert_eq!(again.count(&disk, TABLE), Ok((u64::from(SERIES) * 210, true)));
    assert!(again.open_bytes() <= limits.open_bytes);
    assert_eq!(again.pages(&disk, TABLE), Ok(pages));
}

#[test]
fn tables_share_the_budget() {
    let limits = Limits { open_bytes: 1 << 20, ..Limits::default() };
    let (tables, mut disk) = (SeriesTables::with_limits(limits), Memory::default());
    disk.page_bytes = Some(4072);
    for table in (0..4).map(TableNumber) {
        tables.create(&mut disk, table, &KINDS, Options::default()).expect("made");
        let keys: Vec<[u8; 4]> = (0..100_u32).map(u32::to_le_bytes).collect();
        tables.number(&mut disk, table, keys.iter().map(|key| key.as_slice())).expect("named");
        let mut batch = Batch::new(&KINDS);
        for at in 0..40_000_i64 {
            batch.push((at % 100) as u32, at, [Some(Value::Double(at as f64)), None]);
        }
        tables.insert(&mut disk, table, &batch).expect("stored");
        tables.committed(&disk);
        assert!(tables.open_bytes() <= limits.open_bytes, "{}", tables.open_bytes());
    }
    for table in (0..4).map(TableNumber) {
        assert_eq!(tables.count(&disk, table), Ok((40_000, true)));
    }
}

/// Bytes of all containers.
fn length(house: &House) -> usize {
    house.disk.containers.values().map(|(_, bytes)| bytes.len()).sum()
}

#[test]
fn a_point_between_others_is_journaled_alone() {
    let mut house = House::with_pages(4072);
    house.insert((0..200).map(|at| (0, at * 1000, at as u32)));
    house.run(&Step::Commit);
    let before = length(&house);
    house.insert([(0, 500, 7), (0, 501, 8), (0, 200_000, 9)].into_iter());
    house.run(&Step::Commit);
    assert!(length(&house) - before < 120, "{} bytes", length(&house) - before);
    house.run(&Step::Restart);
    house.check(&house.disk, &house.model, Span::ALL);
}

#[test]
fn a_journal_is_begun_anew_when_it_has_grown_and_not_at_each_opening() {
    let mut house = House::with_pages(4072);
    // Of many points that fill no leaf, the journal is long however often it is begun anew.
    house.insert((0..4000).map(|at| (at as u32 % 4, at * 1_000_003 + at * at % 977, at as u32)));
    house.run(&Step::Commit);
    let begun_anew = |house: &mut House| {
        let is_it = house.tables.maintain(&mut house.disk).expect("kept");
        house.run(&Step::Commit);
        is_it
    };
    assert!(begun_anew(&mut house));
    for _ in 0..3 {
        house.run(&Step::Restart);
        house.check(&house.disk, &house.model, Span::ALL);
        assert!(!begun_anew(&mut house), "nothing was written since");
    }
    let before = length(&house);
    for at in 0.. {
        house.insert((0..40).map(|more| (more as u32 % 4, (1 << 40) + at * 40_000 + more * 1000, at as u32)));
        house.run(&Step::Commit);
        if begun_anew(&mut house) {
            break;
        }
        assert!(length(&house) < 4 * before + 2 * LIMITS.journal_bytes as usize, "it grows for ever");
    }
    house.check(&house.disk, &house.model, Span::ALL);
}
