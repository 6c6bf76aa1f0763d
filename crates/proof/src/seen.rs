//! What a reader remembers of a table between two visits: a mirror cannot lead it back behind that.

use crate::digest::Digest;
use crate::manifest::TrustedManifest;
use crate::refusal::Refusal;
use crate::signature::PublicKey;
use crate::summary::{Chain, key_of};

const OLDER: Refusal = Refusal::Stale("the summaries of changes end before one that was seen already");

/// What a reader has seen. To be kept after an answer was checked, never before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// The manifest's serial.
    pub serial: u64,
    /// The manifest's digest.
    pub manifest: Digest,
    /// The last period of the chain.
    pub period: u64,
    /// The digest of its summary.
    pub head: Digest,
    /// The key that signed it.
    pub key: PublicKey,
}

impl Seen {
    /// What is to be remembered of these.
    ///
    /// # Errors
    /// [`Refusal::NotProvable`]: the chain was checked under another manifest.
    pub fn of(manifest: &TrustedManifest, chain: &Chain) -> Result<Self, Refusal> {
        under(manifest, chain)?;
        let key = key_of(manifest, chain.last())?.key;
        let (serial, period) = (manifest.manifest().serial, chain.last());
        Ok(Self { serial, manifest: *manifest.digest(), period, head: *chain.head(), key })
    }

    /// Whether these go on from what was seen: no lower serial, no other manifest of one serial, and a chain that holds the
    /// summary that was seen. A chain under a manifest that names another key for that period need not: its owner withdrew
    /// the key, or lost what it signed.
    ///
    /// # Errors
    /// [`Refusal::Stale`]: they are of before; [`Refusal::Forged`]: the owner, or somebody with its keys, said two things;
    /// [`Refusal::Incomplete`]: the chain begins too late to tell; [`Refusal::NotProvable`]: it is another manifest's.
    pub fn check(&self, manifest: &TrustedManifest, chain: &Chain) -> Result<(), Refusal> {
        under(manifest, chain)?;
        let serial = manifest.manifest().serial;
        if serial < self.serial {
            return Err(Refusal::Stale("an older manifest than one that was seen already"));
        }
        if serial == self.serial && *manifest.digest() != self.manifest {
            return Err(Refusal::Forged("two manifests of one serial"));
        }
        let keys = &manifest.manifest().keys;
        if manifest.manifest().key_of(self.period).map(|key| key.key) != Some(self.key) {
            // What the key said there does not count any more; what comes from there on is another key's, and the chain
            // reaches it: otherwise it could end under a key that is listed for the sake of older rows.
            let from = keys.iter().find(|key| key.until_period > self.period).map(|key| key.from_period);
            let reaches = from.map_or(chain.last() > self.period, |from| chain.last().saturating_add(1) >= from);
            return if reaches { Ok(()) } else { Err(OLDER) };
        }
        if chain.last() < self.period {
            return Err(OLDER);
        }
        match chain.digest(self.period) {
            None => {
                Err(Refusal::Incomplete("the summaries of changes do not reach back to the last one that was seen"))
            }
            Some(digest) if digest == self.head => Ok(()),
            Some(_) => Err(Refusal::Forged("the owner's summaries are not those that were seen before")),
        }
    }
}

fn under(manifest: &TrustedManifest, chain: &Chain) -> Result<(), Refusal> {
    if chain.manifest() == manifest.digest() {
        Ok(())
    } else {
        Err(Refusal::NotProvable("the summaries of changes were checked under another manifest"))
    }
}
