//! A site in a bucket: files of a published table as objects of a server that speaks S3.
//!
//! ```text
//! s3://BUCKET/PREFIX + pages/NAME, summaries/N, manifest, ... -> objects; the head is put when all others are there
//! ```
//! 1. The head is put last, and alone: a cut at any request leaves readers the table of before, as a whole.
//! 2. Requests are signed one by one and count for minutes; the secret signs and is never sent.
//! 3. What the server says has bounds, and each request has a number of tries and a time for each.

mod account;
mod address;
mod request;
mod site;

pub use account::Account;
pub use address::BucketAddress;
pub use site::BucketSite;
