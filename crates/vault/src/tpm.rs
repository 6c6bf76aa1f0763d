//! A TPM 2.0, spoken to directly: no library of the system is needed to build or to run.
//!
//! ```text
//! Tpm -> Talk = Link (device or socket) + Session (MAC of every answer, cipher for what is secret)
//!        index:   a counter and what it stands for, in the TPM's own memory      -> TpmCounter
//!        primary: keys that this TPM alone can make                             -> KeyKeeper
//! ```
//! What is trusted is the TPM, from the moment in which a counter or slot was made in it: whoever answered *then* is the
//! one that later answers must come from. (TPM 2.0 Library Specification, parts 1 to 3; the TCG's profile for PC clients
//! makes all ten commands used here mandatory.)

use std::path::{Path, PathBuf};
use std::vec::Vec;

use zeroize::Zeroizing;

use crate::{KeptSecret, KeyKeeper, TpmError};

mod curve;
mod index;
mod link;
mod primary;
mod session;
mod wire;

use curve::Agreed;
pub(crate) use index::{Found, Index};
use link::Link;
use primary::{Primary, Template};
use session::{Command, Session, flush};

/// What a TPM calls a thing: hash algorithm and hash of its public part.
type Name = [u8; 34];

/// The handle of the owner, to whom all that we make belongs.
const OWNER: u32 = 0x4000_0001;

/// Where a TPM is, and its owner's password. Nothing is asked of it before it is used.
#[derive(Clone)]
pub struct Tpm {
    path: PathBuf,
    owner: Zeroizing<Vec<u8>>,
}

impl Tpm {
    /// Where systems have it: through the kernel's resource manager, so that others can use it too.
    pub const USUAL_PLACE: &'static str = "/dev/tpmrm0";

    /// The TPM behind a character device, or behind the socket of an emulator.
    pub fn at(path: &Path) -> Tpm {
        Tpm { path: path.into(), owner: Zeroizing::default() }
    }

    /// With the password of its owner, where there is one: counters and slots are made under it. At most 32 bytes.
    #[must_use]
    pub fn owned_by(self, password: &[u8]) -> Tpm {
        Tpm { owner: Zeroizing::new(password.to_vec()), ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a way whose answers are authentic to whoever shares a secret with the TPM.
    pub(crate) fn talk(&self) -> Result<Talk, TpmError> {
        let mut link = Link::open(&self.path)?;
        let session = Session::start(&mut link, None)?;
        Ok(Talk { link, session, owner: self.owner.clone() })
    }

    /// Opens a way on which secrets can be told to the holder of a key, and by him; answers the name of that key, too.
    pub(crate) fn salted_talk(&self) -> Result<(Talk, Name), TpmError> {
        let mut talk = self.talk()?;
        let key = talk.load(&Template::SALT)?;
        let salted =
            Agreed::with(&key.point).and_then(|agreed| Session::start(&mut talk.link, Some((key.handle, &agreed))));
        flush(&mut talk.link, key.handle)?;
        let plain = std::mem::replace(&mut talk.session, salted?);
        plain.end(&mut talk.link)?;
        Ok((talk, key.name))
    }
}

/// A way to the TPM with a session on it, both closed when dropped. A way that is not closed keeps others out.
pub(crate) struct Talk {
    link: Link,
    session: Session,
    owner: Zeroizing<Vec<u8>>,
}

impl Talk {
    fn run(&mut self, secret: &[u8], command: &Command<'_>) -> Result<Zeroizing<Vec<u8>>, TpmError> {
        self.session.run(&mut self.link, secret, command).map(|answer| answer.parameters)
    }

    fn load(&mut self, template: &Template<'_>) -> Result<Primary, TpmError> {
        Primary::load(&mut self.link, &mut self.session, &self.owner, template)
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // A TPM has few sessions. One that is gone, or cannot be reached, has nothing to be let go of.
        let _ = self.session.end(&mut self.link);
    }
}

impl KeyKeeper for Tpm {
    /// The pin is the name of the key that salts sessions: another TPM has another one, and so has this one once it was
    /// cleared. Somebody in between cannot answer for it.
    fn make(&self, purpose: &[u8; 32]) -> Result<KeptSecret, TpmError> {
        let (mut talk, name) = self.salted_talk()?;
        let key = talk.load(&Template::agreement(purpose))?;
        let agreed = Agreed::with(&key.point);
        // What cannot be asked for again is not worth a slot.
        let again = agreed
            .as_ref()
            .map_err(|error| *error)
            .and_then(|agreed| key.agree(&mut talk.link, &mut talk.session, &agreed.ours));
        flush(&mut talk.link, key.handle)?;
        let (agreed, again) = (agreed?, again?);
        if *again != *agreed.secret {
            return Err(TpmError::NotAuthentic { operation: "asked to open a key slot" });
        }
        let mut pin = [0; 32];
        pin.copy_from_slice(&name[2..]);
        Ok(KeptSecret { secret: agreed.secret.clone(), point: agreed.ours, pin })
    }

    fn find(
        &self,
        purpose: &[u8; 32],
        point: &[u8; 64],
        pin: &[u8; 32],
    ) -> Result<Option<Zeroizing<[u8; 32]>>, TpmError> {
        let (mut talk, name) = self.salted_talk()?;
        if name[2..] != pin[..] {
            return Ok(None);
        }
        let key = talk.load(&Template::agreement(purpose))?;
        let secret = key.agree(&mut talk.link, &mut talk.session, point);
        flush(&mut talk.link, key.handle)?;
        secret.map(Some)
    }
}
