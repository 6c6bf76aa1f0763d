//! Signatures, sums of them and their checks beside arkworks, which shares no code with us or with blst: what an owner signs is
//! what its arithmetic says, and a reader takes what its pairings take and nothing else.

use ark_bls12_381::{Bls12_381, Fq, Fq2, Fr, G1Affine, G1Projective, G2Affine, G2Projective, g1};
use ark_ec::hashing::curve_maps::wb::WBMap;
use ark_ec::hashing::map_to_curve_hasher::MapToCurve;
use ark_ec::pairing::Pairing;
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::PrimeField;
use blst::min_sig;
use counterfoil_proof::{Group, Hint, Message, PublicKey, SecretKey, Signature, SignatureSum, verify_groups};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

const DOMAIN: &[u8] = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_";

fn field(bytes: &[u8]) -> Fq {
    Fq::from_be_bytes_mod_order(bytes)
}

/// expand_message_xmd and hash_to_field as RFC 9380 puts them, then arkworks' map, sum and cofactor.
fn hashed(message: &Message) -> G1Projective {
    let prime = [DOMAIN, &[DOMAIN.len() as u8]].concat();
    let first = Sha256::digest([&[0; 64], &message.0[..], &[0, 128, 0], &prime].concat());
    let (mut before, mut uniform) = ([0; 32], Vec::new());
    for i in 1..=4 {
        let mixed: Vec<u8> = first.iter().zip(before).map(|(first, before)| first ^ before).collect();
        before = Sha256::digest([&mixed[..], &[i], &prime].concat()).into();
        uniform.extend(before);
    }
    let mapped = [&uniform[..64], &uniform[64..]].map(|half| WBMap::<g1::Config>::map_to_curve(field(half)).unwrap());
    (mapped[0] + mapped[1]).into_affine().clear_cofactor().into()
}

fn number(key: &SecretKey) -> Fr {
    Fr::from_be_bytes_mod_order(&key.to_bytes())
}

fn signature_point(signature: &Signature) -> G1Affine {
    let bytes = signature.to_uncompressed();
    G1Affine::new(field(&bytes[..48]), field(&bytes[48..]))
}

fn key_point(key: &PublicKey) -> G2Affine {
    let bytes = min_sig::PublicKey::from_bytes(&key.to_bytes()).unwrap().serialize();
    let part = |at: usize| field(&bytes[48 * at..48 * at + 48]);
    G2Affine::new(Fq2::new(part(1), part(0)), Fq2::new(part(3), part(2)))
}

/// e(signature, g2) against the product over keys of e(sum of hashes, key).
fn ark_takes(groups: &[(PublicKey, Vec<Message>)], signature: &Signature) -> bool {
    let sums = groups.iter().map(|(_, messages)| messages.iter().map(hashed).sum::<G1Projective>().into_affine());
    let keys = groups.iter().map(|(key, _)| key_point(key));
    let right = Bls12_381::multi_pairing(sums, keys);
    Bls12_381::pairing(signature_point(signature), G2Affine::generator()) == right
}

fn takes(groups: &[(PublicKey, Vec<Message>)], signature: &Signature, is_hinted: bool) -> bool {
    let hints: Vec<Vec<Hint>> = groups.iter().map(|(_, messages)| messages.iter().map(Hint::of).collect()).collect();
    let groups: Vec<Group<'_>> = groups
        .iter()
        .zip(&hints)
        .map(|((key, messages), hints)| Group { key, messages, hints: is_hinted.then_some(hints) })
        .collect();
    verify_groups(&groups, signature).is_ok()
}

/// The entropy of each key, and its messages; no message is another key's too.
fn signers() -> impl Strategy<Value = Vec<([u8; 32], Vec<Message>)>> {
    let messages = prop::collection::btree_set(any::<[u8; 31]>(), 1..5);
    prop::collection::vec((any::<[u8; 31]>(), messages), 1..4).prop_map(|signers| {
        let each = signers.into_iter().zip(0..);
        each.map(|((entropy, messages), at)| {
            let with = |bytes: [u8; 31]| -> [u8; 32] { [&[at][..], &bytes].concat().try_into().unwrap() };
            (with(entropy), messages.into_iter().map(|message| Message(with(message))).collect())
        })
        .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn signatures_sums_and_verdicts_are_those_of_arkworks(
        signers in signers(),
        (damage, at, bit) in (0_u8..6, any::<prop::sample::Index>(), 0_usize..256),
    ) {
        let signers: Vec<(SecretKey, Vec<Message>)> = signers
            .into_iter()
            .map(|(entropy, messages)| (SecretKey::from_entropy(&entropy).unwrap(), messages))
            .collect();
        let mut sum = SignatureSum::new();
        let mut theirs = G1Projective::default();
        for (key, messages) in &signers {
            prop_assert_eq!(key_point(&key.public()), (G2Projective::generator() * number(key)).into_affine());
            for message in messages {
                let (own, other) = (key.sign(message), hashed(message) * number(key));
                prop_assert_eq!(signature_point(&own), other.into_affine());
                sum.add(&own);
                theirs += other;
            }
        }
        prop_assert_eq!(signature_point(&sum.finish().unwrap()), theirs.into_affine());
        let mut groups: Vec<(PublicKey, Vec<Message>)> =
            signers.iter().map(|(key, messages)| (key.public(), messages.clone())).collect();
        let one = at.index(groups.len());
        match damage {
            0 => {}
            1 => groups[one].1[0].0[bit / 8] ^= 1 << (bit % 8),
            2 => groups[one].0 = SecretKey::from_entropy(&[9; 32]).unwrap().public(),
            3 => sum.add(&signers[one].0.sign(&signers[one].1[0])),
            4 => sum.add(&SecretKey::from_entropy(&[9; 32]).unwrap().sign(&signers[one].1[0])),
            _ => {
                let all = std::mem::take(&mut sum);
                sum.subtract(&all.finish().unwrap());
            }
        }
        groups[one].1.sort_unstable();
        let signature = sum.finish().unwrap();
        let expected = ark_takes(&groups, &signature);
        prop_assert_eq!(expected, damage == 0);
        prop_assert_eq!(takes(&groups, &signature, false), expected);
        prop_assert_eq!(takes(&groups, &signature, true), expected);
    }
}
