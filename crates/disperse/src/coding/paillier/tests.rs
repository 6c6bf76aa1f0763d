use std::sync::{Arc, LazyLock};

use crypto_bigint::{BoxedUint, NonZero};
use proptest::prelude::*;

use super::digits::{Modulus, Work, boxed, from_bytes, multiply_add};
use super::{ADDITIONS_MAX, Adding, Ciphertext, Encryptor, Exponents, PrivateKey, PublicKey, Slots, Unusable};
use crate::keys::Secret;

/// A key of the smallest size, made once.
static KEY: LazyLock<Arc<PrivateKey>> =
    LazyLock::new(|| Arc::new(PrivateKey::generate(&Secret::new([21; 32]), 2048).expect("a key")));
static FULL: LazyLock<Encryptor> =
    LazyLock::new(|| Encryptor::new(KEY.clone(), &Secret::new([22; 32]), Exponents::Full).expect("exponents"));
static SHORT: LazyLock<Encryptor> =
    LazyLock::new(|| Encryptor::new(KEY.clone(), &Secret::new([22; 32]), Exponents::Short).expect("exponents"));

/// A key and two ciphertexts, of 500000500000 and of -2^62, that python-paillier 1.5.0 made: `generate_paillier_keypair(n_length=2048)`,
/// p and q; `public.encrypt(number).ciphertext()`. Its primes are any.
const OF_PHE: [&str; 3] = [
    "cea1258e5e863b59967831a12307f9d88f4477b20eed38b4893d2920f8d4d86da79525270b83bff14da469c1afd83324593aa43c6106c214167dfd97\
     c81c33881b31a7a8109eb87870e4f5a6070255f9524ebd861ec38b7d21f2dcfb3e9e19e3c9986ea80c965291615e56f497ddddc2f1a708880a3d1c7b\
     85e6af3f964e7fa1de1e00fef3bbb36ae9d6015d1966b8353944d9a0b0e945870f3ee4eca2d766959bc676d8ba5f8a66ac62d031cc3a54cdb9f199a2\
     2fc38e952d5170a50011740d17350e651a76108ddcd33bc2386a6fc47d66f364155e5cd1da4f13991b79407dc5e7bd38422700c799121d54cffbc72a\
     467a241f2ca67cd49709bdcd09e52b03",
    "4f67f4d396dbe07e2ce719fdc8a16ebbe39b3cd2d4f261eea8fb068f8107c42defe99873f904688f6c426afd75b7f54a33ec5492892efb54cf14b49b\
     8b42f4c89760e3c6ab969528086891f76b104b5c095471be158c85300586cf2d676cec5a4fa6b8b3e9283859d0eecf14cb98bc103d663ac62c40d050\
     02ed8eb08eec0ac96650b161e0ca2025162149e127026119e2b36cf455306495312054ba62bf57c30de489e4a84653631d2675adc4ebdcfb6b3383ce\
     7465dbe8711e6b82b783d3036bb13bb3f6058a8128b4d3c2b9b31f64195ee6a1bfcde5e1e806bc0edd1115114cf1d569bbaea6c23628a3614f47c297\
     aca58211b44af6a22bc46e1b3e454f30a28179a7aa40625a978bd96d542bce42fb0fe5baebc383d57538d62e59a55e39eddecc8904efb58674d9f1c5\
     8eed8be80e7ade1c45673f6edafadedb707f5be1590abe239810a1270e38bf28120676e3faca71d2b228aaa13e3184d1f3998bc73f37b764dd9bd8d8\
     6fb9f07d09e5af1eae3b72170823f8a339cc7cfe431548987fab066892708ed68e2c3923e44f8bd019eafe0ef66d2347aa6ab75a1034b5b8b2eb8e1f\
     314fa215670e142c20bdea55ff43d4be2a80addf3321818873e92b16fa317e3e216edb8014b7c6abd71cd4559af5ac422e7857418a58b27cb2ca8ebc\
     3df9baf24d99a81de4faaef688910cef5d66b7c68050284155431a826f84a65e",
    "4fbcdf62ec352f05e3e23cc54f206aa515c96a082184034b3f4b5fc8685d51d342cf2f2f4b1d025717f0c11dc3130cb8690faf3ee97d4fad884cc3ca\
     4f2eb6241bb635fffc6a8473bd4e0e1e48df2d16b29f571756bf339f7e3a4b21b1fd89420a4d19c76dfb22a172a4e29ca7f5dc667bdc8c02d7d05de5\
     0b2d32c1261496598bd0f441418183093e01db315dbf3098aa12d0833ded2027948f8f46c5f53fe901cecc31fa27c0bf8957087adc37a1ac1f327770\
     c1e8fda58a17ba32fd92513b59e6484966d29cab2577b8b1d762c4992e11f4ac08b2d5e3371cf68629955a556c32ee38c19f1b6559ce111ae49445f6\
     7cecafd0f75fcf1f28a607d6a35bba3aab79ff5275b5c88ae383d8ddd8689d0d10e1b6f4771f252d1df18814c906061bc165b526d6cbd418bacd0364\
     1fe0b8ac59da9b4269b019f65624cc48a00320f9be71027a159c3148085ff3a3147a41e5ba5734fb01416c2149a7035c2cbf62e3a3b75ec1cd1c1784\
     e44462e233f533cc767fda4cc0d78b51fbe5ebf99c1cc4d57fa92c27beca8ca5ac9494b48c1cf8ac98a9be4598b2395b1041bc5f5b866e39eb1d3ad3\
     088d9aa55030c2dfa3b9c8d756b31a4ea1b092e44f01691b706e8b7ce1c0d1e3a9b5e0504381e9b2cb05a462bdc1676f28bf59dadd113001cf6b0e0b\
     5ea58a674726c99c9bd9d8692fd740a8c01a9f89dd21dab176440e9ece5ce480",
];

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hexadecimal")).collect()
}

