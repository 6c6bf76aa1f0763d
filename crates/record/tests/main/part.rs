//! A simulated part: pages that are volatile until a flush, and a cut at any operation.

use counterfoil_flash::{BlockNumber, Device, Error, Geometry, Operation, PageNumber, Read};

/// A small generator of repeatable numbers (splitmix64).
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        value ^ (value >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// What a cut does to the operations since the last flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// All of them happened but the last, which did not.
    Clean,
    /// All of them happened, the last one included.
    Late,
    /// All of them happened but the last, which is torn: a prefix of the page, or half an erased block.
    Torn,
    /// Any subset of them happened, in any order, each whole or torn.
    Unordered,
}

pub const CUTS: [Cut; 4] = [Cut::Clean, Cut::Late, Cut::Torn, Cut::Unordered];

#[derive(Clone)]
enum Pending {
    Program(usize, Vec<u8>),
    Erase(usize),
}

#[derive(Clone)]
pub struct Part {
    pub geometry: Geometry,
    /// What reads see.
    pub pages: Vec<Vec<u8>>,
    programmed: Vec<bool>,
    durable: Vec<Vec<u8>>,
    pending: Vec<Pending>,
    pub operations: usize,
    pub reads: std::cell::Cell<usize>,
    pub cut_at: Option<usize>,
    pub dead: bool,
}

impl Part {
    pub fn new(page_bytes: u32, block_pages: u32, block_count: u64, erase: bool) -> Part {
        let geometry = Geometry { page_bytes, block_pages, block_count, erase_before_program: erase, grows: false };
        let pages = vec![vec![if erase { 0xFF } else { 0 }; page_bytes as usize]; geometry.page_count() as usize];
        Part {
            geometry,
            programmed: vec![false; pages.len()],
            durable: pages.clone(),
            pages,
            pending: Vec::new(),
            operations: 0,
            reads: Default::default(),
            cut_at: None,
            dead: false,
        }
    }

    fn blank(&self) -> Vec<u8> {
        vec![if self.geometry.erase_before_program { 0xFF } else { 0 }; self.geometry.page_bytes as usize]
    }

    /// The part with power again after a cut.
    pub fn after(mut self, cut: Cut, random: &mut Random) -> Part {
        let mut pending = std::mem::take(&mut self.pending);
        let mut image = self.durable.clone();
        let last = pending.len().wrapping_sub(1);
        if cut == Cut::Unordered && !self.geometry.erase_before_program {
            for place in (1..pending.len()).rev() {
                pending.swap(place, random.below(place + 1));
            }
        }
        for (place, operation) in pending.iter().enumerate() {
            let (happened, torn) = match cut {
                Cut::Clean => (place != last, false),
                Cut::Late => (true, false),
                Cut::Torn => (true, place == last),
                Cut::Unordered => (random.below(2) == 0, random.below(4) == 0),
            };
            if happened {
                self.apply(&mut image, operation, torn, random);
            }
        }
        // A page that does not read as erased was programmed, however little of it.
        let blank = self.blank();
        self.programmed = image.iter().map(|page| *page != blank).collect();
        self.durable = image.clone();
        self.pages = image;
        self.operations = 0;
        self.cut_at = None;
        self.dead = false;
        self
    }

    fn apply(&self, image: &mut [Vec<u8>], operation: &Pending, torn: bool, random: &mut Random) {
        match operation {
            Pending::Program(page, data) => {
                let end = if torn { random.below(data.len()) } else { data.len() };
                image[*page][..end].copy_from_slice(&data[..end]);
            }
            Pending::Erase(block) => {
                let (first, count) = (block * self.geometry.block_pages as usize, self.geometry.block_pages as usize);
                for page in image.iter_mut().skip(first).take(count) {
                    if !torn || random.below(2) == 0 {
                        *page = self.blank();
                    } else {
                        let at = random.below(page.len());
                        page[at] ^= 1 + random.below(255) as u8;
                    }
                }
            }
        }
    }

    fn step(&mut self) -> Result<bool, Error> {
        if self.dead {
            return Err(Error::Latched);
        }
        self.operations += 1;
        self.dead = Some(self.operations) == self.cut_at;
        Ok(self.dead)
    }

    fn lost(operation: Operation, page: PageNumber) -> Error {
        Error::Device { operation, page, code: 5 }
    }
}

impl Read for Part {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        self.reads.set(self.reads.get() + 1);
        let past = Error::OutOfRange { page, page_count: self.pages.len() as u64 };
        let found = self.pages.get(page.0 as usize).ok_or(past)?;
        buffer.copy_from_slice(&found[offset as usize..offset as usize + buffer.len()]);
        Ok(())
    }
}

impl Device for Part {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), Error> {
        let cut = self.step()?;
        let place = page.0 as usize;
        assert_eq!(data.len(), self.geometry.page_bytes as usize);
        if self.geometry.erase_before_program && std::mem::replace(&mut self.programmed[place], true) {
            return Err(Error::NotErased { page });
        }
        self.pending.push(Pending::Program(place, data.to_vec()));
        if cut {
            return Err(Part::lost(Operation::Program, page));
        }
        self.pages[place].copy_from_slice(data);
        Ok(())
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Error> {
        let cut = self.step()?;
        if self.geometry.erase_before_program {
            self.pending.push(Pending::Erase(block.0 as usize));
            let (first, count) = ((block.0 as usize) * self.geometry.block_pages as usize, self.geometry.block_pages);
            let blank = self.blank();
            for place in first..first + count as usize {
                self.pages[place].copy_from_slice(&blank);
                self.programmed[place] = false;
            }
        }
        if cut { Err(Part::lost(Operation::Erase, self.geometry.first_page(block))) } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.step()? {
            return Err(Part::lost(Operation::Flush, PageNumber(0)));
        }
        self.pending.clear();
        self.durable = self.pages.clone();
        Ok(())
    }
}
