//! From SQL to rows and a verdict.

use counterfoil_ask::{Asked, Table};
use counterfoil_mirror::site::{Fetch, Site, SiteError, Unread};
use counterfoil_mirror::{Shelf as _, answer, totals};
use counterfoil_proof::{
    Chain, MANIFEST_BYTES_MAX, Owner, Refusal, TotalsQuestion, TrustedManifest, check, check_totals,
};

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
pub fn read(fetch: &mut dyn Fetch, sql: &str, terms: &Terms, memory: &mut Option<Memory>) -> Result<Reading, Error> {
    // What is no SQL asks nobody.
    let table = Asked::table_of(sql)?;
    let (unread, manifest_bytes) = found(fetch, &terms.owner, &table)?;
    let manifest = TrustedManifest::check(&manifest_bytes, &terms.owner, 0)?;
    let definition = &manifest.manifest().definition;
    let asked = Asked::parse(sql, definition)?;
    let answers = unread.answers();
    let mut site = unread.of(definition.clone());
    // Those that signatures need, and those that lead on from what was seen.
    let seen = memory.as_ref().and_then(|memory| memory.period_of(&definition.table));
    let summaries = site.summaries(seen.unwrap_or(u64::MAX).min(site.first()))?;
    let chain = Chain::check(&manifest, summaries.iter().map(Vec::as_slice))?;
    *memory = Some(Memory::after(memory.as_ref(), &manifest, &chain)?);
    let answer = answered(&mut site, &asked, answers, terms)?;
    let (owner, at, hints) = (terms.owner, terms.now, terms.hints);
    let mut kept = Kept { owner, at, hints, sql: sql.into(), manifest: manifest_bytes, summaries, answer };
    let mut result = checked(&asked, &manifest, &chain, kept.answer.as_deref(), terms);
    // Totals are of the last period; where rows at an edge have changed since then, rows are what can be proved.
    if asked.totals().is_some() && matches!(result, Err(Error::Refused(Refusal::NotProvable(_)))) {
        kept.answer = shown(&mut site, &asked, answers, terms)?;
        result = checked(&asked, &manifest, &chain, kept.answer.as_deref(), terms);
    }
    let (table, verdict) = result?;
    Ok(Reading { table, verdict, plan: asked.plan(), kept })
}

/// The table at this place; or where places of many tables are below it, that of this owner and name.
fn found<'a>(fetch: &'a mut dyn Fetch, owner: &Owner, table: &str) -> Result<(Unread<Within<'a>>, Vec<u8>), Error> {
    let open = |error| match error {
        SiteError::Missing(path) if path == "manifest" => Error::NoTable(path),
        other => Error::from(other),
    };
    let here = fetch.fetch("manifest", MANIFEST_BYTES_MAX).map_err(Error::Unreachable)?.is_some();
    let prefix = if here { String::new() } else { place_of(owner, table) };
    Unread::open(Within { fetch, prefix }).map_err(open)
}

/// Where a mirror of many tables has this one: `OWNER/TABLE/`, with the name as a path holds it.
#[must_use]
pub fn place_of(owner: &Owner, table: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let escape = |byte: u8| if plain(byte) { char::from(byte).into() } else { format!("%{byte:02X}") };
    format!("{owner}/{}/", table.bytes().map(escape).collect::<String>())
}

/// What lies below a place.
struct Within<'a> {
    fetch: &'a mut dyn Fetch,
    prefix: String,
}

impl Fetch for Within<'_> {
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        self.fetch.fetch(&format!("{}{path}", self.prefix), most)
    }

    fn ask(&mut self, path: &str, question: &[u8], most: usize) -> Result<Option<Vec<u8>>, String> {
        self.fetch.ask(&format!("{}{path}", self.prefix), question, most)
    }
}

/// The bytes of an answer: totals where they say all that is asked, else rows. A folder's reader looks through it itself.
fn answered<F: Fetch>(
    site: &mut Site<F>,
    asked: &Asked,
    answers: bool,
    terms: &Terms,
) -> Result<Option<Vec<u8>>, Error> {
    let Some(question) = asked.totals() else { return shown(site, asked, answers, terms) };
    let question = terms.put_totals(question);
    if answers {
        return Ok(Some(site.ask(&question.to_bytes())?));
    }
    let answer = totals(site, &question)?;
    let bytes = answer.to_bytes(site.definition(), &question);
    bytes.map(Some).map_err(|malformed| Error::Refused(malformed.into()))
}

/// The same with rows.
fn shown<F: Fetch>(site: &mut Site<F>, asked: &Asked, answers: bool, terms: &Terms) -> Result<Option<Vec<u8>>, Error> {
    let Some(question) = asked.question() else { return Ok(None) };
    let question = terms.put(question);
    if answers {
        return Ok(Some(site.ask(&question.to_bytes())?));
    }
    let answer = answer(site, &question)?;
    let bytes = answer.to_bytes(site.definition(), &question);
    bytes.map(Some).map_err(|malformed| Error::Refused(malformed.into()))
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
    if let (Some(question), Some(answer)) = (asked.totals(), answer.filter(|answer| TotalsQuestion::is_one(answer))) {
        let verified = check_totals(&trust, &terms.put_totals(question), answer)?;
        let verdict = Verdict::of_totals(&verified, chain.last());
        return Ok((asked.answer_totals(&verified.groups)?, verdict));
    }
    match (asked.question(), answer) {
        (Some(question), Some(answer)) => {
            let verified = check(&trust, &terms.put(question), answer)?;
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
