//! What brings published tables over a network: to their readers, and from their owners.
//!
//! - [`Http`] fetches files of a web server and asks mirrors, in clear (`http://`) or through TLS (`https://`).
//! - [`BucketSite`] is a folder of a published table in a bucket of S3, to which an [`Account`] may write.
//! - [`VerifierPage`] lies beside a table, for readers who open its folder in a browser.
//! - [`Patience`] says how long servers are waited for in all.
//! - [`Authorities`] says whom a reader believes that a server is the one it was asked for.
//!
//! TLS keeps what is asked from those on the way. Rows need none: they are checked against the owner's name, whoever brings
//! them. So nothing here decides what is true; it has bounds of time and size, and tells what went wrong where.
#![forbid(unsafe_code)]

mod authorities;
mod bucket;
mod error;
mod http;
mod page;
mod patience;
mod vouched;

pub use authorities::Authorities;
pub use bucket::{Account, BucketAddress, BucketSite};
pub use error::{Denial, Error};
pub use http::Http;
pub use page::VerifierPage;
pub use patience::{Patience, Spent};
