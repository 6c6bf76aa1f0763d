//! Signatures as an owner, a server and a reader use them, and as an attacker would.

use ark_bls12_381::Fr;
use ark_ff::{BigInteger, PrimeField};
use blst::{BLST_ERROR, min_sig};
use counterfoil_proof::{
    GROUPS_MAX, Group, Hint, KeyError, Message, PublicKey, SecretKey, Signature, SignatureError, SignatureSum, verify,
    verify_groups,
};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

/// p, the order of the field, most significant byte first.
const P: &str = "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab";
/// The order of the group of signatures.
const ORDER: &str = "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001";

fn bytes<const N: usize>(hex: &str) -> [u8; N] {
    assert_eq!(hex.len(), 2 * N);
    std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
}

fn key(number: u8) -> SecretKey {
    SecretKey::from_entropy(&[number; 32]).unwrap()
}

/// So many messages in order.
fn messages(count: u64) -> Vec<Message> {
    let mut messages: Vec<Message> = (0..count).map(|i| Message(Sha256::digest(i.to_be_bytes()).into())).collect();
    messages.sort_unstable();
    messages
}

/// The messages, their hints, and the sum of their signatures.
fn signed(key: &SecretKey, count: u64) -> (Vec<Message>, Vec<Hint>, Signature) {
    let messages = messages(count);
    let (signatures, hints): (Vec<Signature>, Vec<Hint>) = key.sign_all(&messages).into_iter().unzip();
    let sum = SignatureSum::sum_of(&signatures).finish().unwrap();
    (messages, hints, sum)
}

fn malformed(result: Result<(), SignatureError>) -> bool {
    matches!(result, Err(SignatureError::Malformed(_)))
}

/// The first 48 bytes + p; None where that does not fit beside the flags.
fn plus_p(number: &[u8]) -> Option<[u8; 48]> {
    let (p, mut sum, mut carry) = (bytes::<48>(P), [0; 48], 0);
    for i in (0..48).rev() {
        let digit = u16::from(number[i]) + u16::from(p[i]) + carry;
        sum[i] = digit as u8;
        carry = digit >> 8;
    }
    (carry == 0 && sum[0] < 0x20).then_some(sum)
}

#[test]
fn signatures_verify_with_and_without_hints() {
    let owner = key(1);
    for count in [1, 2, 3, 15, 16, 17, 511, 512, 513, 1100] {
        let (messages, hints, sum) = signed(&owner, count);
        assert_eq!(verify(&owner.public(), &messages, Some(&hints), &sum), Ok(()), "{count}");
        if count < 100 {
            assert_eq!(verify(&owner.public(), &messages, None, &sum), Ok(()), "{count}");
        }
    }
}

const DOMAIN: &[u8] = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_";

