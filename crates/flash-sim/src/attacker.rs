//! One who holds the medium between any two steps, forgets nothing, and puts back what he likes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Dice, Image};

/// Keeps every image ever seen. Clones share the collection, so that a device can be watched while a test runs on.
#[derive(Clone, Debug, Default)]
pub struct Attacker {
    images: Arc<Mutex<Vec<Image>>>,
}

impl Attacker {
    /// One who has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps an image; one that equals the last is not kept twice. Answers its index.
    pub fn see(&self, image: Image) -> usize {
        let mut images = self.lock();
        if images.last() != Some(&image) {
            images.push(image);
        }
        images.len() - 1
    }

    /// How many images are kept.
    pub fn image_count(&self) -> usize {
        self.lock().len()
    }

    /// One of them, whole.
    pub fn whole(&self, index: usize) -> Option<Image> {
        self.lock().get(index).cloned()
    }

    /// Every page out of any of them.
    pub fn mixture(&self, seed: u64) -> Option<Image> {
        let images = self.lock();
        mix(&images.iter().collect::<Vec<_>>(), seed)
    }

    /// Every page out of one of these.
    pub fn mixture_of(&self, indexes: &[usize], seed: u64) -> Option<Image> {
        let images = self.lock();
        mix(&indexes.iter().filter_map(|index| images.get(*index)).collect::<Vec<_>>(), seed)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Image>> {
        self.images.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn mix(images: &[&Image], seed: u64) -> Option<Image> {
    let mut dice = Dice::new(seed);
    let mut mixture = (*images.first()?).clone();
    let mut numbers: Vec<u64> = images.iter().flat_map(|image| image.numbers()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    for number in numbers {
        mixture.take(number, images[dice.below(images.len() as u64) as usize]);
    }
    Some(mixture)
}
