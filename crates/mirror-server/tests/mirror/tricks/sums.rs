//! Signatures and hints, and bytes that are none.

use counterfoil_proof::record::{head_rid, tail_rid};
use counterfoil_proof::{Hint, Signature, SignatureSum};

use crate::stock::Stock;
use crate::told::Told;

/// Puts bytes in the place of the signature's own.
fn with_signature(mut told: Told, stock: &Stock, other: &[u8; 48]) -> Option<Vec<u8>> {
    let own = told.signature().to_bytes();
    let mut bytes = told.to_bytes(&stock.definition)?;
    let at = bytes.windows(48).position(|part| part == own)?;
    bytes[at..at + 48].copy_from_slice(other);
    Some(bytes)
}

pub fn infinity(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let mut packed = [0; 48];
    packed[0] = 0xc0;
    with_signature(told, stock, &packed)
}

pub fn out_of_the_group(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let mut packed = [0; 48];
    (packed[0], packed[47]) = (0x80, 4);
    Signature::from_bytes(&packed).ok()?;
    with_signature(told, stock, &packed)
}

pub fn signature_more(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let stranger = stock.now.entry(tail_rid(0))?.signature()?;
    let own = *told.signature();
    *told.signature() = SignatureSum::sum_of(&[own, stranger]).finish()?;
    told.to_bytes(&stock.definition)
}

pub fn another_signature(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    *told.signature() = stock.twin.entry(head_rid(0))?.signature()?;
    told.to_bytes(&stock.definition)
}

const P: [u8; 48] = [
    0x1a, 0x01, 0x11, 0xea, 0x39, 0x7f, 0xe6, 0x9a, 0x4b, 0x1b, 0xa7, 0xb6, 0x43, 0x4b, 0xac, 0xd7, 0x64, 0x77, 0x4b,
    0x84, 0xf3, 0x85, 0x12, 0xbf, 0x67, 0x30, 0xd2, 0xa0, 0xf6, 0xb0, 0xf6, 0x24, 0x1e, 0xab, 0xff, 0xfe, 0xb1, 0x53,
    0xff, 0xff, 0xb9, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xaa, 0xab,
];

/// A number of 48 bytes plus p, or p less the number; none where that does not fit.
fn beside_p(number: &[u8], is_plus: bool) -> Option<[u8; 48]> {
    let (mut result, mut carry) = ([0; 48], 0i16);
    for i in (0..48).rev() {
        let digit =
            if is_plus { i16::from(number[i]) + i16::from(P[i]) } else { i16::from(P[i]) - i16::from(number[i]) };
        result[i] = (digit + carry) as u8;
        carry = (digit + carry) >> 8;
    }
    (carry == 0 && result[0] < 0x20).then_some(result)
}

fn with_hint(mut told: Told, stock: &Stock, change: impl Fn(&Hint) -> Option<Hint>) -> Option<Vec<u8>> {
    let hints = told.hints().as_mut()?;
    let (at, other) = hints.iter().enumerate().find_map(|(at, hint)| Some((at, change(hint)?)))?;
    hints[at] = other;
    told.to_bytes(&stock.definition)
}

pub fn hint_from_p_on(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    with_hint(told, stock, |hint| {
        let mut other = hint.0;
        other[..48].copy_from_slice(&beside_p(&hint.0[..48], true)?);
        Some(Hint(other))
    })
}

pub fn hint_of_the_other_sign(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    with_hint(told, stock, |hint| {
        let mut other = hint.0;
        other[..48].copy_from_slice(&beside_p(&hint.0[..48], false)?);
        Some(Hint(other))
    })
}

pub fn hint_less(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    told.hints().as_mut()?.pop()?;
    told.to_bytes(&stock.definition)
}

pub fn hints_exchanged(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    told.hints().as_mut().filter(|hints| hints.len() > 1)?.swap(0, 1);
    told.to_bytes(&stock.definition)
}

/// In place of the first count, one that no memory holds.
pub fn more_than_there_can_be(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let bytes = told.to_bytes(&stock.definition)?;
    let rest = bytes[33..].iter().position(|byte| byte & 0x80 == 0)? + 34;
    let count = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    Some([&bytes[..33], &count, &bytes[rest..]].concat())
}

/// Of each key a pairing says the same of a point and of its negative but for the sign.
pub fn negative_signature(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let mut packed = told.signature().to_bytes();
    packed[0] ^= 0x20;
    with_signature(told, stock, &packed)
}
