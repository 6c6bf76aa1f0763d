use std::collections::BTreeMap;

use counterfoil_flash_sim::Dice;

use super::*;
use crate::board::Flash;

const NAND: Board = Board { flash: Flash::Nand, kilobytes: 128 };

fn compare(store: &mut dyn Subject, truth: &BTreeMap<u32, Counter>, ids: u32) {
    for id in 0..ids {
        assert_eq!(store.read(id).ok(), truth.get(&id).copied(), "record {id}");
    }
}

/// Random commits against a map, in the fills in which cleaning takes one block, many, and in the end all there are.
#[test]
fn it_holds_what_a_map_holds() {
    for board in Board::ALL {
        let layout = Layout::of(&board);
        for fill in [0.02, 0.5, 0.9] {
            let ids = layout.counters(&board, fill);
            with(&board, &layout, |store, _| {
                let (mut dice, mut truth) = (Dice::new(9), BTreeMap::new());
                for number in 0..600u32 {
                    let mut chosen: Vec<u32> =
                        (0..1 + dice.below(30)).map(|_| dice.below(u64::from(ids)) as u32).collect();
                    chosen.sort_unstable();
                    chosen.dedup();
                    let counter = [number as u8; COUNTER_BYTES];
                    let changes: Vec<(u32, Counter)> = chosen.iter().map(|id| (*id, counter)).collect();
                    store.commit(&changes).unwrap_or_else(|refusal| panic!("{board} {fill}: {refusal}"));
                    truth.extend(changes);
                }
                compare(store, &truth, ids);
            });
        }
    }
}

#[test]
fn a_store_that_cleaning_cannot_help_is_full() {
    let layout = Layout::of(&NAND);
    with(&NAND, &layout, |store, _| {
        let mut truth = BTreeMap::new();
        let refusal = (0..).find_map(|id| {
            let counter = [id as u8; COUNTER_BYTES];
            let refused = store.commit(&[(id, counter)]).err();
            truth.extend(refused.is_none().then_some((id, counter)));
            refused
        });
        assert_eq!(refusal, Some(Refusal::Full));
        let most = layout.counters(&NAND, 1.0) as usize;
        assert!((most * 9 / 10..most).contains(&truth.len()), "{} of {most}", truth.len());
        // The commit that was refused left no trace in the index.
        compare(store, &truth, 1 + truth.len() as u32);
    });
}

/// Section 4.3 and 4.4: two pages to read a record; a commit reads the index once and writes it and a page of data.
#[test]
fn it_does_what_the_paper_says() {
    with(&NAND, &Layout::of(&NAND), |store, _| {
        let counter = [1; COUNTER_BYTES];
        let all: Vec<(u32, Counter)> = (0..600).map(|id| (id, counter)).collect();
        store.commit(&all).expect("has room");
        let before = store.work();
        store.read(599).expect("is there");
        let read = store.work() - before;
        assert_eq!((read.index.reads, read.data.reads, read.programs()), (1, 1, 0));
        let before = store.work();
        store.commit(&all[..3]).expect("has room");
        let written = store.work() - before;
        assert_eq!((written.index.reads, written.index.programs, written.data.programs), (2, 2, 1));
        assert_eq!((written.data.reads, written.erases(), written.counter_steps), (0, 0, 1));
    });
}
