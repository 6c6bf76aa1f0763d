//! The command line as people type it: commands, options, and what `counterfoil DB` stands for.
//!
//! `counterfoil DB [SQL]` is short for `counterfoil sql DB [SQL]`; [`expand`] puts the missing word in before the parser
//! sees the line. A database whose name is that of a command is reached by `./NAME`.

mod provider;
mod published;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand, ValueEnum};
use counterfoil::DeviceShape;

pub use provider::{Provider, ProviderAction, ProviderServe, ProviderToken};
pub use published::{
    Ask, Delivery, Mirror, MirrorAction, MirrorServe, Owned, Publish, PublishAction, Reach, RootKey, StateOf,
};

// One line a paragraph: the terminal's width decides where they break.
const AFTER_HELP: &str = "\
DB is a file, :memory:, or block:/dev/X. `counterfoil DB [SQL]` is short for `counterfoil sql DB [SQL]`.

Keys are looked for in this order: --key-file, --passphrase-file, COUNTERFOIL_KEY_FILE, COUNTERFOIL_PASSPHRASE_FILE, \
$CREDENTIALS_DIRECTORY/counterfoil.key, COUNTERFOIL_KEY (64 hex digits), COUNTERFOIL_PASSPHRASE, this machine's TPM \
(where `key add --tpm` made a slot for it), and a prompt on a terminal. A key file is 32 bytes, or 64 hex digits. A recovery code is given like a passphrase.

The one-way counter of a database lies in COUNTERFOIL_STATE_DIR, else $XDG_STATE_HOME/counterfoil, else \
~/.local/state/counterfoil, or, after `init --counter tpm`, in the TPM: the one that COUNTERFOIL_TPM names, else \
/dev/tpmrm0. If its owner has a password, COUNTERFOIL_TPM_PASSWORD_FILE names the file that holds it.

Exit codes: 0 done, 1 wrong use or bad input, 2 device or permission, 3 not to be trusted, 4 locked by another writer, \
130 interrupted.";

const SQL_HELP: &str = "\
Each -c is one transaction. Files and standard input commit statement by statement and stop at the first error, whose \
line is named. With nothing to run, a terminal gets a shell: \\? lists its commands.

Rows are printed as a table on a terminal, else as CSV with a line of names, in which NULL is nothing and an empty text \
is \"\". With json each result is one array, with jsonl each row an object on a line of its own, with arrow each \
result an IPC stream.";

const IMPORT_HELP: &str = "\
Each file is one transaction, unless --batch is given. The name says the format: .csv, .jsonl, .ndjson, .json, \
.parquet, .lp, .influx; anything else is read as CSV. What gzip or zip packed is unpacked. In CSV an empty field without quotes is \
NULL, \"\" is an empty text. Columns are matched by name, with --no-header by place.

Line protocol (.lp, .influx, or --format influx) names its tables itself: `counterfoil import DB FILE.lp`, and \
`counterfoil import DB - --format influx` for a pipe. Each measurement is a series table, made on its first line. One wrong \
line refuses its file; with --batch N, which commits every N rows, wrong lines are left out and told of at the end.";

const SERVE_HELP: &str = "\
--postgres: psql, drivers and tools of PostgreSQL; at an address that others can reach with --tls-certificate-file and \
--tls-key-file alone. docs/postgres.md tells the rest.

--influx: each measurement becomes a series table, made on its first line; what is answered with success is durable. Nothing is \
encrypted on the way: put a proxy that does in front of an address that others can reach. docs/influx.md tells the rest.

Who comes in shows the password, or for --influx the token, of a user that `counterfoil user add` made; without a user nothing is \
served, except with --no-auth to this machine. From its first write on, `serve` is the one process that writes; others read \
beside it.";

const EXPORT_HELP: &str = "\
The name says the format, unless --format does: .csv, .jsonl, .ndjson, .json (an object a line), .parquet, .arrow; \
anything else is written as CSV. A file gets its name when it is complete: until then it is called .export-XXXXXX, \
beside it.";