/// What blst's own check says of a sum of signatures of one key.
fn blst_accepts(public: &PublicKey, messages: &[Message], sum: &Signature) -> bool {
    let sum = min_sig::Signature::from_bytes(&sum.to_bytes()).expect("a signature");
    let public = min_sig::PublicKey::from_bytes(&public.to_bytes()).expect("a key");
    let messages: Vec<&[u8]> = messages.iter().map(|message| &message.0[..]).collect();
    let keys = vec![&public; messages.len()];
    sum.aggregate_verify(true, &messages, DOMAIN, &keys, true) == BLST_ERROR::BLST_SUCCESS
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn what_blst_accepts_is_accepted_with_hints_and_without_and_nothing_else(
        (count, first) in (1_u64..7, any::<u64>()),
        (damage, at, bit) in (0_u8..7, any::<prop::sample::Index>(), 0_u8..8),
    ) {
        let owner = key(3);
        let mut messages: Vec<Message> =
            (0..count).map(|i| Message(Sha256::digest(first.wrapping_add(i).to_be_bytes()).into())).collect();
        messages.sort_unstable();
        let signatures: Vec<Signature> = messages.iter().map(|message| owner.sign(message)).collect();
        let (mut sum, mut public) = (SignatureSum::sum_of(&signatures), owner.public());
        let one = at.index(messages.len());
        match damage {
            0 => {}
            1 => messages[one].0[usize::from(bit) * 4] ^= 1 << bit,
            2 => public = key(4).public(),
            3 => sum.add(&owner.sign(&Message([bit; 32]))),
            4 => sum.add(&signatures[one]),
            5 => sum = {
                let mut negative = SignatureSum::new();
                signatures.iter().for_each(|signature| negative.subtract(signature));
                negative
            },
            // One of another key in place of its own.
            _ => {
                sum.subtract(&signatures[one]);
                sum.add(&key(5).sign(&messages[one]));
            }
        }
        messages.sort_unstable();
        let sum = sum.finish().expect("not at infinity");
        let hints: Vec<Hint> = messages.iter().map(Hint::of).collect();
        let expected = blst_accepts(&public, &messages, &sum);
        prop_assert_eq!(expected, damage == 0);
        prop_assert_eq!(verify(&public, &messages, None, &sum).is_ok(), expected);
        prop_assert_eq!(verify(&public, &messages, Some(&hints), &sum).is_ok(), expected);
        // Hints of other messages, or damaged ones, make nothing true.
        let mut others = hints.clone();
        others[one].0[usize::from(bit) * 7] ^= 1 << bit;
        prop_assert!(expected || verify(&public, &messages, Some(&others), &sum).is_err());
    }
}

/// Rounds of the League of Entropy's quicknet, signed in the same suite: the message is the digest of the number. The IRTF's
/// draft has no vectors of its own.
#[test]
fn beacons_of_drand_verify_alone_and_added_up() {
    let key = PublicKey::from_bytes(&bytes::<96>(concat!(
        "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d106451",
        "0d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
    )))
    .unwrap();
    let signatures = [
        "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39",
        "b33bf3667cbd5a82de3a24b4e0e9fe5513cc1a0e840368c6e31f5fcfa79bea03f73896b25883abf2853d10337fb8fa41",
        "ab066f9c12dd6de1336fca0f925192fb0c72a771c3e4c82ede1fd362c1a770f9eb05843c6308ce2530b53a99c0281a6e",
    ]
    .map(|signature| Signature::from_bytes(&bytes::<48>(signature)).unwrap());
    let round = |number: u64| Message(Sha256::digest(number.to_be_bytes()).into());
    for (number, signature) in (1000..).zip(&signatures) {
        assert_eq!(verify(&key, &[round(number)], None, signature), Ok(()));
        assert_eq!(verify(&key, &[round(number)], Some(&[Hint::of(&round(number))]), signature), Ok(()));
        assert_eq!(verify(&key, &[round(number + 1)], None, signature), Err(SignatureError::Forged));
    }
    let mut rounds: Vec<Message> = (1000..1003).map(round).collect();
    rounds.sort_unstable();
    let sum = SignatureSum::sum_of(&signatures).finish().unwrap();
    assert_eq!(verify(&key, &rounds, None, &sum), Ok(()));
    assert_eq!(verify(&key, &rounds[..2], None, &sum), Err(SignatureError::Forged));
}

#[test]
fn the_vector_of_the_specification_comes_out() {
    let text = include_str!("vectors/signatures.txt");
    let all = |name: &str| -> Vec<&str> {
        text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).collect()
    };
    let owner = SecretKey::from_entropy(&bytes::<32>(all("entropy")[0])).unwrap();
    assert_eq!(owner.to_bytes(), bytes(all("secret")[0]));
    assert_eq!(owner.public().to_bytes(), bytes(all("public")[0]));
    let messages: Vec<Message> = all("message").into_iter().map(|hex| Message(bytes(hex))).collect();
    let mut hints = Vec::new();
    let mut sum = SignatureSum::new();
    for (i, message) in messages.iter().enumerate() {
        hints.push(Hint(bytes(&all("root")[2 * i..2 * i + 2].concat())));
        assert_eq!(Hint::of(message), hints[i]);
        assert_eq!(owner.sign(message).to_bytes(), bytes(all("signature")[i]));
        sum.add(&Signature::from_bytes(&bytes::<48>(all("signature")[i])).unwrap());
    }
    assert_eq!(sum.to_bytes(), bytes(all("plain")[0]));
    let sum = Signature::from_bytes(&bytes::<48>(all("sum")[0])).unwrap();
    assert_eq!(sum.to_uncompressed(), bytes(all("plain")[0]));
    assert_eq!(verify(&owner.public(), &messages, Some(&hints), &sum), Ok(()));
}

