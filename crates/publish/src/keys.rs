//! Keys that come and go: each of them in one commit, with a manifest of a higher serial.
//!
//! ```text
//! periods      a ....... n (open)   n + 1 ...
//! rotate       old key [a, n + 1)   new key [n + 1, ...)     nothing is signed again
//! revoke       gone     new key [n, ...)                     all that the key signed is signed again, as of period n, which ends
//! restored     old key [a, n)       new key [n, ...)         what was signed in n is signed again
//! ```
//! 1. Each period has one key. What a manifest takes from a key is signed again in the commit that brings the manifest.
//! 2. What is signed again in its own period is the same message: it counts once, and only the key that the manifest in
//!    force names for the period counts.
//! 3. A serial is in the ledger before the manifest with it leaves, and the next one is higher.
//! 4. A key stays listed as long as something stands that it signed, and no longer: at most [`GROUPS_MAX`] are. If there
//!    would be more, what the oldest signed is signed again.

use counterfoil_proof::{GROUPS_MAX, Manifest, PublicKey, SecretKey, SigningKey};

use crate::error::Error;
use crate::ledger::Ledger;
use crate::publication::Publication;
use crate::secrets::{Secrets, key_of};

/// A signing key that is to come.
#[derive(Clone)]
pub struct NewKey {
    secret: SecretKey,
    expires: u64,
}

impl NewKey {
    /// From 32 bytes of entropy that were never used; what it signs counts until `expires`, in milliseconds since 1970 (UTC).
    ///
    /// # Errors
    /// [`Error::Misuse`]: bytes from which no key can be made.
    pub fn from_entropy(entropy: &[u8; 32], expires: u64) -> Result<Self, Error> {
        Ok(Self { secret: key_of(entropy)?, expires })
    }
}

/// How often, and for how long, an owner signs, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Between the ends of periods; 0: a period ends when the owner says so.
    pub every: u64,
    /// After which signatures are renewed; 0: never.
    pub renew: u64,
    /// After which signatures do not count any more; `u64::MAX`: they always do.
    pub max_age: u64,
}

impl Terms {
    /// A signature that is to be renewed is with the next list of changes.
    pub(crate) fn check(self) -> Result<(), Error> {
        let renewed = self.renew.saturating_add(self.every);
        if self.max_age != u64::MAX && (self.renew == 0 || renewed >= self.max_age) {
            let what = "signatures would not count any more before they are renewed: the greatest age is longer than both times together, \
                        after which they are renewed and between two lists";
            return Err(Error::Misuse(what.into()));
        }
        Ok(())
    }
}

/// A manifest that is to be, and the secrets for it.
pub(crate) struct Turn {
    pub manifest: Manifest,
    pub secrets: Secrets,
    /// Whether the open period ends with it.
    pub ends_period: bool,
}

impl Turn {
    /// Lets a key sign from `period` on in place of those that would.
    ///
    /// # Errors
    /// [`Error::Misuse`]: it has expired already, or is there already.
    pub fn succeed(&mut self, period: u64, key: NewKey, now: u64) -> Result<(), Error> {
        let public = key.secret.public();
        if key.expires <= now {
            return Err(Error::Misuse("a key that has expired already".into()));
        }
        if self.manifest.keys.iter().any(|known| known.key == public) {
            return Err(Error::Misuse("a key that signs already: new ones take new entropy".into()));
        }
        let keys = &mut self.manifest.keys;
        keys.retain(|known| known.from_period < period);
        keys.iter_mut().for_each(|known| known.until_period = known.until_period.min(period));
        keys.push(SigningKey { key: public, from_period: period, until_period: u64::MAX, expires: key.expires });
        self.secrets.admit(key.secret);
        Ok(())
    }
}

impl<L: Ledger> Publication<L> {
    /// Lets a new key sign from the period after the open one on. One that was to come then already goes, unused.
    ///
    /// What the old key signed counts as before, until it expires: [`Publication::renew`] signs it again in time. `roots`
    /// are the root keys that are not in the ledger.
    ///
    /// # Errors
    /// [`Error::RootNeeded`]; [`Error::Misuse`]: a key that expired or is there already; then nothing has changed. After any
    /// other one the publication is to be opened anew.
    pub fn rotate(&mut self, now: u64, key: NewKey, roots: &[SecretKey]) -> Result<(), Error> {
        let mut turn = self.turn();
        turn.succeed(self.period.number + 1, key, now)?;
        self.enact(now, turn, 0, roots)
    }

    /// Ends the open period if its key has expired and another one signs the next: what is signed from there on counts.
    /// Whether it did. To be asked before anything is signed, as nobody published for so long.
    ///
    /// # Errors
    /// [`Error::Misuse`]: it has expired and no other one comes, so that no reader would take anything; others are those of
    /// the ledger.
    pub fn leave_expired_key(&mut self, now: u64) -> Result<bool, Error> {
        let expires = |period| self.manifest.key_of(period).map_or(0, |key| key.expires);
        let (open, next) = (self.period.number, self.period.number + 1);
        if expires(open) > now {
            return Ok(false);
        }
        if expires(next) <= now {
            return Err(Error::Misuse("the signing key has expired: no reader takes what it signs".into()));
        }
        self.close_period(now)?;
        Ok(true)
    }

