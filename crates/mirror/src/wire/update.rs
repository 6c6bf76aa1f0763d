//! An update: what a mirror is to keep from now on, all of it or nothing.
//!
//! ```text
//! string of the body, signature (48) over H("counterfoil/update/1", body)
//! body = 01, anew (0, 1), state before, state after, open period, oldest period, manifest string,
//!        count and summaries (strings), count and changes (number of the record as a step, 00 or 01 and its entry's string)
//! ```
//! The key is the one that the manifest in it certifies for the owner's open period, so that a mirror knows no secret, and
//! nobody else can fill it.

use counterfoil_proof::bytes::{Reader, Writer};
use counterfoil_proof::{Malformed, Message, Owner, Refusal, SecretKey, Signature, TrustedManifest, verify};

use super::state::{State, flag};
use super::{SummaryHead, digest};

/// Bytes of an update at most: the largest manifest and summary, and room for entries.
pub const UPDATE_BYTES_MAX: usize = 48 << 20;

/// A record that changed, head or tail: its entry's bytes, or none if it is gone.
pub type Change = (u64, Option<Vec<u8>>);

/// An update.
#[derive(Clone, PartialEq, Eq)]
pub struct Update {
    /// Whether the mirror drops all that it has of the table before.
    pub is_anew: bool,
    /// What the mirror has before it; of an update that begins anew nothing of it counts.
    pub before: State,
    /// What it has afterwards.
    pub after: State,
    /// The owner's open period.
    pub open: u64,
    /// That of the oldest signature that stands: readers need the summaries from there on.
    pub oldest: u64,
    /// The manifest.
    pub manifest: Vec<u8>,
    /// Summaries of the periods that follow.
    pub summaries: Vec<Vec<u8>>,
    /// Records that changed, by their numbers.
    pub changes: Vec<Change>,
}

impl Update {
    /// Signs it and gives what is sent.
    #[must_use]
    pub fn sign(&self, secret: &SecretKey) -> Vec<u8> {
        let body = self.body();
        let signature = secret.sign(&message(&body));
        let mut writer = Writer::default();
        writer.string(&body).raw(&signature.to_bytes());
        writer.0
    }

    fn body(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.byte(1).byte(u8::from(self.is_anew));
        self.before.write(&mut writer);
        self.after.write(&mut writer);
        writer.number(self.open).number(self.oldest).string(&self.manifest).number(self.summaries.len() as u64);
        self.summaries.iter().for_each(|summary| {
            writer.string(summary);
        });
        writer.number(self.changes.len() as u64);
        let mut last = 0;
        for (rid, entry) in &self.changes {
            writer.number(rid - last).byte(u8::from(entry.is_some()));
            if let Some(entry) = entry {
                writer.string(entry);
            }
            last = *rid;
        }
        writer.0
    }

