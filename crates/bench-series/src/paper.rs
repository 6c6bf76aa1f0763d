//! The paper's numbers: B. Chardin and others, Chronos, Distributed and Parallel Databases 2016, Tables 3 and 5.

use crate::query::{Category, Query};

/// What the paper measured on one medium.
pub struct Medium {
    /// Seconds for each query, by system.
    seconds: [[f64; 4]; 17],
}

/// The paper's systems, in the order of its columns.
pub const SYSTEMS: [&str; 4] = ["InfoPlus.21", "MySQL", "Berkeley DB", "Chronos"];

/// Table 3.
pub const DISK: Medium = Medium {
    seconds: [
        [8003.0, 24672.0, 2850.0, 236.0],
        [7086.0, 24086.0, 3116.0, 222.0],
        [16763.0, 12240.0, 9032.0, 8402.0],
        [16071.0, 13088.0, 9349.0, 8523.0],
        [268.0, 410.0, 693.0, 1263.0],
        [215.0, 285.0, 655.0, 1018.0],
        [207.0, 187.0, 531.0, 1214.0],
        [167.0, 182.0, 533.0, 995.0],
        [210.0, 193.0, 537.0, 1216.0],
        [189.0, 186.0, 514.0, 1115.0],
        [189.0, 192.0, 513.0, 1091.0],
        [234.0, 234.0, 508.0, 1059.0],
        [231.0, 278.0, 506.0, 1055.0],
        [1641.0, 1710.0, 4878.0, 4878.0],
        [1689.0, 7661.0, 4978.0, 4899.0],
        [9.5e-4, 1.15, 2.75, 1.06],
        [2.8e-4, 1.13, 4.81, 0.90],
    ],
};

/// Table 5.
pub const FLASH: Medium = Medium {
    seconds: [
        [34412.0, 26468.0, 10887.0, 638.0],
        [26849.0, 25444.0, 11137.0, 493.0],
        [820_011.0, 229_096.0, 53690.0, 109_450.0],
        [731_862.0, 251_751.0, 56397.0, 94506.0],
        [341.0, 1066.0, 2839.0, 420.0],
        [201.0, 272.0, 1744.0, 231.0],
        [103.0, 168.0, 104.0, 260.0],
        [93.0, 160.0, 102.0, 228.0],
        [104.0, 171.0, 102.0, 261.0],
        [97.0, 170.0, 101.0, 254.0],
        [96.0, 171.0, 101.0, 254.0],
        [205.0, 227.0, 101.0, 258.0],
        [202.0, 288.0, 101.0, 252.0],
        [1993.0, 1722.0, 1000.0, 2554.0],
        [1989.0, 7497.0, 1001.0, 2485.0],
        [9.9e-4, 0.31, 0.39, 0.37],
        [2.7e-4, 0.38, 0.69, 0.39],
    ],
};

/// How often the paper executed a query, and how many tuples each execution is of.
pub fn amount(query: Query) -> (u64, u64) {
    match query.category() {
        Category::Insertions => (500_000_000, 1),
        Category::Updates => (1_000_000, 1),
        Category::Raw | Category::Aggregates | Category::Filtering => (1000, 100_000),
        Category::Multiple => (100, 10_000_000),
        Category::Current => (1, 100),
    }
}

impl Medium {
    pub const BOTH: [Medium; 2] = [DISK, FLASH];

    /// Seconds that a system took.
    pub fn seconds(&self, query: Query, system: usize) -> f64 {
        self.seconds[query.place()][system]
    }

    /// Tuples a second.
    pub fn capacity(&self, query: Query, system: usize) -> f64 {
        let (executions, tuples) = amount(query);
        (executions * tuples) as f64 / self.seconds(query, system)
    }

    /// Tuples a second of a category: the mean of its queries, which is how Tables 4 and 6 have it.
    pub fn of_category(&self, category: Category, system: usize) -> f64 {
        mean(queries_of(category).map(|query| self.capacity(query, system)))
    }
}

/// The queries of a category.
pub fn queries_of(category: Category) -> impl Iterator<Item = Query> {
    Query::ALL.into_iter().filter(move |query| query.category() == category)
}

/// The mean of some numbers.
pub fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = numbers.fold((0.0, 0), |(sum, count), number| (sum + number, count + 1));
    sum / f64::from(count.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables 4 and 6 follow from Tables 3 and 5. Four cells do not quite: the tables are printed with few digits.
    #[test]
    fn categories_are_the_papers() {
        let table_4 = [
            [66519.0, 20512.0, 167_950.0, 2_185_448.0],
            [61.0, 79.0, 109.0, 118.0],
            [419_125.0, 297_390.0, 148_486.0, 88704.0],
            [523_257.0, 532_162.0, 190_329.0, 89291.0],
            [430_125.0, 393_531.0, 197_239.0, 94608.0],
            [600_725.0, 357_663.0, 202_943.0, 204_563.0],
            [231_203.0, 88.0, 29.0, 103.0],
        ];
        let table_6 = [
            [16576.0, 19271.0, 45411.0, 898_949.0],
            [1.0, 4.0, 18.0, 10.0],
            [395_384.0, 230_728.0, 46282.0, 335_498.0],
            [1_016_055.0, 595_613.0, 980_504.0, 398_751.0],
            [491_427.0, 393_875.0, 990_099.0, 392_211.0],
            [502_261.0, 357_053.0, 999_500.0, 396_979.0],
            [235_690.0, 293.0, 201.0, 263.0],
        ];
        for (medium, table) in [(DISK, table_4), (FLASH, table_6)] {
            for (category, row) in Category::ALL.into_iter().zip(table) {
                for (system, stated) in row.into_iter().enumerate() {
                    let found = medium.of_category(category, system);
                    let close = (found - stated).abs() <= 0.5f64.max(0.012 * stated);
                    assert!(close, "{category:?} {}: {found}, not {stated}", SYSTEMS[system]);
                }
            }
        }
    }
}