    /// Withdraws a key that somebody else may know: a new one signs from the open period on, and signs again all that the
    /// key signed and that still stands, without a change. The open period ends, so that readers have a summary that the
    /// withdrawn key did not sign.
    ///
    /// What the key signed counts for nobody who knows the new manifest, whenever it says it was signed. Whoever does not
    /// believes the key until it expires. This takes a signature (0.2 ms) for each row that the key signed.
    ///
    /// # Errors
    /// [`Error::RootNeeded`]; [`Error::Misuse`]: no such key, or a new one that expired or is there already; then nothing
    /// has changed. After any other one the publication is to be opened anew.
    pub fn revoke(&mut self, now: u64, key: &PublicKey, new: NewKey, roots: &[SecretKey]) -> Result<(), Error> {
        let mut turn = self.turn();
        turn.succeed(self.period.number, new, now)?;
        if !self.manifest.keys.iter().any(|known| known.key == *key) {
            return Err(Error::Misuse("a key that the manifest does not list".into()));
        }
        turn.manifest.keys.retain(|known| known.key != *key);
        turn.ends_period = true;
        self.enact(now, turn, 0, roots)
    }

    /// Changes how long periods last, when signatures are renewed, and when they do not count any more, all in milliseconds
    /// as [`crate::Plan`] has them. Nothing is done if they are so already.
    ///
    /// # Errors
    /// [`Error::RootNeeded`]; [`Error::Misuse`]: terms that no reader takes; then nothing has changed. After any other one the
    /// publication is to be opened anew.
    pub fn set_terms(&mut self, now: u64, terms: Terms, roots: &[SecretKey]) -> Result<(), Error> {
        terms.check()?;
        let mut turn = self.turn();
        let Terms { every, renew, max_age } = terms;
        (turn.manifest.every, turn.manifest.renew, turn.manifest.max_age) = (every, renew, max_age);
        if turn.manifest == self.manifest { Ok(()) } else { self.enact(now, turn, 0, roots) }
    }

    /// On which terms signatures are made.
    #[must_use]
    pub fn terms(&self) -> Terms {
        Terms { every: self.manifest.every, renew: self.manifest.renew, max_age: self.manifest.max_age }
    }

    pub(crate) fn turn(&self) -> Turn {
        Turn { manifest: self.manifest.clone(), secrets: self.secrets.clone(), ends_period: false }
    }

    /// Puts a manifest in force, with a serial above all before and not below `serial`.
    pub(crate) fn enact(&mut self, now: u64, mut turn: Turn, serial: u64, handed: &[SecretKey]) -> Result<(), Error> {
        self.is_whole()?;
        let next = self.manifest.serial.checked_add(1).ok_or_else(|| Error::Misuse("no serial is left".into()))?;
        turn.manifest.serial = next.max(serial);
        turn.manifest.issued = now.max(self.manifest.issued);
        self.drop_idle(&mut turn.manifest);
        turn.secrets.keep_listed(&turn.manifest);
        let served = turn.secrets.sign(&turn.manifest, handed)?;
        self.begin_change()?;
        let signer = |manifest: &Manifest, period| manifest.key_of(period).map(|key| key.key);
        let again = self.ages.of(|period| signer(&self.manifest, period) != signer(&turn.manifest, period));
        let secrets = turn.secrets.to_bytes().to_vec();
        let mut changes = vec![(b"m".to_vec(), Some(served.clone())), (b"s".to_vec(), Some(secrets))];
        (self.manifest, self.secrets) = (turn.manifest, turn.secrets);
        self.sign(&again, false, &mut changes)?;
        if turn.ends_period {
            self.end_period(now, &mut changes)?;
        }
        changes.push(self.state());
        self.commit(changes)?;
        self.served = served;
        Ok(())
    }

    /// Takes the keys off a manifest of which nothing stands, and the oldest ones where there are too many.
    fn drop_idle(&self, manifest: &mut Manifest) {
        // The last summary is signed by the key of the period before the open one.
        let last = self.period.number.saturating_sub(1);
        let is_idle = |key: &SigningKey| key.until_period <= last && self.signed_by(key) == 0;
        manifest.keys.retain(|key| !is_idle(key));
        let excess = manifest.keys.len().saturating_sub(GROUPS_MAX);
        manifest.keys.drain(..excess);
    }

    /// How many signatures of a key stand.
    pub(crate) fn signed_by(&self, key: &SigningKey) -> u64 {
        self.ages.count(key.from_period, key.until_period)
    }
}
