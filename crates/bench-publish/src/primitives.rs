//! Table 3: what the primitives take, beside the paper's columns.

use std::hint::black_box;
use std::time::Instant;

use counterfoil_proof::{Hint, Message, SecretKey, Signature, SignatureSum, verify};
use sha2::{Digest, Sha256};

use crate::Failure;
use crate::scheme::condensed::rsa;

const SIGNATURES: u64 = 1000;
/// Signatures that are timed, under either scheme.
const SIGNED: usize = 300;

/// The least time of `work` over some rounds, in milliseconds: what else the machine does only makes it more.
pub fn time<T>(rounds: usize, mut work: impl FnMut() -> T) -> f64 {
    black_box(work());
    let times = (0..rounds).map(|_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed().as_secs_f64() * 1e3
    });
    times.fold(f64::INFINITY, f64::min)
}

pub fn print() -> Result<(), Failure> {
    let key = SecretKey::from_entropy(&[9; 32])?;
    let mut messages: Vec<Message> =
        (0..SIGNATURES).map(|number| Message(Sha256::digest(number.to_le_bytes()).into())).collect();
    messages.sort_unstable();
    let (signatures, hints): (Vec<Signature>, Vec<Hint>) = key.sign_all(&messages).into_iter().unzip();
    let sum = SignatureSum::sum_of(&signatures).finish().ok_or("the sum is at infinity")?;
    let public = key.public();
    println!("\n{:<34} {:>12} {:>12}", "milliseconds", "paper (BAS)", "BAS");
    let line = |what: &str, paper: &str, found: f64| println!("{what:<34} {paper:>12} {found:>12.4}");
    line("sign", "1.5", time(SIGNED, || key.sign(&messages[0])));
    line("verify one, no hint", "40.22", time(50, || verify(&public, &messages[..1], None, &signatures[0])));
    line("verify one, hint", "40.22", time(50, || verify(&public, &messages[..1], Some(&hints[..1]), &signatures[0])));
    line("add up 1000", "9.06", time(50, || SignatureSum::sum_of(&signatures).finish()));
    line("verify 1000, no hints", "331.349", time(9, || verify(&public, &messages, None, &sum)));
    line("verify 1000, hints", "331.349", time(21, || verify(&public, &messages, Some(&hints), &sum)));
    verify(&public, &messages, Some(&hints), &sum)?;
    condensed(&messages)?;
    for (bytes, paper) in [(256, "0.00135"), (512, "0.00228"), (1024, "0.0042")] {
        let message = vec![1u8; bytes];
        let thousand = time(9, || (0..1000).for_each(|_| _ = black_box(Sha256::digest(black_box(&message)))));
        println!("{:<34} {paper:>12} {:>12.5}", format!("hash {bytes} bytes (SHA; SHA-256)"), thousand / 1000.0);
    }
    Ok(())
}

/// RSA, whose paper's column is of 1024 bits.
fn condensed(messages: &[Message]) -> Result<(), Failure> {
    let key = rsa::SecretKey::of_tables().ok_or("these are no primes")?;
    let line = |what: &str, paper: &str, found: f64| println!("{what:<34} {paper:>12} {found:>12.4}");
    println!("{:<34} {:>12} {:>12}", "", "RSA-1024", "RSA-3072");
    let signatures: Vec<rsa::Condensed> = messages.iter().map(|message| key.sign(message)).collect();
    let public = key.public();
    let product = public.condense(signatures.iter()).ok_or("nothing")?;
    line("sign", "6.06", time(SIGNED, || key.sign(&messages[0])));
    line("verify one", "0.087", time(20, || public.verify(&messages[..1], &signatures[0])));
    line("multiply 1000", "0.078", time(9, || public.condense(signatures.iter())));
    line("verify 1000", "0.094", time(9, || public.verify(messages, &product)));
    if public.verify(messages, &product) { Ok(()) } else { Err("a product is refused".into()) }
}
