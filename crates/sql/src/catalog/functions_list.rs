//! The functions of the catalogue, one by one.

use super::facts::{Facts, schema, schema_name, user_name};
use super::functions::{Answer, Given, Known, missing};
use super::numbers::OWNER;
use super::server::UTF8;
use super::texts::{json, parse_ident, parts, pretty, quote_ident, quote_literal};
use super::types;
use crate::error::Result;

/// `x::regclass`: the number of a relation.
pub(super) const REGCLASS: &str = "__counterfoil_regclass";
/// `x::regtype`: the number of a type.
pub(super) const REGTYPE: &str = "__counterfoil_regtype";
/// `x::regnamespace`: the number of a schema.
pub(super) const REGNAMESPACE: &str = "__counterfoil_regnamespace";
/// `x::regrole`: the number of a user.
pub(super) const REGROLE: &str = "__counterfoil_regrole";
/// `x::regproc`: the name of a function.
pub(super) const REGPROC: &str = "__counterfoil_regproc";
/// Behind the name of one of those before: as text.
pub(super) const AS_TEXT: &str = "_text";
/// `generate_subscripts(x, 1)`, as a list.
pub(super) const SUBSCRIPTS: &str = "__counterfoil_subscripts";
/// No texts at all, as a list.
pub(super) const NO_TEXTS: &str = "__counterfoil_no_texts";
/// A list of texts, or a text that is one.
pub(super) const TEXTS: &str = "__counterfoil_texts";
/// As [`TEXTS`], of numbers of objects.
pub(super) const OBJECTS: &str = "__counterfoil_objects";
/// As [`TEXTS`], of numbers.
pub(super) const INTEGERS: &str = "__counterfoil_integers";
/// Says of a text that it is JSON.
pub(super) const JSON: &str = "__counterfoil_json";

type Run = fn(&Facts, &[Given]) -> Result<Given>;

const fn known(name: &'static str, fewest: usize, most: usize, answer: Answer, run: Run) -> Known {
    Known { name, arguments: (fewest, most), answer, run }
}

/// The most arguments that functions take which take any number.
const ANY_NUMBER: usize = 40;

