//! Images that no store wrote: noise, and what an attacker or a rotten part makes of real ones.

use counterfoil_flash_sim::{Dice, Image, Part, SimulatedDevice};
use counterfoil_record::alone::{Error, Standalone};
use counterfoil_vault::{Counter, DatabaseId, Suite, Vault, VolumeKey};

use crate::chip::*;
use crate::counter::CutCounter;
use crate::walk::small_on;

pub const IDS: u32 = 60;
pub const NAMES: u32 = 12;

/// A store, and what its part held at moments of its life.
pub struct Source {
    pub chip: Chip,
    pub moments: Vec<Image>,
    key: u8,
    pages: u64,
    block_pages: u64,
}

/// Of a cipher that stands a store without a counter.
fn vault(key: u8) -> Vault {
    Vault::new(&VolumeKey::from_bytes(&[key; 32]), DatabaseId([4; 32]), Suite::Aes256GcmSiv)
}

fn live(store: &mut Standalone<'_, SimulatedDevice, u16>, dice: &mut Dice) -> Result<(), Error> {
    let mut buffer = [0; 512];
    for turn in 0..20 {
        let changes: Vec<_> = random_changes(dice, IDS, 30, 3);
        let changes: Changes = changes.into_iter().map(|(id, record)| (id + NAMES, record)).collect();
        match turn % 5 {
            0 => store.put_named(&[b'n', dice.below(9) as u8], b"a value", &mut buffer)?,
            1 => store.commit_in_group(&borrowed(&changes))?,
            _ => store.commit(&borrowed(&changes))?,
        };
    }
    while store.prepare()? {}
    store.close_group()
}

impl Source {
    /// A store on this part that has gone round its rings.
    pub fn new(part: Part, key: u64) -> Self {
        let geometry = part.geometry;
        let mut chip = small_on(part, 0);
        chip.vault = vault(key as u8);
        let (mut dice, mut moments) = (Dice::new(key), Vec::new());
        // An older store of another shape, made with the same keys, and then the one that the part holds.
        for names in [NAMES + 1, NAMES] {
            chip.shape.names = names;
            chip.with(true, |_| ()).expect("made");
            for _ in 0..8 {
                chip.with(false, |store| live(store, &mut dice)).expect("opens").expect("lives");
                moments.push(chip.device.image_seen());
            }
        }
        let block_pages = u64::from(geometry.block_pages);
        Self { chip, moments, key: key as u8, pages: geometry.block_count * block_pages, block_pages }
    }

    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// The same store with a counter that stands elsewhere, or with none, holding an image that is none of its own.
    pub fn forged(&self, dice: &mut Dice) -> Chip {
        let mut chip = self.chip.copied();
        chip.vault = vault(self.key);
        chip.shape = self.chip.shape;
        let mut image = self.moments[dice.below(self.moments.len() as u64) as usize].clone();
        if dice.once_in(2) {
            image = self.moments.last().expect("moments").clone();
        }
        for _ in 0..1 + dice.below(3) {
            self.change(&mut image, dice);
        }
        chip.device.restore(image);
        chip.has_counter = !dice.once_in(3);
        let value = chip.counter.value().expect("stands").value;
        chip.counter = match dice.below(6) {
            0..3 => chip.counter,
            3 => CutCounter::at((value + 4).saturating_sub(dice.below(9))),
            4 => CutCounter::at(dice.below(value + 1)),
            _ => CutCounter::at(u64::MAX >> dice.below(40)),
        };
        chip.rollbacks_max = if dice.once_in(2) { 1 + dice.below(60) as u16 } else { 0 };
        chip
    }

    fn any_page(&self, dice: &mut Dice) -> u64 {
        dice.below(self.pages)
    }

    fn block(&self, dice: &mut Dice) -> std::ops::Range<u64> {
        let first = self.any_page(dice) / self.block_pages * self.block_pages;
        first..first + self.block_pages
    }

