//! The curve beside RFC 9380, blst and arkworks.

use std::prelude::v1::*;
use std::{format, vec};

use ark_bls12_381::{Fq, G1Affine, G1Projective, g1};
use ark_ec::hashing::curve_maps::swu::SWUConfig;
use ark_ec::hashing::curve_maps::wb::{WBConfig, WBMap};
use ark_ec::hashing::map_to_curve_hasher::MapToCurve;
use ark_ec::models::short_weierstrass::SWCurveConfig;
use ark_ec::{AdditiveGroup, AffineRepr, CurveGroup};
use ark_ff::{BigInteger, Field, PrimeField};
use blst::{blst_p1_affine, min_sig};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::expand::{DOMAIN, Expander};
use super::field::{Fp, P, invert_all};
use super::isogeny::{clear_cofactor, isogeny, to_group};
use super::mapping::{self, WrongHint, map_all, map_hinted, roots};
use super::point::{Affine, Jacobian};
use super::sum::{hash_sum, hinted_sum, sum, to_curve};

type IsogenousCurve = <g1::Config as WBConfig>::IsogenousCurve;

fn bytes<const N: usize>(hex: &str) -> [u8; N] {
    assert_eq!(hex.len(), 2 * N);
    core::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
}

/// A number of a seed; every eighth is next to 0 or p.
fn number(seed: u64) -> Fp {
    if seed.is_multiple_of(8) {
        let small = (0..seed / 8 % 5).fold(Fp::ZERO, |sum, _| sum.add(&Fp::ONE));
        return if seed.is_multiple_of(16) { small } else { small.negate() };
    }
    let mut wide = [0; 64];
    wide[..32].copy_from_slice(&Sha256::digest(seed.to_be_bytes()));
    wide[32..].copy_from_slice(&Sha256::digest([&seed.to_be_bytes()[..], b"low"].concat()));
    Fp::from_wide_bytes(&wide)
}

fn message(seed: u64) -> [u8; 32] {
    Sha256::digest(seed.to_le_bytes()).into()
}

fn ark(x: &Fp) -> Fq {
    Fq::from_be_bytes_mod_order(&x.to_bytes())
}

fn from_ark(x: Fq) -> Fp {
    Fp::from_bytes(&x.into_bigint().to_bytes_be().try_into().unwrap()).unwrap()
}

fn ark_point(point: Option<Affine>) -> G1Affine {
    point.map_or(G1Affine::identity(), |point| G1Affine::new_unchecked(ark(&point.x), ark(&point.y)))
}

/// The hash of a message as blst computes it: the signature of the key 1.
fn blst_hash(message: &[u8], domain: &[u8]) -> Affine {
    let one = min_sig::SecretKey::from_bytes(&bytes::<32>(&format!("{:064x}", 1))).unwrap();
    Affine::from(blst_p1_affine::from(one.sign(message, domain, &[])))
}

/// expand_message_xmd as RFC 9380, 5.3.1, puts it, for any message and domain: 128 bytes, as two field elements.
fn hash_to_field(message: &[u8], domain: &[u8]) -> [Fp; 2] {
    let prime = [domain, &[domain.len() as u8]].concat();
    let first = Sha256::digest([&[0; 64], message, &[0, 128, 0], &prime].concat());
    let (mut before, mut uniform) = ([0; 32], Vec::new());
    for i in 1..=4 {
        let mixed: Vec<u8> = first.iter().zip(before).map(|(first, before)| first ^ before).collect();
        before = Sha256::digest([&mixed[..], &[i], &prime].concat()).into();
        uniform.extend(before);
    }
    [&uniform[..64], &uniform[64..]].map(|half| Fp::from_wide_bytes(half.try_into().unwrap()))
}

/// y^2 = x^3 + A x + B.
fn is_on_isogenous_curve(point: &Affine) -> bool {
    point.y.square() == equation(&point.x)
}

fn equation(x: &Fp) -> Fp {
    x.square().add(&mapping::A).multiply(x).add(&mapping::B)
}

fn root(x: &Fp) -> Option<Fp> {
    let root = x.inverse_root().multiply(x);
    (root.square() == *x).then_some(root)
}

/// The three u where the denominator is zero.
fn without_denominator() -> [Fp; 3] {
    let root = root(&mapping::Z.invert().negate()).expect("-1/Z is a square");
    [Fp::ZERO, root, root.negate()]
}

