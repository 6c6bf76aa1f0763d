//! From SQL to rows and a verdict.

use counterfoil_ask::{Asked, Table};
use counterfoil_mirror::reply;
use counterfoil_mirror::site::{Fetch, Site, SiteError, Unread};
use counterfoil_proof::{
    Chain, Definition, MANIFEST_BYTES_MAX, Owner, Question, Refusal, TotalsQuestion, TrustedManifest, Value, check,
    check_totals,
};

use crate::error::Error;
use crate::kept::Kept;
use crate::memory::Memory;
use crate::moving::{Moving, again};
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
/// this name; it goes on as soon as something newer is known to be the owner's, whatever becomes of the rows. A mirror that
/// is brought up to date meanwhile is asked anew.
///
/// # Errors
/// Each [`Error`] but [`Error::NotKept`].
pub fn read(fetch: &mut dyn Fetch, sql: &str, terms: &Terms, memory: &mut Option<Memory>) -> Result<Reading, Error> {
    // What is no SQL asks nobody.
    let table = Asked::table_of(sql)?;
    let mut moving = Moving::new(fetch);
    let mut tried = 0;
    loop {
        match read_once(&mut moving, &table, sql, terms, memory) {
            Err(error) if error.may_pass() && moving.has_moved()? => again(error, &mut tried)?,
            result => return result,
        }
    }
}

fn read_once(
    fetch: &mut dyn Fetch,
    table: &str,
    sql: &str,
    terms: &Terms,
    memory: &mut Option<Memory>,
) -> Result<Reading, Error> {
    let mut opened = Opened::at(fetch, table, terms, memory)?;
    let asked = Asked::parse(sql, opened.definition())?;
    let mut answer = asked.question().map(|question| opened.ask(&asked_for(&asked, question, terms))).transpose()?;
    let mut result = checked(&asked, &opened.manifest, &opened.chain, answer.as_deref(), terms);
    // Totals are of the last period; where rows at an edge have changed since then, rows are what can be proved.
    if asked.totals().is_some() && matches!(result, Err(Error::Refused(Refusal::NotProvable(_)))) {
        answer = asked.question().map(|question| opened.ask(&terms.put(question).to_bytes())).transpose()?;
        result = checked(&asked, &opened.manifest, &opened.chain, answer.as_deref(), terms);
    }
    let (table, verdict) = result?;
    let Proof { manifest, summaries, answer } = opened.proof(answer);
    let (owner, at, hints) = (terms.owner, terms.now, terms.hints);
    let kept = Kept { owner, at, hints, sql: sql.into(), manifest, summaries, answer };
    Ok(Reading { table, verdict, plan: asked.plan(), kept })
}

/// The bytes of the question: for totals where they say all that is asked, else for rows.
fn asked_for(asked: &Asked, rows: &Question, terms: &Terms) -> Vec<u8> {
    asked.totals().map_or_else(|| terms.put(rows).to_bytes(), |totals| terms.put_totals(totals).to_bytes())
}

/// A table whose manifest and summaries were checked, and the place where it is asked: any number of questions, all of them
/// as of the same period.
pub struct Opened<F> {
    pub(crate) manifest: TrustedManifest,
    pub(crate) chain: Chain,
    site: Site<Within<F>>,
    answers: bool,
    manifest_bytes: Vec<u8>,
    summaries: Vec<Vec<u8>>,
}

/// What it takes to check an answer about one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    pub(crate) manifest: Vec<u8>,
    pub(crate) summaries: Vec<Vec<u8>>,
    pub(crate) answer: Option<Vec<u8>>,
}

impl<F: Fetch> Opened<F> {
    /// Opens the table of this name and owner, and remembers that it was seen, as [`read`] does.
    ///
    /// # Errors
    /// Each [`Error`] but [`Error::NotKept`].
    pub fn at(fetch: F, table: &str, terms: &Terms, memory: &mut Option<Memory>) -> Result<Self, Error> {
        let (unread, manifest_bytes) = found(fetch, &terms.owner, table)?;
        let manifest = TrustedManifest::check(&manifest_bytes, &terms.owner, 0)?;
        memory.as_ref().map_or(Ok(()), |memory| memory.allows(&manifest))?;
        let definition = &manifest.manifest().definition;
        if definition.name != table {
            let (name, known) = (table.into(), definition.name.clone());
            return Err(counterfoil_ask::Error::UnknownTable { name, known }.into());
        }
        let answers = unread.answers();
        let mut site = unread.of(definition.clone());
        // Those that signatures need, and those that lead on from what was seen.
        let seen = memory.as_ref().and_then(|memory| memory.period_of(&definition.table));
        let summaries = site.summaries(seen.unwrap_or(u64::MAX).min(site.first()))?;
        let chain = Chain::check(&manifest, summaries.iter().map(Vec::as_slice))?;
        *memory = Some(Memory::after(memory.as_ref(), &manifest, &chain)?);
        Ok(Self { manifest, chain, site, answers, manifest_bytes, summaries })
    }

    /// What the table is, as its owner says.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.manifest.manifest().definition
    }

    /// The verified rows of a question about this table, with its columns. What an answer takes before it is checked is told to
    /// `before`, in bytes, which may refuse it.
    ///
    /// # Errors
    /// As [`Opened::at`]; those of `before`.
    pub fn rows<E: From<Error>>(
        &mut self,
        question: &Question,
        terms: &Terms,
        before: impl FnOnce(usize) -> Result<(), E>,
    ) -> Result<(Vec<Vec<Value>>, Verdict), E> {
        let question = terms.put(question);
        let answer = self.ask(&question.to_bytes())?;
        before(answer.len())?;
        let verified = check(&terms.trust(&self.manifest, &self.chain), &question, &answer).map_err(Error::from)?;
        let verdict = Verdict::of(&verified, self.chain.last());
        Ok((verified.rows, verdict))
    }

    /// The bytes of an answer: from a program, or from files that the reader looked through itself.
    pub(crate) fn ask(&mut self, question: &[u8]) -> Result<Vec<u8>, Error> {
        if self.answers { Ok(self.site.ask(question)?) } else { Ok(reply(&mut self.site, question)?) }
    }

    pub(crate) fn proof(self, answer: Option<Vec<u8>>) -> Proof {
        Proof { manifest: self.manifest_bytes, summaries: self.summaries, answer }
    }
}

/// The table at this place; or where places of many tables are below it, that of this owner and name.
fn found<F: Fetch>(mut fetch: F, owner: &Owner, table: &str) -> Result<(Unread<Within<F>>, Vec<u8>), Error> {
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
struct Within<F> {
    fetch: F,
    prefix: String,
}

impl<F: Fetch> Fetch for Within<F> {
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        self.fetch.fetch(&format!("{}{path}", self.prefix), most)
    }

    fn ask(&mut self, path: &str, question: &[u8], most: usize) -> Result<Option<Vec<u8>>, String> {
        self.fetch.ask(&format!("{}{path}", self.prefix), question, most)
    }

    fn soon(&mut self, level: usize, paths: &mut dyn Iterator<Item = String>) {
        self.fetch.soon(level, &mut paths.map(|path| format!("{}{path}", self.prefix)));
    }
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
        (None, None) => Ok((asked.answer(Vec::new())?, Verdict::of_nothing(terms, chain.last()))),
        _ => Err(Refusal::OtherQuestion.into()),
    }
}