/// An SQL database in one sealed file.
#[derive(Parser, Debug)]
#[command(name = "counterfoil", version, after_help = AFTER_HELP, max_term_width = 110, disable_help_subcommand = true)]
#[command(subcommand_required = true, propagate_version = true)]
pub struct Arguments {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

/// Options that every command takes.
#[derive(Args, Debug, Clone)]
pub struct Common {
    /// Say nothing but results and errors
    #[arg(long, short, global = true, display_order = 900)]
    pub quiet: bool,
    /// Colour messages
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", display_order = 901)]
    pub color: Color,
    /// Key file: 32 bytes, or 64 hex digits
    #[arg(long, global = true, value_name = "FILE", help_heading = "Opening a database")]
    pub key_file: Option<PathBuf>,
    /// File that holds the passphrase
    #[arg(long, global = true, value_name = "FILE", help_heading = "Opening a database")]
    pub passphrase_file: Option<PathBuf>,
    /// Refuse where the one-way counter is absent
    #[arg(long, global = true, help_heading = "Opening a database")]
    pub require_counter: bool,
    /// Seconds to wait for another writer
    #[arg(long, global = true, value_name = "SECONDS", default_value = "5", value_parser = seconds, help_heading = "Opening a database")]
    pub lock_timeout: Duration,
    /// Memory for all that grows with the data, such as 64K or 1G
    #[arg(long, global = true, value_name = "SIZE", value_parser = size, help_heading = "Opening a database")]
    pub ram: Option<u64>,
}

/// When to colour.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    Auto,
    Always,
    Never,
}

/// How rows are written and read.
#[derive(Args, Debug, Clone)]
pub struct Shape {
    /// Format of rows
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    #[command(flatten)]
    pub fields: Fields,
}

/// Says which formats a command has: not all of them have all.
fn formats(argument: clap::Arg, known: &str) -> clap::Arg {
    argument.help(format!("Format of rows: {known}")).hide_possible_values(true)
}

/// Of rows that are printed.
const PRINTED: &str = "table, csv, json, jsonl or arrow";

/// How fields of text are written and read.
#[derive(Args, Debug, Clone)]
pub struct Fields {
    /// What stands for NULL
    #[arg(long, value_name = "STR", allow_hyphen_values = true)]
    pub null: Option<String>,
    /// No line of column names
    #[arg(long)]
    pub no_header: bool,
    /// What separates fields
    #[arg(long, value_name = "CHAR", default_value = ",", value_parser = delimiter)]
    pub delimiter: u8,
}

/// Formats of rows.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Table,
    Csv,
    Json,
    Jsonl,
    Arrow,
    Parquet,
    Influx,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run SQL: as given, from a file, from standard input, or in a shell
    Sql(Sql),
    /// Create a database
    Init(Init),
    /// Bring CSV, JSON lines, Parquet, Arrow or line protocol into tables
    Import(Import),
    /// Write a table, a query's rows or everything to files
    Export(Export),
    /// Keep records by name
    Kv(Kv),
    /// Authenticate every page, and check data against indexes both ways
    Verify(Verify),
    /// Show what is in the file, and draw it
    Inspect(Inspect),
    /// Merge and renew what pays, as is done in the background
    Reorganize(Only),
    /// Renew tables without what was deleted: the space is used again, and the file keeps its length
    Compact(Only),
    /// Compact, then say whether deleted rows are gone from the medium
    Purge(Only),
    /// Write a consistent copy, beside a writer, and check it
    Backup(Backup),
    /// Make a database of a backup, so that what it replaces is refused
    Restore(Restore),
    /// Write every row that authenticates, and a list of what is missing
    Salvage(Salvage),
    /// List, add, change and remove keys
    Key(KeyCommand),
    /// Make a key file
    Keygen(Keygen),
    /// Change the key that opened the database, or with --data the key that seals the data
    Rekey(Rekey),
    /// Show the one-way counter, bind it again, or forget it
    Counter(CounterCommand),
    /// Serve clients of PostgreSQL, and take rows from those of InfluxDB, such as Telegraf, until Ctrl-C
    Serve(Serve),
    /// Add, remove and list the users whom `serve` lets in
    User(UserCommand),
    /// Sign a table, so that others can serve it and everyone can check the answers
    Publish(Box<Publish>),
    /// Ask a server that nobody trusts about a published table, and check the answer
    Ask(Ask),
    /// Serve published tables of others, and answer questions about them with proofs
    Mirror(Mirror),
    /// Hold fragments of dispersed tables of others, as one of their clouds
    Provider(Provider),
    /// Show the main job on real flights, with every trick on the file caught
    Demo(Demo),
}

