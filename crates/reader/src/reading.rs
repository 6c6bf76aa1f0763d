//! From SQL to rows and a verdict.

use counterfoil_ask::{Asked, Table};
use counterfoil_mirror::answer;
use counterfoil_mirror::site::{Fetch, Site, SiteError, Unread};
use counterfoil_proof::{Chain, Definition, Question, Refusal, TrustedManifest, check};

use crate::error::Error;
use crate::kept::Kept;
use crate::memory::Memory;
use crate::terms::Terms;
use crate::verdict::Verdict;

/// Rows that are the owner's, and what is known of them.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The result.
    pub table: Table,
    /// How much there is to it.
    pub verdict: Verdict,
    /// How it was answered, in words for people.
    pub plan: String,
    /// All that it takes to check it again.
    pub kept: Kept,
}

/// Asks the mirror behind `fetch` and checks what it sends. `memory` is what the reader has seen of this owner's table of
/// this name; it goes on as soon as something newer is known to be the owner's, whatever becomes of the rows.
///
/// # Errors
/// Each [`Error`] but [`Error::NotKept`].
pub fn read<F: Fetch>(fetch: F, sql: &str, terms: &Terms, memory: &mut Option<Memory>) -> Result<Reading, Error> {
    // What is no SQL asks nobody.
    Asked::table_of(sql)?;
    let (unread, manifest_bytes) = Unread::open(fetch).map_err(|error| match error {
        SiteError::Missing(path) => Error::NoTable(path),
        other => other.into(),
    })?;
    let manifest = TrustedManifest::check(&manifest_bytes, &terms.owner, 0)?;
    let definition = &manifest.manifest().definition;
    let asked = Asked::parse(sql, definition)?;
    let mut site = unread.of(definition.clone());
    let summaries = site.summaries(0)?;
    let chain = Chain::check(&manifest, summaries.iter().map(Vec::as_slice))?;
    *memory = Some(Memory::after(memory.as_ref(), &manifest, &chain)?);
    let answer = asked.question().map(|question| proof(&mut site, definition, question)).transpose()?;
    let kept = Kept { owner: terms.owner, at: terms.now, sql: sql.into(), manifest: manifest_bytes, summaries, answer };
    let (table, verdict) = checked(&asked, &manifest, &chain, kept.answer.as_deref(), terms)?;
    Ok(Reading { table, verdict, plan: asked.plan(), kept })
}

/// The bytes of an answer, from files that the reader looked through itself.
fn proof<F: Fetch>(site: &mut Site<F>, definition: &Definition, question: &Question) -> Result<Vec<u8>, Error> {
    let answer = answer(site, question)?;
    answer.to_bytes(definition, question).map_err(|malformed| Error::Refused(malformed.into()))
}

/// The one way from an answer to a result, whether it has just come or was kept.
pub(crate) fn checked(
    asked: &Asked,
    manifest: &TrustedManifest,
    chain: &Chain,
    answer: Option<&[u8]>,
    terms: &Terms,
) -> Result<(Table, Verdict), Error> {
    let trust = terms.trust(manifest, chain);
    match (asked.question(), answer) {
        (Some(question), Some(answer)) => {
            let verified = check(&trust, question, answer)?;
            let verdict = Verdict::of(&verified, chain.last());
            Ok((asked.answer(verified.rows)?, verdict))
        }
        // Nothing can match: that is true at any time, and nobody has to say so.
        (None, None) => {
            let verdict = Verdict { as_of: terms.now, age: 0, signatures: 0, period: chain.last() };
            Ok((asked.answer(Vec::new())?, verdict))
        }
        _ => Err(Refusal::OtherQuestion.into()),
    }
}
