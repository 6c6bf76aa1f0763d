//! The bytes of SPEC.md, "disperse: codings that no placement takes yet".

use std::sync::Arc;

use counterfoil_disperse::coding::paillier::{Adding, Ciphertext, Encryptor, Exponents, PrivateKey, Slots};
use counterfoil_disperse::{Epoch, Purpose, Scope, Secret};
use sha2::{Digest as _, Sha256};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The secret of all vectors: the bytes 0 to 31.
fn secret() -> Secret {
    Secret::new(std::array::from_fn(|at| at as u8))
}

/// Holds what was made to what SPEC.md says.
fn says(told: &[String]) {
    let spec = include_str!("../../../../SPEC.md");
    for told in told {
        assert!(spec.contains(&format!("`{told}`")), "SPEC.md does not say `{told}`");
    }
}

fn hash(ciphertext: &Ciphertext) -> String {
    let mut bytes = Vec::new();
    ciphertext.write(&mut bytes);
    hex(&Sha256::digest(&bytes))
}

#[test]
fn paillier_is_as_specified() {
    let key = PrivateKey::generate(&secret().derive(Purpose::Primes, &Scope::table()), 3072).expect("a key");
    let public = hex(&Sha256::digest(key.public().to_bytes()));
    let scope = Scope { part: 16, epoch: Epoch([0x11; 16]), ..Scope::column(2) };
    let (key, exponents) = (Arc::new(key), secret().derive(Purpose::Exponents, &scope));
    let encryptor = |kind| Encryptor::new(key.clone(), &exponents, kind).expect("exponents");
    let (full, short) = (encryptor(Exponents::Full), encryptor(Exponents::Short));
    let slots = Slots::new(34, 1 << 20, 3072).expect("slots");
    let packed = |row| full.encrypt_packed(row, &slots, &[1, -2, 500_000]).expect("values");
    let mut adding = Adding::new(key.public());
    [7, 8].iter().for_each(|row| adding.add(&packed(*row)).expect("a ciphertext"));
    let numbers = [&full, &short].map(|encryptor| hash(&encryptor.encrypt(7, -5).expect("a number")));
    says(&[public, numbers[0].clone(), numbers[1].clone(), hash(&packed(7)), hash(&adding.finish())]);
}
