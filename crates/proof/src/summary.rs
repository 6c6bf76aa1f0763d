//! What changed in a period: the owner's word on which signatures of before do not count any more.
//!
//! ```text
//! body = definition's digest, period, digest of the summary before, end (ms), root of all that was signed in the period,
//!        changed: numbers of records whose version changed, finals: those of them signed more than once
//! ```
//! Of a record that was signed more than once in the period, `finals` tells the last version, or that it is gone. Period 0
//! is the first load: nothing was signed before it, so that its list of changes is empty. Each summary holds the digest of
//! the one before: the signature of the last one is one for all.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::bytes::{Reader, Writer};
use crate::changed::{has_classes, read_classes, write_classes};
use crate::digest::{Digest, digest};
use crate::error::Malformed;
use crate::manifest::{SigningKey, TrustedManifest};
use crate::record::Stamp;
use crate::refusal::Refusal;
use crate::signature::{Message, SecretKey, Signature, verify};
use crate::sparse_set::SparseSet;

/// Bytes of a summary at most: what [`CHANGES_MAX`] changes can take.
pub const SUMMARY_BYTES_MAX: usize = 32 << 20;

/// Records that change in a period at most; owners begin another one before.
pub const CHANGES_MAX: usize = 1 << 20;

/// What an owner says at the end of a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// [`crate::Definition::digest`].
    pub definition: Digest,
    /// Which period.
    pub period: u64,
    /// The digest of the summary of the period before; zeros in period 0.
    pub before: Digest,
    /// Milliseconds since 1970 (UTC) at its end, by the owner's clock.
    pub ended: u64,
    /// [`contents_root`] of the messages signed in the period.
    pub contents: Digest,
    /// Records whose version changed in the period, sorted.
    pub changed: Vec<u64>,
    /// Of those signed more than once in the period the last version, or none if they are gone.
    pub finals: BTreeMap<u64, Option<u64>>,
}

/// How a summary begins.
struct Head {
    /// Whether numbers of what changed are told by classes.
    has_classes: bool,
    definition: Digest,
    period: u64,
    before: Digest,
    ended: u64,
}

impl Head {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let has_classes = match reader.byte()? {
            1 => false,
            2 => true,
            _ => return Err(Malformed("a summary of changes of a version that is not known")),
        };
        let (definition, period) = (reader.array()?, reader.number()?);
        Ok(Self { has_classes, definition, period, before: reader.array()?, ended: reader.number()? })
    }
}

/// The digest of all that was signed in a period, in whatever order.
#[must_use]
pub fn contents_root(mut messages: Vec<Digest>) -> Digest {
    messages.sort_unstable();
    crate::attributes::root(&messages)
}

impl Summary {
    fn body(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        let has_classes = has_classes(&self.changed);
        writer.byte(1 + u8::from(has_classes)).raw(&self.definition).number(self.period).raw(&self.before);
        writer.number(self.ended).raw(&self.contents);
        if has_classes {
            write_classes(&mut writer, &self.changed);
        } else {
            writer.string(&SparseSet::encode(&self.changed));
        }
        writer.number(self.finals.len() as u64);
        let mut last = 0;
        for (rid, version) in &self.finals {
            // Numbers as steps; a version one up, so that 0 says that the record is gone.
            writer.number(rid - last).number(version.map_or(0, |version| version.saturating_add(1)));
            last = *rid;
        }
        writer.0
    }

    fn read(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body, "a summary of changes");
        let Head { has_classes, definition, period, before, ended } = Head::read(&mut reader)?;
        let contents = reader.array()?;
        let changed: Vec<u64> =
            if has_classes { read_classes(&mut reader)? } else { SparseSet::parse(reader.string()?)?.iter().collect() };
        if !has_classes && crate::changed::has_classes(&changed) {
            return Err(reader.malformed());
        }
        if period == 0 && !changed.is_empty() {
            return Err(Malformed("the first summary of changes tells of changes"));
        }
        let (mut finals, mut last) = (BTreeMap::new(), 0u64);
        for at in 0..reader.count()? {
            let step = reader.number()?;
            let rid = last.checked_add(step).filter(|_| at == 0 || step > 0).ok_or_else(|| reader.malformed())?;
            finals.insert(rid, reader.number()?.checked_sub(1));
            last = rid;
        }
        reader.end()?;
        Ok(Self { definition, period, before, ended, contents, changed, finals })
    }

    /// Its digest, which the next one holds and which is signed.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Self::digest_of(&self.body())
    }

    fn digest_of(body: &[u8]) -> Digest {
        digest("counterfoil/summary/1", &[body])
    }

    /// Signs it and gives what a mirror serves.
    #[must_use]
    pub fn sign(&self, secret: &SecretKey) -> Vec<u8> {
        let body = self.body();
        let signature = secret.sign(&Message(Self::digest_of(&body)));
        let mut writer = Writer::default();
        writer.string(&body).raw(&signature.to_bytes());
        writer.0
    }
}

