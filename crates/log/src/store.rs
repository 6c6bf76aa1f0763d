//! The checkpoint store: named values of any length (whole copies, alternating halves of the window).

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use counterfoil_flash::{Device, Read};
use counterfoil_vault::{Epoch, OPENING_BYTES, Plain, Sealed, Vault};

use crate::bytes::{Cursor, Put};
use crate::checkpoint::Change;
use crate::layout::Layout;
use crate::root::RecordKey;
use crate::Error;

pub(crate) struct CheckpointStore {
    layout: Layout,
    version: u64,
    records: BTreeMap<RecordKey, Arc<[u8]>>,
}

impl CheckpointStore {
    pub(crate) fn create(_: &mut dyn Device, _: &Vault, layout: &Layout, _: Epoch) -> Result<Self, Error> {
        Ok(CheckpointStore { layout: *layout, version: 0, records: BTreeMap::new() })
    }

    fn half_pages(layout: &Layout) -> u64 {
        u64::from(layout.window_extents) * u64::from(layout.extent_pages) / 2
    }

    fn address(layout: &Layout, half: u64, page: u64) -> counterfoil_flash::PageNumber {
        let first = layout.page(layout.window_first, 0).0;
        counterfoil_flash::PageNumber(first + half * Self::half_pages(layout) + page)
    }

    pub(crate) fn load(
        media: &dyn Read,
        vault: &Vault,
        layout: &Layout,
    ) -> Result<(Self, BTreeMap<RecordKey, Arc<[u8]>>), Error> {
        let mut best: Option<(u64, Vec<u8>)> = None;
        for half in 0..2 {
            if let Some(found) = Self::read_half(media, vault, layout, half)?
                && best.as_ref().is_none_or(|(version, _)| *version < found.0)
            {
                best = Some(found);
            }
        }
        let tampered = Error::Tampered { what: "checkpoint", page: Self::address(layout, 0, 0).0 };
        let (version, bytes) = best.ok_or(tampered)?;
        let mut cursor = Cursor::new(&bytes, "checkpoint");
        let mut records: BTreeMap<RecordKey, Arc<[u8]>> = BTreeMap::new();
        while !cursor.is_empty() {
            records.insert(cursor.sized()?.to_vec(), cursor.sized()?.into());
        }
        Ok((CheckpointStore { layout: *layout, version, records: records.clone() }, records))
    }

    fn read_half(
        media: &dyn Read,
        vault: &Vault,
        layout: &Layout,
        half: u64,
    ) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let mut page = vec![0; layout.page_bytes as usize];
        let (mut all, mut version, mut total) = (Vec::new(), 0, 0);
        for index in 0.. {
            match media.read(Self::address(layout, half, index), 0, &mut page) {
                Ok(()) => {}
                Err(counterfoil_flash::Error::OutOfRange { .. }) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            let Ok(opened) = vault.open_opening(half, index as u32, 1, Sealed::from_medium(&mut page)) else {
                return Ok(None);
            };
            let mut cursor = Cursor::new(opened.payload(), "checkpoint");
            let found = cursor.u64()?;
            if index > 0 && found != version {
                return Ok(None);
            }
            version = found;
            total = cursor.u64()? as usize;
            all.extend_from_slice(cursor.take(opened.payload().len() - 16)?);
            if all.len() >= total {
                break;
            }
        }
        all.truncate(total);
        Ok(Some((version, all)))
    }

    pub(crate) fn commit(
        &mut self,
        device: &mut dyn Device,
        vault: &Vault,
        _: Epoch,
        changes: &[Change],
    ) -> Result<u64, Error> {
        for (key, value) in changes {
            match value {
                Some(value) => self.records.insert(key.clone(), value.as_slice().into()),
                None => self.records.remove(key),
            };
        }
        let mut bytes = Vec::new();
        for (key, value) in &self.records {
            bytes.put_sized(key);
            bytes.put_sized(value);
        }
        let version = self.version + 1;
        let room = self.layout.page_bytes as usize - OPENING_BYTES - 16;
        for (index, part) in (0u64..).zip(bytes.chunks(room)) {
            let mut page = Vec::new();
            page.put_u64(version);
            page.put_u64(bytes.len() as u64);
            page.extend_from_slice(part);
            page.resize(self.layout.page_bytes as usize, 0);
            let sealed = vault.seal_opening(version % 2, index as u32, 1, Plain::new(&mut page));
            device.program(Self::address(&self.layout, version % 2, index), sealed.bytes())?;
        }
        device.flush()?;
        self.version = version;
        Ok(version)
    }

    pub(crate) fn release(&mut self, _: u64) {}

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn bytes_max(&self) -> u64 {
        Self::half_pages(&self.layout) * 2000
    }

    pub(crate) fn bytes_of(&self, key_bytes: usize, value_bytes: usize) -> u64 {
        (key_bytes + value_bytes + 16) as u64
    }
}
