//! For tests alone: servers of others, started for one test and gone with it.
//!
//! What is not installed is told and not tested; in CI that is a failure.
#![forbid(unsafe_code)]

mod certificates;
mod postgres;
mod process;
mod s3;
mod server;
mod sftp;
mod webdav;

pub use certificates::{Certificates, certificates};
pub use postgres::PostgresServer;
pub use s3::S3Server;
pub use sftp::SftpServer;
pub use webdav::WebDavServer;

/// Whether a missing server is a failure.
fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|ci| ci == "true")
}
