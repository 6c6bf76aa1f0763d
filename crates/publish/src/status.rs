//! How a publication stands.

use counterfoil_proof::{Owner, SigningKey};

use crate::ledger::Ledger;
use crate::publication::Publication;

/// How a publication stands: nothing in it is secret.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Status {
    /// By which name readers know the owner.
    pub owner: Owner,
    /// Another name that leads to the table, while the root changes.
    pub owner_before: Option<Owner>,
    /// Whether the ledger holds the root's secret; otherwise it is asked for.
    pub has_root: bool,
    /// The manifest's serial.
    pub serial: u64,
    /// Signing keys by their periods, with how much stands that each signed: records or their groups, nodes, filters.
    pub keys: Vec<(SigningKey, u64)>,
    /// Milliseconds since 1970 (UTC) when the key of the open period expires.
    pub expires: u64,
    /// The open period.
    pub open_period: u64,
    /// Milliseconds since 1970 (UTC) at the end of the last period; none in the first one.
    pub last_ended: Option<u64>,
    /// The first period whose summary readers need.
    pub oldest_period: u64,
    /// Milliseconds since 1970 (UTC) at the end of the period of the oldest signature; none if that one is open.
    pub oldest_signature: Option<u64>,
    /// Records that changed in the open period, or whose neighbours did.
    pub open_changes: u64,
    /// Signatures made in the open period, renewals included.
    pub open_signatures: u64,
}

impl<L: Ledger> Publication<L> {
    /// How it stands.
    #[must_use]
    pub fn status(&self) -> Status {
        let open = self.period.number;
        Status {
            owner: self.owner(),
            owner_before: self.manifest.roots.get(1).map(Owner::of),
            has_root: self.has_root(),
            serial: self.manifest.serial,
            keys: self.manifest.keys.iter().map(|key| (key.clone(), self.signed_by(key))).collect(),
            expires: self.manifest.key_of(open).map_or(0, |key| key.expires),
            open_period: open,
            last_ended: (open > 0).then_some(self.last_ended),
            oldest_period: self.oldest_period(),
            oldest_signature: self.ages.oldest().and_then(|oldest| self.ended.get(&oldest).copied()),
            open_changes: self.period.noted.values().filter(|noted| noted.changed).count() as u64,
            open_signatures: self.period.messages.len() as u64,
        }
    }
}
