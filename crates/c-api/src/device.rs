//! A device described by callbacks, as the store sees it: a medium, a counter, a generator.

use core::ffi::{c_int, c_void};

use counterfoil_flash::{self as flash, BlockNumber, Geometry, Operation, PageNumber};
use counterfoil_vault::{Counter, CounterError, CounterKind, CounterValue, Entropy, NoEntropy, Tag};

type Reading = unsafe extern "C" fn(*mut c_void, u32, u32, *mut c_void, u32) -> c_int;
type Programming = unsafe extern "C" fn(*mut c_void, u32, *const c_void) -> c_int;
type Erasing = unsafe extern "C" fn(*mut c_void, u32) -> c_int;
type Syncing = unsafe extern "C" fn(*mut c_void) -> c_int;
type CounterReading = unsafe extern "C" fn(*mut c_void, *mut u64) -> c_int;
type CounterStepping = unsafe extern "C" fn(*mut c_void, u64) -> c_int;
type Filling = unsafe extern "C" fn(*mut c_void, *mut c_void, u32) -> c_int;

/// A device, as C describes it (`counterfoil_device` in the header).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Device {
    context: *mut c_void,
    read: Option<Reading>,
    program: Option<Programming>,
    erase: Option<Erasing>,
    sync: Option<Syncing>,
    counter_read: Option<CounterReading>,
    counter_step: Option<CounterStepping>,
    random: Option<Filling>,
    page_bytes: u32,
    block_pages: u32,
    pub(crate) first_block: u32,
    pub(crate) block_count: u32,
    pub(crate) index_blocks: u32,
    pub(crate) names: u32,
}

impl Device {
    pub(crate) fn geometry(&self) -> Geometry {
        Geometry {
            page_bytes: self.page_bytes,
            block_pages: self.block_pages,
            block_count: u64::from(self.first_block) + u64::from(self.block_count),
            erase_before_program: true,
            grows: false,
        }
    }

    pub(crate) fn has_random(&self) -> bool {
        self.random.is_some()
    }
}

/// The medium below a store.
pub struct Medium {
    context: *mut c_void,
    geometry: Geometry,
    read: Reading,
    program: Programming,
    erase: Erasing,
    sync: Syncing,
}

impl Medium {
    /// None if a callback is missing.
    pub(crate) fn new(device: &Device) -> Option<Self> {
        Some(Medium {
            context: device.context,
            geometry: device.geometry(),
            read: device.read?,
            program: device.program?,
            erase: device.erase?,
            sync: device.sync?,
        })
    }
}

fn done(operation: Operation, page: PageNumber, code: c_int) -> Result<(), flash::Error> {
    if code == 0 { Ok(()) } else { Err(flash::Error::Device { operation, page, code }) }
}

impl Medium {
    fn outside(&self, page: PageNumber) -> flash::Error {
        flash::Error::OutOfRange { page, page_count: self.geometry.block_count * u64::from(self.geometry.block_pages) }
    }
}

impl flash::Read for Medium {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), flash::Error> {
        let (Ok(number), Ok(length)) = (u32::try_from(page.0), u32::try_from(buffer.len())) else {
            return Err(self.outside(page));
        };
        if offset.saturating_add(length) > self.geometry.page_bytes {
            return Err(self.outside(page));
        }
        // SAFETY: the callback is the caller's, and the buffer holds as many bytes as it is told.
        let code = unsafe { (self.read)(self.context, number, offset, buffer.as_mut_ptr().cast(), length) };
        done(Operation::Read, page, code)
    }
}

impl flash::Device for Medium {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), flash::Error> {
        let number = u32::try_from(page.0).ok().filter(|_| data.len() == self.geometry.page_bytes as usize);
        let number = number.ok_or(self.outside(page))?;
        // SAFETY: the callback is the caller's, and the data is one page.
        let code = unsafe { (self.program)(self.context, number, data.as_ptr().cast()) };
        done(Operation::Program, page, code)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), flash::Error> {
        let page = PageNumber(block.0 * u64::from(self.geometry.block_pages));
        let number = u32::try_from(block.0).map_err(|_| self.outside(page))?;
        // SAFETY: the callback is the caller's.
        let code = unsafe { (self.erase)(self.context, number) };
        done(Operation::Erase, page, code)
    }

    fn flush(&mut self) -> Result<(), flash::Error> {
        // SAFETY: the callback is the caller's.
        let code = unsafe { (self.sync)(self.context) };
        done(Operation::Flush, PageNumber(0), code)
    }
}

/// The counter of a device, if it has one.
pub struct OneWayCounter {
    context: *mut c_void,
    calls: Option<(CounterReading, CounterStepping)>,
}

// SAFETY: a store is used by one thread at a time, as the header says; the context goes where the store goes.
unsafe impl Send for OneWayCounter {}

impl OneWayCounter {
    pub(crate) fn new(device: &Device) -> Self {
        OneWayCounter { context: device.context, calls: device.counter_read.zip(device.counter_step) }
    }

    pub(crate) fn is_there(&self) -> bool {
        self.calls.is_some()
    }
}

impl Counter for OneWayCounter {
    fn kind(&self) -> CounterKind {
        CounterKind::Nor
    }

    fn value(&mut self) -> Result<CounterValue, CounterError> {
        let (read, _) = self.calls.ok_or(CounterError::Absent)?;
        let mut value = 0;
        // SAFETY: the callback is the caller's, and the place holds a number.
        match unsafe { read(self.context, &mut value) } {
            0 => Ok(CounterValue { value, tag: None }),
            code => Err(CounterError::Device { operation: "read", code }),
        }
    }

    fn step(&mut self, to: u64, _: &Tag) -> Result<(), CounterError> {
        let (_, step) = self.calls.ok_or(CounterError::Absent)?;
        let present = self.value()?.value;
        if to == present {
            return Ok(());
        }
        if to < present {
            return Err(CounterError::Lower { present, asked: to });
        }
        if to - present > 1 {
            return Err(CounterError::Skipped { present, asked: to });
        }
        // SAFETY: the callback is the caller's.
        match unsafe { step(self.context, to) } {
            0 => {}
            code => return Err(CounterError::Device { operation: "stepped", code }),
        }
        let found = self.value()?.value;
        if found == to { Ok(()) } else { Err(CounterError::Stuck { asked: to, found }) }
    }

    fn adopt(&mut self, _: u64, _: &Tag) -> Result<(), CounterError> {
        // Nobody binds a device's counter anew from here.
        Err(CounterError::Device { operation: "bound anew", code: 0 })
    }
}

/// The generator of a device, if it has one.
pub struct Random {
    context: *mut c_void,
    fill: Option<Filling>,
}

impl Random {
    pub(crate) fn new(device: &Device) -> Self {
        Random { context: device.context, fill: device.random }
    }

    pub(crate) fn is_there(&self) -> bool {
        self.fill.is_some()
    }
}

impl Entropy for Random {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        let (Some(fill), Ok(length)) = (self.fill, u32::try_from(bytes.len())) else { return Err(NoEntropy) };
        // SAFETY: the callback is the caller's, and the buffer holds as many bytes as it is told.
        let code = unsafe { fill(self.context, bytes.as_mut_ptr().cast(), length) };
        if code == 0 { Ok(()) } else { Err(NoEntropy) }
    }
}