pub(super) static FUNCTIONS: &[Known] = &[
    known(REGCLASS, 1, 1, Answer::Object, |facts, given| number_of("table", &given[0], |name| facts.relation(name))),
    known("__counterfoil_regclass_text", 1, 1, Answer::Text, |facts, given| {
        let number = number_of("table", &given[0], |name| facts.relation(name))?;
        Ok(shown(&number, |number| facts.relation_name(number)))
    }),
    known(REGTYPE, 1, 1, Answer::Object, |_, given| number_of("type", &given[0], types::by_name)),
    known("__counterfoil_regtype_text", 1, 1, Answer::Text, |_, given| {
        let number = number_of("type", &given[0], types::by_name)?;
        Ok(shown(&number, |number| Some(types::format_type(number, None)).filter(|name| name != "???")))
    }),
    known(REGNAMESPACE, 1, 1, Answer::Object, |_, given| number_of("schema", &given[0], schema)),
    known("__counterfoil_regnamespace_text", 1, 1, Answer::Text, |_, given| {
        let number = number_of("schema", &given[0], schema)?;
        Ok(shown(&number, |number| schema_name(number).map(str::to_owned)))
    }),
    known(REGROLE, 1, 1, Answer::Object, |_, given| number_of("user", &given[0], user)),
    known("__counterfoil_regrole_text", 1, 1, Answer::Text, |_, given| {
        let number = number_of("user", &given[0], user)?;
        Ok(shown(&number, |number| Some(user_name(number)).filter(|_| number == OWNER)))
    }),
    known(REGPROC, 1, 1, Answer::Text, |_, given| {
        Ok(match &given[0] {
            Given::Text(text) => text.strip_prefix("pg_catalog.").unwrap_or(text).into(),
            Given::Number(0) => "-".into(),
            Given::Number(number) => number.to_string().into(),
            _ => Given::Null,
        })
    }),
    known("to_regclass", 1, 1, Answer::Object, |facts, given| {
        Ok(given[0].text().and_then(|name| facts.relation(name)).into())
    }),
    known("to_regtype", 1, 1, Answer::Object, |_, given| Ok(given[0].text().and_then(types::by_name).into())),
    known("to_regnamespace", 1, 1, Answer::Object, |_, given| Ok(given[0].text().and_then(schema).into())),
    known("to_regrole", 1, 1, Answer::Object, |_, given| Ok(given[0].text().and_then(user).into())),
    known("to_regproc", 1, 1, Answer::Text, nothing),
    known("pg_get_indexdef", 1, 3, Answer::Text, |facts, given| {
        let Some(number) = given[0].object() else { return Ok(Given::Null) };
        Ok(match given.get(1).and_then(Given::number) {
            None | Some(0) => facts.index(number).into(),
            Some(place) => usize::try_from(place).ok().and_then(|place| facts.index_column(number, place)).into(),
        })
    }),
    known("pg_get_constraintdef", 1, 2, Answer::Text, |facts, given| {
        Ok(given[0].object().and_then(|number| facts.constraint(number)).into())
    }),
    known("pg_get_viewdef", 1, 2, Answer::Text, |facts, given| {
        let number = number_of("view", &given[0], |name| facts.relation(name))?;
        Ok(number.object().and_then(|number| facts.view(number)).into())
    }),
    known("pg_get_serial_sequence", 2, 2, Answer::Text, |facts, given| {
        let (Some(table), Some(column)) = (given[0].text(), given[1].text()) else { return Ok(Given::Null) };
        Ok(facts.sequence(table, column).into())
    }),
    // The catalogue here keeps expressions as they were written.
    known("pg_get_expr", 2, 3, Answer::Text, |_, given| Ok(given[0].text().into())),
    known("format_type", 2, 2, Answer::Text, |_, given| {
        let modifier = given[1].number().and_then(|modifier| i32::try_from(modifier).ok());
        Ok(given[0].object().map(|number| types::format_type(number, modifier)).into())
    }),
    known("pg_get_userbyid", 1, 1, Answer::Text, |_, given| Ok(given[0].object().map(user_name).into())),
    // With a name that is written out it is a constant already.
    known("current_setting", 1, 2, Answer::Text, |facts, given| {
        let Some(name) = given[0].text() else { return Ok(Given::Null) };
        match facts.setting(name) {
            None if given.get(1) != Some(&Given::Truth(true)) => Err(missing("setting", name)),
            setting => Ok(setting.into()),
        }
    }),
    // What it sets was set before the query was planned.
    known("set_config", 3, 3, Answer::Text, |_, given| Ok(given[1].text().into())),
    // There are none to be let go of.
    known("pg_advisory_unlock_all", 0, 0, Answer::Text, |_, _| Ok("".into())),
    known("pg_encoding_to_char", 1, 1, Answer::Text, |_, given| {
        Ok(given[0].number().map(|number| if number == UTF8.0 { UTF8.1 } else { "" }).into())
    }),
    known("pg_char_to_encoding", 1, 1, Answer::Integer, |_, given| {
        let is_ours = |name: &str| matches!(name.to_ascii_uppercase().as_str(), "UTF8" | "UTF-8" | "UNICODE");
        Ok(given[0].text().map(|name| if is_ours(name) { UTF8.0 } else { -1 }).into())
    }),
    known("quote_ident", 1, 1, Answer::Text, |_, given| Ok(given[0].text().map(quote_ident).into())),
    known("quote_literal", 1, 1, Answer::Text, |_, given| Ok(given[0].text().map(quote_literal).into())),
    known("parse_ident", 1, 2, Answer::Texts, |_, given| {
        let parts = given[0].text().and_then(parse_ident);
        Ok(parts.map_or(Given::Null, |parts| Given::List(parts.into_iter().map(Given::Text).collect())))
    }),
    // Whatever there is can be named without its schema.
    known("pg_table_is_visible", 1, 1, Answer::Truth, is_given),
    known("pg_type_is_visible", 1, 1, Answer::Truth, is_given),
    known("pg_function_is_visible", 1, 1, Answer::Truth, is_given),
    known("pg_operator_is_visible", 1, 1, Answer::Truth, is_given),
    known("pg_opclass_is_visible", 1, 1, Answer::Truth, is_given),
    known("pg_collation_is_visible", 1, 1, Answer::Truth, is_given),
    known("pg_conversion_is_visible", 1, 1, Answer::Truth, is_given),
    known("has_table_privilege", 2, 3, Answer::Truth, may),
    known("has_any_column_privilege", 2, 3, Answer::Truth, may),
    known("has_column_privilege", 3, 4, Answer::Truth, may),
    known("has_schema_privilege", 2, 3, Answer::Truth, may),
    known("has_database_privilege", 2, 3, Answer::Truth, may),
    known("has_sequence_privilege", 2, 3, Answer::Truth, may),
    known("has_function_privilege", 2, 3, Answer::Truth, may),
    known("has_type_privilege", 2, 3, Answer::Truth, may),
    known("has_tablespace_privilege", 2, 3, Answer::Truth, may),
    known("pg_has_role", 2, 3, Answer::Truth, is_given),
    known("row_security_active", 1, 1, Answer::Truth, no),
    known("pg_relation_is_publishable", 1, 1, Answer::Truth, no),
    known("pg_is_other_temp_schema", 1, 1, Answer::Truth, no),
    known("pg_is_in_recovery", 0, 0, Answer::Truth, no),
    known("pg_backend_pid", 0, 0, Answer::Integer, |_, _| Ok(i64::from(std::process::id() & 0x7fff_ffff).into())),
    known("pg_my_temp_schema", 0, 0, Answer::Object, |_, _| Ok(0i64.into())),
    // Nobody can say anything about anything.
    known("obj_description", 1, 2, Answer::Text, nothing),
    known("col_description", 2, 2, Answer::Text, nothing),
    known("shobj_description", 2, 2, Answer::Text, nothing),
    known("pg_get_ruledef", 1, 2, Answer::Text, nothing),
    known("pg_get_triggerdef", 1, 2, Answer::Text, nothing),
    known("pg_get_partkeydef", 1, 1, Answer::Text, nothing),
    known("pg_get_functiondef", 1, 1, Answer::Text, nothing),
    known("pg_get_function_result", 1, 1, Answer::Text, nothing),
    known("pg_get_function_arguments", 1, 1, Answer::Text, nothing),
    known("pg_get_function_identity_arguments", 1, 1, Answer::Text, nothing),
    known("pg_get_statisticsobjdef", 1, 1, Answer::Text, nothing),
    known("pg_get_statisticsobjdef_columns", 1, 1, Answer::Text, nothing),
    known("pg_tablespace_location", 1, 1, Answer::Text, nothing),
    // What it takes on the medium is not counted by table.
    known("pg_relation_size", 1, 2, Answer::Long, nothing),
    known("pg_total_relation_size", 1, 1, Answer::Long, nothing),
    known("pg_table_size", 1, 1, Answer::Long, nothing),
    known("pg_indexes_size", 1, 1, Answer::Long, nothing),
    known("pg_database_size", 1, 1, Answer::Long, nothing),
    known("pg_tablespace_size", 1, 1, Answer::Long, nothing),
    known("pg_stat_get_numscans", 1, 1, Answer::Long, nothing),
    known("pg_size_pretty", 1, 1, Answer::Text, |_, given| Ok(given[0].number().map(pretty).into())),
    known("pg_partition_ancestors", 1, 1, Answer::Objects, |_, _| Ok(Given::List(Vec::new()))),
    known(NO_TEXTS, 0, 0, Answer::Texts, |_, _| Ok(Given::List(Vec::new()))),
    known(TEXTS, 1, 1, Answer::Texts, |_, given| Ok(list_of(&given[0]))),
    known(OBJECTS, 1, 1, Answer::Objects, |_, given| Ok(list_of(&given[0]))),
    known(INTEGERS, 1, 1, Answer::Integers, |_, given| Ok(list_of(&given[0]))),
    known(SUBSCRIPTS, 1, 1, Answer::Integers, |_, given| {
        Ok(match &given[0] {
            Given::List(list) => Given::List((1..=list.len() as i64).map(Given::Number).collect()),
            _ => Given::Null,
        })
    }),
    known("array_upper", 2, 2, Answer::Integer, |_, given| {
        Ok(match (&given[0], given[1].number()) {
            (Given::List(list), Some(1)) if !list.is_empty() => (list.len() as i64).into(),
            _ => Given::Null,
        })
    }),
    known("array_lower", 2, 2, Answer::Integer, |_, given| {
        Ok(match (&given[0], given[1].number()) {
            (Given::List(list), Some(1)) if !list.is_empty() => 1i64.into(),
            _ => Given::Null,
        })
    }),
    known("json_build_object", 0, ANY_NUMBER, Answer::Json, |_, given| Ok(json(given).into())),
    known(JSON, 1, 1, Answer::Json, |_, given| Ok(given[0].text().into())),
];

