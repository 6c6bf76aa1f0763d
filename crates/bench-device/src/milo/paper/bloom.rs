//! Keys, how they stand on a page of KEY, and the filter of such a page.

/// A key: CHAR(10), and what else is indexed in the same ten bytes.
pub type Key = [u8; 10];

/// Keys of a page of KEY: eight bytes under the page's secret and two for the place.
pub const PAGE_KEYS: u64 = 204;
/// Bytes of a filter: 16 bits a key.
pub const FILTER_BYTES: usize = PAGE_KEYS as usize * 2;
/// Filters of a page of BF.
pub const PAGE_FILTERS: u64 = 5;
const HASHES: u64 = 4;
/// Bytes of a filter that a key is looked up in: a cell for each bit.
pub const LOOKED_AT_BYTES: usize = HASHES as usize * 16;

/// What a key is under the secret of a page: two pages have different ones of it (6.3).
pub fn under(secret: u64, key: &Key) -> u64 {
    let mixed = key.iter().fold(secret ^ 0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    // Zero says that there is no key.
    (mixed ^ (mixed >> 29)).max(1)
}

fn lines(key: &Key) -> impl Iterator<Item = usize> {
    let (hash, step) = (under(1, key), under(2, key) | 1);
    (0..HASHES).map(move |way| (hash.wrapping_add(way.wrapping_mul(step)) % (FILTER_BYTES as u64 * 8)) as usize)
}

/// The filter of some keys.
pub fn filter<'k>(keys: impl Iterator<Item = &'k Key>) -> [u8; FILTER_BYTES] {
    let mut filter = [0; FILTER_BYTES];
    keys.flat_map(lines).for_each(|line| filter[line / 8] |= 1 << (line % 8));
    filter
}

/// Whether a key may be among those of a filter.
pub fn may_hold(filter: &[u8], key: &Key) -> bool {
    lines(key).all(|line| filter[line / 8] & 1 << (line % 8) != 0)
}
