//! A shelf made of files that any web server can serve, from a folder or from wherever else files lie under names.
//!
//! ```text
//! about.txt          what this folder is, for people
//! manifest           the owner's signed word on the table
//! head               last period, and the names of the root pages of each order, of the nodes of those that have some, of the
//!                    groups if there are any, and of the filters; replaced as the last step of an update
//! summaries/N        the signed summaries of periods 64 N to 64 N + 63
//! pages/NAME         a page: entries, nodes, groups or filters of an order, or names of pages; its name is the hash of its bytes
//! ```
//! Pages never change: an update writes new ones, then the head. A reader with an old head finds the pages of that head,
//! since those of the head before are kept. A page ends where an entry's number says so and not after a count, so that a
//! row that comes or goes changes its page and those above, and not all behind it.

mod destination;
mod layout;
mod reader;
mod writer;

pub use destination::{Destination, OwnFolder};
pub use layout::{FILE_BYTES_MAX, Head, SUMMARIES_PER_FILE};
pub use reader::{Fetch, Folder, Site, SiteError, Unread};
pub use writer::{write, write_to};