fn nothing(_: &Facts, _: &[Given]) -> Result<Given> {
    Ok(Given::Null)
}

fn no(_: &Facts, given: &[Given]) -> Result<Given> {
    Ok(if given.contains(&Given::Null) { Given::Null } else { false.into() })
}

fn is_given(_: &Facts, given: &[Given]) -> Result<Given> {
    Ok(if given.contains(&Given::Null) { Given::Null } else { true.into() })
}

/// Everybody may read; who may write may do all.
fn may(facts: &Facts, given: &[Given]) -> Result<Given> {
    let Some(asked) = given.last().and_then(Given::text) else { return Ok(Given::Null) };
    let reads =
        |asked: &str| matches!(asked.trim().to_ascii_lowercase().as_str(), "select" | "usage" | "connect" | "execute");
    Ok((facts.writes || asked.split(',').any(reads)).into())
}

fn user(name: &str) -> Option<u32> {
    (parse_ident(name)?.as_slice() == [crate::functions::USER]).then_some(OWNER)
}

/// The number of what a text names, or a number is.
fn number_of(sort: &str, given: &Given, find: impl Fn(&str) -> Option<u32>) -> Result<Given> {
    match given {
        Given::Text(text) if text == "-" => Ok(0i64.into()),
        Given::Text(text) => match text.trim().parse::<u32>() {
            Ok(number) => Ok(number.into()),
            Err(_) => find(text).map(Given::from).ok_or_else(|| missing(sort, text)),
        },
        Given::Number(number) => Ok(Given::Number(*number)),
        _ => Ok(Given::Null),
    }
}

