//! What a mirror's store has to do.

use std::fmt;
use std::sync::Arc;

use counterfoil_mirror::wire::State;
use counterfoil_proof::bytes::{Reader, Writer};
use counterfoil_proof::{Definition, Digest, Malformed};

/// By which name a table is asked for: 32 bytes of an owner, and the table's name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TableName {
    /// [`counterfoil_proof::Owner::bytes`].
    pub owner: [u8; 32],
    /// The table's name.
    pub name: String,
}

/// What a store keeps of a table beside its entries and summaries.
#[derive(Clone, PartialEq, Eq)]
pub struct Kept {
    /// How far the mirror has come.
    pub state: State,
    /// The owner's open period.
    pub open: u64,
    /// That of the oldest signature: readers need the summaries from there on.
    pub oldest: u64,
    /// The serial of the manifest.
    pub serial: u64,
    /// The digest of the table's definition.
    pub definition: Digest,
    /// The manifest.
    pub manifest: Vec<u8>,
}

impl Kept {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.byte(1).string(&self.state.to_bytes()).number(self.open).number(self.oldest).number(self.serial);
        writer.raw(&self.definition).string(&self.manifest);
        writer.0
    }

    /// Reads them.
    ///
    /// # Errors
    /// [`StoreError::Damaged`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        let mut reader = Reader::new(bytes, "what is kept of a table");
        if reader.byte()? != 1 {
            return Err(reader.malformed().into());
        }
        let state = State::from_bytes(reader.string()?)?;
        let (open, oldest, serial) = (reader.number()?, reader.number()?, reader.number()?);
        let (definition, manifest) = (reader.array()?, reader.string()?.to_vec());
        reader.end()?;
        Ok(Self { state, open, oldest, serial, definition, manifest })
    }
}

/// An entry's place in an order: the order's number, and a position's bytes.
pub type Place = (u8, Vec<u8>);

/// An entry: its record's number, its bytes, its places in the table's orders.
pub type Placed = (u64, Vec<u8>, Vec<Place>);

/// What a store is to do in one transaction.
pub struct StoreChange {
    /// Whether all that was there of the table goes first.
    pub is_anew: bool,
    /// What is kept of it from now on.
    pub kept: Kept,
    /// Summaries by period.
    pub summaries: Vec<(u64, Vec<u8>)>,
    /// Entries that come, or come instead of others.
    pub put: Vec<Placed>,
    /// Numbers of entries that go.
    pub gone: Vec<u64>,
    /// What the table is: it tells the places of entries that were there before.
    pub definition: Arc<Definition>,
}

/// Why an update is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// It does not begin where the mirror stands.
    Conflict,
    /// It is not one that this mirror takes: why.
    Forbidden(String),
    /// It makes no sense: why.
    Malformed(String),
}

/// What is called with an entry's position and bytes, and says whether to go on.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<bool, StoreError> + 'a;

/// A table as it was at one moment, whatever is written meanwhile.
pub trait Reading: Send {
    /// What is kept of it.
    fn kept(&self) -> &Kept;

    /// The summary of a period, if it is there.
    ///
    /// # Errors
    /// [`StoreError`].
    fn summary(&mut self, period: u64) -> Result<Option<Vec<u8>>, StoreError>;

    /// Visits entries of an order from `from` on, ascending.
    ///
    /// # Errors
    /// [`StoreError`], and those of `visit`.
    fn upward(&mut self, order: u8, from: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError>;

    /// Visits entries of an order before `before`, descending.
    ///
    /// # Errors
    /// [`StoreError`], and those of `visit`.
    fn downward(&mut self, order: u8, before: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError>;
}

/// What of a table's orders is not what it was before an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touched {
    /// All of it.
    All,
    /// Places where entries were, and where they are now.
    Places(Vec<Place>),
}

impl Touched {
    /// What a change touches, whose entries were in these places before.
    pub(crate) fn by(change: &StoreChange, mut before: Vec<Place>) -> Self {
        if change.is_anew {
            return Self::All;
        }
        before.extend(change.put.iter().flat_map(|(_, _, places)| places.iter().cloned()));
        Self::Places(before)
    }
}

/// Decides from what is kept of a table, if it is known, what an update does; nothing where it was done already. It may be asked again: where
/// another update came first, nothing of what was decided before is there.
pub type Decide<'a> = dyn Fn(Option<&Kept>) -> Result<Option<&'a StoreChange>, Refused> + 'a;

/// Where a mirror keeps its tables.
pub trait Store: Send + Sync {
    /// A table of this name as it is now; none if there is none.
    ///
    /// # Errors
    /// [`StoreError`].
    fn read(&self, name: &TableName) -> Result<Option<Box<dyn Reading>>, StoreError>;

    /// Does in one transaction what `decide` says of the table that has one of `names`, or of a new one; afterwards it has all
    /// of them. A cut leaves all of it or nothing; when this returns, it is durable. Gives the places that it touched.
    ///
    /// # Errors
    /// [`StoreError`]; within it, that `decide` refused.
    fn update(
        &self,
        names: &[TableName],
        tables_max: u64,
        decide: &Decide<'_>,
    ) -> Result<Result<Touched, Refused>, StoreError>;
}

/// What can go wrong with a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// It cannot be read or written: what it said.
    Failed(String),
    /// It does not hold what was put there.
    Damaged(&'static str),
    /// Others changed the same at once, and came first: nothing was done.
    Overtaken,
    /// An answer would take more bytes or time than a limit says.
    TooMuch,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(what) => f.write_str(what),
            Self::Damaged(what) => write!(f, "damaged: {what}"),
            Self::Overtaken => f.write_str("others change the same table all the time: try again"),
            Self::TooMuch => f.write_str("the answer would be larger, or take longer, than this mirror allows"),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<Malformed> for StoreError {
    fn from(malformed: Malformed) -> Self {
        Self::Damaged(malformed.0)
    }
}
