//! Other stores for small devices, each behind calls for C that use what most programs use of it. Built for its size; nothing
//! here is run. Flash is three functions of C.
#![no_std]

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use embedded_storage_async::nor_flash::{
    ErrorType, MultiwriteNorFlash, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};

unsafe extern "C" {
    fn flash_read(at: u32, bytes: *mut u8, length: usize) -> i32;
    fn flash_write(at: u32, bytes: *const u8, length: usize) -> i32;
    fn flash_erase(from: u32, to: u32) -> i32;
}

/// Flash of 128 KB behind three functions of C.
pub struct Flash;

/// They failed.
#[derive(Debug)]
pub struct Failed;

fn done(code: i32) -> Result<(), Failed> {
    if code == 0 { Ok(()) } else { Err(Failed) }
}

const PAGE_BYTES: usize = 4096;
const PAGES: usize = 32;

impl NorFlashError for Failed {
    fn kind(&self) -> NorFlashErrorKind {
        NorFlashErrorKind::Other
    }
}

impl ErrorType for Flash {
    type Error = Failed;
}

impl ReadNorFlash for Flash {
    const READ_SIZE: usize = 1;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Failed> {
        // SAFETY: the function is given as many bytes as it is told.
        done(unsafe { flash_read(offset, bytes.as_mut_ptr(), bytes.len()) })
    }

    fn capacity(&self) -> usize {
        PAGE_BYTES * PAGES
    }
}

impl NorFlash for Flash {
    const WRITE_SIZE: usize = 1;
    const ERASE_SIZE: usize = PAGE_BYTES;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), Failed> {
        // SAFETY: it takes numbers.
        done(unsafe { flash_erase(from, to) })
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Failed> {
        // SAFETY: the function is given as many bytes as it is told.
        done(unsafe { flash_write(offset, bytes.as_ptr(), bytes.len()) })
    }
}

impl MultiwriteNorFlash for Flash {}

impl ekv::flash::Flash for Flash {
    type Error = Failed;

    fn page_count(&self) -> usize {
        PAGES
    }

    async fn erase(&mut self, page: ekv::flash::PageID) -> Result<(), Failed> {
        let from = (page.index() * PAGE_BYTES) as u32;
        NorFlash::erase(self, from, from + PAGE_BYTES as u32).await
    }

    async fn read(&mut self, page: ekv::flash::PageID, offset: usize, bytes: &mut [u8]) -> Result<(), Failed> {
        ReadNorFlash::read(self, (page.index() * PAGE_BYTES + offset) as u32, bytes).await
    }

    async fn write(&mut self, page: ekv::flash::PageID, offset: usize, bytes: &[u8]) -> Result<(), Failed> {
        NorFlash::write(self, (page.index() * PAGE_BYTES + offset) as u32, bytes).await
    }
}

/// Waits for a future whose flash never makes it wait.
fn finished<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return result;
        }
    }
}

/// sequential-storage's map without caches: fetch, store, remove.
mod sequential {
    use super::{Flash, PAGE_BYTES, PAGES, finished};
    use sequential_storage::cache::Cache;
    use sequential_storage::map::{MapConfig, MapStorage};

    /// Does what it is told to one key; `bytes` holds `capacity` bytes, at least 64.
    ///
    /// # Safety
    /// As it says.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn peer_sequential(
        what: u32,
        key: u16,
        bytes: *mut u8,
        capacity: usize,
        length: usize,
    ) -> i32 {
        // SAFETY: as the caller promised.
        let bytes = unsafe { core::slice::from_raw_parts_mut(bytes, capacity) };
        let mut buffer = [0; 64];
        let config = const { MapConfig::<Flash>::new(0..(PAGE_BYTES * PAGES) as u32) };
        let mut map = MapStorage::<u16, _, _>::new(Flash, config, Cache::new_uncached());
        match what {
            0 => match finished(map.fetch_item::<&[u8]>(&mut buffer, &key)) {
                Ok(Some(found)) => {
                    bytes.iter_mut().zip(found).for_each(|(to, from)| *to = *from);
                    found.len() as i32
                }
                Ok(None) => -1,
                Err(_) => -2,
            },
            1 => finished(map.store_item::<&[u8]>(&mut buffer, &key, &&*bytes.split_at(length.min(capacity)).0))
                .map_or(-2, |()| 0),
            _ => finished(map.remove_item(&mut buffer, &key)).map_or(-2, |()| 0),
        }
    }
}

/// ekv: mount, format, read, and transactions of writes and deletions.
mod ekv_store {
    use super::{Flash, finished};
    use ekv::{Config, Database};
    use embassy_sync::blocking_mutex::raw::NoopRawMutex;

    type Store = Database<Flash, NoopRawMutex>;

    /// Does what it is told in the store at `place`, which holds as much as the store is large.
    ///
    /// # Safety
    /// As it says.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn peer_ekv(place: *mut Store, what: u32, key: u32, bytes: *mut u8, length: usize) -> i32 {
        let key = key.to_be_bytes();
        // SAFETY: as the caller promised.
        let (store, bytes) = unsafe {
            if what == 0 {
                place.write(Database::new(Flash, <Config as Default>::default()));
            }
            (&*place, core::slice::from_raw_parts_mut(bytes, length))
        };
        finished(async {
            match what {
                0 => store.mount().await.map_or(-2, |()| 0),
                1 => store.format().await.map_or(-2, |()| 0),
                2 => store.read_transaction().await.read(&key, bytes).await.map_or(-2, |length| length as i32),
                _ => {
                    let mut transaction = store.write_transaction().await;
                    let written = match what {
                        3 => transaction.write(&key, bytes).await,
                        _ => transaction.delete(&key).await,
                    };
                    if written.is_err() { -2 } else { transaction.commit().await.map_or(-2, |()| 0) }
                }
            }
        })
    }

    /// How large a store is.
    #[unsafe(no_mangle)]
    pub extern "C" fn peer_ekv_bytes() -> usize {
        size_of::<Store>()
    }
}

#[panic_handler]
fn halt(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
