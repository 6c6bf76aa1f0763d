//! What we go for, each beside the paper's number and ours.

use counterfoil_proof::{Hint, Message, SecretKey, Signature, SignatureSum, SparseSet, verify};
use sha2::{Digest, Sha256};

use crate::Failure;
use crate::join::{Columns, Filters, ROW, VALUE};
use crate::load::Load;
use crate::primitives::time;
use crate::random::Random;
use crate::response::{UPDATES, saturation};
use crate::scheme::Scheme;
use crate::summaries::{RECORDS, drawn, elias_fano};
use crate::table4::{All, keys};

fn line(what: &str, paper: &str, goal: &str, ours: String) {
    println!("{what:<58} {paper:>12} {goal:>20} {ours:>16}");
}

pub fn print(all: &All, records: u32) -> Result<(), Failure> {
    println!();
    line("", "paper", "goal", "here".into());
    signatures()?;
    let mut random = Random(37);
    let wanted = keys(&mut random, records, records.min(1000));
    all.bas.sum(&wanted)?;
    let sum = time(200, || all.bas.sum(&wanted).is_ok());
    line("add up 1000 signatures, sums of the server's shelf, ms", "9.06", "0.05", format!("{sum:.4}"));
    line(
        "proof of any selection, bytes of the signature",
        "20",
        "48",
        all.bas.answer(wanted)?.len().min(48).to_string(),
    );
    jobs(all, records)?;
    for count in [5, 1000, 10_000] {
        let (set, bound) = (SparseSet::encode(&drawn(&mut random, count)).len(), elias_fano(count));
        line(
            &format!("set of {count} changes among {RECORDS}, bytes"),
            "375",
            &format!("{bound} + 64"),
            set.to_string(),
        );
    }
    let columns = Columns::new(6850, 3425);
    let open = columns.unmatched(1370, 0.5);
    let rows = columns.boundary_bytes(open) / VALUE * ROW;
    for partition in [4, 64] {
        let smaller =
            100.0 * (1.0 - Filters::new(&columns, partition, 8).prove(open).signed_bytes() as f64 / rows as f64);
        let what = format!("join, alpha 0.5, {partition} values a partition, smaller by %");
        line(&what, "60", "60", format!("{smaller:.1}"));
    }
    Ok(())
}

fn signatures() -> Result<(), Failure> {
    let key = SecretKey::from_entropy(&[9; 32])?;
    let mut messages: Vec<Message> =
        (0..1000u64).map(|number| Message(Sha256::digest(number.to_le_bytes()).into())).collect();
    messages.sort_unstable();
    let (signatures, hints): (Vec<Signature>, Vec<Hint>) = key.sign_all(&messages).into_iter().unzip();
    let (public, sum) = (key.public(), SignatureSum::sum_of(&signatures).finish().ok_or("a sum at infinity")?);
    let of = |count: usize, signature: &Signature| {
        time(100, || verify(&public, &messages[..count], Some(&hints[..count]), signature).is_ok())
    };
    line("sign a record, ms", "1.5", "0.12-0.17", format!("{:.4}", time(100, || key.sign(&messages[0]))));
    line(
        "add up 1000 signatures one after the other, ms",
        "9.06",
        "0.05",
        format!("{:.4}", time(100, || SignatureSum::sum_of(&signatures).finish())),
    );
    line("verify 1000 signatures with hints, ms", "331", "3", format!("{:.4}", of(1000, &sum)));
    line("verify one signature, ms", "40", "0.7", format!("{:.4}", of(1, &signatures[0])));
    Ok(())
}

fn jobs(all: &All, records: u32) -> Result<(), Failure> {
    let load = Load { records, wanted: 500..=1500, updates: UPDATES };
    for (how, is_durable) in [("durable", true), ("in memory", false)] {
        for journal in [all.embedded.journal(), all.bas.journal()] {
            journal.switch(is_durable);
        }
        let (embedded, bas) = (saturation(&all.embedded, &load)?, saturation(&all.bas, &load)?);
        line(&format!("ranges with 10 % updates {how}, jobs a second"), "45", "2000", format!("{bas:.0}"));
        line("    times those of the EMB- tree", "4.5", "5", format!("{:.1}", bas / embedded));
    }
    Ok(())
}