#[derive(Args, Debug)]
#[command(after_help = SQL_HELP, mut_arg("format", |argument| formats(argument, PRINTED)))]
pub struct Sql {
    /// Database
    pub db: String,
    /// Statements, as one transaction
    pub sql: Option<String>,
    /// Statements, each option as one transaction
    #[arg(short, long = "command", value_name = "SQL", allow_hyphen_values = true)]
    pub command: Vec<String>,
    /// File of statements, each committed for itself ("-" is standard input)
    #[arg(short, long, value_name = "FILE")]
    pub file: Vec<PathBuf>,
    /// Everything as one transaction
    #[arg(short = '1', long = "single-transaction")]
    pub one: bool,
    /// Refuse to write
    #[arg(long)]
    pub read_only: bool,
    #[command(flatten)]
    pub shape: Shape,
}

#[derive(Args, Debug)]
#[command(
    after_help = "A database being made is called DB.creating; what a killed init leaves under that name is taken \
away by the next one."
)]
pub struct Init {
    /// Database
    pub db: String,
    /// Bytes in a page, a power of two
    #[arg(long, value_name = "N", default_value = "4096", value_parser = size)]
    pub page_size: u64,
    /// How large it may become (such as 512M or 2G); without it, as large as the medium allows
    #[arg(long, value_name = "LIMIT", value_parser = size)]
    pub size: Option<u64>,
    /// Cipher: aes-256-gcm-siv, aes-256-gcm, chacha20-poly1305, ascon-aead128, aes-128-ocb3
    #[arg(long, value_name = "NAME", default_value = "aes-256-gcm-siv")]
    pub cipher: String,
    /// One-way counter: file, tpm, none
    #[arg(long, value_name = "KIND", default_value = "file")]
    pub counter: String,
    /// Make no recovery code
    #[arg(long)]
    pub no_recovery: bool,
    /// Take a block device even if something is on it
    #[arg(long)]
    pub erase: bool,
    /// Make the image of a device's flash instead: bytes of a page, pages of a block, blocks, and if need be how many of
    /// them are for the index, and how many ids for names
    #[arg(
        long,
        value_name = "PAGE,BLOCK,BLOCKS[,INDEX[,NAMES]]",
        value_parser = device,
        conflicts_with_all = ["page_size", "size", "no_recovery", "erase"]
    )]
    pub device: Option<DeviceShape>,
    /// The device has a generator: every opening draws keys of its own
    #[arg(long, requires = "device")]
    pub salted: bool,
}

#[derive(Args, Debug)]
#[command(after_help = IMPORT_HELP, mut_arg("format", |argument| formats(argument, "csv, json, jsonl, parquet, arrow or influx")))]
pub struct Import {
    /// Database
    pub db: String,
    /// TABLE FILE…; of line protocol FILE…; with --all, nothing ("-" is standard input)
    #[arg(value_name = "TABLE FILE")]
    pub what: Vec<PathBuf>,
    /// Create the table, with types that fit all lines of all files
    #[arg(long)]
    pub create: bool,
    /// Columns of the primary key of the table created, separated by commas
    #[arg(long, value_name = "COLS", requires = "create")]
    pub key: Option<String>,
    /// Engine of the table created: relation (the default) or series
    #[arg(long, value_name = "ENGINE", requires = "create")]
    pub engine: Option<String>,
    /// Type of a column of the table created, such as 'price=NUMERIC(10,2)'; may be given again
    #[arg(long = "type", value_name = "COL=TYPE", value_parser = column_type, requires = "create")]
    pub types: Vec<(String, String)>,
    /// Commit every N rows instead of once for each file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub batch: Option<u64>,
    /// Rebuild everything that `export --all` wrote into a folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["create", "key", "engine", "types", "batch"])]
    pub all: Option<PathBuf>,
    /// Unit of the times of line protocol
    #[arg(long, value_name = "UNIT", default_value = "ns")]
    pub precision: Unit,
    /// Field of line protocol that holds a quality of OPC UA; may be given again
    #[arg(long, value_name = "NAME")]
    pub quality_field: Vec<String>,
    #[command(flatten)]
    pub shape: Shape,
}