    /// Reads an update that `owner` signed, and checks that it is one: the manifest in it is this owner's and not older than
    /// `seen_serial`, the summaries follow each other, and the whole carries the signature.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn check(bytes: &[u8], owner: &Owner, seen_serial: u64) -> Result<(Self, TrustedManifest), Refusal> {
        if bytes.len() > UPDATE_BYTES_MAX {
            return Err(Refusal::Malformed("an update of more than 48 megabytes"));
        }
        let mut reader = Reader::new(bytes, "an update");
        let body = reader.string()?;
        let signature = Signature::from_bytes(reader.raw(48)?).map_err(|_| Malformed("the signature of an update"))?;
        reader.end()?;
        // Nothing is unfolded before it is known to be signed: the manifest alone says by whom.
        let manifest = TrustedManifest::check(manifest_of(body)?, owner, seen_serial)?;
        let open = Opening::read(&mut Reader::new(body, "an update"))?.open;
        let key =
            manifest.manifest().key_of(open).ok_or(Refusal::Forged("the owner certifies no key for an update"))?;
        verify(&key.key, &[message(body)], None, &signature)
            .map_err(|_| Refusal::Forged("an update does not carry its owner's signature"))?;
        let update = Self::read(body)?;
        update.follow(&manifest)?;
        Ok((update, manifest))
    }

    fn read(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body, "an update");
        let Opening { is_anew, before, after, open, oldest } = Opening::read(&mut reader)?;
        let manifest = reader.string()?.to_vec();
        let mut summaries = Vec::new();
        for _ in 0..reader.count()? {
            summaries.push(reader.string()?.to_vec());
        }
        let (mut changes, mut last) = (Vec::new(), 0u64);
        for at in 0..reader.count()? {
            let step = reader.number()?;
            let rid = last.checked_add(step).filter(|_| at == 0 || step > 0).ok_or_else(|| reader.malformed())?;
            let entry = if flag(&mut reader)? { Some(reader.string()?.to_vec()) } else { None };
            changes.push((rid, entry));
            last = rid;
        }
        reader.end()?;
        Ok(Self { is_anew, before, after, open, oldest, manifest, summaries, changes })
    }

    /// Whether it leads on, and its summaries follow what was before, each the one before it.
    fn follow(&self, manifest: &TrustedManifest) -> Result<(), Malformed> {
        if self.after.progress <= self.before.progress {
            return Err(Malformed("an update that leads nowhere"));
        }
        let begun = State::default();
        let before = if self.is_anew { &begun } else { &self.before };
        let (mut period, mut last) = (before.progress.periods, before.last_summary);
        for summary in &self.summaries {
            let head = SummaryHead::of(summary)?;
            if head.definition != manifest.manifest().definition.digest()
                || head.period != period
                || head.before != last
            {
                return Err(Malformed("a summary in an update does not follow the one before it"));
            }
            period = period.checked_add(1).ok_or(Malformed("a period without end"))?;
            last = head.digest;
        }
        let after = &self.after;
        if after.progress.periods != period
            || after.last_summary != last
            || (after.is_whole && period != self.open)
            || self.oldest > self.open
        {
            return Err(Malformed("an update that does not say what it leads to"));
        }
        Ok(())
    }
}

/// How a body begins.
struct Opening {
    is_anew: bool,
    before: State,
    after: State,
    open: u64,
    oldest: u64,
}

impl Opening {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        if reader.byte()? != 1 {
            return Err(Malformed("an update of a version that is not known"));
        }
        let is_anew = flag(reader)?;
        let (before, after) = (State::read(reader)?, State::read(reader)?);
        Ok(Self { is_anew, before, after, open: reader.number()?, oldest: reader.number()? })
    }
}

fn manifest_of(body: &[u8]) -> Result<&[u8], Malformed> {
    let mut reader = Reader::new(body, "an update");
    Opening::read(&mut reader)?;
    reader.string()
}

fn message(body: &[u8]) -> Message {
    Message(digest("counterfoil/update/1", body))
}

#[cfg(test)]
mod tests {
    use super::{State, Update};
    use crate::wire::Progress;

    fn update() -> Update {
        let progress = Progress { generation: 1, number: 2, rid: 33, periods: 0 };
        let after = State { progress, mark: [7; 32], base: [6; 32], last_summary: [0; 32], is_whole: false };
        let changes = vec![(0, Some(vec![1, 2])), (33, None)];
        let (is_anew, before) = (true, State::default());
        Update { is_anew, before, after, open: 3, oldest: 2, manifest: vec![9], summaries: vec![vec![4]], changes }
    }

    #[test]
    fn what_is_written_is_read_and_nothing_shorter_or_longer() {
        let body = update().body();
        assert!(Update::read(&body).is_ok_and(|read| read == update()));
        for length in 0..body.len() {
            assert!(Update::read(&body[..length]).is_err(), "{length}");
        }
        assert!(Update::read(&[&body[..], &[0]].concat()).is_err());
        let state = update().after;
        assert_eq!(State::from_bytes(&state.to_bytes()), Ok(state));
    }
}
