//! Table 1: levels above the leaves of an index that has signatures in its leaves alone, and of one with digests everywhere.

const PAGE: u64 = 4096;
const KEY: u64 = 4;
const POINTER: u64 = 4;
const RECORDS: [u64; 5] = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// What entries hold beside key and pointer.
struct Sizes {
    signature: u64,
    digest: u64,
}

/// The paper's strength, that of RSA with 1024 bits, and 128 bits.
const PAPER: Sizes = Sizes { signature: 20, digest: 20 };
const OURS: Sizes = Sizes { signature: 48, digest: 32 };

/// Levels over leaves of so many bytes an entry, where an entry above them takes `inner`; pages are two thirds full.
fn height(records: u64, leaf: u64, inner: u64) -> u32 {
    let leaves = records.div_ceil(PAGE / (KEY + leaf + POINTER)) as f64 * 1.5;
    let fanout = (PAGE / inner * 2 / 3) as f64;
    (leaves.ln() / fanout.ln()).ceil() as u32
}

impl Sizes {
    fn signed(&self, records: u64) -> u32 {
        height(records, self.signature, KEY + POINTER)
    }

    fn embedded(&self, records: u64) -> u32 {
        height(records, self.digest, KEY + POINTER + self.digest)
    }
}

pub fn print() {
    println!(
        "\n{:>12} {:>14} {:>14} {:>18} {:>18}",
        "records", "ASign, 80 bit", "EMB-, 80 bit", "signed, 128 bit", "EMB-, 128 bit"
    );
    for records in RECORDS {
        let [signed, embedded] = [PAPER.signed(records), PAPER.embedded(records)];
        println!(
            "{records:>12} {signed:>14} {embedded:>14} {:>18} {:>18}",
            OURS.signed(records),
            OURS.embedded(records)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::{PAPER, RECORDS};

    #[test]
    fn heights_are_those_of_table_1() {
        assert_eq!(RECORDS.map(|records| PAPER.signed(records)), [1, 2, 2, 2, 3]);
        assert_eq!(RECORDS.map(|records| PAPER.embedded(records)), [2, 2, 3, 3, 4]);
    }
}