#[derive(Args, Debug)]
#[command(after_help = EXPORT_HELP, mut_arg("format", |argument| formats(argument, "csv, json, jsonl, parquet or arrow")))]
pub struct Export {
    /// Database
    pub db: String,
    /// TABLE FILE; with --query, FILE; with --all, nothing ("-" is standard output)
    #[arg(value_name = "TABLE FILE")]
    pub what: Vec<PathBuf>,
    /// Write the rows of a query
    #[arg(long, value_name = "SQL", conflicts_with = "all", allow_hyphen_values = true)]
    pub query: Option<String>,
    /// Write schema.sql and a file for each table into a folder
    #[arg(long, value_name = "DIR")]
    pub all: Option<PathBuf>,
    #[command(flatten)]
    pub shape: Shape,
}

#[derive(Args, Debug)]
#[command(
    after_help = "The image of a device's flash is opened like a database, with the device's key. Records without a name \
are called by their numbers, such as #12. Without its counter here (`counterfoil counter adopt`) it is only read."
)]
pub struct Kv {
    /// Database
    pub db: String,
    #[command(subcommand)]
    pub action: KvAction,
}

#[derive(Subcommand, Debug)]
pub enum KvAction {
    /// Write a record's bytes to standard output
    Get {
        /// Name of the record
        name: String,
    },
    /// Keep a file's bytes under a name (without FILE, or with "-": standard input)
    Put {
        /// Name of the record
        name: String,
        /// File to keep
        file: Option<PathBuf>,
    },
    /// Delete records
    Delete {
        /// Names of the records
        #[arg(required = true)]
        name: Vec<String>,
    },
    /// List names
    List {
        /// What the names begin with
        prefix: Option<String>,
    },
}

#[derive(Args, Debug)]
pub struct Only {
    /// Database
    pub db: String,
}

#[derive(Args, Debug)]
pub struct Verify {
    /// Database
    pub db: String,
}

#[derive(Args, Debug)]
pub struct Inspect {
    /// Database
    pub db: String,
    /// Draw the map of the file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct Backup {
    /// Database
    pub db: String,
    /// New file
    pub file: PathBuf,
}

#[derive(Args, Debug)]
pub struct Restore {
    /// Backup, and the database to make or to replace; with --from the database alone
    #[arg(num_args = 1..=2, required = true, value_names = ["FILE", "DB"])]
    pub places: Vec<String>,
    /// Bring back the dispersed tables of a lost database from a cloud; --key-file is the folder of its key's shares
    #[arg(long, value_name = "URL", conflicts_with_all = ["as_new", "erase"])]
    pub from: Option<String>,
    /// File with the password of that cloud
    #[arg(long, value_name = "FILE", requires = "from")]
    pub cloud_secret_file: Option<PathBuf>,
    /// As a database of its own, with a new identity and a counter of its own
    #[arg(long)]
    pub as_new: bool,
    /// Take a block device even if something is on it, which is lost
    #[arg(long)]
    pub erase: bool,
}

#[derive(Args, Debug)]
pub struct Salvage {
    /// Database
    pub db: String,
    /// New folder
    pub dir: PathBuf,
}

#[derive(Args, Debug)]
pub struct KeyCommand {
    #[command(subcommand)]
    pub action: KeyAction,
}

/// Where a new key or passphrase comes from.
#[derive(Args, Debug, Clone)]
pub struct NewKey {
    /// File that holds the new passphrase
    #[arg(long, value_name = "FILE")]
    pub new_passphrase_file: Option<PathBuf>,
    /// The new key file
    #[arg(long, value_name = "FILE", conflicts_with = "new_passphrase_file")]
    pub new_key_file: Option<PathBuf>,
    /// Keep the new key in this machine's TPM
    #[arg(long, conflicts_with_all = ["new_passphrase_file", "new_key_file"])]
    pub tpm: bool,
}

