//! Options of owners, readers and mirrors of published tables.

mod keys;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use counterfoil_proof::{GROUP_ROWS, GROUP_ROWS_MAX, GROUP_ROWS_MIN, Scheme};

pub use keys::{Delivery, Owned, PublishAction, Reach, RootKey, StateOf};

use super::{PRINTED, Shape, column_type, formats, seconds};

const PUBLISH_HELP: &str = "\
DIR can be put on any web server: whoever asks it learns whether every row is yours, whether one is missing, and as of when. \
The owner's name, foilpub1..., is printed: tell it to readers in a way that they trust. It is all they need.

The owner's keys, and what was signed when, are in a database of their own, DIR.foil unless --state names another. It is made \
on first use, with a key as every database has one. Keep it, back it up, and keep it off the web server: who has it and its \
key can sign for you, and without it nobody can. Publishing again brings DIR up to date: rows are matched by the first \
--order-by, and what is equal is not signed again. A file that is called like one of the commands is reached by ./NAME. \
--to s3://BUCKET/PREFIX writes the folder into a bucket, with the key of AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, \
at AWS_ENDPOINT_URL if that is set, else at Amazon's in AWS_REGION. docs/publish.md tells the rest.";

const ASK_HELP: &str = "\
One SELECT of one published table, or of two of one owner that are joined (JOIN or LEFT JOIN ... ON a.x = b.y, where y comes first in \
an order): WHERE, ORDER BY, LIMIT, DISTINCT, and aggregates, also of groups. Rows go to standard \
output and only if they are the owner's, all of them, and no older than is told; otherwise the exit code is 3 and the reason is on \
standard error. The server may be anybody's: an address that begins with https:// or http://, or a folder. https:// hides what is asked \
from those on the way; rows are checked alike.

What was seen of a table is remembered in COUNTERFOIL_STATE_DIR (see `counterfoil --help`): no server can show anything \
older afterwards. --save keeps rows with their proof, and --check looks at them again, without a network, for as long \
as the file is there. docs/publish.md tells what is proved and what is not.";

const MIRROR_HELP: &str = "\
A mirror knows no secret, and nobody has to trust it: whatever it gets wrong, readers refuse. Owners send their tables with \
`counterfoil publish FILE --to http://example.com`, signed; readers ask with `counterfoil ask --server http://example.com`. With \
--tls-certificate-file and --tls-key-file both speak https://, and nobody on the way sees what is asked; a web server in front of it does as \
well. docs/mirror.md tells the rest.";

/// What `--sign` names.
fn scheme(text: &str) -> Result<Scheme, String> {
    let rows = match text {
        "record" => return Ok(Scheme::PerRecord),
        "attribute" => return Ok(Scheme::PerAttribute),
        "group" => Some(GROUP_ROWS),
        _ => text.strip_prefix("group:").and_then(|rows| rows.parse().ok()),
    };
    let rows = rows.filter(|rows| (GROUP_ROWS_MIN..=GROUP_ROWS_MAX).contains(rows));
    rows.map(Scheme::Group).ok_or_else(|| "one of record, attribute, group, or group:2 to group:64".into())
}

