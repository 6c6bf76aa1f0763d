//! From SQL about two tables to rows and a verdict.

use counterfoil_ask::{AskedJoin, Table};
use counterfoil_mirror::site::Fetch;
use counterfoil_proof::{Chain, Refusal, TrustedManifest, Value, check, check_points};

use crate::error::Error;
use crate::kept_join::KeptJoin;
use crate::memory::Memory;
use crate::moving::{Moving, again};
use crate::reading::Opened;
use crate::terms::Terms;
use crate::verdict::Verdict;

/// Rows of a join that are the owner's, and what is known of them.
#[derive(Clone, Debug)]
pub struct JoinReading {
    /// The result.
    pub table: Table,
    /// How much there is to it: it is as old as the older of both tables.
    pub verdict: Verdict,
    /// What is known of each table.
    pub verdicts: [Verdict; 2],
    /// How it was answered, in words for people.
    pub plan: String,
    /// All that it takes to check it again.
    pub kept: KeptJoin,
}

/// Asks for a join of two tables of one owner, the first in FROM behind `first` and the other behind `second`: both may be
/// the place of the table itself, or one of many tables, of which each is below `OWNER/TABLE/`. Each is checked under its
/// own manifest and summaries; `memory` is what the reader has seen of each, as for [`crate::read`].
///
/// # Errors
/// Each [`Error`] but [`Error::NotKept`].
pub fn read_join(
    first: &mut dyn Fetch,
    second: &mut dyn Fetch,
    sql: &str,
    terms: &Terms,
    memory: [&mut Option<Memory>; 2],
) -> Result<JoinReading, Error> {
    let Some([first_name, second_name]) = AskedJoin::tables_of(sql)? else {
        return Err(counterfoil_ask::Error::NotSupported("one table where a join is asked".into()).into());
    };
    let (mut first, mut second) = (Moving::new(first), Moving::new(second));
    let names = [&first_name[..], &second_name];
    let [first_memory, second_memory] = memory;
    let mut tried = 0;
    loop {
        match read_once([&mut first, &mut second], names, sql, terms, [&mut *first_memory, &mut *second_memory]) {
            // Both begin anew: what one of them was asked came from the other one's rows.
            Err(error) if error.may_pass() && (first.has_moved()? | second.has_moved()?) => again(error, &mut tried)?,
            result => return result,
        }
    }
}

fn read_once(
    [first, second]: [&mut dyn Fetch; 2],
    [first_name, second_name]: [&str; 2],
    sql: &str,
    terms: &Terms,
    [first_memory, second_memory]: [&mut Option<Memory>; 2],
) -> Result<JoinReading, Error> {
    let mut first = Opened::at(first, first_name, terms, first_memory)?;
    let mut second = Opened::at(second, second_name, terms, second_memory)?;
    let asked = AskedJoin::parse(sql, first.definition(), second.definition())?;
    let answer = asked.first_question().map(|question| first.ask(&terms.put(question).to_bytes())).transpose()?;
    let held = [(&first.manifest, &first.chain), (&second.manifest, &second.chain)];
    let (rows, first_verdict) = first_rows(&asked, held[0], answer.as_deref(), terms)?;
    let points = asked.second_question(&rows)?;
    let other = points.map(|points| second.ask(&terms.put_points(points).to_bytes())).transpose()?;
    let held = (&second.manifest, &second.chain);
    let (table, second_verdict) = second_rows(&asked, held, rows, other.as_deref(), terms)?;
    let proofs = [first.proof(answer), second.proof(other)];
    Ok(JoinReading {
        table,
        verdict: Verdict::of_both(&first_verdict, &second_verdict),
        verdicts: [first_verdict, second_verdict],
        plan: asked.plan(),
        kept: KeptJoin { owner: terms.owner, at: terms.now, hints: terms.hints, sql: sql.into(), proofs },
    })
}

/// A table's manifest and summaries, checked.
pub(crate) type Held<'a> = (&'a TrustedManifest, &'a Chain);

/// The first table's rows, from an answer that has just come or was kept.
pub(crate) fn first_rows(
    asked: &AskedJoin,
    (manifest, chain): Held<'_>,
    answer: Option<&[u8]>,
    terms: &Terms,
) -> Result<(Vec<Vec<Value>>, Verdict), Error> {
    match (asked.first_question(), answer) {
        (Some(question), Some(answer)) => {
            let verified = check(&terms.trust(manifest, chain), &terms.put(question), answer)?;
            let verdict = Verdict::of(&verified, chain.last());
            Ok((verified.rows, verdict))
        }
        (None, None) => Ok((Vec::new(), Verdict::of_nothing(terms, chain.last()))),
        _ => Err(Refusal::OtherQuestion.into()),
    }
}

/// The result, from the first table's verified rows and an answer about the second one.
pub(crate) fn second_rows(
    asked: &AskedJoin,
    (manifest, chain): Held<'_>,
    first: Vec<Vec<Value>>,
    answer: Option<&[u8]>,
    terms: &Terms,
) -> Result<(Table, Verdict), Error> {
    match (asked.second_question(&first)?, answer) {
        (Some(points), Some(answer)) => {
            let verified = check_points(&terms.trust(manifest, chain), &terms.put_points(points), answer)?;
            let verdict = Verdict::of(&verified, chain.last());
            Ok((asked.answer(first, verified.rows)?, verdict))
        }
        // No value is looked for, so that nothing of the second table could change the result.
        (None, None) => Ok((asked.answer(first, Vec::new())?, Verdict::of_nothing(terms, chain.last()))),
        _ => Err(Refusal::OtherQuestion.into()),
    }
}