#[test]
fn other_messages_keys_and_signatures_are_forged() {
    let owner = key(1);
    let (messages, hints, sum) = signed(&owner, 20);
    let public = owner.public();
    let forged = Err(SignatureError::Forged);
    assert_eq!(verify(&public, &messages[1..], Some(&hints[1..]), &sum), forged, "one less");
    let mut changed = messages.clone();
    changed[0].0[31] ^= 1;
    assert_eq!(verify(&public, &changed, None, &sum), forged, "another");
    assert_eq!(verify(&key(2).public(), &messages, Some(&hints), &sum), forged, "another key");
    let mut more = SignatureSum::sum_of(&[sum]);
    more.add(&owner.sign(&messages[3]));
    assert_eq!(verify(&public, &messages, Some(&hints), &more.finish().unwrap()), forged, "one twice");
    let mut negative = SignatureSum::new();
    negative.subtract(&sum);
    assert_eq!(verify(&public, &messages, Some(&hints), &negative.finish().unwrap()), forged, "minus the signature");
}

#[test]
fn messages_increase_strictly() {
    let owner = key(1);
    let (messages, hints, sum) = signed(&owner, 3);
    let public = owner.public();
    let check = |order: &[usize]| {
        let messages: Vec<Message> = order.iter().map(|i| messages[*i]).collect();
        let hints: Vec<Hint> = order.iter().map(|i| hints[*i]).collect();
        [verify(&public, &messages, None, &sum), verify(&public, &messages, Some(&hints), &sum)]
    };
    assert_eq!(check(&[0, 1, 2]), [Ok(()); 2]);
    for order in [&[0, 1, 1, 2][..], &[0, 0], &[0, 2, 1], &[2, 1, 0], &[1, 2, 0], &[]] {
        assert!(check(order).into_iter().all(malformed), "{order:?}");
    }
    // Counted twice it would verify: the signature of each is there twice.
    let twice = owner.sign(&messages[0]);
    let twice = SignatureSum::sum_of(&[twice, twice]).finish().unwrap();
    assert!(malformed(verify(&public, &[messages[0]; 2], None, &twice)));
    assert_eq!(verify(&public, &messages[..1], None, &twice), Err(SignatureError::Forged));
}

#[test]
fn hints_are_one_a_message() {
    let owner = key(1);
    let (messages, hints, sum) = signed(&owner, 3);
    for wrong in [&hints[..2], &hints[..0], &[hints[0], hints[1], hints[2], hints[2]]] {
        assert!(malformed(verify(&owner.public(), &messages, Some(wrong), &sum)));
    }
}

#[test]
fn a_wrong_hint_is_refused_wherever_it_is() {
    let owner = key(1);
    let (messages, hints, sum) = signed(&owner, 4);
    let check = |place: usize, hint: Hint| {
        let mut hints = hints.clone();
        hints[place] = hint;
        malformed(verify(&owner.public(), &messages, Some(&hints), &sum))
    };
    for place in 0..4 {
        let right = hints[place].0;
        let [low, high]: [[u8; 48]; 2] = [right[..48].try_into().unwrap(), right[48..].try_into().unwrap()];
        let both = |low: [u8; 48], high: [u8; 48]| Hint([low, high].concat().try_into().unwrap());
        assert!(check(place, both(high, low)), "swapped");
        assert!(check(place, hints[(place + 1) % 4]), "of another message");
        assert!(check(place, both(negative(&low), high)) && check(place, both(low, negative(&high))), "other sign");
        assert!(check(place, both([0; 48], high)) && check(place, both(low, [0; 48])), "zero");
        assert!(check(place, both([0xff; 48], high)), "not a number below p");
        for (i, half) in [low, high].into_iter().enumerate() {
            let mut raised = [low, high];
            raised[i] = match plus_p(&half) {
                Some(raised) => raised,
                None => continue,
            };
            assert!(check(place, both(raised[0], raised[1])), "y + p");
        }
        for bit in [0, 7, 100, 383, 384, 500, 767] {
            let mut flipped = right;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(check(place, Hint(flipped)), "bit {bit}");
        }
    }
}

