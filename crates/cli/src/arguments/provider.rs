//! What `provider` takes: a cloud of one's own making.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const PROVIDER_HELP: &str = "\
A provider knows no key: it holds fragments of dispersed tables, and answers questions about them. Who may come in has a token; a line of the \
file FOLDER/tokens that goes takes its token with it. `serve` says its address, with a pin of its key in it, which goes into \
CREATE CLOUD a OPTIONS (url '...', secret_file 'FILE-WITH-THE-TOKEN'). docs/disperse.md tells the rest.";

#[derive(Args, Debug)]
pub struct Provider {
    #[command(subcommand)]
    pub action: ProviderAction,
}

#[derive(Subcommand, Debug)]
pub enum ProviderAction {
    /// Serve until Ctrl-C
    #[command(after_help = PROVIDER_HELP)]
    Serve(ProviderServe),
    /// Make a token for a client, and print it once
    Token(ProviderToken),
}

#[derive(Args, Debug)]
pub struct ProviderServe {
    /// Folder for fragments, the key of the server, and tokens; made if it is not there
    pub folder: PathBuf,
    /// Address to listen at; a port alone is one of this machine's loopback address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7443")]
    pub listen: String,
    /// Megabytes of memory for each client's fragments, so that they are not read again
    #[arg(long, value_name = "MB", default_value_t = 256)]
    pub memory: usize,
    /// Connections at once
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub connections: usize,
}

#[derive(Args, Debug)]
pub struct ProviderToken {
    /// Folder of the provider; made if it is not there
    pub folder: PathBuf,
    /// Who gets it: what is put under a name lies apart from all others
    pub name: String,
    /// Days that it is good for
    #[arg(long, value_name = "N", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..))]
    pub days: u32,
}
