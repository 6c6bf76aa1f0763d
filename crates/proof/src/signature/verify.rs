//! The check of a signature over messages.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use blst::Pairing;

use super::{Hint, Message, PublicKey, Signature};
use crate::curve::{Affine, Pair, WrongHint, hash_sum, hinted_sum, signature_side, spread, to_curve, verifies};

/// So many keys at most take part in one check: each costs a pairing.
pub const GROUPS_MAX: usize = 16;

/// So many messages are hashed at a time by one thread, with hints and without: half a millisecond's work or more.
const HINTED_AT_ONCE: usize = 512;
const HASHED_AT_ONCE: usize = 16;
/// What one thread does sooner than a second one starts.
const HINTED_ALONE: usize = 64;

/// Why a signature does not verify.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SignatureError {
    /// The question cannot be put: bytes, order or hints are not as they must be.
    Malformed(&'static str),
    /// The signature is not of these messages under this key.
    Forged,
}

impl fmt::Display for SignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SignatureError::Malformed(what) => write!(f, "malformed: {what}"),
            SignatureError::Forged => f.write_str("the signature is not of these messages under this key"),
        }
    }
}

impl core::error::Error for SignatureError {}

/// A key, and messages that it signed.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The key.
    pub key: &'a PublicKey,
    /// The messages, strictly increasing.
    pub messages: &'a [Message],
    /// One hint a message, or none at all.
    pub hints: Option<&'a [Hint]>,
}

impl<'a> Group<'a> {
    /// What must hold before any arithmetic.
    fn check_shape(&self) -> Result<(), SignatureError> {
        if self.messages.is_empty() {
            return Err(SignatureError::Malformed("a key without messages"));
        }
        if !self.messages.is_sorted_by(|before, after| before < after) {
            return Err(SignatureError::Malformed("the messages do not increase strictly"));
        }
        if self.hints.is_some_and(|hints| hints.len() != self.messages.len()) {
            return Err(SignatureError::Malformed("there is not one hint a message"));
        }
        Ok(())
    }

    /// Parts for one thread each.
    fn parts(&self) -> impl Iterator<Item = Group<'a>> {
        let Group { key, messages, hints } = *self;
        let at_once = if hints.is_some() { HINTED_AT_ONCE } else { HASHED_AT_ONCE };
        messages.chunks(at_once).enumerate().map(move |(i, messages)| {
            let hints = hints.map(|hints| &hints[i * at_once..][..messages.len()]);
            Group { key, messages, hints }
        })
    }

    /// The sum of the messages' points on E'.
    fn sum(&self) -> Result<Option<Affine>, SignatureError> {
        let messages = self.messages.iter().map(|message| &message.0);
        match self.hints {
            None => Ok(hash_sum(messages)),
            Some(hints) => hinted_sum(messages, hints.iter().flat_map(Hint::roots)).map_err(SignatureError::from),
        }
    }
}

impl From<WrongHint> for SignatureError {
    fn from(wrong: WrongHint) -> SignatureError {
        SignatureError::Malformed(match wrong {
            WrongHint::NotCanonical => "a hint is not below the field's order",
            WrongHint::Sign => "a hint has the other sign",
            WrongHint::NotARoot => "a hint is no root for its message",
        })
    }
}

/// Checks that `signature` is the sum of the key's signatures of these messages, each once.
pub fn verify(
    key: &PublicKey,
    messages: &[Message],
    hints: Option<&[Hint]>,
    signature: &Signature,
) -> Result<(), SignatureError> {
    verify_groups(&[Group { key, messages, hints }], signature)
}

/// Checks that `signature` is the sum of the keys' signatures of their messages, each once.
///
/// No key may come twice, and no message: not under two keys either. The keys must be known to belong to who made them (they
/// are certified by a manifest): a key made up to cancel another one would let its maker sign for both.
pub fn verify_groups(groups: &[Group<'_>], signature: &Signature) -> Result<(), SignatureError> {
    check_keys(groups)?;
    groups.iter().try_for_each(Group::check_shape)?;
    check_messages(groups)?;
    let parts: Vec<(usize, Group<'_>)> =
        (groups.iter().enumerate()).flat_map(|(index, group)| group.parts().map(move |part| (index, part))).collect();
    let work = |part: usize| match part.checked_sub(1) {
        None => signature_side(signature.0)
            .map(|side| Part::Signature(Box::new(side)))
            .ok_or(SignatureError::Malformed("the signature is not in the group of signatures")),
        Some(part) => parts[part].1.sum().map(|sum| Part::Sum(parts[part].0, sum)),
    };
    let small = matches!(&parts[..], [(_, part)] if part.hints.is_none() || part.messages.len() < HINTED_ALONE);
    conclude(groups, if small { (0..2).map(work).collect() } else { spread(parts.len() + 1, work) })
}

fn check_keys(groups: &[Group<'_>]) -> Result<(), SignatureError> {
    if groups.is_empty() || groups.len() > GROUPS_MAX {
        return Err(SignatureError::Malformed("no keys, or too many"));
    }
    let repeated = (1..groups.len()).any(|i| groups[..i].iter().any(|before| before.key == groups[i].key));
    if repeated { Err(SignatureError::Malformed("a key comes twice")) } else { Ok(()) }
}

/// A message under one key and under its negative, or under three whose sum is nothing, adds nothing to the product: it would
/// verify though nobody signed it. Messages that differ cannot cancel each other, whatever keys there are.
fn check_messages(groups: &[Group<'_>]) -> Result<(), SignatureError> {
    if groups.len() == 1 {
        return Ok(());
    }
    let mut all: Vec<&Message> = groups.iter().flat_map(|group| group.messages).collect();
    // Each group's ascend, so that this is a merging of runs.
    all.sort();
    if all.is_sorted_by(|before, after| before < after) {
        Ok(())
    } else {
        Err(SignatureError::Malformed("a message comes under two keys"))
    }
}

/// What a thread finds out.
enum Part {
    Signature(Box<Pairing<'static>>),
    /// Of the group of this index.
    Sum(usize, Option<Affine>),
}

/// Puts the parts together.
fn conclude(groups: &[Group<'_>], done: Vec<Result<Part, SignatureError>>) -> Result<(), SignatureError> {
    let (mut side, mut sums) = (None, vec![Vec::new(); groups.len()]);
    for part in done {
        match part? {
            Part::Signature(pairing) => side = Some(*pairing),
            Part::Sum(group, sum) => sums[group].push(sum),
        }
    }
    let mut pairs = Vec::with_capacity(groups.len());
    for (group, sums) in groups.iter().zip(sums) {
        // The messages' sum at infinity: every key's signature would be too, and that is no signature.
        let hashes = to_curve(sums.into_iter()).ok_or(SignatureError::Forged)?;
        pairs.push(Pair { key: group.key.point(), hashes });
    }
    if side.is_some_and(|side| verifies(side, &pairs)) { Ok(()) } else { Err(SignatureError::Forged) }
}