fn added<'c>(numbers: impl IntoIterator<Item = &'c Ciphertext>) -> Ciphertext {
    let mut adding = Adding::new(KEY.public());
    numbers.into_iter().for_each(|number| adding.add(number).expect("a ciphertext"));
    adding.finish()
}

fn written(ciphertext: &Ciphertext) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciphertext.write(&mut bytes);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn numbers_and_their_sums_come_back(
        numbers in prop::collection::vec(prop_oneof![any::<i64>().prop_map(i128::from), -(1_i128 << 120)..1 << 120, Just(0), Just(-1)], 1..6),
        row in any::<u64>(),
        is_short in any::<bool>(),
    ) {
        let encryptor: &Encryptor = if is_short { &SHORT } else { &FULL };
        let encrypted: Vec<Ciphertext> = (0..).zip(&numbers)
            .map(|(at, number)| encryptor.encrypt(row.wrapping_add(at), *number).expect("a number"))
            .collect();
        prop_assert_eq!(KEY.open(&encrypted[0], 1), Ok(numbers[0]));
        let sum = added(&encrypted);
        prop_assert_eq!(KEY.open(&sum, numbers.len() as u64), Ok(numbers.iter().sum::<i128>()));
        // In parts, and over the wire, it is the same number.
        let (left, right) = encrypted.split_at(numbers.len() / 2);
        let parts = [added(left), added(right)].map(|part| Ciphertext::read(KEY.public(), &written(&part)).expect("a ciphertext"));
        prop_assert_eq!(added(&parts), sum);
    }

    #[test]
    fn packed_values_add_up_slot_by_slot(
        rows in prop::collection::vec(prop::collection::vec(-(1_i128 << 40) + 1..1 << 40, 0..=30), 1..5),
    ) {
        let slots = Slots::new(40, 1 << 20, 2048).expect("slots");
        prop_assert_eq!(slots.count(), 2046 / 63);
        let encrypted: Vec<Ciphertext> =
            (0..).zip(&rows).map(|(row, values)| FULL.encrypt_packed(row, &slots, values).expect("values")).collect();
        let sums = KEY.open_packed(&slots, &added(&encrypted), rows.len() as u64).expect("sums");
        for (slot, sum) in sums.into_iter().enumerate() {
            prop_assert_eq!(sum, rows.iter().filter_map(|row| row.get(slot)).sum::<i128>());
        }
    }

    #[test]
    fn noise_is_no_ciphertext_and_opens_to_errors(noise in prop::collection::vec(any::<u8>(), 0..600), additions in 0_u64..4) {
        let _ = PublicKey::from_bytes(&noise);
        let _ = PrivateKey::from_bytes(&noise);
        prop_assert!(Ciphertext::read(KEY.public(), &noise).is_err());
        let mut whole = additions.to_be_bytes().to_vec();
        whole.extend(noise.iter().cycle().take(if noise.is_empty() { 0 } else { 512 }));
        if let Ok(ciphertext) = Ciphertext::read(KEY.public(), &whole) {
            prop_assert_eq!(written(&ciphertext), whole);
            // A number that is hardly ever one of so few small ones.
            prop_assert!(KEY.open(&ciphertext, additions).is_err());
            let slots = Slots::new(40, 1 << 20, 2048).expect("slots");
            prop_assert!(KEY.open_packed(&slots, &ciphertext, additions).is_err());
        }
    }

    #[test]
    fn digits_multiply_as_numbers_modulo_the_square(words in prop::collection::vec(prop_oneof![Just(0), Just(u64::MAX), any::<u64>()], 20), ) {
        let mut n = words[..4].to_vec();
        (n[0], n[3]) = (n[0] | 1, n[3] | 1 << 63);
        let modulus = Modulus::new(&n).expect("an odd number that fills its limbs");
        let square = Option::<NonZero<BoxedUint>>::from(NonZero::new(boxed(&multiply_add(&n, &n, &[])))).expect("a square");
        let number = |words: &[u64]| boxed(words).rem(&square);
        let (x, y) = (number(&words[4..12]), number(&words[12..]));
        let of = |number: &BoxedUint| modulus.split(number).expect("a number below the square");
        let mut work = Work::new(4);
        modulus.multiply(&of(&x), modulus.square(), &mut work);
        let x_multiplied = work.product.clone();
        modulus.multiply(&x_multiplied, &of(&y), &mut work);
        let product = boxed(&multiply_add(x.as_words(), y.as_words(), &[])).rem(&square);
        prop_assert_eq!(&*work.product, &*of(&product));
        prop_assert_eq!(&*modulus.remainder(x.as_words()), &of(&x)[..4]);
    }
}