/// A vector of the RFC: the message, and what its lines are called.
fn vectors() -> Vec<(String, Vec<Vec<String>>)> {
    let text = include_str!("../../tests/vectors/rfc9380-bls12381g1.txt");
    text.split("\nmessage ")
        .skip(1)
        .map(|vector| {
            let (message, rest) = vector.split_once('\n').unwrap();
            let words = |line: &str| line.split(' ').skip(1).map(str::to_owned).collect();
            (message.to_owned(), rest.lines().map(words).collect())
        })
        .collect()
}

#[test]
fn rfc_9380_vectors_come_out() {
    let domain = b"QUUX-V01-CS02-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";
    let point = |coordinates: &[String]| Affine {
        x: Fp::from_bytes(&bytes(&coordinates[0])).unwrap(),
        y: Fp::from_bytes(&bytes(&coordinates[1])).unwrap(),
    };
    let vectors = vectors();
    assert_eq!(vectors.len(), 5);
    for (message, lines) in vectors {
        let elements = hash_to_field(message.as_bytes(), domain);
        assert_eq!(elements.map(|u| u.to_bytes()), [0, 1].map(|i: usize| bytes(&lines[i][0])), "{message}");
        let mut mapped = map_all(&elements);
        for (i, mapped) in mapped.iter().enumerate() {
            assert_eq!(isogeny(mapped).to_affine(), Some(point(&lines[2 + i])), "{message}");
        }
        assert_eq!(to_group(sum(&mut mapped, &mapping::A)).to_affine(), Some(point(&lines[4])), "{message}");
        assert_eq!(blst_hash(message.as_bytes(), domain), point(&lines[4]), "{message}");
    }
}

#[test]
fn constants_are_what_they_are_called() {
    let eleven = (0..11).fold(Fp::ZERO, |sum, _| sum.add(&Fp::ONE));
    assert_eq!(mapping::Z, eleven);
    assert_eq!(ark(&mapping::Z), <IsogenousCurve as SWUConfig>::ZETA);
    assert_eq!(ark(&mapping::A), <IsogenousCurve as SWCurveConfig>::COEFF_A);
    assert_eq!(ark(&mapping::B), <IsogenousCurve as SWCurveConfig>::COEFF_B);
    assert_eq!(mapping::MINUS_B_OVER_A.multiply(&mapping::A), mapping::B.negate());
    assert_eq!(mapping::X_WITHOUT_DENOMINATOR.multiply(&mapping::Z.multiply(&mapping::A)), mapping::B);
    assert_eq!(mapping::ROOT_OF_MINUS_Z.square(), mapping::Z.negate());
    let one = min_sig::SecretKey::from_bytes(&bytes::<32>(&format!("{:064x}", 1))).unwrap();
    assert_eq!(one.sk_to_pk(), min_sig::PublicKey::from(super::pairing::generator()));
}

#[test]
fn numbers_from_p_on_are_refused() {
    let encode = |words: [u64; 6]| {
        let mut bytes = [0; 48];
        bytes.chunks_exact_mut(8).zip(words.iter().rev()).for_each(|(place, word)| {
            place.copy_from_slice(&word.to_be_bytes());
        });
        bytes
    };
    let mut words = P;
    assert_eq!(Fp::from_bytes(&encode(words)), None);
    words[0] += 1;
    assert_eq!(Fp::from_bytes(&encode(words)), None);
    assert_eq!(Fp::from_bytes(&[0xff; 48]), None);
    words[0] -= 2;
    assert_eq!(Fp::from_bytes(&encode(words)), Some(Fp::ONE.negate()));
    assert_eq!(Fp::from_bytes(&[0; 48]), Some(Fp::ZERO));
}

#[test]
fn where_the_denominator_is_zero_the_map_is_that_of_others() {
    for u in without_denominator() {
        let ours = map_all(&[number(1), u, number(2)]);
        assert!(is_on_isogenous_curve(&ours[1]));
        assert_eq!(ours[1].x, mapping::X_WITHOUT_DENOMINATOR);
        assert_eq!(ours[1].y.is_odd(), u.is_odd());
        let theirs = WBMap::<g1::Config>::map_to_curve(ark(&u)).unwrap();
        assert_eq!(ark_point(isogeny(&ours[1]).to_affine()), theirs);
        assert_eq!([ours[0], ours[2]], map_all(&[number(1), number(2)])[..], "neighbours in the batch are not touched");
        let hints: Vec<[u8; 48]> = ours.iter().map(|point| point.y.to_bytes()).collect();
        assert_eq!(map_hinted(&[number(1), u, number(2)], hints.iter()), Ok(ours));
    }
}

