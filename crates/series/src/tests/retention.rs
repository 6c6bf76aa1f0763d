//! The oldest points go.

use super::*;

#[test]
fn a_tall_tree_is_trimmed() {
    let mut house = House::with_pages(256);
    for part in 0..40 {
        house.insert((0..5000).map(|at| (part % 3, (part as i64 / 3 * 5000 + at) * 10, 1)));
        house.run(&Step::Maintain);
    }
    assert!(levels(&house).len() >= 2, "{:?}", levels(&house));
    let all = house.tables.pages(&house.disk, TABLE).expect("counted")[0];
    for time in [5, 60_000, 60_010, 333_333, 500_000] {
        house.run(&Step::Commit);
        house.retain_from(time, 50, false);
        house.check(&house.disk, &house.model, Span::ALL);
        house.run(&Step::RollBack);
        house.check(&house.disk, &house.model, Span::ALL);
        house.retain_from(time, 50, true);
        house.insert((0..10).map(|at| (at as u32 % 3, at * 60_007, 2)));
        house.check(&house.disk, &house.model, Span::ALL);
    }
    let pages = house.tables.pages(&house.disk, TABLE).expect("counted");
    // Of each series 15 leaves may wait for others to go with them, one is on the border, and each late point may cut one in two.
    let kept = all * house.model.len() as u64 / 200_000;
    assert!(pages[0] < kept + 3 * 17 + 50, "leaves before the time went: {pages:?} of {all}, {kept}");
    for pages in [1, 0, 30, 7, 300] {
        house.drop_oldest(pages);
        house.check(&house.disk, &house.model, Span::ALL);
    }
    // All series have about as much left: what is oldest goes first.
    let first = |series: u32| house.model.range((series, i64::MIN)..).next().map_or(0, |((_, time), _)| *time);
    let firsts = [first(0), first(1), first(2)];
    let apart = firsts.iter().max().expect("three") - firsts.iter().min().expect("three");
    assert!(firsts[0] > 510_000 && apart < 28 * 100 * 10, "{firsts:?}");
    house.run(&Step::Commit);
    house.run(&Step::Restart);
    house.check(&house.disk, &house.model, Span::ALL);
    house.drop_oldest(100_000);
    house.check(&house.disk, &house.model, Span::ALL);
    house.retain_from(10_000_000, 1, true);
    assert_eq!((house.model.len(), house.disk.page_count()), (0, 0));
    house.check(&house.disk, &house.model, Span::ALL);
}
