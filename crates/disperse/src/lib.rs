//! Tables over several clouds that none of them can read (StealthDB, Spillner and others, 2015).
//!
//! ```text
//! value --coding--> fragments --placement--> providers          question --rewriting--> questions --> answers --> rows
//! ```
//! - [`Declaration`] is what was said of a table, [`Placement`] where its fragments go, [`Coder`] what its owner makes of values and
//!   of fragments.
//! - [`Table`] asks [`Provider`]s and checks what they say; [`State`] is what its owner remembers.
//! - [`coding`]: how values become fragments. [`fragments`]: what providers hold and are asked.
#![forbid(unsafe_code)]

mod asked;
mod catalogue;
mod claims;
mod coder;
pub mod coding;
mod compared;
mod declaration;
mod disputed;
mod errands;
mod exact;
mod first;
mod folder;
mod fragment_file;
pub mod fragments;
mod gathered;
mod goal;
mod kept;
mod keys;
mod lateness;
mod layout;
pub mod leakage;
mod metered;
mod opened;
mod opening;
mod packed;
mod pieced;
mod placement;
mod plain;
mod provider;
mod remembered;
mod shown;
mod state;
mod stored;
mod sums;
mod table;
mod watch;
mod whole;

pub use catalogue::{Catalogue, Contents, Shown, TableNumber, Told};
pub use claims::{Claim, Client, above, beside_standing, rivals};
pub use coder::{Coder, Common, Epochs, PREFIX_CHARACTERS_MAX, Unfit};
pub use compared::Compared;
pub use declaration::{Column, Declaration, Distribution, Kind, Operations, ROWS_MAX_DEFAULT};
pub use errands::{ByErrands, Errands};
pub use exact::sum_of;
pub use first::First;
pub use folder::Folder;
pub use fragment_file::FILE_BYTES_MAX;
pub use goal::Goal;
pub use kept::{Damaged, Kept, Records};
pub use keys::{Epoch, Purpose, Scope, Secret};
pub use lateness::Lateness;
pub use layout::Layout;
pub use metered::{Metered, Used};
pub use opening::{open_cloud, whole_url};
pub use placement::{Coding, Fragment, Placement, Refusal};
pub use plain::{Plain, Value, from_float, to_float};
pub use provider::{Failure, MemoryProvider, Provider};
pub use state::{Rows, State, Untold};
pub use stored::{Store, StoredProvider};
pub use sums::Sum;
pub use table::{Asking, Coded, Condition, Fault, Found, Report, Table, Unanswered};
pub use watch::{Patient, Watch};