#[derive(Subcommand, Debug)]
pub enum KeyAction {
    /// List the slots
    List {
        /// Database
        db: String,
    },
    /// Add a slot, for a passphrase, a key file or this machine's TPM
    Add {
        /// Database
        db: String,
        #[command(flatten)]
        new: NewKey,
    },
    /// Put another passphrase, key file or TPM into a slot
    Change {
        /// Database
        db: String,
        /// Number of the slot
        slot: u8,
        #[command(flatten)]
        new: NewKey,
    },
    /// Remove a slot
    Remove {
        /// Database
        db: String,
        /// Number of the slot
        slot: u8,
    },
    /// Write shares of the volume key into a folder
    Split {
        /// Database
        db: String,
        /// Shares that open the database together
        #[arg(long, value_name = "M")]
        need: u8,
        /// Shares to write
        #[arg(long, value_name = "N")]
        of: u8,
        /// Folder
        dir: PathBuf,
    },
}

#[derive(Args, Debug)]
pub struct Keygen {
    /// New file; without it, the key goes to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct Rekey {
    /// Database
    pub db: String,
    /// Draw a new key for the data, and seal everything again
    #[arg(long)]
    pub data: bool,
    #[command(flatten)]
    pub new: NewKey,
}

#[derive(Args, Debug)]
pub struct CounterCommand {
    #[command(subcommand)]
    pub action: CounterAction,
}

#[derive(Subcommand, Debug)]
pub enum CounterAction {
    /// Show the counter beside the file
    Show {
        /// Database
        db: String,
    },
    /// Bind the counter to the file as it is now, and leave an incident
    Adopt {
        /// Database
        db: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Delete this machine's counter
    Forget {
        /// Database
        db: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// Units of the times of line protocol.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Ns,
    Us,
    Ms,
    S,
    M,
    H,
}

#[derive(Args, Debug)]
#[command(after_help = SERVE_HELP)]
pub struct Serve {
    /// Database
    pub db: String,
    /// Address for line protocol over HTTP, such as 127.0.0.1:8086; a port alone is one of this machine's loopback address
    #[arg(long, value_name = "ADDRESS")]
    pub influx: Option<String>,
    /// Address for clients of PostgreSQL, such as 127.0.0.1:5432; a port alone is one of this machine's loopback address
    #[arg(long, value_name = "ADDRESS")]
    pub postgres: Option<String>,
    /// Certificate in PEM that is shown to clients of PostgreSQL who ask for TLS
    #[arg(long, value_name = "FILE", requires = "tls_key_file", requires = "postgres")]
    pub tls_certificate_file: Option<PathBuf>,
    /// Its key in PEM, without a passphrase
    #[arg(long, value_name = "FILE", requires = "tls_certificate_file")]
    pub tls_key_file: Option<PathBuf>,
    /// Refuse lines for which a table or a column would have to be made
    #[arg(long)]
    pub no_create: bool,
    /// Field that holds a quality of OPC UA; may be given again
    #[arg(long, value_name = "NAME")]
    pub quality_field: Vec<String>,
    /// Ask nobody who they are: on a loopback address alone
    #[arg(long)]
    pub no_auth: bool,
}

#[derive(Args, Debug)]
pub struct UserCommand {
    #[command(subcommand)]
    pub action: UserAction,
}

/// What a user may do.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserRole {
    Reader,
    Writer,
}

#[derive(Subcommand, Debug)]
pub enum UserAction {
    /// Add a user: with a password that is asked for, or with a token that is shown once
    Add {
        /// Database
        db: String,
        /// Name of the user
        name: String,
        /// What the user may do
        #[arg(long, value_name = "ROLE", default_value = "writer")]
        role: UserRole,
        /// Make a token and print it, in the place of a password
        #[arg(long)]
        token: bool,
        /// File that holds the password
        #[arg(long, value_name = "FILE", conflicts_with = "token")]
        password_file: Option<PathBuf>,
    },
    /// Remove a user
    Remove {
        /// Database
        db: String,
        /// Name of the user
        name: String,
    },
    /// List the users
    List {
        /// Database
        db: String,
    },
}

#[derive(Args, Debug)]
pub struct Demo {
    /// Keep what the demo makes in a new folder
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

impl Command {
    /// The database that a command is about, as it is written on the command line.
    pub fn database(&self) -> Option<&str> {
        Some(match self {
            Command::Sql(Sql { db, .. })
            | Command::Init(Init { db, .. })
            | Command::Import(Import { db, .. })
            | Command::Export(Export { db, .. })
            | Command::Kv(Kv { db, .. })
            | Command::Verify(Verify { db })
            | Command::Inspect(Inspect { db, .. })
            | Command::Reorganize(Only { db })
            | Command::Compact(Only { db })
            | Command::Purge(Only { db })
            | Command::Backup(Backup { db, .. })
            | Command::Salvage(Salvage { db, .. })
            | Command::Serve(Serve { db, .. })
            | Command::Rekey(Rekey { db, .. }) => db,
            Command::Key(KeyCommand { action }) => match action {
                KeyAction::List { db }
                | KeyAction::Add { db, .. }
                | KeyAction::Change { db, .. }
                | KeyAction::Remove { db, .. }
                | KeyAction::Split { db, .. } => db,
            },
            Command::User(UserCommand { action }) => match action {
                UserAction::Add { db, .. } | UserAction::Remove { db, .. } | UserAction::List { db } => db,
            },
            Command::Counter(CounterCommand { action }) => match action {
                CounterAction::Show { db } | CounterAction::Adopt { db, .. } | CounterAction::Forget { db, .. } => db,
            },
            Command::Restore(Restore { places, .. }) => return places.last().map(String::as_str),
            Command::Keygen(_)
            | Command::Publish(_)
            | Command::Ask(_)
            | Command::Mirror(_)
            | Command::Provider(_)
            | Command::Demo(_) => return None,
        })
    }