/// The summaries of all periods from one on to the last one, without a gap and signed: what says whether something is fresh.
/// There is no other way to make one than to check it.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Under which manifest it was checked: under another one, its keys may not count any more.
    manifest: Digest,
    first: u64,
    last: u64,
    head: Digest,
    /// Where each period ended, from `first` on.
    ended: Vec<u64>,
    /// The digest of each period's summary, from the one before `first` on.
    digests: Vec<Digest>,
    /// The last period in which a record changed, of those from `first` on.
    changed: BTreeMap<u64, u64>,
    /// What the finals of the periods say, by period and record.
    finals: BTreeMap<(u64, u64), Option<u64>>,
}

impl Chain {
    /// Checks summaries as a mirror serves them, of consecutive periods up to the last one.
    ///
    /// # Errors
    /// [`Refusal`]: what is wrong with them.
    pub fn check<'a>(
        manifest: &TrustedManifest,
        summaries: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, Refusal> {
        let served = served(manifest, summaries)?;
        let Some(first) = served.first() else {
            return Err(Refusal::Malformed("no summary of changes"));
        };
        let mut chain = Self {
            manifest: *manifest.digest(),
            first: first.period,
            last: first.period,
            head: first.before,
            ended: Vec::new(),
            digests: vec![first.before],
            changed: BTreeMap::new(),
            finals: BTreeMap::new(),
        };
        follow(None, first)?;
        chain.take(manifest, &served)?;
        Ok(chain)
    }

    /// Goes on with later summaries; nothing changes if they are refused.
    ///
    /// # Errors
    /// [`Refusal`]: what is wrong with them; [`Refusal::NotProvable`]: there is another manifest since, so that all of them
    /// have to be checked again.
    pub fn extend<'a>(
        &mut self,
        manifest: &TrustedManifest,
        summaries: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), Refusal> {
        if self.manifest != *manifest.digest() {
            return Err(Refusal::NotProvable("the summaries of changes were checked under another manifest"));
        }
        let served = served(manifest, summaries)?;
        match served.first() {
            None => Ok(()),
            Some(first) => {
                let before = (self.last, self.head, self.ended.last().copied().unwrap_or(0));
                follow(Some(before), first)?;
                self.take(manifest, &served)
            }
        }
    }

    /// Takes summaries of which the first one follows. A change takes a bit in a summary and many bytes here, so nothing is
    /// unfolded before the last one's signature, which is one for all, was found to be right.
    fn take(&mut self, manifest: &TrustedManifest, served: &[Served<'_>]) -> Result<(), Refusal> {
        for pair in served.windows(2) {
            follow(Some((pair[0].period, pair[0].digest, pair[0].ended)), &pair[1])?;
        }
        if let Some(last) = served.last() {
            let key = key_of(manifest, last.period)?;
            verify(&key.key, &[Message(last.digest)], None, &last.signature)
                .map_err(|_| Refusal::Forged("a summary of changes does not carry its owner's signature"))?;
        }
        let summaries = served.iter().map(|served| Summary::read(served.body)).collect::<Result<Vec<_>, _>>()?;
        for (summary, served) in summaries.into_iter().zip(served) {
            (self.last, self.head) = (served.period, served.digest);
            self.ended.push(served.ended);
            self.digests.push(served.digest);
            self.changed.extend(summary.changed.into_iter().map(|rid| (rid, served.period)));
            self.finals.extend(summary.finals.into_iter().map(|(rid, version)| ((served.period, rid), version)));
        }
        Ok(())
    }

    /// The first period that it tells of.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The last period that has ended.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The digest of the last summary: what readers compare to see whether they are told the same.
    #[must_use]
    pub fn head(&self) -> &Digest {
        &self.head
    }

    /// Milliseconds since 1970 (UTC) at the end of `period`, if it tells of it.
    #[must_use]
    pub fn ended(&self, period: u64) -> Option<u64> {
        self.ended.get(usize::try_from(period.checked_sub(self.first)?).ok()?).copied()
    }

    /// The digest of the summary of `period`, if it tells of it or follows it.
    #[must_use]
    pub fn digest(&self, period: u64) -> Option<Digest> {
        let at = period.checked_add(1)?.checked_sub(self.first)?;
        self.digests.get(usize::try_from(at).ok()?).copied()
    }

    pub(crate) fn manifest(&self) -> &Digest {
        &self.manifest
    }

    /// Whether something signed as `stamp` says is what the owner had at the end of the last period, or later.
    ///
    /// # Errors
    /// [`Refusal::Stale`]: it is not; [`Refusal::Incomplete`]: the chain begins after the stamp's period.
    pub(crate) fn accepts(&self, stamp: &Stamp) -> Result<(), Refusal> {
        if stamp.period > self.last.saturating_add(1) {
            return Err(Refusal::Malformed("a signature of a period that has not begun"));
        }
        if stamp.period < self.first {
            return Err(Refusal::Incomplete("the summaries of changes do not reach back to a signature"));
        }
        if self.changed.get(&stamp.rid).is_some_and(|changed| *changed > stamp.period) {
            return Err(Refusal::Stale("a row or its neighbour has changed since it was signed"));
        }
        match self.finals.get(&(stamp.period, stamp.rid)) {
            Some(last) if *last != Some(stamp.version) => {
                Err(Refusal::Stale("a row or its neighbour was signed again in the same period"))
            }
            _ => Ok(()),
        }
    }
}

