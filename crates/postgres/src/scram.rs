//! The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), without channel binding.
//!
//! ```text
//! client: n,,n=,r=NONCE                          server: r=NONCE+OURS,s=SALT,i=ITERATIONS
//! client: c=biws,r=NONCE+OURS,p=PROOF            server: v=SIGNATURE
//! ```
//! Whether the name is known shows in nothing before the end, and there in nothing but that it failed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use counterfoil::{Role, Scram};

/// The one mechanism.
pub const MECHANISM: &str = "SCRAM-SHA-256";
/// Bytes of a client's nonce, at most.
const NONCE_BYTES_MAX: usize = 256;

/// A dialogue that waits for its proof.
pub struct Dialogue {
    scram: Scram,
    /// `c=`: what the client says of channel binding.
    binding: String,
    nonce: String,
    /// The first two messages of the three that the proof is over.
    begun: String,
}

/// A dialogue that cannot go on: no more is said.
#[derive(Debug, PartialEq, Eq)]
pub struct Failed;

impl Dialogue {
    /// Begins with what the client sends first and with 18 bytes of ours that nobody can foresee; answers what to send.
    pub fn begin(scram: Scram, first: &[u8], ours: [u8; 18]) -> Result<(Self, String), Failed> {
        let first = std::str::from_utf8(first).map_err(|_| Failed)?;
        // `y`: it could bind channels and believes that we cannot, which is true.
        let bare = first.strip_prefix("n,,").or_else(|| first.strip_prefix("y,,")).ok_or(Failed)?;
        let nonce = bare.split(',').find_map(|field| field.strip_prefix("r=")).ok_or(Failed)?;
        let is_plain = nonce.bytes().all(|byte| (0x21..=0x7e).contains(&byte));
        if nonce.is_empty() || nonce.len() > NONCE_BYTES_MAX || !is_plain || !bare.starts_with("n=") {
            return Err(Failed);
        }
        let nonce = format!("{nonce}{}", BASE64.encode(ours));
        let answer = format!("r={nonce},s={},i={}", BASE64.encode(scram.salt()), scram.iterations());
        let begun = format!("{bare},{answer}");
        let binding = BASE64.encode(&first[..3]);
        Ok((Dialogue { scram, binding, nonce, begun }, answer))
    }

    /// Ends with the proof: what the user may do, and what to send.
    pub fn finish(self, last: &[u8]) -> Result<(Role, String), Failed> {
        let last = std::str::from_utf8(last).map_err(|_| Failed)?;
        let (bare, proof) = last.rsplit_once(",p=").ok_or(Failed)?;
        if bare != format!("c={},r={}", self.binding, self.nonce) {
            return Err(Failed);
        }
        let proof = BASE64.decode(proof).ok().and_then(|proof| <[u8; 32]>::try_from(proof).ok()).ok_or(Failed)?;
        let exchange = format!("{},{bare}", self.begun);
        let (role, signature) = self.scram.finish(exchange.as_bytes(), &proof).ok_or(Failed)?;
        Ok((role, format!("v={}", BASE64.encode(signature))))
    }
}
