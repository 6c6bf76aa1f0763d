//! `user`: who is let in where the database is served.

use std::io::{self, Write};

use counterfoil::{Database, Role, utc};

use crate::arguments::{UserAction, UserCommand, UserRole};
use crate::closing;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::{keys, terminal};

pub fn run(context: &Context, arguments: &UserCommand) -> Result<()> {
    match &arguments.action {
        UserAction::Add { db, name, role, token: true, .. } => {
            let database = context.open(db)?;
            let token = database.users().add_with_token(name, of(*role))?;
            closing::close(database)?;
            writeln!(io::stdout().lock(), "{}", token.as_str()).map_err(Failure::output)?;
            terminal::note("the token is shown this once and kept nowhere");
            Ok(())
        }
        UserAction::Add { db, name, role, token: false, password_file } => {
            let database = context.open(db)?;
            database.users().add(name, of(*role), &keys::find_password(password_file.as_deref())?)?;
            closing::close(database)?;
            terminal::done(format_args!("user {name} was added: {}", of(*role)));
            Ok(())
        }
        UserAction::Remove { db, name } => {
            let database = context.open(db)?;
            database.users().remove(name)?;
            closing::close(database)?;
            terminal::done(format_args!("user {name} was removed"));
            Ok(())
        }
        UserAction::List { db } => list(&context.open_to_read(db)?),
    }
}

fn of(role: UserRole) -> Role {
    match role {
        UserRole::Reader => Role::Reader,
        UserRole::Writer => Role::Writer,
    }
}

fn list(database: &Database) -> Result<()> {
    let mut stdout = io::stdout().lock();
    for user in database.users().list()? {
        let (role, login) = (user.role.to_string(), user.login.to_string());
        writeln!(stdout, "{:20}  {role:6}  {login:8}  since {}", user.name, utc(user.created))
            .map_err(Failure::output)?;
    }
    Ok(())
}
