//! Every (key, nonce) pair of devices that are cut, and whose older images are put back, is distinct. They have a counter
//! and no generator. One test in a binary of its own: the witness remembers every seal of the process.

#[path = "../alone/chip.rs"]
#[allow(dead_code)]
mod chip;
#[path = "../alone/counter.rs"]
#[allow(dead_code)]
mod counter;
#[path = "../alone/walk.rs"]
#[allow(dead_code)]
mod walk;

use counterfoil_record::RecordId;
use counterfoil_vault::witness;

/// Without a counter the generator tells the openings of one image apart.
fn put_back_without_a_counter() {
    let mut chip = walk::small(u64::MAX - 1);
    (chip.has_counter, chip.shape.is_salted) = (false, true);
    let record = [(RecordId(0), Some(&b"record"[..]))];
    chip.with(true, |store| store.commit(&record)).expect("made").expect("commits");
    let image = chip.device.image();
    for _ in 0..5 {
        chip.device.restore(image.clone());
        chip.with(false, |store| store.commit(&record)).expect("opens").expect("commits");
    }
}

#[test]
fn no_pair_comes_twice_whatever_is_cut_and_put_back() {
    let walks = if chip::is_full_size() { 2_000 } else { 100 };
    let refused: usize = (0..walks).map(walk::walk).sum();
    assert!(refused > 0);
    // A making that is cut before the counter moved is begun anew in another shape.
    let mut chip = walk::small(u64::MAX);
    chip.counter.cut = Some((1, false));
    assert!(chip.with(true, |_| ()).is_err());
    chip.counter.cut = None;
    chip.shape.block_count -= 1;
    chip.with(true, |_| ()).expect("made");

    put_back_without_a_counter();

    let seen = witness::distinct();
    assert!(seen > 50 * walks as usize, "{seen} pairs");
    assert_eq!(witness::duplicates(), []);
}
