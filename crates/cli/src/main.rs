//! The program `counterfoil`: everything a database in one sealed file can be asked for, from a terminal.
//!
//! Results go to standard output, everything else to standard error. Exit codes are those of [`counterfoil::Kind`].
#![forbid(unsafe_code)]

mod arguments;
mod ask;
mod begun;
mod closing;
mod context;
mod copies;
mod counter;
mod demo;
mod export;
mod failure;
mod house;
mod image;
mod import;
mod init;
mod inspect;
mod keys;
mod kv;
mod mirror;
mod output;
mod picture;
mod private;
mod provider;
mod publish;
mod salvage;
mod script;
mod serve;
mod shell;
mod slots;
mod sql;
mod terminal;
mod user;
mod verify;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::{CommandFactory, FromArgMatches};
use context::Context;
use failure::Result;

fn main() -> ExitCode {
    terminal::refuse_core_dumps();
    let line: Vec<_> = std::env::args_os().collect();
    let line = arguments::expand(line);
    let matches = match Arguments::command().try_get_matches_from(line) {
        Ok(matches) => matches,
        Err(error) => return failure::usage(&error),
    };
    let arguments = match Arguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(error) => return failure::usage(&error),
    };
    terminal::prepare(arguments.common.quiet, arguments.common.color);
    let context = Context::new(arguments.common);
    let order = sql::Order::of(&matches);
    let database = arguments.command.database().map(str::to_owned);
    match run(&context, arguments.command, &order) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure::report(&failure.about(database.as_deref())),
    }
}

fn run(context: &Context, command: Command, order: &sql::Order) -> Result<()> {
    if command.database() == Some(":memory:") && !command.works_in_memory() {
        let refused = failure::misuse("a database in memory begins empty and ends with the command");
        return Err(refused.at(":memory:").advise("name a file").into());
    }
    match command {
        Command::Sql(arguments) => sql::run(context, arguments, order),
        Command::Init(arguments) => init::run(context, &arguments),
        Command::Import(arguments) => import::run(context, &arguments),
        Command::Export(arguments) => export::run(context, &arguments),
        Command::Kv(arguments) => kv::run(context, &arguments),
        Command::Verify(arguments) => verify::run(context, &arguments),
        Command::Inspect(arguments) => inspect::run(context, &arguments),
        Command::Reorganize(arguments) => house::reorganize(context, &arguments),
        Command::Compact(arguments) => house::compact(context, &arguments),
        Command::Purge(arguments) => house::purge(context, &arguments),
        Command::Backup(arguments) => copies::backup(context, &arguments),
        Command::Restore(arguments) => copies::restore(context, &arguments),
        Command::Salvage(arguments) => salvage::run(context, &arguments),
        Command::Key(arguments) => slots::run(context, &arguments),
        Command::Keygen(arguments) => slots::keygen(&arguments),
        Command::Rekey(arguments) => slots::rekey(context, &arguments),
        Command::Counter(arguments) => counter::run(context, &arguments),
        Command::Serve(arguments) => serve::run(context, &arguments),
        Command::User(arguments) => user::run(context, &arguments),
        Command::Publish(arguments) => publish::run(context, &arguments),
        Command::Ask(arguments) => ask::run(&arguments),
        Command::Mirror(arguments) => mirror::run(&arguments),
        Command::Provider(arguments) => provider::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
    }
}
