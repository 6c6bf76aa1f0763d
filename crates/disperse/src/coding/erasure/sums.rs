//! A missing piece as a sum of those that are there.
//!
//! The code is linear: each symbol of a missing piece is a sum of one linear map of the symbol at its place in each piece that is there. The
//! library works out those maps for each cell anew, with transforms over all of GF(2^16), which take as long for ten bytes as for a hundred
//! thousand. Here it is asked for them once for each choice of pieces, by cells of single bits, and then a symbol costs two lookups a piece.

/// Bits of a symbol.
const SYMBOL_BITS: usize = 16;
/// Bytes of a stretch whose first half has the low bytes of symbols and whose second one the high ones.
const STRETCH_BYTES: usize = 64;

/// What each value of a symbol's low byte becomes, and each of its high byte.
type Map = [[u16; 256]; 2];

/// How the missing pieces follow from a choice of those that are there.
pub(super) struct Sums {
    /// The pieces chosen, ascending.
    chosen: Vec<usize>,
    /// For each piece of data that is not among them, its maps in the order of those.
    missing: Vec<(usize, Vec<Map>)>,
}

impl Sums {
    /// Those of a choice of as many pieces as there are of data, ascending, of which some are of parity; none: there is no such code.
    pub(super) fn of(data: usize, parity: usize, chosen: &[usize]) -> Option<Self> {
        let symbols = chosen.len() * SYMBOL_BITS;
        let mut asked = vec![vec![0; 2 * symbols]; chosen.len()];
        let places: Vec<(usize, usize)> = places(2 * symbols).collect();
        for (at, piece) in asked.iter_mut().enumerate() {
            for bit in 0..SYMBOL_BITS {
                let (low, high) = places[at * SYMBOL_BITS + bit];
                piece[if bit < 8 { low } else { high }] = 1 << (bit % 8);
            }
        }
        let (own, other): (Vec<_>, Vec<_>) = chosen.iter().zip(&asked).partition(|(number, _)| **number < data);
        let own = own.into_iter().map(|(number, piece)| (*number, piece));
        let other = other.into_iter().map(|(number, piece)| (number - data, piece));
        let answered = reed_solomon_simd::decode(data, parity, own, other).ok()?;
        let symbol = |piece: &[u8], at: usize| u16::from_le_bytes([piece[places[at].0], piece[places[at].1]]);
        let map = |piece: &[u8], at: usize| map(&std::array::from_fn(|bit| symbol(piece, at * SYMBOL_BITS + bit)));
        let maps = |piece: &Vec<u8>| (0..chosen.len()).map(|at| map(piece, at)).collect();
        let missing = (0..data).filter(|number| !chosen.contains(number));
        let missing = missing.map(|number| Some((number, maps(answered.get(&number)?)))).collect::<Option<_>>()?;
        Some(Self { chosen: chosen.to_vec(), missing })
    }

    /// Whether they are those of a choice.
    pub(super) fn is_of(&self, chosen: &[usize]) -> bool {
        self.chosen == chosen
    }

    /// A missing piece, of those that were chosen, which have one length.
    pub(super) fn piece(&self, number: usize, chosen: &[(usize, &[u8])]) -> Option<Vec<u8>> {
        let (_, maps) = self.missing.iter().find(|(missing, _)| *missing == number)?;
        let mut sum = vec![0; chosen.first()?.1.len()];
        for ((_, piece), map) in chosen.iter().zip(maps) {
            for (low, high) in places(piece.len()) {
                let [low_bytes, high_bytes] = map;
                let symbol = low_bytes[usize::from(piece[low])] ^ high_bytes[usize::from(piece[high])];
                let [add_low, add_high] = symbol.to_le_bytes();
                sum[low] ^= add_low;
                sum[high] ^= add_high;
            }
        }
        Some(sum)
    }
}

/// What a map makes of all values, given what it makes of single bits.
fn map(of_bits: &[u16; SYMBOL_BITS]) -> Map {
    let mut map = [[0; 256]; 2];
    for (values, of_bits) in map.iter_mut().zip(of_bits.chunks_exact(8)) {
        for value in 1..256_usize {
            values[value] = values[value & (value - 1)] ^ of_bits[value.trailing_zeros() as usize];
        }
    }
    map
}

/// Where a piece of so many bytes, which are even, has the low and the high byte of each symbol.
fn places(bytes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..bytes).step_by(STRETCH_BYTES).flat_map(move |start| {
        let half = (bytes - start).min(STRETCH_BYTES) / 2;
        (start..start + half).map(move |low| (low, low + half))
    })
}
