//! What a certificate is known by where a channel is bound to it (`tls-server-end-point`, RFC 5929, section 4.1): its hash, by
//! the function that its signature uses, SHA-256 in place of MD5 and SHA-1.

use sha2::{Digest, Sha256, Sha384, Sha512};

const OBJECT: u8 = 0x06;
/// 1.2.840.113549.1.1: signatures by RSA.
const RSA: [u8; 8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
/// 1.2.840.10045.4: signatures by ECDSA.
const ECDSA: [u8; 6] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];

/// The hash of a certificate in DER. None where the RFC settles no function: Ed25519 has none of its own, PSS says it elsewhere.
pub fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    // Certificate: a sequence of what is signed, the algorithm and the signature. Algorithm: a sequence that begins with its name.
    let (_, parts, _) = value(certificate)?;
    let (_, _, behind) = value(parts)?;
    let (_, algorithm, _) = value(behind)?;
    let (OBJECT, name, _) = value(algorithm)? else { return None };
    match (name.strip_prefix(&RSA), name.strip_prefix(&ECDSA)) {
        (Some([4 | 5 | 11]), _) | (_, Some([1] | [3, 2])) => Some(Sha256::digest(certificate).to_vec()),
        (Some([12]), _) | (_, Some([3, 3])) => Some(Sha384::digest(certificate).to_vec()),
        (Some([13]), _) | (_, Some([3, 4])) => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// The first value of DER: its tag, what is in it, and what follows.
fn value(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, length], rest) = bytes.split_first_chunk()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (inside, behind) = rest.split_at_checked(length)?;
    Some((tag, inside, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate as far as it is looked at: something long that is signed, and the name of the algorithm.
    fn certificate(algorithm: &[u8]) -> Vec<u8> {
        let sequence = |parts: &[&[u8]]| {
            let inside = parts.concat();
            [&[0x30, 0x82][..], &(inside.len() as u16).to_be_bytes(), &inside].concat()
        };
        let signed = sequence(&[&[5; 300]]);
        let name = [&[OBJECT, algorithm.len() as u8], algorithm].concat();
        sequence(&[&signed, &sequence(&[&name, &[5, 0]]), &[3, 1, 0]])
    }

    #[test]
    fn the_hash_is_that_of_the_signature() {
        let bytes = |algorithm: &[u8]| end_point(&certificate(algorithm)).map(|hash| hash.len());
        for (last, wanted) in [(4, Some(32)), (5, Some(32)), (11, Some(32)), (12, Some(48)), (13, Some(64)), (10, None)]
        {
            assert_eq!(bytes(&[&RSA[..], &[last]].concat()), wanted, "RSA {last}");
        }
        for (last, wanted) in [([3, 2], Some(32)), ([3, 3], Some(48)), ([3, 4], Some(64)), ([3, 1], None)] {
            assert_eq!(bytes(&[&ECDSA[..], &last].concat()), wanted, "ECDSA {last:?}");
        }
        let ed25519 = [0x2b, 0x65, 0x70];
        assert_eq!(bytes(&ed25519), None);
        let whole = certificate(&[&ECDSA[..], &[3, 3]].concat());
        assert_eq!(end_point(&whole), Some(Sha384::digest(&whole).to_vec()));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_have_a_hash_or_none(bytes: Vec<u8>, at in 0usize..340, byte: u8) {
            let _ = end_point(&bytes);
            let mut changed = certificate(&[&RSA[..], &[11]].concat());
            let at = at % changed.len();
            changed[at] = byte;
            let _ = end_point(&changed);
        }
    }
}
