//! A slot: what a count of the TPM stands for. Its bytes are told in the module above.

use crate::Tag;

pub(super) const SLOT_BYTES: usize = 48;

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) count: u64,
    pub(super) value: u64,
    pub(super) tag: Tag,
    pub(super) time: u64,
    pub(super) rollbacks: u32,
}

impl Slot {
    pub(super) fn encode(&self) -> [u8; SLOT_BYTES] {
        let mut bytes = [0; SLOT_BYTES];
        bytes[..8].copy_from_slice(&self.count.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.value.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.tag);
        bytes[32..40].copy_from_slice(&self.time.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.rollbacks.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Slot> {
        let bytes: &[u8; SLOT_BYTES] = bytes.try_into().ok()?;
        let number = |at: usize| bytes[at..].first_chunk().copied().map(u64::from_le_bytes);
        Some(Slot {
            count: number(0)?,
            value: number(8)?,
            tag: bytes[16..].first_chunk().copied()?,
            time: number(32)?,
            rollbacks: bytes[40..].first_chunk().copied().map(u32::from_le_bytes)?,
        })
        .filter(|slot| slot.encode() == *bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_read_and_nothing_else() {
        // The example of SPEC, "TPM counter".
        let slot = Slot { count: 0x0102, value: 0x0304, tag: [0xAA; 16], time: 0x0506, rollbacks: 7 };
        let mut bytes = [0; SLOT_BYTES];
        (bytes[0], bytes[1], bytes[8], bytes[9]) = (2, 1, 4, 3);
        bytes[16..32].fill(0xAA);
        (bytes[32], bytes[33], bytes[40]) = (6, 5, 7);
        assert_eq!(slot.encode(), bytes);
        assert_eq!(Slot::decode(&bytes), Some(slot));
        assert_eq!(Slot::decode(&bytes[..47]), None);
        bytes[47] = 1;
        assert_eq!(Slot::decode(&bytes), None, "unused bytes are zero");
    }
}