#[test]
fn where_the_denominator_is_zero_the_first_candidate_alone_counts() {
    let mut tried = 0;
    for u in without_denominator() {
        let right = map_all(&[u])[0].y;
        let hint = |y: &Fp| map_hinted(&[u], [y.to_bytes()].iter()).map(|points| points[0].y);
        assert_eq!(hint(&right), Ok(right));
        assert_eq!(hint(&right.negate()), Err(WrongHint::Sign));
        let x2 = mapping::Z.multiply(&u.square()).multiply(&mapping::X_WITHOUT_DENOMINATOR);
        if let Some(y) = root(&equation(&x2)) {
            let signed = if y.is_odd() == u.is_odd() { y } else { y.negate() };
            assert_eq!(hint(&signed), Err(WrongHint::NotARoot));
            tried += 1;
        }
    }
    assert!(tried > 0, "for one of the three the second candidate is a square too");
}

#[test]
fn wrong_hints_are_refused() {
    for seed in 0..40 {
        let u = Expander::new().field_elements(&message(seed))[0];
        let right = map_all(&[u])[0];
        let hint = |bytes: [u8; 48]| map_hinted(&[u], [bytes].iter());
        assert_eq!(hint(right.y.to_bytes()), Ok(vec![right]));
        assert_eq!(hint(right.y.negate().to_bytes()), Err(WrongHint::Sign));
        // With the right sign, but not below p.
        if let Some(raised) = plus_p(right.y.to_bytes()) {
            assert_eq!(hint(raised), Err(WrongHint::NotCanonical));
        }
        if let Some(raised) = plus_p(right.y.negate().to_bytes()) {
            assert_eq!(hint(raised), Err(WrongHint::NotCanonical));
        }
        let zero = if u.is_odd() { WrongHint::Sign } else { WrongHint::NotARoot };
        assert_eq!(hint([0; 48]), Err(zero));
        assert_eq!(hint([0xff; 48]), Err(WrongHint::NotCanonical));
        // A root of minus the value that has one, of the right sign: there is none for g(x1) and g(x2).
        let near = right.y.add(&Fp::ONE.double());
        let near = if near.is_odd() == u.is_odd() { near } else { near.negate() };
        assert_eq!(hint(near.to_bytes()), Err(WrongHint::NotARoot));
    }
}

/// The number + p in 48 bytes: always fits, as p is below 2^381.
fn plus_p(bytes: [u8; 48]) -> Option<[u8; 48]> {
    let (mut raised, mut carry) = ([0; 48], 0u16);
    for i in 0..48 {
        let sum = bytes[47 - i] as u16 + (P[i / 8] >> (8 * (i % 8)) & 0xff) as u16 + carry;
        raised[47 - i] = sum as u8;
        carry = sum >> 8;
    }
    (carry == 0).then_some(raised)
}

#[test]
fn exactly_one_candidate_is_a_square() {
    let (mut first, mut second) = (0, 0);
    for seed in 0..200 {
        let u = number(8 * seed + 1);
        let t = mapping::Z.multiply(&u.square());
        let x1 = mapping::MINUS_B_OVER_A.multiply(&t.square().add(&t).invert().add(&Fp::ONE));
        let squares = [x1, t.multiply(&x1)].map(|x| root(&equation(&x)).is_some());
        assert_ne!(squares[0], squares[1]);
        first += squares[0] as u32;
        second += squares[1] as u32;
    }
    assert!(first > 50 && second > 50, "both come up: {first}, {second}");
}

#[test]
fn sums_of_hashes_are_those_of_blst() {
    for count in [1, 2, 3, 7, 16, 33] {
        let messages: Vec<[u8; 32]> = (0..count).map(|i| message(1000 * count + i)).collect();
        let theirs = messages.iter().fold(G1Projective::from(G1Affine::identity()), |sum, message| {
            sum + ark_point(Some(blst_hash(message, DOMAIN)))
        });
        let ours = to_curve([hash_sum(messages.iter())].into_iter());
        assert_eq!(ark_point(ours), theirs.into_affine());
        let hints: Vec<[u8; 48]> = messages.iter().flat_map(roots).collect();
        assert_eq!(to_curve([hinted_sum(messages.iter(), hints.iter()).unwrap()].into_iter()), ours);
        let halves = messages.chunks(2).map(|part| hash_sum(part.iter()));
        assert_eq!(to_curve(halves), ours, "in parts");
    }
}