    /// Whether a database in memory, which begins empty and ends with the command, makes sense to it.
    pub fn works_in_memory(&self) -> bool {
        !matches!(
            self,
            Command::Backup(_)
                | Command::Restore(_)
                | Command::Salvage(_)
                | Command::Key(_)
                | Command::Rekey(_)
                | Command::User(_)
                | Command::Counter(_)
        )
    }
}

/// Puts `sql` before a line whose first word is no command.
pub fn expand(mut words: Vec<OsString>) -> Vec<OsString> {
    let program = Arguments::command();
    let sql = program.find_subcommand("sql").cloned().unwrap_or_default();
    let takes_value = |word: &str| {
        let option = |argument: &clap::Arg| match word.strip_prefix("--") {
            Some(long) => argument.get_long() == Some(long),
            None => word.len() == 2 && argument.get_short() == word.chars().nth(1),
        };
        let found = program.get_arguments().chain(sql.get_arguments()).find(|argument| option(argument));
        found.is_some_and(|argument| matches!(argument.get_action(), ArgAction::Set | ArgAction::Append))
    };
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".into());
        return words;
    }
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let word = word.to_string_lossy().into_owned();
        if matches!(word.as_str(), "-h" | "--help" | "-V" | "--version") {
            return words;
        }
        if word == "-" || !word.starts_with('-') {
            if program.find_subcommand(&word).is_none() {
                words.insert(1, "sql".into());
            }
            return words;
        }
        at += if takes_value(&word) { 2 } else { 1 };
    }
    words
}

/// The command that a word is nearly, if there is one.
pub fn command_like(word: &str) -> Option<String> {
    let program = Arguments::command();
    let names = program.get_subcommands().map(|command| command.get_name().to_owned());
    let distances = names.map(|name| (strsim::damerau_levenshtein(&name, word), name));
    // Of short words nearly all are near.
    distances.filter(|(distance, name)| *distance <= name.len() / 3).min().map(|(_, name)| name)
}

/// Seconds, with or without a fraction.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds is wanted".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "a number of seconds is wanted".to_owned())
}

