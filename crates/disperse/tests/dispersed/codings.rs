//! The bytes of SPEC.md, "disperse: further codings".

use std::sync::Arc;

use counterfoil_disperse::coding::bits::{Cut, parity};
use counterfoil_disperse::coding::boldyreva::DangerOrders;
use counterfoil_disperse::coding::cells::Cells;
use counterfoil_disperse::coding::convergent::DangerConvergent;
use counterfoil_disperse::coding::erasure::Pieces;
use counterfoil_disperse::coding::pads::{Pads, add};
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

#[test]
fn pads_are_as_specified() {
    let scope = Scope { part: 16, epoch: Epoch([0x11; 16]), ..Scope::column(2) };
    let key = secret().derive(Purpose::Pads, &scope);
    let (pads, wide) = (Pads::<u64>::new(&key, 34, 1 << 20), Pads::<u128>::new(&key, 100, 1 << 20));
    let (mut codes, mut wide_codes) = (Vec::new(), Vec::new());
    pads.expect("room").seal(7, &[-5, 500], &mut codes).expect("values");
    wide.expect("room").seal(7, &[-5], &mut wide_codes).expect("a value");
    says(&[format!("{:016x}", codes[0]), format!("{:032x}", wide_codes[0]), format!("{:016x}", add(&codes))]);
}

#[test]
fn pieces_and_parity_are_as_specified() {
    let key = secret().derive(Purpose::Seal, &Scope { epoch: Epoch([0x11; 16]), ..Scope::column(1) });
    let mut cell = Vec::new();
    Cells::new(&key, &[0x22; 16], 1).seal(7, Some(b"Ada"), &mut cell);
    let pieces = Pieces::new(3, 2).expect("pieces").cut(&cell).expect("a cell");
    says(&pieces.iter().map(|piece| hex(piece)).collect::<Vec<_>>());
    let fragments = Cut::new(16, 2).expect("a cut").cut(269).expect("a number");
    let fragments = fragments.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    says(&[fragments, hex(&parity(&[&[0xAB, 0xCD], &[0x01, 0x10]]).expect("codes of one length"))]);
}

#[test]
fn what_is_called_danger_is_as_specified() {
    let orders = DangerOrders::new(&secret().derive(Purpose::Preserving, &Scope::column(2)));
    let mut cell = Vec::new();
    DangerConvergent::new(secret().derive(Purpose::Convergence, &Scope::table())).seal(b"Ada", &mut cell);
    says(&[hex(&orders.code(500)), hex(&orders.code((1 << 63) + 500)), hex(&cell)]);
}