#[test]
fn hashes_are_those_of_arkworks() {
    for seed in 0..20 {
        let elements = hash_to_field(&message(seed), DOMAIN);
        let mapped = elements.map(|u| G1Projective::from(WBMap::<g1::Config>::map_to_curve(ark(&u)).unwrap()));
        let theirs = (mapped[0] + mapped[1]).into_affine().clear_cofactor();
        assert_eq!(ark_point(to_curve([hash_sum([message(seed)].iter())].into_iter())), theirs);
    }
}

/// Points of E' and of E, by number.
fn on_both(seeds: &[u64]) -> [(Vec<Affine>, Fp); 2] {
    let elements: Vec<Fp> = seeds.iter().map(|seed| number(*seed)).collect();
    let points = map_all(&elements);
    let images = points.iter().map(|point| isogeny(point).to_affine().unwrap()).collect();
    [(points, mapping::A), (images, Fp::ZERO)]
}

#[test]
fn equal_and_opposite_points_add_up() {
    for (points, a) in on_both(&[1, 2, 3]) {
        let [p, q, r] = points[..] else { unreachable!() };
        let total = |list: &[Affine]| sum(&mut list.to_vec(), &a);
        assert_eq!(total(&[]), None);
        assert_eq!(total(&[p]), Some(p));
        assert_eq!(total(&[p, p.negate()]), None);
        assert_eq!(total(&[p, p.negate(), q]), Some(q));
        assert_eq!(total(&[q, p, p.negate()]), Some(q));
        assert_eq!(total(&[p, p.negate(), q, q.negate()]), None);
        assert_eq!(total(&[p, q, p.negate(), q.negate()]), None, "opposite on the second level");
        assert_eq!(total(&[p, q, p, q]), total(&[p, p, q, q]), "equal on the second level");
        assert_eq!(total(&[p, q, q, p]), total(&[p, p, q, q]));
        assert_eq!(total(&[p, p, r, p.negate()]), total(&[p, r]));
        assert_eq!(total(&[p, p, p, p, p.negate(), p.negate(), p.negate()]), Some(p));
        assert_eq!(total(&[p, q, r, p.negate(), q.negate(), r.negate()]), None);
    }
}

/// The kernel's points other than infinity are rational, so an answer could hit one: with the chance of guessing a key.
#[test]
fn the_kernel_of_the_isogeny_goes_to_infinity() {
    let coordinate = |hex: &str| Fp::from_bytes(&bytes(hex)).unwrap();
    let kernel = Affine {
        x: coordinate(
            "0d7f2d0d03ae035321eed4c1479d13251abf0e9a96479623eb5380b575e319851fb5e5a8b43b9c1a46880f54bf2b2f7c",
        ),
        y: coordinate(
            "059e4a8d101f0c51d351b3877c5197f07d08511978f9492dacd907f783f756008f967f1556f49e19032b4ecc3f415b40",
        ),
    };
    assert!(is_on_isogenous_curve(&kernel));
    assert_eq!(sum(&mut vec![kernel; 11], &mapping::A), None, "of order eleven");
    let point = map_all(&[number(1)])[0];
    let shifted = sum(&mut vec![point, kernel], &mapping::A);
    assert_eq!(to_group(shifted).to_affine(), to_group(Some(point)).to_affine());
    for times in 1..11 {
        let multiple = sum(&mut vec![kernel; times], &mapping::A);
        assert!(multiple.is_some() && to_group(multiple).is_infinity());
        assert_eq!(to_curve([multiple, Some(point), Some(point.negate())].into_iter()), None);
    }
}