/// p - y.
fn negative(y: &[u8; 48]) -> [u8; 48] {
    let (p, mut difference, mut borrow) = (bytes::<48>(P), [0; 48], 0);
    for i in (0..48).rev() {
        let digit = i16::from(p[i]) - i16::from(y[i]) - borrow;
        difference[i] = digit as u8;
        borrow = i16::from(digit < 0);
    }
    difference
}

#[test]
fn a_signature_out_of_the_subgroup_is_refused() {
    let (owner, mut tried) = (key(1), 0);
    let (messages, hints, sum) = signed(&owner, 2);
    for x in 1..40 {
        let mut packed = [0; 48];
        (packed[0], packed[47]) = (0x80, x);
        let Ok(point) = Signature::from_bytes(&packed) else { continue };
        assert!(malformed(verify(&owner.public(), &messages, Some(&hints), &point)), "x = {x}");
        let mut shifted = SignatureSum::sum_of(&[sum]);
        shifted.add(&point);
        assert!(malformed(verify(&owner.public(), &messages, Some(&hints), &shifted.finish().unwrap())), "x = {x}");
        tried += 1;
    }
    assert!(tried > 5);
}

/// What is left of a point of the curve outside the group after multiplying it by the group's order: the pairing, which
/// reads it as the identity, would let a signature plus this point pass.
#[test]
fn a_signature_plus_a_point_that_pairings_do_not_see_is_refused() {
    let owner = key(1);
    let (messages, _, sum) = signed(&owner, 2);
    let mut packed = [0; 48];
    (packed[0], packed[47]) = (0x80, 4);
    let point = SignatureSum::sum_of(&[Signature::from_bytes(&packed).unwrap()]);
    let unseen = times_the_order(&point).finish().expect("the point is not in the group");
    assert_eq!(times_the_order(&SignatureSum::sum_of(&[sum])).finish(), None, "a signature is");
    let shifted = SignatureSum::sum_of(&[sum, unseen]).finish().unwrap();
    assert!(malformed(verify(&owner.public(), &messages, None, &shifted)));
}

fn times_the_order(point: &SignatureSum) -> SignatureSum {
    let mut product = SignatureSum::new();
    for bit in (0..256).rev() {
        product.add_sum(&product.clone());
        if bytes::<32>(ORDER)[31 - bit / 8] >> (bit % 8) & 1 == 1 {
            product.add_sum(point);
        }
    }
    product
}

#[test]
fn infinity_is_no_signature() {
    let owner = key(1);
    let (_, _, sum) = signed(&owner, 2);
    let mut nothing = SignatureSum::sum_of(&[sum]);
    nothing.subtract(&sum);
    assert_eq!(nothing, SignatureSum::new());
    assert_eq!(nothing.finish(), None);
    let encoded = nothing.to_bytes();
    assert_eq!(encoded[0], 0x40);
    assert_eq!(SignatureSum::from_bytes(&encoded), Ok(nothing));
    assert!(Signature::from_bytes(&encoded).is_err());
    let mut packed = [0; 48];
    packed[0] = 0xc0;
    assert!(Signature::from_bytes(&packed).is_err());
    assert!(Signature::from_bytes(&[0; 96]).is_err() && Signature::from_bytes(&[0; 48]).is_err());
    for stray in [1, 48, 95] {
        let mut encoded = encoded;
        encoded[stray] = 1;
        assert!(SignatureSum::from_bytes(&encoded).is_err(), "infinity, and a byte at {stray}");
    }
}