/// What a number stands for; the number itself if that is not there.
fn shown(number: &Given, name: impl Fn(u32) -> Option<String>) -> Given {
    match number.object() {
        Some(0) => "-".into(),
        Some(number) => name(number).unwrap_or_else(|| number.to_string()).into(),
        None => Given::Null,
    }
}

fn list_of(given: &Given) -> Given {
    match given {
        Given::List(_) => given.clone(),
        Given::Text(text) => match parts(text) {
            Some(parts) => Given::List(parts.into_iter().map(Given::from).collect()),
            None => Given::Null,
        },
        _ => Given::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: &str, given: &[Given]) -> Result<Given> {
        let known = FUNCTIONS.iter().find(|known| known.name == name).unwrap();
        (known.run)(&Facts::default(), given)
    }

    #[test]
    fn every_name_as_text_has_a_function() {
        for name in [REGCLASS, REGTYPE, REGNAMESPACE, REGROLE] {
            assert!(FUNCTIONS.iter().any(|known| known.name == format!("{name}{AS_TEXT}")), "{name}");
        }
    }

    #[test]
    fn no_function_panics_whatever_it_is_given() {
        let odd = [
            Given::Null,
            Given::Truth(true),
            Given::Number(i64::MIN),
            Given::Number(-1),
            Given::Number(i64::MAX),
            Given::Text(String::new()),
            Given::Text("{\"a\\".into()),
            Given::Text("\u{1F600}.\"".into()),
            Given::List(vec![Given::Null]),
            Given::List(Vec::new()),
        ];
        for known in FUNCTIONS {
            for count in known.arguments.0..=known.arguments.1.min(4) {
                for first in &odd {
                    for rest in &odd {
                        let mut given = vec![rest.clone(); count];
                        given.iter_mut().take(1).for_each(|given| *given = first.clone());
                        let _ = (known.run)(&Facts::default(), &given);
                    }
                }
            }
        }
    }

    #[test]
    fn answers_read_as_those_of_postgresql() {
        assert_eq!(asked("pg_size_pretty", &[10_240i64.into()]).unwrap(), "10 kB".into());
        assert_eq!(asked("pg_size_pretty", &[10_239i64.into()]).unwrap(), "10239 bytes".into());
        assert_eq!(asked("quote_ident", &["A".into()]).unwrap(), "\"A\"".into());
        let object = ["a".into(), 1i64.into(), "b\"".into(), Given::Null];
        assert_eq!(asked("json_build_object", &object).unwrap(), "{\"a\" : 1, \"b\\\"\" : null}".into());
        assert_eq!(asked("__counterfoil_regtype_text", &[23i64.into()]).unwrap(), "integer".into());
        assert!(asked(REGCLASS, &["nowhere".into()]).is_err());
        assert_eq!(asked(REGCLASS, &["-".into()]).unwrap(), 0i64.into());
    }
}