#[test]
fn infinity_stays_infinity() {
    assert!(to_group(None).is_infinity());
    assert!(Jacobian::INFINITY.double().is_infinity());
    assert!(clear_cofactor(&Jacobian::INFINITY).is_infinity());
    assert_eq!(Jacobian::INFINITY.to_affine(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn numbers_are_those_of_arkworks(a in any::<u64>(), b in any::<u64>()) {
        let (x, y) = (number(a), number(b));
        prop_assert_eq!(ark(&x.add(&y)), ark(&x) + ark(&y));
        prop_assert_eq!(ark(&x.subtract(&y)), ark(&x) - ark(&y));
        prop_assert_eq!(ark(&x.multiply(&y)), ark(&x) * ark(&y));
        prop_assert_eq!(ark(&x.square()), ark(&x).square());
        prop_assert_eq!(ark(&x.double()), ark(&x).double());
        prop_assert_eq!(ark(&x.negate()), -ark(&x));
        prop_assert_eq!(x.is_odd(), ark(&x).into_bigint().is_odd());
        prop_assert_eq!(from_ark(ark(&x)), x);
        prop_assert_eq!(Fp::from_bytes(&x.to_bytes()), Some(x));
        prop_assert_eq!(ark(&x.invert()), ark(&x).inverse().unwrap_or(Fq::from(0u64)));
        prop_assert_eq!(root(&x).is_some(), ark(&x).sqrt().is_some());
    }

    #[test]
    fn wide_numbers_are_those_of_arkworks(bytes in prop::collection::vec(any::<u8>(), 64), ones in any::<bool>()) {
        let bytes: [u8; 64] = if ones { [0xff; 64] } else { bytes.try_into().unwrap() };
        prop_assert_eq!(ark(&Fp::from_wide_bytes(&bytes)), Fq::from_be_bytes_mod_order(&bytes));
    }

    #[test]
    fn batches_are_inverted_one_by_one(seeds in prop::collection::vec(any::<u64>(), 0..20)) {
        let mut numbers: Vec<Fp> = seeds.into_iter().map(number).filter(|x| !x.is_zero()).collect();
        let each: Vec<Fp> = numbers.iter().map(Fp::invert).collect();
        invert_all(&mut numbers, &mut Vec::new());
        prop_assert_eq!(numbers, each);
    }

    #[test]
    fn messages_are_expanded_as_the_rfc_says(message in any::<[u8; 32]>()) {
        prop_assert_eq!(Expander::new().field_elements(&message), hash_to_field(&message, DOMAIN));
    }

    #[test]
    fn the_map_is_that_of_arkworks(seed in any::<u64>()) {
        let u = number(seed);
        let ours = map_all(&[u])[0];
        prop_assert!(is_on_isogenous_curve(&ours));
        let theirs = WBMap::<g1::Config>::map_to_curve(ark(&u)).unwrap();
        prop_assert_eq!(ark_point(isogeny(&ours).to_affine()), theirs);
    }

    #[test]
    fn points_of_the_curve_add_as_those_of_arkworks(seeds in prop::collection::vec(0..12u64, 0..24), flip in any::<u32>()) {
        let [_, (points, a)] = on_both(&seeds);
        let points: Vec<Affine> = (points.iter().enumerate())
            .map(|(i, point)| if flip >> i & 1 == 1 { point.negate() } else { *point })
            .collect();
        let identity = G1Projective::from(G1Affine::identity());
        let theirs = points.iter().fold(identity, |sum, point| sum + ark_point(Some(*point))).into_affine();
        prop_assert_eq!(ark_point(sum(&mut points.clone(), &a)), theirs);
        let one_by_one = points.iter().fold(Jacobian::INFINITY, |sum, point| sum.add_affine(point));
        prop_assert_eq!(ark_point(one_by_one.to_affine()), theirs);
        let half = points.len() / 2;
        let [left, right] = [&points[..half], &points[half..]]
            .map(|part| part.iter().fold(Jacobian::INFINITY, |sum, point| sum.add_affine(point)));
        prop_assert_eq!(ark_point(left.add(&right).to_affine()), theirs);
        prop_assert_eq!(left.add(&right).add(&one_by_one.negate()).to_affine(), None);
    }

    #[test]
    fn no_hint_but_the_right_one_is_accepted(seed in any::<u64>(), bytes in any::<[[u8; 24]; 2]>()) {
        let u = Expander::new().field_elements(&message(seed))[0];
        let mut hint: [u8; 48] = bytes.concat().try_into().unwrap();
        hint[0] &= 0x1f;
        prop_assert!(map_hinted(&[u], [hint].iter()).is_err());
    }
}
