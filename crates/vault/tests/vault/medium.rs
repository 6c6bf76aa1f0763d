//! A medium that is a vector, and a database's header on it.

use counterfoil_flash as flash;
use counterfoil_vault::{
    ArgonCost, CounterKind, DangerFixedEntropy, DatabaseId, HEADER_BYTES, Header, HeaderCopy, KeyFile, RootDigests,
    Secret, Suite, VolumeKey, VolumeLayout,
};

pub struct Bytes {
    pub page_bytes: u32,
    pub bytes: Vec<u8>,
}

impl flash::Read for Bytes {
    fn geometry(&self) -> flash::Geometry {
        flash::Geometry {
            page_bytes: self.page_bytes,
            block_pages: 1,
            block_count: self.bytes.len() as u64 / u64::from(self.page_bytes),
            erase_before_program: false,
            grows: false,
        }
    }

    fn read(&self, page: flash::PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), flash::Error> {
        let start = (page.0 * u64::from(self.page_bytes) + u64::from(offset)) as usize;
        let missing = flash::Error::OutOfRange { page, page_count: self.geometry().page_count() };
        buffer.copy_from_slice(self.bytes.get(start..start + buffer.len()).ok_or(missing)?);
        Ok(())
    }
}

impl Bytes {
    pub fn write(&mut self, page: flash::PageNumber, bytes: &[u8]) {
        let start = (page.0 * u64::from(self.page_bytes)) as usize;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
    }
}

pub const LAYOUT: VolumeLayout =
    VolumeLayout { page_bytes: 4096, extent_pages: 4, record_first_extent: 2, record_extents: 16, size_limit: 0 };

/// A database's header as `init` leaves it, with one slot for a key file.
pub struct Made {
    pub volume_key: VolumeKey,
    pub key_file: KeyFile,
    pub header: Header,
    pub medium: Bytes,
    pub entropy: DangerFixedEntropy,
}

pub fn made() -> Made {
    made_with(LAYOUT, 1)
}

pub fn made_with(layout: VolumeLayout, seed: u64) -> Made {
    let mut entropy = DangerFixedEntropy::seeded(seed);
    let volume_key = VolumeKey::generate(&mut entropy).unwrap();
    let key_file = KeyFile::generate(&mut entropy).unwrap();
    let id = DatabaseId::generate(&mut entropy).unwrap();
    let mut header = Header::new(id, Suite::Aes256GcmSiv, CounterKind::File, layout, 1_700_000_000).unwrap();
    header.add_slot(&Secret::KeyFile(&key_file), &ArgonCost::HOST, &volume_key, 1, &mut entropy).unwrap();
    let bytes = vec![0; 2 * layout.extent_bytes() as usize];
    let mut made =
        Made { volume_key, key_file, header, medium: Bytes { page_bytes: layout.page_bytes, bytes }, entropy };
    made.put_both();
    made
}

impl Made {
    /// Writes one copy of the header as it is now.
    pub fn put(&mut self, copy: HeaderCopy) {
        let bytes = self.header.encode(&self.volume_key);
        self.medium.write(copy.first_page(&self.header.layout), &bytes);
    }

    pub fn put_both(&mut self) {
        HeaderCopy::BOTH.into_iter().for_each(|copy| self.put(copy));
    }

    pub fn root(&self) -> RootDigests {
        RootDigests::settled(self.header.slots_digest())
    }

    /// Where the bytes of a copy begin.
    pub fn start(&self, copy: HeaderCopy) -> usize {
        (copy.first_page(&self.header.layout).0 * u64::from(self.medium.page_bytes)) as usize
    }

    pub fn copy_bytes(&mut self, copy: HeaderCopy) -> &mut [u8] {
        let start = self.start(copy);
        &mut self.medium.bytes[start..start + HEADER_BYTES]
    }
}
