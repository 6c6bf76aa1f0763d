//! Answers that were kept by earlier versions, in `tests/kept`: they are read and checked for ever. `examples/keep_answers.rs` made them.

use std::path::Path;

use counterfoil_ask::Table;
use counterfoil_proof::{Owner, Type, Value};
use counterfoil_reader::{Error, Kept, KeptJoin, Verdict};

const OWNER: &str = "foilpub1dn50q5e7l9dn8mfahyjgrdyzg8yc0gpuxu8crp60ywlfw2gh6p4q32u5yw";
const MIDNIGHT: u64 = 1_767_225_600_000;
const HOUR: u64 = 3_600_000;

/// File, what was asked, and what was answered: a line a row.
const KEPT: [(&str, &str, &str); 4] = [
    (
        "rows",
        "SELECT day, price FROM prices WHERE symbol IN ('S1', 'S4', 'T') ORDER BY symbol, day",
        "2026-01-01 NULL\n2026-01-02 999.99\n2026-01-03 11.85\n2026-01-01 14.44\n2026-01-02 14.81\n2026-01-03 15.18",
    ),
    (
        "last",
        "SELECT * FROM prices ORDER BY price DESC LIMIT 3 OFFSET 1",
        "S5 2026-01-03 NULL 289\nS3 2026-01-02 NULL 100\nS1 2026-01-01 NULL 9",
    ),
    ("totals", "SELECT count(*), sum(price), max(pieces) FROM prices WHERE symbol < 'S8'", "24 1289.53 529"),
    (
        "join",
        "SELECT a.day, b.pieces FROM prices a LEFT JOIN prices b ON a.symbol = b.symbol WHERE a.symbol = 'S2' AND a.day = '2026-01-01'",
        "2026-01-01 36\n2026-01-01 49\n2026-01-01 64",
    ),
];

fn bytes(scheme: &str, kind: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/kept/{scheme}-{kind}.answer"));
    std::fs::read(path).expect("a kept answer")
}

/// What a file says, and whether its layout is that of today.
fn checked(bytes: &[u8], owner: &Owner) -> Result<(String, Table, Verdict), Error> {
    if KeptJoin::are(bytes) {
        let kept = KeptJoin::from_bytes(bytes)?;
        assert!(kept.to_bytes() == bytes);
        let (table, verdict) = kept.check(owner, 10_000)?;
        return Ok((kept.sql().into(), table, verdict));
    }
    let kept = Kept::from_bytes(bytes)?;
    assert!(kept.to_bytes() == bytes);
    let (table, verdict) = kept.check(owner, 10_000)?;
    Ok((kept.sql().into(), table, verdict))
}

fn text(table: &Table) -> String {
    let cell = |kind: &Type, value: &Value| counterfoil_ask::text(*kind, value).unwrap_or_else(|| "NULL".into());
    let line = |row: &Vec<Value>| -> String {
        let cells = table.kinds.iter().zip(row).map(|(kind, value)| cell(kind, value));
        cells.collect::<Vec<_>>().join(" ")
    };
    table.rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_was_kept_is_read_and_checked_for_ever() {
    let owner: Owner = OWNER.parse().expect("an owner");
    for scheme in ["record", "attribute", "group"] {
        for (kind, sql, rows) in KEPT {
            let bytes = bytes(scheme, kind);
            let (asked, table, verdict) =
                checked(&bytes, &owner).unwrap_or_else(|error| panic!("{scheme}, {kind}: {error}"));
            assert_eq!((&asked[..], &text(&table)[..]), (sql, rows), "{scheme}");
            assert_eq!((verdict.as_of, verdict.age), (MIDNIGHT + 3 * HOUR, HOUR + 10_000), "{scheme}, {kind}");
            // It is of this owner and nobody else's.
            let refused = checked(&bytes, &Owner::from_bytes([1; 32])).map(drop).expect_err("another owner");
            assert_eq!(refused.word(), Some("forged"), "{scheme}, {kind}");
        }
    }
}