#[derive(Args, Debug)]
#[command(after_help = PUBLISH_HELP, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(mut_arg("format", |argument| formats(argument, "csv, json, jsonl, parquet or arrow")))]
pub struct Publish {
    #[command(subcommand)]
    pub action: Option<PublishAction>,
    /// CSV, JSON lines or Parquet ("-" is standard input); several are the rows of one table
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Columns by which readers ask, separated by commas; may be given again for another order
    #[arg(long, value_name = "COLS")]
    pub order_by: Vec<String>,
    /// What one signature covers: record, attribute, group or group:ROWS (2 to 64) [default: record for a new table]
    #[arg(long, value_name = "WHAT", value_parser = scheme)]
    pub sign: Option<Scheme>,
    /// Folder to be served
    #[arg(long, value_name = "DIR", required_unless_present = "to")]
    pub out: Option<PathBuf>,
    /// Mirror to be brought up to date, such as https://example.com, or a bucket, s3://BUCKET/PREFIX; may be given again
    #[arg(long, value_name = "URL")]
    pub to: Vec<String>,
    /// Database that holds the owner's keys and what was signed [default: DIR.foil]
    #[arg(long, value_name = "DB", required_unless_present = "out")]
    pub state: Option<String>,
    /// Name of the table [default: that of the file]
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// Type of a column of a new table, such as 'price=NUMERIC(10,2)'; may be given again
    #[arg(long = "type", value_name = "COL=TYPE", value_parser = column_type)]
    pub types: Vec<(String, String)>,
    /// Days after which signatures are made again [default: 90 for a new table]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36500))]
    pub renew: Option<u32>,
    /// Days after which signatures do not count any more, longer than --renew [default: they always do]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36500))]
    pub max_age: Option<u32>,
    /// Sign no totals along the first order: readers' COUNT, SUM, MIN, MAX and AVG take all rows then
    #[arg(long)]
    pub no_totals: bool,
    /// Sign no filters of values: readers' joins take rows for values that are not there, too
    #[arg(long)]
    pub no_filters: bool,
    #[command(flatten)]
    pub root: RootKey,
    #[command(flatten)]
    pub delivery: Delivery,
    #[command(flatten)]
    pub shape: Shape,
}

#[derive(Args, Debug)]
#[command(after_help = ASK_HELP, mut_arg("format", |argument| formats(argument, PRINTED)))]
pub struct Ask {
    /// SELECT
    #[arg(required_unless_present = "check")]
    pub sql: Option<String>,
    /// Server: an address such as https://example.com/prices, or a folder; of two tables a second one may be given
    #[arg(long, value_name = "URL", required_unless_present = "check", conflicts_with = "check")]
    pub server: Vec<String>,
    /// Owner of the table: foilpub1...
    #[arg(long, value_name = "OWNER", required = true)]
    pub owner: String,
    /// Refuse what is older, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "check")]
    pub max_age: Option<Duration>,
    /// How wrong the owner's clock and this one may be together, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    pub clock_error: Duration,
    /// How long servers may take in all, in seconds; a file of theirs has a minute
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "600", conflicts_with = "check")]
    pub timeout: Duration,
    /// Ask for the smallest proof: 96 bytes a signature less, and ten times as long to check
    #[arg(long, conflicts_with = "check")]
    pub compact: bool,
    /// Keep rows and proof in a new file
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    pub save: Option<PathBuf>,
    /// Look at a kept answer again
    #[arg(long, value_name = "FILE", conflicts_with = "sql")]
    pub check: Option<PathBuf>,
    /// Say how it is answered
    #[arg(long)]
    pub explain: bool,
    #[command(flatten)]
    pub reach: Reach,
    #[command(flatten)]
    pub shape: Shape,
}

#[derive(Args, Debug)]
pub struct Mirror {
    #[command(subcommand)]
    pub action: MirrorAction,
}

#[derive(Subcommand, Debug)]
pub enum MirrorAction {
    /// Serve until Ctrl-C
    #[command(after_help = MIRROR_HELP)]
    Serve(MirrorServe),
}

#[derive(Args, Debug)]
pub struct MirrorServe {
    /// File that holds the tables, or an address of PostgreSQL; without it, what COUNTERFOIL_MIRROR_STORE says
    #[arg(long, value_name = "PATH")]
    pub store: Option<String>,
    /// Address to listen at; a port alone is one of this machine's loopback address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: String,
    /// Owner whose tables are taken: foilpub1...; may be given again
    #[arg(long, value_name = "OWNER", required_unless_present = "allow_any")]
    pub allow: Vec<String>,
    /// Certificate in PEM, for https://, with those between it and an authority that readers know
    #[arg(long, value_name = "FILE", requires = "tls_key_file")]
    pub tls_certificate_file: Option<PathBuf>,
    /// Key of the certificate in PEM, without a passphrase
    #[arg(long, value_name = "FILE", requires = "tls_certificate_file")]
    pub tls_key_file: Option<PathBuf>,
    /// Take everybody's tables: strangers can fill the disk
    #[arg(long, conflicts_with = "allow")]
    pub allow_any: bool,
}
