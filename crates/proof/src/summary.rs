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
use alloc::vec::Vec;

use crate::bytes::{Reader, Writer};
use crate::digest::{Digest, digest};
use crate::error::Malformed;
use crate::manifest::{SigningKey, TrustedManifest};
use crate::record::Stamp;
use crate::refusal::Refusal;
use crate::signature::{Message, SecretKey, Signature, verify};
use crate::sparse_set::SparseSet;

/// Bytes of a summary at most: some sixteen million changes.
pub const SUMMARY_BYTES_MAX: usize = 64 << 20;

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

/// The digest of all that was signed in a period, in whatever order.
#[must_use]
pub fn contents_root(mut messages: Vec<Digest>) -> Digest {
    messages.sort_unstable();
    crate::attributes::root(&messages)
}

impl Summary {
    fn body(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.byte(1).raw(&self.definition).number(self.period).raw(&self.before).number(self.ended);
        writer.raw(&self.contents).string(&SparseSet::encode(&self.changed)).number(self.finals.len() as u64);
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
        if reader.byte()? != 1 {
            return Err(Malformed("a summary of changes of a version that is not known"));
        }
        let (definition, period, before) = (reader.array()?, reader.number()?, reader.array()?);
        let (ended, contents) = (reader.number()?, reader.array()?);
        let changed = SparseSet::parse(reader.string()?)?.iter().collect();
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
    definition: Digest,
    first: u64,
    last: u64,
    head: Digest,
    /// Where each period ended, from `first` on.
    ended: Vec<u64>,
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
        let mut chain: Option<Self> = None;
        let mut last = None;
        for bytes in summaries {
            let (summary, head, signature) = open(manifest, bytes)?;
            match &mut chain {
                None => chain = Some(Self::begin(&summary)),
                Some(chain) => chain.follow(&summary)?,
            }
            if let Some(chain) = &mut chain {
                chain.take(summary, head);
            }
            last = Some((head, signature));
        }
        let (Some(chain), Some((head, signature))) = (chain, last) else {
            return Err(Refusal::Malformed("no summary of changes"));
        };
        chain.check_signature(manifest, head, &signature)?;
        Ok(chain)
    }

    /// Goes on with later summaries; nothing changes if they are refused.
    ///
    /// # Errors
    /// [`Refusal`]: what is wrong with them.
    pub fn extend<'a>(
        &mut self,
        manifest: &TrustedManifest,
        summaries: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), Refusal> {
        let mut longer = self.clone();
        for bytes in summaries {
            let (summary, head, signature) = open(manifest, bytes)?;
            longer.follow(&summary)?;
            longer.check_signature_of(manifest, summary.period, head, &signature)?;
            longer.take(summary, head);
        }
        *self = longer;
        Ok(())
    }

    fn begin(summary: &Summary) -> Self {
        Self {
            definition: summary.definition,
            first: summary.period,
            last: summary.period,
            head: summary.before,
            ended: Vec::new(),
            changed: BTreeMap::new(),
            finals: BTreeMap::new(),
        }
    }

    fn follow(&self, summary: &Summary) -> Result<(), Refusal> {
        if summary.period != self.last.saturating_add(1) {
            return Err(Refusal::Incomplete("a summary of changes is missing"));
        }
        if summary.before != self.head {
            return Err(Refusal::Forged("a summary of changes does not follow the one before it"));
        }
        if self.ended.last().is_some_and(|ended| summary.ended < *ended) {
            return Err(Refusal::Clock("a period ended before the one before it"));
        }
        Ok(())
    }

    fn take(&mut self, summary: Summary, head: Digest) {
        self.last = summary.period;
        self.head = head;
        self.ended.push(summary.ended);
        self.changed.extend(summary.changed.into_iter().map(|rid| (rid, summary.period)));
        self.finals.extend(summary.finals.into_iter().map(|(rid, version)| ((summary.period, rid), version)));
    }

    fn check_signature(&self, manifest: &TrustedManifest, head: Digest, signature: &Signature) -> Result<(), Refusal> {
        self.check_signature_of(manifest, self.last, head, signature)
    }

    fn check_signature_of(
        &self,
        manifest: &TrustedManifest,
        period: u64,
        head: Digest,
        signature: &Signature,
    ) -> Result<(), Refusal> {
        let key = key_of(manifest, period)?;
        verify(&key.key, &[Message(head)], None, signature)
            .map_err(|_| Refusal::Forged("a summary of changes does not carry its owner's signature"))
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

    pub(crate) fn definition(&self) -> &Digest {
        &self.definition
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

fn open(manifest: &TrustedManifest, bytes: &[u8]) -> Result<(Summary, Digest, Signature), Refusal> {
    if bytes.len() > SUMMARY_BYTES_MAX {
        return Err(Refusal::Malformed("a summary of changes of more than 64 megabytes"));
    }
    let mut reader = Reader::new(bytes, "a summary of changes");
    let body = reader.string()?;
    let signature = Signature::from_bytes(reader.raw(48)?).map_err(|_| Malformed("a signature of a summary"))?;
    reader.end()?;
    let summary = Summary::read(body)?;
    if summary.definition != manifest.manifest().definition.digest() {
        return Err(Refusal::Forged("a summary of changes of another table"));
    }
    if summary.period == 0 && !(summary.changed.is_empty() && summary.before == [0; 32]) {
        return Err(Refusal::Malformed("the first summary of changes tells of changes"));
    }
    Ok((summary, Summary::digest_of(body), signature))
}

pub(crate) fn key_of(manifest: &TrustedManifest, period: u64) -> Result<&SigningKey, Refusal> {
    manifest.manifest().key_of(period).ok_or(Refusal::Forged("signed in a period for which the owner certifies no key"))
}
