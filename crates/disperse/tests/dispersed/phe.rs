//! Ciphertexts that we and python-paillier (`phe`, another program under another licence, never a part of this one) read of each other.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use counterfoil_disperse::Secret;
use counterfoil_disperse::coding::paillier::{Adding, Ciphertext, Encryptor, Exponents, PrivateKey};

const NUMBERS: [i128; 5] = [0, 1, -1, 500_000_500_000, -(1 << 100)];

/// A Python that has it, in an environment of its own beside what was built; none: there is none, and no way to one.
fn python() -> Option<PathBuf> {
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("phe-venv");
    let python = venv.join("bin/python");
    let succeeds = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let has_it = || succeeds(Command::new(&python).args(["-c", "import phe; assert phe.__version__ == '1.5.0'"]));
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "phe==1.5.0"];
    let is_there = has_it()
        || succeeds(Command::new("python3").args(["-m", "venv"]).arg(&venv))
            && succeeds(Command::new(&python).args(install))
            && has_it();
    is_there.then_some(python)
}

/// What the script answers to lines, given numbers.
fn answered(python: &Path, told: &str, numbers: &[i128]) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dispersed/ask_phe.py");
    let mut child = Command::new(python)
        .arg(script)
        .args(numbers.iter().map(i128::to_string))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    child.stdin.take().expect("its input").write_all(told.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "the script failed");
    String::from_utf8(output.stdout).expect("a text").lines().map(str::to_owned).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn unhex(hex: &str) -> Vec<u8> {
    let even = format!("{}{hex}", if hex.len() % 2 == 1 { "0" } else { "" });
    (0..even.len() / 2).map(|at| u8::from_str_radix(&even[2 * at..2 * at + 2], 16).expect("hexadecimal")).collect()
}

#[test]
fn python_paillier_reads_ours_and_we_its() {
    let Some(python) = python() else {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "no Python with phe 1.5.0 (python3 -m venv, pip)");
        println!("no Python with phe 1.5.0 (python3 -m venv, pip): nothing was compared");
        return;
    };
    let key = Arc::new(PrivateKey::generate(&Secret::new([81; 32]), 2048).expect("a key"));
    let (public, primes) = (key.public(), key.to_bytes());
    let mut told = format!("{}\n{}\n", hex(&primes[..128]), hex(&primes[128..]));
    let mut ours = Vec::new();
    for exponents in [Exponents::Full, Exponents::Short] {
        let encryptor = Encryptor::new(key.clone(), &Secret::new([82; 32]), exponents).expect("exponents");
        ours.extend((0..).zip(NUMBERS).map(|(row, number)| encryptor.encrypt(row, number).expect("a number")));
    }
    let mut adding = Adding::new(public);
    ours.iter().for_each(|one| adding.add(one).expect("a ciphertext"));
    let sum = adding.finish();
    for one in [&sum].into_iter().chain(&ours) {
        told += &format!("{}\n", hex(&one.to_number(public)));
    }
    let answers = answered(&python, &told, &NUMBERS);
    let total = 2 * NUMBERS.iter().sum::<i128>();
    let (read, theirs) = answers.split_at(1 + ours.len());
    let numbers: Vec<String> = [total].iter().chain(&NUMBERS).chain(&NUMBERS).map(i128::to_string).collect();
    assert_eq!(read, numbers);
    let theirs = theirs.iter().map(|hex| Ciphertext::from_number(public, &unhex(hex)).expect("a ciphertext"));
    let opened: Vec<i128> = theirs.map(|one| key.open(&one, 1).expect("a number")).collect();
    let added = NUMBERS.iter().map(|number| number + total);
    assert_eq!(opened, NUMBERS.iter().copied().chain(added).collect::<Vec<_>>());
}
