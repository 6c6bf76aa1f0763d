//! What a block device already carries, told by the magic numbers that others leave on it.

use std::vec;

/// Where a magic number stands.
#[derive(Clone, Copy)]
enum At {
    Start(u64),
    End(u64),
}
use At::{End, Start};

/// Name, place and bytes, the more telling ones first (a boot sector's two bytes are last).
const SIGNATURES: &[(&str, At, &[u8])] = &[
    ("an SQLite database", Start(0), b"SQLite format 3\0"),
    ("a DuckDB database", Start(8), b"DUCK"),
    ("a LUKS volume", Start(0), b"LUKS\xba\xbe"),
    ("a LUKS volume", Start(0x4000), b"SKUL\xba\xbe"),
    ("an LVM physical volume", Start(0), b"LABELONE"),
    ("an LVM physical volume", Start(512), b"LABELONE"),
    ("an LVM physical volume", Start(1024), b"LABELONE"),
    ("an LVM physical volume", Start(1536), b"LABELONE"),
    ("a RAID member", Start(4096), b"\xfc\x4e\x2b\xa9"),
    ("a RAID member", Start(0), b"\xfc\x4e\x2b\xa9"),
    ("a RAID member", End(8192), b"\xfc\x4e\x2b\xa9"),
    ("a RAID member", End(65536), b"\xfc\x4e\x2b\xa9"),
    ("a bcache device", Start(4096 + 24), b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca"),
    ("an ext file system", Start(1080), b"\x53\xef"),
    ("an XFS file system", Start(0), b"XFSB"),
    ("a Btrfs file system", Start(65536 + 64), b"_BHRfS_M"),
    ("an F2FS file system", Start(1024), b"\x10\x20\xf5\xf2"),
    ("an EROFS file system", Start(1024), b"\xe2\xe1\xf5\xe0"),
    ("an HFS+ file system", Start(1024), b"H+"),
    ("an APFS container", Start(32), b"NXSB"),
    ("a JFS file system", Start(32768), b"JFS1"),
    ("a ReiserFS file system", Start(65536 + 52), b"ReIsEr"),
    ("a NILFS file system", Start(1030), b"\x34\x34"),
    ("a SquashFS file system", Start(0), b"hsqs"),
    ("an ISO 9660 file system", Start(32769), b"CD001"),
    ("an NTFS file system", Start(3), b"NTFS    "),
    ("an exFAT file system", Start(3), b"EXFAT   "),
    ("a BitLocker volume", Start(3), b"-FVE-FS-"),
    ("a FAT file system", Start(54), b"FAT12   "),
    ("a FAT file system", Start(54), b"FAT16   "),
    ("a FAT file system", Start(82), b"FAT32   "),
    ("swap space", Start(4096 - 10), b"SWAPSPACE2"),
    ("swap space", Start(8192 - 10), b"SWAPSPACE2"),
    ("swap space", Start(16384 - 10), b"SWAPSPACE2"),
    ("swap space", Start(65536 - 10), b"SWAPSPACE2"),
    ("swap space", Start(4096 - 10), b"SWAP-SPACE"),
    ("a partition table (GPT)", Start(512), b"EFI PART"),
    ("a partition table (GPT)", Start(4096), b"EFI PART"),
    ("a partition table (GPT)", End(512), b"EFI PART"),
    ("a partition table (GPT)", End(4096), b"EFI PART"),
    ("a partition table or boot sector", Start(510), b"\x55\xaa"),
];

/// Bytes at either end of a device within which every magic number lies.
pub(crate) const PROBED_BYTES: u64 = 1 << 20;

/// ZFS keeps a ring of superblocks in each of its labels, at 128 KiB of a label, one a KiB.
const ZFS_RING: u64 = 128 << 10;
const ZFS_LABEL: u64 = 256 << 10;
const ZFS_MAGIC: u64 = 0x00ba_b10c;

/// Fills a buffer with what stands at a byte offset.
pub(crate) type ReadAt<'a, E> = dyn FnMut(u64, &mut [u8]) -> Result<(), E> + 'a;

/// What a medium of `length` bytes carries that is not ours, if anything.
pub(crate) fn find_signature<E>(length: u64, read: &mut ReadAt<'_, E>) -> Result<Option<&'static str>, E> {
    let mut found = [0; 16];
    for (name, at, magic) in SIGNATURES {
        let place = match *at {
            Start(offset) => Some(offset),
            End(distance) => length.checked_sub(distance),
        };
        let Some(place) = place.filter(|place| place.saturating_add(magic.len() as u64) <= length) else { continue };
        let found = &mut found[..magic.len()];
        read(place, found)?;
        if found == *magic {
            return Ok(Some(name));
        }
    }
    find_zfs(length, read)
}

fn find_zfs<E>(length: u64, read: &mut ReadAt<'_, E>) -> Result<Option<&'static str>, E> {
    let last_labels = (length & !(ZFS_LABEL - 1)).checked_sub(2 * ZFS_LABEL);
    let labels = [Some(0), Some(ZFS_LABEL), last_labels, last_labels.map(|at| at + ZFS_LABEL)];
    let mut ring = vec![0; ZFS_RING as usize];
    for label in labels.into_iter().flatten() {
        if label + ZFS_LABEL > length {
            continue;
        }
        read(label + ZFS_RING, &mut ring)?;
        let is_magic = |head: &[u8]| head == ZFS_MAGIC.to_le_bytes() || head == ZFS_MAGIC.to_be_bytes();
        if ring.chunks_exact(1024).any(|slot| is_magic(&slot[..8])) {
            return Ok(Some("a ZFS pool member"));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn probe(image: &[u8]) -> Option<&'static str> {
        let read = &mut |at: u64, buffer: &mut [u8]| -> Result<(), ()> {
            let at = at as usize;
            buffer.copy_from_slice(image.get(at..at + buffer.len()).ok_or(())?);
            Ok(())
        };
        find_signature(image.len() as u64, read).expect("never read past the end")
    }

    #[test]
    fn every_magic_number_is_found_where_it_stands() {
        for (name, at, magic) in SIGNATURES {
            let mut image = vec![0; 1 << 20];
            let at = match *at {
                Start(offset) => offset as usize,
                End(distance) => image.len() - distance as usize,
            };
            image[at..at + magic.len()].copy_from_slice(magic);
            assert_eq!(probe(&image), Some(*name));
        }
    }

    #[test]
    fn a_zfs_label_is_found_in_either_byte_order_at_either_end() {
        for at in [128 << 10, (384 << 10) + 5 * 1024, (1 << 20) - (512 << 10) + (128 << 10)] {
            for magic in [ZFS_MAGIC.to_le_bytes(), ZFS_MAGIC.to_be_bytes()] {
                let mut image = vec![0; (1 << 20) + 777];
                image[at..at + 8].copy_from_slice(&magic);
                assert_eq!(probe(&image), Some("a ZFS pool member"));
            }
        }
    }

    #[test]
    fn blank_and_tiny_media_carry_nothing() {
        let lengths: Vec<usize> = vec![0, 1, 511, 512, 4096, 70_000, 300 << 10, 1 << 20];
        for length in lengths {
            assert_eq!(probe(&vec![0; length]), None);
            assert_eq!(probe(&vec![0xFF; length]), None);
        }
    }
}
