//! What was done, and what it costs on the counted clock.

/// Operations and bytes since the device was made. Reads are counted by pages touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meters {
    /// Pages read, in whole or in part.
    pub reads: u64,
    /// Sectors (of [`Prices::sector_bytes`]) transferred by reads.
    pub read_sectors: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Pages programmed that neither follow the page programmed before nor lie in its erase unit, on parts with a
    /// translation layer.
    pub scattered_programs: u64,
    /// Bytes programmed.
    pub program_bytes: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Flushes.
    pub flushes: u64,
}

/// Prices of operations in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// Reading a page into the part's register.
    pub read_page: u64,
    /// Programming a page from the part's register.
    pub program_page: u64,
    /// What programming a page costs beyond that when it is scattered ([`Meters::scattered_programs`]).
    pub scattered_program: u64,
    /// Moving one sector between the part and the processor.
    pub transfer_sector: u64,
    /// Bytes in a sector.
    pub sector_bytes: u32,
    /// Erasing a block.
    pub erase_block: u64,
    /// A flush.
    pub flush: u64,
    /// One step of the one-way counter; the device does not take it, the price is for those who do.
    pub counter_step: u64,
}

impl Prices {
    /// Nothing costs anything.
    pub const FREE: Self = Self {
        read_page: 0,
        program_page: 0,
        scattered_program: 0,
        transfer_sector: 0,
        sector_bytes: 512,
        erase_block: 0,
        flush: 0,
        counter_step: 0,
    };

    /// GnatDb, Figure 6: NAND, 512-byte pages, 8 KB blocks, averages.
    pub const GNATDB_NAND: Self =
        Self { read_page: 303_000, program_page: 636_000, erase_block: 2_112_000, counter_step: 32_000, ..Self::FREE };

    /// GnatDb, Figure 6: NOR, 512-byte pages, 16 KB blocks, averages.
    pub const GNATDB_NOR: Self = Self {
        read_page: 33_000,
        program_page: 3_670_000,
        erase_block: 339_306_000,
        counter_step: 32_000,
        ..Self::FREE
    };

    /// MILo-DB, section 7: SLC NAND, 2 KB pages of four sectors, 64 pages a block. The paper multiplies its own
    /// results by 1.4 for what its simulator misses; this does not.
    pub const MILO_TOKEN: Self = Self {
        read_page: 25_000,
        program_page: 200_000,
        transfer_sector: 25_000,
        erase_block: 1_500_000,
        ..Self::FREE
    };

    /// MILo-DB, section 2 and 7.2: the average of 20 SD cards. The paper has ratios (a scattered write costs 1300
    /// sequential ones) and that 31 scattered writes take 4.2 s; from these follow 135 ms and 0.104 ms for a page.
    pub const AVERAGE_CARD: Self =
        Self { read_page: 104_000, program_page: 104_000, scattered_program: 135_000_000, ..Self::FREE };
}

impl Meters {
    /// Nanoseconds on the counted clock.
    pub fn nanoseconds(&self, prices: &Prices) -> u64 {
        let program_sectors = self.program_bytes / u64::from(prices.sector_bytes.max(1));
        self.reads * prices.read_page
            + self.programs * prices.program_page
            + self.scattered_programs * prices.scattered_program
            + (self.read_sectors + program_sectors) * prices.transfer_sector
            + self.erases * prices.erase_block
            + self.flushes * prices.flush
    }

    /// What was done since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            read_sectors: self.read_sectors - earlier.read_sectors,
            read_bytes: self.read_bytes - earlier.read_bytes,
            programs: self.programs - earlier.programs,
            scattered_programs: self.scattered_programs - earlier.scattered_programs,
            program_bytes: self.program_bytes - earlier.program_bytes,
            erases: self.erases - earlier.erases,
            flushes: self.flushes - earlier.flushes,
        }
    }
}
