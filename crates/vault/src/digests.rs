//! What a root that the counter binds holds of the header. The header's own bytes are no business of the root's.
//!
//! ```text
//! root:  current [32] | next [32], zeros while no change is under way
//! ```

/// The digest of head and slots of a header, which the counter-bound root holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotsDigest(pub [u8; 32]);

/// What a root that the counter binds says of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootDigests {
    /// The digest of the header that holds.
    pub current: SlotsDigest,
    /// The digest of the header that is being written in its place.
    pub next: Option<SlotsDigest>,
}

impl RootDigests {
    /// What the root says while no change is under way.
    pub fn settled(current: SlotsDigest) -> RootDigests {
        RootDigests { current, next: None }
    }

    /// `current [32], next [32]`; zeros for no next one.
    pub fn encode(&self) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(&self.current.0);
        bytes[32..].copy_from_slice(&self.next.map_or([0; 32], |next| next.0));
        bytes
    }

    /// What [`RootDigests::encode`] wrote.
    pub fn decode(bytes: &[u8; 64]) -> RootDigests {
        let half = |at| core::array::from_fn(|index| bytes[at + index]);
        let next = half(32);
        RootDigests { current: SlotsDigest(half(0)), next: (next != [0; 32]).then_some(SlotsDigest(next)) }
    }
}
