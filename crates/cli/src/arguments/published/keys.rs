//! Options for the keys of an owner.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const KEYGEN_HELP: &str = "\
Without it the root key is made with the first table, and lies in its state. A root key of its own can be kept where no table \
is published, on a medium in a safe: it is asked for when keys change, and never otherwise. And it can be the name of one owner of \
many tables, each with a state of its own: `counterfoil publish FILE --root ROOT`. ROOT is a sealed database with a key as \
every database has one. Keep a copy of it: without it no key can be changed.";

const ROTATE_HELP: &str = "\
A new signing key signs from now on; what the old one signed counts until that expires, and is signed again in time. \
With --new-root it is the root key that changes, and so the owner's name: both names lead to the table until --finish gives the \
old one up. Tell readers the new one in between.";

const REVOKE_HELP: &str = "\
For a signing key that somebody else may know. A new key signs everything again that it signed. Readers who have seen this do not \
believe the old key any more; those who are kept from seeing it do until it expires.";

const TERMS_HELP: &str = "\
For a root key that is kept elsewhere: PUBLISH, which would change them otherwise, cannot ask for it. What is not said stays as it is.";

/// Where a root key is that is kept elsewhere than in the state.
#[derive(Args, Debug, Clone)]
pub struct RootKey {
    /// Root key that is kept elsewhere, as `publish keygen` made it; may be given again while it changes
    #[arg(long = "root", value_name = "ROOT")]
    pub places: Vec<String>,
    /// Key file of ROOT, if it is not that of the state
    #[arg(long, value_name = "FILE")]
    pub root_key_file: Option<PathBuf>,
    /// File with the passphrase of ROOT, if it is not that of the state
    #[arg(long, value_name = "FILE")]
    pub root_passphrase_file: Option<PathBuf>,
}

/// How servers are reached.
#[derive(Args, Debug)]
pub struct Reach {
    /// Authority that vouches for servers at https://, in PEM, instead of those that this machine trusts
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
}

/// How those are reached who are told of a table, and what they get beside it.
#[derive(Args, Debug)]
pub struct Delivery {
    #[command(flatten)]
    pub reach: Reach,
    /// File with the key for buckets (s3://): lines such as AWS_ACCESS_KEY_ID=... [default: the environment]
    #[arg(long, value_name = "FILE")]
    pub s3_secret_file: Option<PathBuf>,
    /// Put the verifier's page beside the table, as index.html: readers who open the folder in a browser find it
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
}

/// Where an owner's keys are.
#[derive(Args, Debug)]
pub struct StateOf {
    /// Database that holds the owner's keys and what was signed
    pub state: String,
    /// Table that PUBLISH published, if the database is that of the table
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
}

/// A published table, and who is to be told of what changes.
#[derive(Args, Debug)]
pub struct Owned {
    #[command(flatten)]
    pub of: StateOf,
    /// Folder to be brought up to date
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Mirror, or s3://BUCKET/PREFIX, to be brought up to date; may be given again
    #[arg(long, value_name = "URL")]
    pub to: Vec<String>,
    #[command(flatten)]
    pub root: RootKey,
    #[command(flatten)]
    pub delivery: Delivery,
}

#[derive(Subcommand, Debug)]
pub enum PublishAction {
    /// Make a root key that is kept elsewhere, and print the owner's name
    #[command(after_help = KEYGEN_HELP)]
    Keygen {
        /// Database to be made for it
        root: String,
        /// Take the root key out of this state instead of making one
        #[arg(long, value_name = "DB")]
        from: Option<String>,
        /// The table that PUBLISH published from there
        #[arg(long, requires = "from")]
        table: Option<String>,
    },
    /// Let a new signing key sign from now on, or change the root key
    #[command(after_help = ROTATE_HELP)]
    Rotate {
        #[command(flatten)]
        owned: Owned,
        /// Change the root key to this one, as `publish keygen` made it
        #[arg(long, value_name = "ROOT")]
        new_root: Option<String>,
        /// End the change of the root key: the old name leads nowhere any more
        #[arg(long, conflicts_with = "new_root")]
        finish: bool,
    },
    /// Withdraw a signing key that somebody else may know
    #[command(after_help = REVOKE_HELP)]
    Revoke {
        #[command(flatten)]
        owned: Owned,
        /// The key, as `publish status` shows it [default: the one that signs now]
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
    },
    /// Change how often a published table is looked at, when signatures are renewed, and when they do not count any more
    #[command(after_help = TERMS_HELP)]
    Terms {
        #[command(flatten)]
        owned: Owned,
        /// Minutes between two lists of changes, of a table that PUBLISH published
        #[arg(long, value_name = "MINUTES", requires = "table", value_parser = clap::value_parser!(u32).range(1..=5_270_400))]
        every: Option<u32>,
        /// Days after which signatures are made again
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36500))]
        renew: Option<u32>,
        /// Days after which signatures do not count any more, longer than --renew
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36500))]
        max_age: Option<u32>,
    },
    /// Show the keys of a published table, and how it stands
    Status {
        #[command(flatten)]
        of: StateOf,
    },
}