#[test]
fn each_point_has_one_encoding() {
    let (mut packed_tried, mut plain_tried) = (0, 0);
    for number in 0..12 {
        let signature = key(number).sign(&Message([number; 32]));
        let (packed, plain) = (signature.to_bytes(), signature.to_uncompressed());
        assert_eq!(Signature::from_bytes(&packed), Ok(signature));
        assert_eq!(Signature::from_bytes(&plain), Ok(signature));
        let mut x = packed;
        x[0] &= 0x1f;
        if let Some(mut raised) = plus_p(&x) {
            raised[0] |= packed[0] & 0xe0;
            assert!(Signature::from_bytes(&raised).is_err(), "x + p");
            packed_tried += 1;
        }
        for half in [0, 48] {
            let Some(raised) = plus_p(&plain[half..]) else { continue };
            let mut plain = plain;
            plain[half..half + 48].copy_from_slice(&raised);
            assert!(Signature::from_bytes(&plain).is_err(), "coordinate + p");
            plain_tried += 1;
        }
        for flag in [0x20, 0x40, 0x80, 0x60, 0xa0, 0xc0, 0xe0] {
            let mut plain = plain;
            plain[0] |= flag;
            assert!(Signature::from_bytes(&plain).is_err(), "flag {flag:x}");
        }
        let mut off = plain;
        off[95] ^= 1;
        assert!(Signature::from_bytes(&off).is_err() && SignatureSum::from_bytes(&off).is_err(), "off the curve");
        for length in [0, 1, 47, 49, 95, 97] {
            assert!(Signature::from_bytes(&vec![packed[0]; length]).is_err());
        }
    }
    assert!(packed_tried > 0 && plain_tried > 0);
}

#[test]
fn keys_are_checked() {
    let mut infinity = [0; 96];
    infinity[0] = 0xc0;
    assert_eq!(PublicKey::from_bytes(&infinity), Err(KeyError::Infinity));
    assert_eq!(PublicKey::from_bytes(&infinity[..95]), Err(KeyError::Length(95)));
    assert_eq!(PublicKey::from_bytes(&[0; 96]), Err(KeyError::Encoding));
    let public = key(1).public();
    assert_eq!(PublicKey::from_bytes(&public.to_bytes()), Ok(public));
    let outside = (0..60).filter(|x| {
        let mut packed = [0; 96];
        (packed[0], packed[95]) = (0x80, *x);
        match PublicKey::from_bytes(&packed) {
            Err(KeyError::Subgroup) => true,
            Err(KeyError::Encoding) => false,
            other => panic!("{other:?}"),
        }
    });
    assert!(outside.count() > 5, "points of the curve that are not in the group");
}

#[test]
fn secret_keys_are_checked() {
    assert!(matches!(SecretKey::from_entropy(&[7; 31]), Err(KeyError::Length(31))));
    assert!(matches!(SecretKey::from_bytes(&[0; 32]), Err(KeyError::Encoding)));
    assert!(matches!(SecretKey::from_bytes(&[0xff; 32]), Err(KeyError::Encoding)));
    assert!(matches!(SecretKey::from_bytes(&bytes::<32>(ORDER)), Err(KeyError::Encoding)));
    assert!(matches!(SecretKey::from_bytes(&[1; 33]), Err(KeyError::Length(33))));
    let owner = key(3);
    let again = SecretKey::from_bytes(&owner.to_bytes()).unwrap();
    assert_eq!(again.public(), owner.public());
    assert_ne!(key(4).public(), owner.public());
}

