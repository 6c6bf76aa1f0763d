//! The device that tests hold in their hands.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use counterfoil_flash::{BlockNumber, Device, Error, FactoryMarks, Geometry, PageNumber, Read};

use crate::medium::Medium;
use crate::{Attacker, Image, Meters, Part, Scenario, Survivors};

/// A simulated part. Clones are the same part, so that readers and the writer share it and a test can look on.
#[derive(Clone)]
pub struct SimulatedDevice {
    medium: Arc<Mutex<Medium>>,
    geometry: Geometry,
}

impl SimulatedDevice {
    /// A blank part to which the scenario will happen.
    pub fn new(part: Part, scenario: Scenario) -> Self {
        part.geometry.validate().expect("a test names a possible shape");
        let geometry = part.geometry;
        Self { medium: Arc::new(Mutex::new(Medium::new(part, scenario))), geometry }
    }

    /// Everything that happens to it, as an id that replays it.
    pub fn scenario(&self) -> Scenario {
        self.lock().scenario.clone()
    }

    /// Changes what will happen from now on. The numbers of writes go on.
    pub fn set_scenario(&self, scenario: Scenario) {
        self.lock().scenario = scenario;
    }

    /// What is simulated.
    pub fn part(&self) -> Part {
        self.lock().part.clone()
    }

    /// Programs, erases and flushes so far: the number of the last write.
    pub fn writes(&self) -> u64 {
        self.lock().writes
    }

    /// Operations and bytes so far.
    pub fn meters(&self) -> Meters {
        self.lock().meters
    }

    /// Nanoseconds so far on the counted clock, at the prices of the part.
    pub fn nanoseconds(&self) -> u64 {
        let medium = self.lock();
        medium.meters.nanoseconds(&medium.part.prices)
    }

    /// Whether the power failed and has not come back.
    pub fn is_cut(&self) -> bool {
        self.lock().is_cut()
    }

    /// The first page that was to be programmed a second time between two erases, or behind its turn, where the part forbids that.
    /// Who is refused once may go on elsewhere, so a test that goes well asks for this as well.
    pub fn refused(&self) -> Option<PageNumber> {
        self.lock().refused
    }

    /// Whether a block is bad.
    pub fn is_bad(&self, block: BlockNumber) -> bool {
        self.lock().is_bad(block)
    }

    /// Brings the power back. If it had not failed it fails first, with any of the cache surviving.
    pub fn power_on(&self) {
        self.lock().power_on();
    }

    /// Opens the device again after a process died or a write failed: the cache lives on, the latch is gone.
    pub fn reopen(&self) {
        self.lock().reopen();
    }

    /// Drops clean pages from the cache, as the system does when it is short of memory, and as a file device does after
    /// a failed flush.
    pub fn drop_cache(&self) {
        self.lock().drop_cache();
    }

    /// The whole durable contents: what no cut could take away.
    pub fn image(&self) -> Image {
        self.lock().image()
    }

    /// The whole contents as reads see them: what a copy made beside the running process holds.
    pub fn image_seen(&self) -> Image {
        self.lock().image_seen()
    }

    /// What a cut at this moment would leave, without cutting.
    pub fn image_if_cut(&self, survivors: Survivors, seed: u64) -> Image {
        self.lock().image_if_cut(survivors, seed)
    }

    /// Puts an image back and switches the power on.
    pub fn restore(&self, image: Image) {
        self.lock().restore(image);
    }

    /// Lets the attacker see the durable contents now and after every write that changes them.
    pub fn watch(&self, attacker: &Attacker) {
        let mut medium = self.lock();
        attacker.see(medium.image());
        medium.attacker = Some(attacker.clone());
    }

    fn lock(&self) -> MutexGuard<'_, Medium> {
        self.medium.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read for SimulatedDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        self.lock().read(page, offset, buffer)
    }
}

impl Device for SimulatedDevice {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), Error> {
        self.lock().program(page, data)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Error> {
        self.lock().erase(block)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.lock().flush()
    }
}

impl FactoryMarks for SimulatedDevice {
    fn is_bad(&self, block: BlockNumber) -> Result<bool, Error> {
        Ok(self.lock().part.bad_blocks.contains(&block.0))
    }
}