#[test]
fn numbers_of_python_paillier_open_and_ours_are_of_its_kind() {
    let key = Arc::new(PrivateKey::from_bytes(&bytes(OF_PHE[0])).expect("its key"));
    let public = PublicKey::from_bytes(&key.public().to_bytes()).expect("its public key");
    let theirs = OF_PHE[1..].iter().map(|hex| Ciphertext::from_number(&public, &bytes(hex)).expect("its ciphertext"));
    let theirs: Vec<Ciphertext> = theirs.collect();
    assert_eq!(theirs.iter().map(|one| key.open(one, 1)).collect::<Vec<_>>(), [Ok(500_000_500_000), Ok(-(1 << 62))]);
    assert_eq!(theirs[0].to_number(&public), bytes(OF_PHE[1]));
    // Its primes leave other remainders than those that short exponents need.
    let refused = Encryptor::new(key.clone(), &Secret::new([1; 32]), Exponents::Short).err();
    assert_eq!(refused, Some(Unusable::ShortExponents));
    let own = Encryptor::new(key.clone(), &Secret::new([1; 32]), Exponents::Full).expect("exponents").encrypt(1, -7);
    let mut adding = Adding::new(&public);
    adding.add(&theirs[0]).expect("a ciphertext");
    adding.add(&own.expect("a number")).expect("a ciphertext");
    assert_eq!(key.open(&adding.finish(), 2), Ok(499_999_999_993 + 500_000));
}

#[test]
fn equal_numbers_differ_by_row_and_a_retry_does_not() {
    for encryptor in [&*FULL, &*SHORT] {
        let encrypt = |row| encryptor.encrypt(row, 5).expect("a number");
        assert_eq!(encrypt(1), encrypt(1));
        assert_ne!(encrypt(1).digits(), encrypt(2).digits());
        let other = Encryptor::new(KEY.clone(), &Secret::new([23; 32]), Exponents::Full).expect("exponents");
        assert_ne!(encrypt(1).digits(), other.encrypt(1, 5).expect("a number").digits());
    }
}

#[test]
fn keys_come_back_and_others_are_told() {
    let kept = PrivateKey::from_bytes(&KEY.to_bytes()).expect("the key");
    assert_eq!(kept.public().to_bytes(), KEY.public().to_bytes());
    assert_eq!(kept.open(&FULL.encrypt(1, -3).expect("a number"), 1), Ok(-3));
    let secret = Secret::new([1; 32]);
    for bits in [0, 1024, 1984, 2049, 4224, usize::MAX] {
        assert_eq!(PrivateKey::generate(&secret, bits).err(), Some(Unusable::KeyBits(bits)));
    }
    let mut wrong = KEY.to_bytes().to_vec();
    wrong[127] ^= 2;
    assert_eq!(PrivateKey::from_bytes(&wrong).err(), Some(Unusable::Key));
    let (p, _) = wrong.split_at(128);
    assert_eq!(PrivateKey::from_bytes(&[p, p].concat()).err(), Some(Unusable::Key));
    assert_eq!(PublicKey::from_bytes(&[0xFF; 256]).map(|key| key.bits()).ok(), Some(2048));
    let (even, short) = ([&[0xFF; 255][..], &[0xFE]].concat(), [&[0x7F][..], &[0xFF; 255]].concat());
    for bytes in [even, short] {
        assert_eq!(PublicKey::from_bytes(&bytes).err(), Some(Unusable::Key));
    }
    assert!(matches!(PublicKey::from_bytes(&[0xFF; 1 << 16]), Err(Unusable::KeyBits(_))));
}