/// A summary as it came, of which only the beginning was read.
struct Served<'a> {
    period: u64,
    before: Digest,
    ended: u64,
    body: &'a [u8],
    digest: Digest,
    signature: Signature,
}

fn served<'a>(
    manifest: &TrustedManifest,
    summaries: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<Served<'a>>, Refusal> {
    let definition = manifest.manifest().definition.digest();
    summaries.into_iter().map(|bytes| open(&definition, bytes)).collect()
}

fn open<'a>(definition: &Digest, bytes: &'a [u8]) -> Result<Served<'a>, Refusal> {
    if bytes.len() > SUMMARY_BYTES_MAX {
        return Err(Refusal::Malformed("a summary of changes of more than 32 megabytes"));
    }
    let mut reader = Reader::new(bytes, "a summary of changes");
    let body = reader.string()?;
    let signature = Signature::from_bytes(reader.raw(48)?).map_err(|_| Malformed("a signature of a summary"))?;
    reader.end()?;
    let head = Head::read(&mut Reader::new(body, "a summary of changes"))?;
    if head.definition != *definition {
        return Err(Refusal::Forged("a summary of changes of another table"));
    }
    let Head { period, before, ended, .. } = head;
    Ok(Served { period, before, ended, body, digest: Summary::digest_of(body), signature })
}

/// Whether a summary follows the one of a period, with a digest, that ended at a time; or may be the first of all.
fn follow(before: Option<(u64, Digest, u64)>, summary: &Served<'_>) -> Result<(), Refusal> {
    let Some((period, digest, ended)) = before else {
        let is_right = summary.period > 0 || summary.before == [0; 32];
        return if is_right {
            Ok(())
        } else {
            Err(Refusal::Malformed("the first summary of changes follows another one"))
        };
    };
    if summary.period != period.saturating_add(1) {
        return Err(Refusal::Incomplete("a summary of changes is missing"));
    }
    if summary.before != digest {
        return Err(Refusal::Forged("a summary of changes does not follow the one before it"));
    }
    if summary.ended < ended {
        return Err(Refusal::Clock("a period ended before the one before it"));
    }
    Ok(())
}

/// The key of a period. Each period has had one: where a later one is listed and none of it, the owner has withdrawn it, or has
/// signed all of it again since. Whoever shows what that key signed may be a thief, or may not have been brought up to date.
pub(crate) fn key_of(manifest: &TrustedManifest, period: u64) -> Result<&SigningKey, Refusal> {
    let manifest = manifest.manifest();
    manifest.key_of(period).ok_or(match manifest.keys.last() {
        Some(last) if period < last.from_period => Refusal::Stale(WITHDRAWN),
        _ => Refusal::Forged("signed in a period for which the owner certifies no key"),
    })
}

const WITHDRAWN: &str = "signed in a period whose key the owner has withdrawn since: ask again when the table there has been brought up to date, \
                         or ask another server";
