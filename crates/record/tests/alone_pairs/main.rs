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

use counterfoil_vault::witness;

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

    let seen = witness::distinct();
    assert!(seen > 50 * walks as usize, "{seen} pairs");
    assert_eq!(witness::duplicates(), []);
}
