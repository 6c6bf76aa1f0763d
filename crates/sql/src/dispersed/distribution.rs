//! What WITH says behind USE CLOUDS, in the words of the paper (section II.A).
//!
//! | word | what it says |
//! |---|---|
//! | `encryption` | cells are sealed, as they are anyway: without it nothing is taken |
//! | `replication` | each cell lies whole at every cloud that was named |
//! | `dispersion` | each of them has a piece, and all but `may_fail` give a cell back |
//!
//! With neither of the last two a cell lies at `may_fail + 1` of the clouds.

use counterfoil_disperse::Distribution;

use crate::error::{Error, Result};

/// How the cells of a table or a column are distributed; `of`: which, for people.
pub(super) fn distribution(of: &str, words: &str) -> Result<Distribution> {
    let mut said = None;
    let mut is_sealed = false;
    for word in super::define::names(words) {
        let distribution = match word.as_str() {
            "encryption" => {
                is_sealed = true;
                continue;
            }
            "replication" => Distribution::Replicated,
            "dispersion" => Distribution::Dispersed,
            other => return Err(unknown(of, other)),
        };
        if said.replace(distribution).is_some() {
            return Err(Error::Sql(format!("{of} WITH '{words}': 'replication' or 'dispersion', and one of them")));
        }
    }
    match is_sealed {
        true => Ok(said.unwrap_or_default()),
        false => Err(Error::Sql(format!(
            "{of} WITH '{words}': nothing lies at clouds that is not sealed; say 'encryption', too"
        ))),
    }
}

fn unknown(of: &str, word: &str) -> Error {
    let why = match word {
        "plain" => "clouds would read it: a table that all may read is published, and not dispersed",
        "ordering" => "rows keep their order without it",
        "redundancy" => "may_fail says how many clouds may be missing",
        "compression" => "how well a value can be compressed is seen in what lies at clouds",
        "homomorphic" | "homomorphic encryption" => "FOR (sum) has columns added up at clouds",
        "searchable" | "searchable encryption" => "FOR (equality) and FOR (prefix) have texts found at clouds",
        _ => "'encryption', with 'replication' or 'dispersion'",
    };
    Error::NotSupported(format!("{of} WITH '{word}': {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_paper_are_read() {
        for (words, expected) in [
            ("encryption, dispersion", Distribution::Dispersed),
            ("Replication,encryption", Distribution::Replicated),
            ("encryption", Distribution::Spare),
        ] {
            assert_eq!(distribution("column c", words), Ok(expected), "{words}");
        }
        for (words, part) in [
            ("dispersion", "say 'encryption'"),
            ("", "say 'encryption'"),
            ("encryption, dispersion, replication", "one of them"),
            ("plain, dispersion", "published"),
            ("encryption, compression", "how well"),
            ("encryption, caesar", "'encryption', with"),
        ] {
            let told = distribution("column c", words).expect_err(words).to_string();
            assert!(told.contains("column c") && told.contains(part), "{words}: {told}");
        }
    }
}