#[test]
fn keys_in_succession_are_checked_together() {
    let (old, new) = (key(1), key(2));
    let ((first, first_hints, first_sum), second) = (signed(&old, 5), messages(305));
    let second: Vec<Message> = second.into_iter().filter(|message| !first.contains(message)).collect();
    let (second_signed, second_hints): (Vec<Signature>, Vec<Hint>) = new.sign_all(&second).into_iter().unzip();
    let second_sum = SignatureSum::sum_of(&second_signed).finish().unwrap();
    let both = SignatureSum::sum_of(&[first_sum, second_sum]).finish().unwrap();
    let (old, new) = (old.public(), new.public());
    let old_group = Group { key: &old, messages: &first, hints: None };
    let new_group = Group { key: &new, messages: &second, hints: Some(&second_hints) };
    assert_eq!(verify_groups(&[old_group, new_group], &both), Ok(()));
    assert_eq!(verify_groups(&[new_group, old_group], &both), Ok(()));
    let hinted = Group { hints: Some(&first_hints), ..old_group };
    assert_eq!(verify_groups(&[hinted, new_group], &both), Ok(()));
    assert_eq!(verify_groups(&[old_group], &both), Err(SignatureError::Forged));
    let crossed = [Group { key: &new, ..old_group }, Group { key: &old, ..new_group }];
    assert_eq!(verify_groups(&crossed, &both), Err(SignatureError::Forged));
    assert!(malformed(verify_groups(&[], &both)));
    assert!(malformed(verify_groups(&[old_group, old_group], &both)), "a key twice");
    assert!(malformed(verify_groups(&[old_group, Group { messages: &[], hints: None, ..new_group }], &both)));
    assert!(malformed(verify_groups(&[old_group, Group { hints: Some(&first_hints), ..new_group }], &both)));
    let keys: Vec<PublicKey> = (0..=GROUPS_MAX as u8).map(|i| key(i).public()).collect();
    let many: Vec<Group<'_>> = keys.iter().map(|key| Group { key, ..old_group }).collect();
    assert!(malformed(verify_groups(&many, &both)), "too many keys");
}

/// Under a key and its negative, or under three keys whose sum is nothing, a message adds nothing to what is compared.
#[test]
fn a_message_that_nobody_signed_is_not_taken_because_keys_cancel_each_other() {
    let (owner, second) = (key(1), key(2));
    let [unsigned, message] = messages(2)[..] else { panic!("two messages") };
    let (alone, other, both) = ([unsigned], [message], [unsigned, message]);
    let signature = owner.sign(&message);
    let minus = |sum: Fr| SecretKey::from_bytes(&(-sum).into_bigint().to_bytes_be()).unwrap().public();
    let number = |key: &SecretKey| Fr::from_be_bytes_mod_order(&key.to_bytes());
    let (first, negative) = (owner.public(), minus(number(&owner)));
    let mut packed = first.to_bytes();
    packed[0] ^= 0x20;
    assert_eq!(negative.to_bytes(), packed, "the other point of this x");
    fn group<'a>(key: &'a PublicKey, messages: &'a [Message]) -> Group<'a> {
        Group { key, messages, hints: None }
    }
    assert!(malformed(verify_groups(&[group(&first, &both), group(&negative, &alone)], &signature)));
    let (second, third) = (second.public(), minus(number(&owner) + number(&second)));
    let three = [group(&first, &both), group(&second, &alone), group(&third, &alone)];
    assert!(malformed(verify_groups(&three, &signature)));
    // With messages of its own the negative is a key like any other.
    let opposite = SecretKey::from_bytes(&(-number(&owner)).into_bigint().to_bytes_be()).unwrap();
    let sum = SignatureSum::sum_of(&[signature, opposite.sign(&unsigned)]).finish().unwrap();
    assert_eq!(verify_groups(&[group(&first, &other), group(&negative, &alone)], &sum), Ok(()));
    assert_eq!(verify_groups(&[group(&first, &alone), group(&negative, &other)], &sum), Err(SignatureError::Forged));
}