    /// One thing that is wrong with an image.
    fn change(&self, image: &mut Image, dice: &mut Dice) {
        // Most of it leaves something that opens.
        match dice.below(30) {
            0 => (0..self.pages).for_each(|page| self.noise(image, page, dice)),
            1 => (0..self.pages).for_each(|page| self.claim(image, page, dice)),
            2 => {
                for page in self.block(dice) {
                    self.claim(image, page, dice);
                }
            }
            3 | 12..16 => {
                for _ in 0..1 + dice.below(20) {
                    image.flip(self.any_page(dice), dice.below(512 * 8));
                }
            }
            4 => {
                for _ in 0..1 + dice.below(8) {
                    self.swap(image, (self.any_page(dice), self.any_page(dice)));
                }
            }
            5 | 20..23 => {
                let (from, to) = (self.block(dice), self.block(dice));
                let before = image.clone();
                from.zip(to).for_each(|(from, to)| image.set(to, &before.page(from)));
            }
            6 => {
                let end = self.any_page(dice);
                let gone = if dice.once_in(2) { end..self.pages } else { 0..end };
                gone.for_each(|page| image.clear(page));
            }
            7 => {
                let byte = [0x00, 0xFF, dice.below(256) as u8][dice.below(3) as usize];
                let filled = if dice.once_in(3) { 0..self.pages } else { self.block(dice) };
                filled.for_each(|page| image.set(page, &[byte; 512]));
            }
            8 | 23..25 => self.superblocks(image, dice),
            9 | 16..20 => {
                for _ in 0..1 + dice.below(20) {
                    self.head(image, self.any_page(dice), dice);
                }
            }
            _ => {
                let other = &self.moments[dice.below(self.moments.len() as u64) as usize];
                let times = 2 + dice.below(6);
                let taken = (0..self.pages).filter(|_| dice.once_in(times)).collect::<Vec<_>>();
                taken.into_iter().for_each(|page| image.take(page, other));
            }
        }
    }

    fn noise(&self, image: &mut Image, page: u64, dice: &mut Dice) {
        let bytes: Vec<u8> = (0..512 / 8).flat_map(|_| dice.roll().to_le_bytes()).collect();
        image.set(page, &bytes);
    }

    /// Noise under a head that may be one: some lap, some opening, and a block of the rings.
    fn claim(&self, image: &mut Image, page: u64, dice: &mut Dice) {
        self.noise(image, page, dice);
        let mut bytes = image.page(page).to_vec();
        let lap = [1 + dice.below(9), dice.below(1 << 24)][dice.below(2) as usize];
        let number = [dice.below(200), dice.below(1 << 40), (1 << 39) | dice.below(200)][dice.below(3) as usize];
        let block = dice.below(self.pages / self.block_pages) as u16;
        bytes[..3].copy_from_slice(&lap.to_le_bytes()[..3]);
        bytes[3..8].copy_from_slice(&number.to_le_bytes()[..5]);
        bytes[8..10].copy_from_slice(&block.to_le_bytes());
        image.set(page, &bytes);
    }

    /// A real page whose head says a little more or less than it said.
    fn head(&self, image: &mut Image, page: u64, dice: &mut Dice) {
        let mut bytes = image.page(page).to_vec();
        let at = [0, 3, 8, 7][dice.below(4) as usize];
        bytes[at] = bytes[at].wrapping_add([1, 255, 128, 2][dice.below(4) as usize]);
        image.set(page, &bytes);
    }

    fn swap(&self, image: &mut Image, (one, other): (u64, u64)) {
        let before = image.clone();
        image.set(one, &before.page(other));
        image.set(other, &before.page(one));
    }

    /// Changes some bytes that a superblock says, and lets others stand where none is looked for.
    fn superblocks(&self, image: &mut Image, dice: &mut Dice) {
        let firsts = (0..self.pages).step_by(self.block_pages as usize);
        let copies: Vec<u64> = firsts.filter(|page| image.page(*page).starts_with(b"foilchip")).collect();
        for page in &copies {
            let mut bytes = image.page(*page).to_vec();
            let (at, byte) = (dice.below(136) as usize, dice.below(256) as u8);
            bytes[at] = byte;
            let to = if dice.once_in(3) { self.any_page(dice) } else { *page };
            image.set(to, &bytes);
        }
    }
}
