//! Calls of our functions in FROM, as they are written.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, ObjectNamePart, Statement, TableFactor, Value, ValueWithSpan, Visit, Visitor,
};

use crate::error::{Error, Result};
use crate::evaluate;
use crate::statement::fold;

/// One of the functions.
struct Function {
    name: &'static str,
    /// The arguments that may be given by place; they may be given by name as well.
    places: &'static [&'static str],
    /// The arguments that are given by name.
    names: &'static [&'static str],
}

/// The argument that is a table.
pub(crate) const INPUT: &str = "input";

const FUNCTIONS: [Function; 5] = [
    Function {
        name: "resample",
        places: &[INPUT, "width", "start", "stop"],
        names: &["by", "ts", "value", "quality", "method", "max_age"],
    },
    Function {
        name: "value_at",
        places: &[INPUT, "at"],
        names: &["by", "ts", "value", "quality", "method", "max_age"],
    },
    Function { name: "gapfill", places: &[INPUT, "width", "start", "stop"], names: &["by", "ts", "fill"] },
    Function { name: "lttb", places: &[INPUT, "points"], names: &["by", "ts", "value", "quality"] },
    Function { name: "m4", places: &[INPUT, "width", "start", "stop"], names: &["by", "ts", "value", "quality"] },
];

/// A call.
pub(crate) struct Call {
    /// The function's name.
    pub function: &'static str,
    arguments: Vec<(&'static str, Expr)>,
}

fn called(factor: &TableFactor) -> Option<&'static Function> {
    let TableFactor::Table { name, args: Some(_), .. } = factor else { return None };
    let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return None };
    let name = fold(name);
    FUNCTIONS.iter().find(|function| function.name == name)
}

/// The call that an item of FROM is, if it is one of ours.
///
/// # Errors
/// [`Error::Sql`] for arguments that the function does not have, or that are there twice.
pub(crate) fn read(factor: &TableFactor) -> Result<Option<Call>> {
    let (Some(function), TableFactor::Table { args: Some(given), .. }) = (called(factor), factor) else {
        return Ok(None);
    };
    let mut call = Call { function: function.name, arguments: Vec::new() };
    for (place, argument) in given.args.iter().enumerate() {
        let (name, expr) = match argument {
            FunctionArg::Unnamed(expr) => {
                let name = function.places.get(place).copied();
                (name.ok_or_else(|| call.usage("too many arguments without a name", function))?, expr)
            }
            FunctionArg::Named { name, arg, .. } => (call.known(&fold(name), function)?, arg),
            FunctionArg::ExprNamed { name: Expr::Identifier(name), arg, .. } => {
                (call.known(&fold(name), function)?, arg)
            }
            FunctionArg::ExprNamed { name, .. } => {
                return Err(call.usage(&format!("{name} is no name of an argument"), function));
            }
        };
        let FunctionArgExpr::Expr(expr) = expr else {
            return Err(call.usage(&format!("{name} is no value"), function));
        };
        if call.argument(name).is_some() {
            return Err(call.usage(&format!("{name} is given twice"), function));
        }
        call.arguments.push((name, expr.clone()));
    }
    for name in function.places {
        if call.argument(name).is_none() {
            return Err(call.usage(&format!("{name} is missing"), function));
        }
    }
    Ok(Some(call))
}

impl Call {
    fn known(&self, name: &str, function: &'static Function) -> Result<&'static str> {
        let mut all = function.places.iter().chain(function.names);
        let known = all.find(|known| **known == name).copied();
        known.ok_or_else(|| self.usage(&format!("there is no argument {name}"), function))
    }

    fn usage(&self, what: &str, function: &Function) -> Error {
        let names: Vec<String> = function.names.iter().map(|name| format!("{name} => ...")).collect();
        let (places, names) = (function.places.join(", "), names.join(", "));
        self.error(format!("{what}: write {}({places} [, {names}])", self.function))
    }

    /// What is wrong with a call.
    pub(crate) fn error(&self, what: impl std::fmt::Display) -> Error {
        Error::Sql(format!("{}: {what}", self.function))
    }

    /// An argument, if it is there.
    pub(crate) fn argument(&self, name: &str) -> Option<&Expr> {
        self.arguments.iter().find(|(known, _)| *known == name).map(|(_, expr)| expr)
    }

    /// An argument that every call has.
    pub(crate) fn required(&self, name: &str) -> Result<&Expr> {
        self.argument(name).ok_or_else(|| self.error(format!("{name} is missing")))
    }

    /// Names of columns: `a`, `(a, b)`, `'a, b'`, or `''` for none.
    pub(crate) fn columns(&self, name: &str) -> Result<Option<Vec<String>>> {
        let Some(expr) = self.argument(name) else { return Ok(None) };
        let wrong = || self.error(format!("{name} => {expr}: write names of columns, as in {name} => (a, b)"));
        let parsed = match text(expr) {
            Some(list) if list.trim().is_empty() => return Ok(Some(Vec::new())),
            Some(list) => evaluate::parse(&format!("({list})")).map_err(|_| wrong())?,
            None => expr.clone(),
        };
        let parts = match &parsed {
            Expr::Tuple(parts) => parts.clone(),
            Expr::Nested(part) => vec![(**part).clone()],
            part => vec![part.clone()],
        };
        let column = |part: Expr| match part {
            Expr::Identifier(name) => Ok(fold(&name)),
            _ => Err(wrong()),
        };
        parts.into_iter().map(column).collect::<Result<Vec<_>>>().map(Some)
    }

    /// The name of one column.
    pub(crate) fn column(&self, name: &str) -> Result<Option<String>> {
        match self.columns(name)? {
            None => Ok(None),
            Some(columns) if columns.len() == 1 => Ok(columns.into_iter().next()),
            Some(_) => Err(self.error(format!("{name}: one column is wanted"))),
        }
    }

    /// A word, quoted or not, in lower case.
    pub(crate) fn word(&self, name: &str) -> Option<String> {
        let expr = self.argument(name)?;
        Some(text(expr).unwrap_or_else(|| expr.to_string()).to_lowercase())
    }
}

/// A quoted text.
pub(crate) fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => Some(text.clone()),
        _ => None,
    }
}

/// The tables that a statement names in calls, and nowhere else.
pub(crate) fn inputs(statement: &Statement) -> Vec<String> {
    let mut found = Inputs(Vec::new());
    let _ = statement.visit(&mut found);
    found.0
}

struct Inputs(Vec<String>);

impl Visitor for Inputs {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let Ok(Some(call)) = read(factor) {
            let tables = [INPUT, "at"].into_iter().filter_map(|name| call.argument(name));
            self.0.extend(tables.filter_map(super::expand::table).map(|(_, name)| name));
        }
        ControlFlow::Continue(())
    }
}