#[test]
fn many_signatures_add_up() {
    let (one, two) = (key(1).sign(&Message([1; 32])), key(2).sign(&Message([2; 32])));
    // Multiples of the one and the other: thousands of points without signing thousands of times.
    let (mut sums, mut signatures) = ([SignatureSum::new(), SignatureSum::new()], Vec::new());
    for i in 0..9000 {
        sums[i % 2].add(if i % 2 == 0 { &one } else { &two });
        signatures.push(sums[i % 2].finish().unwrap());
    }
    for count in [0, 1, 2, 1023, 1024, 1025, 4096, 4097, 9000] {
        let mut one_by_one = SignatureSum::new();
        signatures[..count].iter().for_each(|signature| one_by_one.add(signature));
        assert_eq!(SignatureSum::sum_of(&signatures[..count]), one_by_one, "{count}");
    }
}

#[test]
fn a_sum_of_sums_is_the_sum() {
    let signatures: Vec<Signature> =
        key(1).sign_all(&messages(9)).into_iter().map(|(signature, _)| signature).collect();
    let mut sum = SignatureSum::default();
    for part in signatures.chunks(4) {
        sum.add_sum(&SignatureSum::from_bytes(&SignatureSum::sum_of(part).to_bytes()).unwrap());
    }
    assert_eq!(sum, SignatureSum::sum_of(&signatures));
    sum.add_sum(&sum.clone());
    let doubled: Vec<Signature> = signatures.iter().chain(&signatures).copied().collect();
    assert_eq!(sum, SignatureSum::sum_of(&doubled), "a sum added to itself");
    signatures.iter().chain(&signatures).for_each(|signature| sum.subtract(signature));
    assert_eq!(sum, SignatureSum::new());
    assert!(SignatureSum::from_bytes(&signatures[0].to_bytes()).is_err(), "48 bytes are no sum");
}

#[test]
fn signing_many_is_signing_each() {
    let (owner, messages) = (key(1), messages(40));
    for (message, (signature, hint)) in messages.iter().zip(owner.sign_all(&messages)) {
        assert_eq!(signature, owner.sign(message));
        assert_eq!(hint, Hint::of(message));
    }
    assert!(owner.sign_all(&[]).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..100), flag in any::<u8>(), to in 0..5usize) {
        let mut bytes = bytes;
        bytes.resize([bytes.len(), 32, 48, 96, 96][to], flag);
        if let Some(first) = bytes.first_mut() {
            *first = flag;
        }
        if let Ok(signature) = Signature::from_bytes(&bytes) {
            let again = if bytes.len() == 48 { signature.to_bytes().to_vec() } else { signature.to_uncompressed().to_vec() };
            prop_assert_eq!(&again, &bytes);
        }
        if let Ok(key) = PublicKey::from_bytes(&bytes) {
            prop_assert_eq!(&key.to_bytes()[..], &bytes[..]);
        }
        if let Ok(sum) = SignatureSum::from_bytes(&bytes) {
            prop_assert_eq!(&sum.to_bytes()[..], &bytes[..]);
        }
        let _ = SecretKey::from_bytes(&bytes);
    }

    #[test]
    fn hints_of_noise_are_refused(hint in prop::collection::vec(any::<u8>(), 96), message in any::<[u8; 32]>()) {
        let (owner, message) = (key(1), Message(message));
        let hint = Hint(hint.try_into().unwrap());
        prop_assert!(malformed(verify(&owner.public(), &[message], Some(&[hint]), &owner.sign(&message))));
    }

    #[test]
    fn any_messages_verify_and_any_other_do_not(seeds in prop::collection::btree_set(any::<[u8; 32]>(), 2..6)) {
        let owner = key(1);
        let messages: Vec<Message> = seeds.into_iter().map(Message).collect();
        let (signatures, hints): (Vec<Signature>, Vec<Hint>) = owner.sign_all(&messages).into_iter().unzip();
        let sum = SignatureSum::sum_of(&signatures).finish().unwrap();
        prop_assert_eq!(verify(&owner.public(), &messages, None, &sum), Ok(()));
        prop_assert_eq!(verify(&owner.public(), &messages, Some(&hints), &sum), Ok(()));
        let less = verify(&owner.public(), &messages[1..], Some(&hints[1..]), &sum);
        prop_assert_eq!(less, Err(SignatureError::Forged));
    }
}
