//! The server's side of SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, RFC 7677).
//!
//! ```text
//! client: CHANNEL,,n=,r=NONCE                    server: r=NONCE+OURS,s=SALT,i=ITERATIONS
//! client: c=BINDING,r=NONCE+OURS,p=PROOF         server: v=SIGNATURE
//! ```
//! 1. `CHANNEL` says whether the client binds the channel: `n` (it cannot), `y` (it could, and was not told that we can), or
//!    `p=tls-server-end-point`. `BINDING` is that and, in the last case, the hash of the certificate that it saw.
//! 2. A client that could, and was not told although we did tell, spoke to somebody between us: it is not let in.
//! 3. Whether the name is known shows in nothing before the end, and there in nothing but that it failed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use counterfoil::Scram;

/// The mechanism of every client.
pub const MECHANISM: &str = "SCRAM-SHA-256";
/// That of a client that binds the channel.
pub const MECHANISM_BOUND: &str = "SCRAM-SHA-256-PLUS";
/// The one way to bind it: by the certificate.
const END_POINT: &str = "p=tls-server-end-point,,";
/// Bytes of a client's nonce, at most.
const NONCE_BYTES_MAX: usize = 256;

/// What a client has to say of the channel.
#[derive(Clone, Copy, Debug)]
pub enum Channel<'a> {
    /// It was not told that the channel can be bound.
    Unbound,
    /// It was told, and did not choose to.
    MayBeBound,
    /// It chose to: to this.
    Bound(&'a [u8]),
}

/// A dialogue that waits for its proof.
pub struct Dialogue {
    scram: Scram,
    /// `c=`: what the client says of the channel.
    binding: String,
    nonce: String,
    /// The first two messages of the three that the proof is over.
    begun: String,
}

/// Why a dialogue cannot go on.
#[derive(Debug, PartialEq, Eq)]
pub enum Failed {
    /// It makes no sense, or its proof is wrong: no more is said.
    Proof,
    /// What the client believes of the channel is not what it was told.
    Channel,
}

impl Dialogue {
    /// Begins with what the client sends first and with 18 bytes of ours that nobody can foresee; answers what to send.
    pub fn begin(scram: Scram, channel: Channel<'_>, first: &[u8], ours: [u8; 18]) -> Result<(Self, String), Failed> {
        let first = std::str::from_utf8(first).map_err(|_| Failed::Proof)?;
        let (header, bare, end_point): (_, _, &[u8]) = match channel {
            Channel::Bound(end_point) => (END_POINT, first.strip_prefix(END_POINT), end_point),
            Channel::MayBeBound if first.starts_with("y,,") => return Err(Failed::Channel),
            Channel::Unbound if first.starts_with("y,,") => ("y,,", first.strip_prefix("y,,"), &[]),
            Channel::Unbound | Channel::MayBeBound => ("n,,", first.strip_prefix("n,,"), &[]),
        };
        let bare = bare.ok_or(Failed::Proof)?;
        let nonce = bare.split(',').find_map(|field| field.strip_prefix("r=")).ok_or(Failed::Proof)?;
        let is_plain = nonce.bytes().all(|byte| (0x21..=0x7e).contains(&byte));
        if nonce.is_empty() || nonce.len() > NONCE_BYTES_MAX || !is_plain || !bare.starts_with("n=") {
            return Err(Failed::Proof);
        }
        let nonce = format!("{nonce}{}", BASE64.encode(ours));
        let answer = format!("r={nonce},s={},i={}", BASE64.encode(scram.salt()), scram.iterations());
        let begun = format!("{bare},{answer}");
        let binding = BASE64.encode([header.as_bytes(), end_point].concat());
        Ok((Dialogue { scram, binding, nonce, begun }, answer))
    }

    /// Ends with the proof, and answers what to send.
    pub fn finish(self, last: &[u8]) -> Result<String, Failed> {
        let last = std::str::from_utf8(last).map_err(|_| Failed::Proof)?;
        let (bare, proof) = last.rsplit_once(",p=").ok_or(Failed::Proof)?;
        if bare != format!("c={},r={}", self.binding, self.nonce) {
            return Err(Failed::Proof);
        }
        let proof =
            BASE64.decode(proof).ok().and_then(|proof| <[u8; 32]>::try_from(proof).ok()).ok_or(Failed::Proof)?;
        let exchange = format!("{},{bare}", self.begun);
        let signature = self.scram.finish(exchange.as_bytes(), &proof).ok_or(Failed::Proof)?;
        Ok(format!("v={}", BASE64.encode(signature)))
    }
}
