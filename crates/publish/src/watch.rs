//! Who watches while an owner signs: a million signatures take minutes.

use counterfoil_proof::{Hint, Message, Signature};

use crate::error::Error;
use crate::ledger::Ledger;
use crate::publication::Publication;

/// Signatures between two looks: a tenth of a second.
const SIGNED_AT_ONCE: usize = 512;

/// Is told how many signatures were made since the publication was opened; no longer goes on once it says false.
pub type Watch = Box<dyn FnMut(u64) -> bool + Send>;

/// How many signatures were made, and who watches.
#[derive(Default)]
pub(crate) struct Signed {
    count: u64,
    watch: Option<Watch>,
}

impl<L: Ledger> Publication<L> {
    /// Lets somebody watch, and call a change off. One that is called off has not happened: what was signed for it never leaves,
    /// and the publication is to be opened anew, as after every change that failed.
    pub fn watch(&mut self, watch: Watch) {
        self.signed.watch = Some(watch);
    }

    /// Signatures made since it was opened: of rows and their neighbours, nodes and filters. Manifests and summaries have theirs.
    #[must_use]
    pub fn signed(&self) -> u64 {
        self.signed.count
    }

    /// Signs messages with the key of the open period.
    pub(crate) fn sign_all(&mut self, messages: &[Message]) -> Result<Vec<(Signature, Hint)>, Error> {
        let mut signatures = Vec::with_capacity(messages.len());
        for part in messages.chunks(SIGNED_AT_ONCE) {
            let Signed { count, watch } = &mut self.signed;
            if watch.as_mut().is_some_and(|goes_on| !goes_on(*count)) {
                return Err(Error::CalledOff);
            }
            signatures.extend(self.signing()?.sign_all(part));
            self.signed.count += part.len() as u64;
        }
        Ok(signatures)
    }
}
