//! Little-endian numbers at fixed offsets. Offsets are ours, lengths were checked by whoever calls.

pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, offset))
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, offset))
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, offset))
}

/// `N` bytes at `offset`; zeros where the slice ends before, which no caller lets happen.
pub(crate) fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let found = bytes.get(offset..).and_then(<[u8]>::first_chunk::<N>);
    debug_assert!(found.is_some(), "offsets lie inside the structure");
    found.copied().unwrap_or([0; N])
}

/// Puts `value` at `offset`.
pub(crate) fn put(bytes: &mut [u8], offset: usize, value: &[u8]) {
    let place = bytes.get_mut(offset..).and_then(|rest| rest.get_mut(..value.len()));
    debug_assert!(place.is_some(), "offsets lie inside the structure");
    copy(place.unwrap_or_default(), value);
}

/// Copies what both have room for. Unlike `copy_from_slice` it has no length to compare and so no panic, which counts
/// where functions of the library are not inlined.
pub(crate) fn copy(to: &mut [u8], from: &[u8]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}

/// FNV-1a of 32 bits: no secret and no seal, only different for different bytes.
pub(crate) fn fnv(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// The first elements of a slice; all where there are fewer, which no caller lets happen.
pub(crate) fn first_mut<T>(slice: &mut [T], count: usize) -> &mut [T] {
    let count = count.min(slice.len());
    slice.get_mut(..count).unwrap_or_default()
}
