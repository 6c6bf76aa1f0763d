//! The root key: how readers learn another one, and how it is kept elsewhere.
//!
//! A manifest with two roots is signed by both. Who knows the old name accepts it, and reads in it the new one; after
//! [`Publication::finish_root_rotation`] the old name leads to nothing any more.

use counterfoil_proof::{Owner, SecretKey};
use zeroize::Zeroizing;

use crate::error::Error;
use crate::ledger::Ledger;
use crate::publication::Publication;

impl<L: Ledger> Publication<L> {
    /// Begins to change the root key: manifests are signed by both until [`Publication::finish_root_rotation`].
    ///
    /// The new key is kept by whoever hands it in: the ledger never has it. `roots` are the root keys that are not in the
    /// ledger.
    ///
    /// # Errors
    /// [`Error::RootNeeded`]; [`Error::Misuse`]: the root is being changed already, or the new one is the old one; then
    /// nothing has changed. After any other one the publication is to be opened anew.
    pub fn rotate_root(&mut self, now: u64, new: &SecretKey, roots: &[SecretKey]) -> Result<(), Error> {
        let public = new.public();
        let [old] = self.manifest.roots[..] else {
            return Err(Error::Misuse("the root key is being changed already: finish that first".into()));
        };
        if old == public {
            return Err(Error::Misuse("the root key that is there already".into()));
        }
        let mut turn = self.turn();
        turn.manifest.roots.insert(0, public);
        turn.secrets.roots.insert(0, (public, None));
        let handed: Vec<SecretKey> = roots.iter().chain([new]).cloned().collect();
        self.enact(now, turn, 0, &handed)
    }

    /// Ends the change of the root key: the old one is forgotten, and readers who only know its name are told that the
    /// manifest is another owner's.
    ///
    /// # Errors
    /// [`Error::RootNeeded`]: the new one is not here; [`Error::Misuse`]: no root is being changed. After any other one the
    /// publication is to be opened anew.
    pub fn finish_root_rotation(&mut self, now: u64, roots: &[SecretKey]) -> Result<(), Error> {
        if self.manifest.roots.len() < 2 {
            return Err(Error::Misuse("no root key is being changed".into()));
        }
        let mut turn = self.turn();
        turn.manifest.roots.truncate(1);
        turn.secrets.roots.truncate(1);
        self.enact(now, turn, 0, roots)
    }

    /// Hands the secret of the root key to `keep`, 32 bytes (of each root, the newest first, while it changes), and forgets
    /// it in the ledger once `keep` says that it is sealed elsewhere and durable. From then on whatever makes a manifest
    /// asks for it ([`SecretKey::from_bytes`]).
    ///
    /// A cut between both leaves it in both places: it is never in none.
    ///
    /// # Errors
    /// [`Error::RootNeeded`]: it is not here; that of `keep`, and then nothing has changed; those of the ledger.
    pub fn export_root(&mut self, keep: impl FnOnce(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        self.is_whole()?;
        let mut bytes = Zeroizing::new(Vec::with_capacity(32 * self.secrets.roots.len()));
        for (_, secret) in &self.secrets.roots {
            bytes.extend_from_slice(&*Zeroizing::new(secret.as_ref().ok_or(Error::RootNeeded)?.to_bytes()));
        }
        keep(&bytes)?;
        self.begin_change()?;
        self.secrets.roots.iter_mut().for_each(|(_, secret)| *secret = None);
        let secrets = self.secrets.to_bytes().to_vec();
        self.commit(vec![(b"s".to_vec(), Some(secrets))])
    }

    /// Whether the ledger holds the secrets of all roots.
    #[must_use]
    pub fn has_root(&self) -> bool {
        self.secrets.roots.iter().all(|(_, secret)| secret.is_some())
    }

    /// By which name readers know the owner: that of the newest root.
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner::of(&self.manifest.roots[0])
    }
}
