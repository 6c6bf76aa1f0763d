//! Table 3: what the primitives take, beside the paper's column. Condensed RSA is not among them.

use std::hint::black_box;
use std::time::Instant;

use counterfoil_proof::{Hint, Message, SecretKey, Signature, SignatureSum, verify};
use sha2::{Digest, Sha256};

use crate::Failure;

const SIGNATURES: u64 = 1000;

/// The median time of `work` over some rounds, in milliseconds.
pub fn time<T>(rounds: usize, mut work: impl FnMut() -> T) -> f64 {
    black_box(work());
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            black_box(work());
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    times[rounds / 2]
}

pub fn print() -> Result<(), Failure> {
    let key = SecretKey::from_entropy(&[9; 32])?;
    let mut messages: Vec<Message> =
        (0..SIGNATURES).map(|number| Message(Sha256::digest(number.to_le_bytes()).into())).collect();
    messages.sort_unstable();
    let (signatures, hints): (Vec<Signature>, Vec<Hint>) = key.sign_all(&messages).into_iter().unzip();
    let sum = SignatureSum::sum_of(&signatures).finish().ok_or("the sum is at infinity")?;
    let public = key.public();
    println!("\n{:<34} {:>12} {:>12}", "milliseconds", "paper (BAS)", "here");
    let line = |what: &str, paper: &str, found: f64| println!("{what:<34} {paper:>12} {found:>12.4}");
    line("sign", "1.5", time(50, || key.sign(&messages[0])));
    line("verify one, no hint", "40.22", time(50, || verify(&public, &messages[..1], None, &signatures[0])));
    line("verify one, hint", "40.22", time(50, || verify(&public, &messages[..1], Some(&hints[..1]), &signatures[0])));
    line("add up 1000", "9.06", time(50, || SignatureSum::sum_of(&signatures).finish()));
    line("verify 1000, no hints", "331.349", time(9, || verify(&public, &messages, None, &sum)));
    line("verify 1000, hints", "331.349", time(21, || verify(&public, &messages, Some(&hints), &sum)));
    verify(&public, &messages, Some(&hints), &sum)?;
    for (bytes, paper) in [(256, "0.00135"), (512, "0.00228"), (1024, "0.0042")] {
        let message = vec![1u8; bytes];
        let thousand = time(9, || (0..1000).for_each(|_| _ = black_box(Sha256::digest(black_box(&message)))));
        println!("{:<34} {paper:>12} {:>12.5}", format!("hash {bytes} bytes (SHA; SHA-256)"), thousand / 1000.0);
    }
    Ok(())
}
