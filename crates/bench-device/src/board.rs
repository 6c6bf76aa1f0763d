//! The boards of the benchmark: flash of some kind and size, at the prices of the paper.

use counterfoil_flash_sim::{Part, Prices};

/// NAND or NOR, as the paper has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flash {
    /// 512-byte pages, blocks of 8 KB.
    Nand,
    /// Pages of 512 bytes emulated on words, blocks of 16 KB.
    Nor,
}

/// A board with a part of some size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Board {
    pub flash: Flash,
    pub kilobytes: u32,
}

impl Board {
    pub const ALL: [Board; 4] = [
        Board { flash: Flash::Nand, kilobytes: 128 },
        Board { flash: Flash::Nor, kilobytes: 128 },
        Board { flash: Flash::Nand, kilobytes: 1024 },
        Board { flash: Flash::Nor, kilobytes: 1024 },
    ];

    pub fn page_bytes(&self) -> usize {
        512
    }

    pub fn block_pages(&self) -> u32 {
        match self.flash {
            Flash::Nand => 16,
            Flash::Nor => 32,
        }
    }

    pub fn blocks(&self) -> u32 {
        self.kilobytes * 1024 / self.page_bytes() as u32 / self.block_pages()
    }

    pub fn prices(&self) -> Prices {
        match self.flash {
            Flash::Nand => Prices::GNATDB_NAND,
            Flash::Nor => Prices::GNATDB_NOR,
        }
    }

    /// The part, to be simulated.
    pub fn part(&self) -> Part {
        let part = Part::nand(self.page_bytes() as u32, self.block_pages(), u64::from(self.blocks()));
        Part { prices: self.prices(), ..part }
    }
}

impl std::fmt::Display for Flash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Flash::Nand => "NAND",
            Flash::Nor => "NOR",
        })
    }
}

impl std::fmt::Display for Board {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.kilobytes {
            1024 => write!(f, "{}, 1 MB", self.flash),
            kilobytes => write!(f, "{}, {kilobytes} KB", self.flash),
        }
    }
}
