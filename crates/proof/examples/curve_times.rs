//! Times of signatures and of their checks, beside what blst itself offers.
//!
//! `cargo run --release -p counterfoil-proof --example curve_times` (all threads), and with `--no-default-features` (one).

use std::hint::black_box;
use std::time::Instant;

use blst::{BLST_ERROR, min_sig};
use counterfoil_proof::{Hint, Message, PublicKey, SecretKey, Signature, SignatureSum, verify};

const DOMAIN: &[u8] = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_";
const COUNT: usize = 1000;

/// Prints the least and the median time of `work`, in microseconds, over `count` things done.
fn report<T>(what: &str, rounds: usize, count: usize, mut work: impl FnMut() -> T) {
    black_box(work());
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            black_box(work());
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    let (least, median) = (times[0], times[rounds / 2]);
    println!("{what:44} {least:12.1} {median:12.1} {:12.3}", least / count as f64);
}

fn messages() -> Vec<Message> {
    let mut messages: Vec<Message> = (0..COUNT as u64)
        .map(|number| {
            let mut bytes = [0x5a; 32];
            bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e3779b97f4a7c15).to_be_bytes());
            Message(bytes)
        })
        .collect();
    messages.sort_unstable();
    messages
}

fn main() {
    let key = SecretKey::from_entropy(&[7; 32]).expect("enough entropy");
    let (public, messages) = (key.public(), messages());
    let signed = key.sign_all(&messages);
    let (signatures, hints): (Vec<Signature>, Vec<Hint>) = signed.into_iter().unzip();
    let sum = SignatureSum::sum_of(&signatures).finish().expect("not at infinity");

    let threads = if cfg!(feature = "threads") { "all threads" } else { "one thread" };
    println!("{threads}, microseconds{:>31} {:>12} {:>12}", "least", "median", "of one");
    report("sign 1", 50, 1, || key.sign(black_box(&messages[0])));
    report("hint of 1", 200, 1, || Hint::of(black_box(&messages[0])));
    report("sign 1000, with hints", 3, COUNT, || key.sign_all(&messages));
    check("verify 1", &public, &messages[..1], None, &signatures[0]);
    check("verify 1, hinted", &public, &messages[..1], Some(&hints[..1]), &signatures[0]);
    check("verify 1000", &public, &messages, None, &sum);
    check("verify 1000, hinted", &public, &messages, Some(&hints), &sum);
    report("sum of 1000 signatures", 100, COUNT, || SignatureSum::sum_of(black_box(&signatures)));
    report("sum of 1000 signatures, one by one", 50, COUNT, || {
        let mut sum = SignatureSum::new();
        signatures.iter().for_each(|signature| sum.add(signature));
        sum
    });
    let (packed, plain) = (signatures[0].to_bytes(), signatures[0].to_uncompressed());
    report("read a signature of 48 bytes", 200, 1, || Signature::from_bytes(black_box(&packed)));
    report("read a signature of 96 bytes", 200, 1, || Signature::from_bytes(black_box(&plain)));
    stock(&public, &messages, &signatures, &sum);
}

fn check(what: &str, key: &PublicKey, messages: &[Message], hints: Option<&[Hint]>, signature: &Signature) {
    report(what, 60, messages.len(), || verify(key, messages, hints, signature).expect("it verifies"));
}

/// What blst offers for the same questions, on all threads whatever the features.
fn stock(public: &PublicKey, messages: &[Message], signatures: &[Signature], sum: &Signature) {
    let key = min_sig::PublicKey::from_bytes(&public.to_bytes()).expect("a key");
    let sum = min_sig::Signature::from_bytes(&sum.to_bytes()).expect("a signature");
    let contents: Vec<&[u8]> = messages.iter().map(|message| &message.0[..]).collect();
    let keys = vec![&key; messages.len()];
    report("blst: aggregate_verify of 1000 (all threads)", 3, COUNT, || {
        assert_eq!(sum.aggregate_verify(true, &contents, DOMAIN, &keys, false), BLST_ERROR::BLST_SUCCESS);
    });
    let signatures: Vec<min_sig::Signature> = (signatures.iter())
        .map(|signature| min_sig::Signature::from_bytes(&signature.to_uncompressed()).expect("a signature"))
        .collect();
    let signatures: Vec<&min_sig::Signature> = signatures.iter().collect();
    report("blst: aggregate of 1000 signatures", 20, COUNT, || {
        min_sig::AggregateSignature::aggregate(&signatures, false)
    });
}