#[test]
fn no_wrong_sum_is_told() {
    let (one, slots) = (FULL.encrypt(1, 5).expect("a number"), Slots::new(10, 4, 2048).expect("slots"));
    // Of other additions than were asked for, and than there is room for.
    let five = added(&vec![one.clone(); 5]);
    assert_eq!(KEY.open(&five, 4), Err(Unusable::OtherAdditions { asked: 4, found: 5 }));
    assert_eq!(KEY.open_packed(&slots, &five, 5), Err(Unusable::Additions { additions: 5, most: 4 }));
    // A sum that says that it is of fewer than it is.
    let packed = FULL.encrypt_packed(1, &slots, &[1023; 3]).expect("values");
    let mut lying = written(&added(&vec![packed; 4]));
    lying[7] = 2;
    let lying = Ciphertext::read(KEY.public(), &lying).expect("a ciphertext");
    assert_eq!(KEY.open_packed(&slots, &lying, 2), Err(Unusable::Sum));
    let great = FULL.encrypt(1, (1 << 126) - 1).expect("a number");
    assert_eq!(KEY.open(&added(&vec![great; 3]), 3), Err(Unusable::Sum));
    let mut lying = written(&one);
    lying[7] = 0;
    assert_eq!(KEY.open(&Ciphertext::read(KEY.public(), &lying).expect("a ciphertext"), 0), Err(Unusable::Sum));
    // Nothing at all is nought.
    assert_eq!(KEY.open(&Adding::new(KEY.public()).finish(), 0), Ok(0));
    // A number with a divisor in common with n, and one under another key.
    let p = from_bytes(&KEY.to_bytes()[..128]).expect("whole limbs");
    let divisor = Ciphertext::from_number(KEY.public(), &bytes_of(&p)).expect("below n");
    assert_eq!(KEY.open(&divisor, 1), Err(Unusable::NotEncrypted));
    let nought = Ciphertext::from_number(KEY.public(), &[]).expect("below n");
    assert_eq!(KEY.open(&nought, 1), Err(Unusable::NotEncrypted));
    let other = PublicKey::from_bytes(&[0xFF; 384]).expect("an odd number");
    let foreign = Ciphertext::from_number(&other, &[9]).expect("below n");
    assert_eq!(KEY.open(&foreign, 1), Err(Unusable::OtherKey));
    assert_eq!(Adding::new(KEY.public()).add(&foreign), Err(Unusable::OtherKey));
}

fn bytes_of(limbs: &[u64]) -> Vec<u8> {
    limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()).collect()
}

#[test]
fn what_does_not_fit_is_refused() {
    for number in [1 << 126, -(1 << 126), i128::MAX, i128::MIN] {
        assert_eq!(FULL.encrypt(1, number), Err(Unusable::Magnitude { bits: 126 }));
    }
    let slots = Slots::new(10, 4, 2048).expect("slots");
    assert_eq!(slots.count(), 2046 / 15);
    for value in [1024, -1024, i128::MAX, i128::MIN] {
        assert_eq!(FULL.encrypt_packed(1, &slots, &[value]), Err(Unusable::Magnitude { bits: 10 }));
    }
    let many = vec![0; 137];
    assert_eq!(FULL.encrypt_packed(1, &slots, &many), Err(Unusable::Slots { values: 137, slots: 136 }));
    assert_eq!(Slots::new(80, u64::MAX, 2048), None);
    assert_eq!(Slots::new(u32::MAX, 1, 2048), None);
    assert_eq!(Slots::new(10, 1, 1), None);
    let mut long = written(&FULL.encrypt(1, 5).expect("a number"));
    assert_eq!(Ciphertext::read(KEY.public(), &long[1..]), Err(Unusable::Ciphertext(519)));
    long[0] = 1;
    assert!(matches!(Ciphertext::read(KEY.public(), &long), Err(Unusable::Additions { most: ADDITIONS_MAX, .. })));
    let mut adding = Adding::new(KEY.public());
    let mut most = written(&FULL.encrypt(1, 5).expect("a number"));
    most[..8].copy_from_slice(&ADDITIONS_MAX.to_be_bytes());
    let most = Ciphertext::read(KEY.public(), &most).expect("a ciphertext");
    adding.add(&most).expect("room");
    assert_eq!(adding.add(&most), Err(Unusable::Additions { additions: 2 * ADDITIONS_MAX, most: ADDITIONS_MAX }));
    // n^2 itself is no number below it.
    let n = from_bytes(&KEY.public().to_bytes()).expect("whole limbs");
    assert!(Ciphertext::from_number(KEY.public(), &bytes_of(&multiply_add(&n, &n, &[]))).is_err());
}