/// A number of bytes, such as 4096, 64K, 512M or 2G.
fn size(text: &str) -> Result<u64, String> {
    let wrong = || "a number of bytes is wanted, such as 4096, 512M or 2G".to_owned();
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let shift = match text[digits.len()..].to_ascii_uppercase().trim_end_matches('B').trim_end_matches('I') {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(wrong()),
    };
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

/// How a device's flash is cut up.
fn device(text: &str) -> Result<DeviceShape, String> {
    let numbers: Result<Vec<u32>, _> = text.split(',').map(str::parse).collect();
    let shape = |page_bytes, block_pages, block_count, index_blocks, names| {
        Ok(DeviceShape { page_bytes, block_pages, block_count, index_blocks, names, is_salted: false })
    };
    match numbers.as_deref() {
        Ok([page, block, blocks]) => shape(*page, *block, *blocks, None, 0),
        Ok([page, block, blocks, index]) => shape(*page, *block, *blocks, Some(*index), 0),
        Ok([page, block, blocks, index, names]) => shape(*page, *block, *blocks, Some(*index), *names),
        _ => Err("three to five numbers are wanted, such as 512,16,16,3,100".into()),
    }
}

/// One byte between fields; `\t` and `tab` are a tab.
fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [b'"' | b'\n' | b'\r'] => Err("quotes and line ends cannot separate fields".into()),
        [one] if one.is_ascii() => Ok(*one),
        b"\\t" | b"tab" => Ok(b'\t'),
        _ => Err("one ASCII character is wanted".into()),
    }
}

/// `price=NUMERIC(10,2)`: a column and its type in SQL.
fn column_type(text: &str) -> Result<(String, String), String> {
    let (name, kind) = text.split_once('=').map(|(name, kind)| (name.trim(), kind.trim())).unwrap_or_default();
    // A comma outside of parentheses would begin another column.
    let (words, numbers) = kind.split_once('(').unwrap_or((kind, ")"));
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == ' ';
    let are_numbers = numbers.split_once(')').is_some_and(|(inside, behind)| {
        inside.chars().all(|letter| letter.is_ascii_digit() || ", ".contains(letter)) && behind.chars().all(is_word)
    });
    match !name.is_empty() && !words.trim().is_empty() && words.chars().all(is_word) && are_numbers {
        true => Ok((name.to_owned(), kind.to_owned())),
        false => Err("a column and a type of SQL are wanted, such as price=NUMERIC(10,2)".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_one_type() {
        let price = |kind: &str| Ok(("price".to_owned(), kind.to_owned()));
        for kind in ["NUMERIC(10,2)", "timestamp (3) with time zone", "DOUBLE PRECISION", "DATE"] {
            assert_eq!(column_type(&format!("price={kind}")), price(kind));
        }
        for wrong in
            ["price", "=DATE", "price=", "price=DATE, x DATE", "price=DATE)", "price=DATE; x", "p=N(1) (2)", "p=(1)"]
        {
            assert!(column_type(wrong).is_err(), "{wrong}");
        }
    }

    fn expanded(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        expand(words).iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_parser_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_database_alone_means_sql() {
        assert_eq!(expanded("counterfoil x.db"), "counterfoil sql x.db");
        assert_eq!(expanded("counterfoil --key-file k x.db -c 1"), "counterfoil sql --key-file k x.db -c 1");
        assert_eq!(expanded("counterfoil --format json x.db 1"), "counterfoil sql --format json x.db 1");
        assert_eq!(expanded("counterfoil -q verify x.db"), "counterfoil -q verify x.db");
        assert_eq!(expanded("counterfoil --key-file=verify x.db"), "counterfoil sql --key-file=verify x.db");
        assert_eq!(expanded("counterfoil --help"), "counterfoil --help");
        assert_eq!(expanded("counterfoil help"), "counterfoil --help");
        assert_eq!(expanded("counterfoil help key add"), "counterfoil key add --help");
        assert_eq!(expanded("counterfoil ./help 1"), "counterfoil sql ./help 1");
    }

    #[test]
    fn a_device_has_three_to_five_numbers() {
        let shape = device("512,16,16").expect("a shape");
        assert_eq!((shape.page_bytes, shape.block_pages, shape.block_count), (512, 16, 16));
        assert_eq!((shape.index_blocks, shape.names), (None, 0));
        let shape = device("512,16,16,3,100").expect("a shape");
        assert_eq!((shape.index_blocks, shape.names), (Some(3), 100));
        for wrong in ["", "512,16", "512,16,16,3,100,7", "512,16,x", "-1,2,3"] {
            assert!(device(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("2G"), Ok(2 << 30));
        assert_eq!(size("64KiB"), Ok(64 << 10));
        for wrong in ["", "G", "1X", "-1", "99999999999T"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
