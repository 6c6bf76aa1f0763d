//! `pg_type`: PostgreSQL's types, as far as there are columns of them here or in the catalogue.

use std::sync::LazyLock;

use counterfoil_relation::Type;

use super::numbers::{OWNER, PG_CATALOG};
use super::shape::{Cell, Rows, lines};

pub(super) const INT2: u32 = 21;
pub(super) const INT8: u32 = 20;
pub(super) const INT4: u32 = 23;
pub(super) const TEXT: u32 = 25;

/// A type of PostgreSQL.
struct Known {
    number: u32,
    name: &'static str,
    bytes: i32,
    by_value: bool,
    /// What sort of type it is, its category, whether it is preferred there, its alignment and how it is stored.
    letters: [&'static str; 5],
    element: u32,
    array: u32,
    collation: u32,
    functions: Vec<&'static str>,
    shown: &'static str,
}

static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let text = include_str!("types.txt");
    lines(text).into_iter().filter_map(|words| known(text, &words)).collect()
});

fn known(text: &'static str, words: &[&'static str]) -> Option<Known> {
    let number = |place: usize| words.get(place)?.parse().ok();
    let letters = *words.get(4)?;
    let letter = |at: usize| letters.get(at..at + 1);
    // Its name has blanks: it is what stands between the quotes behind its functions.
    let begin = words.get(15)?.as_ptr() as usize - text.as_ptr() as usize + 1;
    let shown = text.get(begin..)?.split('\'').next()?;
    Some(Known {
        number: number(0)?,
        name: words[1],
        bytes: words[2].parse().ok()?,
        by_value: words[3] == "v",
        letters: [letter(0)?, letter(1)?, letter(2)?, letter(3)?, letter(4)?],
        element: number(5)?,
        array: number(6)?,
        collation: number(7)?,
        functions: words[8..15].to_vec(),
        shown,
    })
}

fn numbered(number: u32) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.number == number)
}

/// The number of a type of ours, and what it says of its length or digits.
pub(super) fn of_column(kind: &Type) -> (u32, i32) {
    match kind {
        Type::Boolean => (16, -1),
        Type::SmallInt => (INT2, -1),
        Type::Integer => (INT4, -1),
        Type::BigInt => (INT8, -1),
        Type::Real => (700, -1),
        Type::Double => (701, -1),
        Type::Numeric { precision, scale } => (1700, (i32::from(*precision) << 16 | i32::from(*scale)) + 4),
        Type::VarChar(letters) => (1043, i32::try_from(*letters).map_or(-1, |letters| letters + 4)),
        Type::Char(letters) => (1042, i32::try_from(*letters).map_or(-1, |letters| letters + 4)),
        Type::Bytea => (17, -1),
        Type::Date => (1082, -1),
        Type::Time => (1083, -1),
        Type::Timestamp { nanoseconds } => (1114, if *nanoseconds { 9 } else { -1 }),
        Type::TimestampTz => (1184, -1),
        Type::Uuid => (2950, -1),
        _ => (TEXT, -1),
    }
}

/// What `pg_attribute` says of a type: bytes, by value, alignment, storage, collation.
pub(super) fn laid_out(number: u32) -> [Cell; 5] {
    match numbered(number) {
        Some(known) => [
            known.bytes.into(),
            known.by_value.into(),
            known.letters[3].into(),
            known.letters[4].into(),
            known.collation.into(),
        ],
        None => [(-1).into(), false.into(), "i".into(), "x".into(), 0.into()],
    }
}

/// The number of a type by a name that SQL, the catalogue or `format_type` gives it.
pub(super) fn by_name(text: &str) -> Option<u32> {
    let name = text.trim();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
    if let Some(element) = name.strip_suffix("[]") {
        let element = by_name(element)?;
        return KNOWN
            .iter()
            .find(|known| known.number == element)
            .map(|known| known.array)
            .filter(|number| *number != 0);
    }
    let name = match (name.find('('), name.find(')')) {
        (Some(open), Some(close)) if open < close => format!("{}{}", name[..open].trim_end(), &name[close + 1..]),
        _ => name.to_owned(),
    };
    let plain = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    let name = plain.map_or_else(|| name.to_ascii_lowercase(), str::to_owned);
    let name = match (plain.is_some(), name.as_str()) {
        // Without quotes it is the SQL type.
        (false, "char") => "bpchar",
        (_, "int") => "int4",
        (_, "decimal" | "dec") => "numeric",
        (_, "float") => "float8",
        (_, name) => name,
    };
    KNOWN.iter().find(|known| known.name == name || known.shown == name).map(|known| known.number)
}

/// The number of a type by the name that the catalogue gives it; text for those that are not known.
pub(super) fn of_catalog(kind: &str) -> u32 {
    KNOWN.iter().find(|known| known.name == kind).map_or(TEXT, |known| known.number)
}

/// A type as SQL writes it.
pub(super) fn format_type(number: u32, modifier: Option<i32>) -> String {
    let Some(known) = numbered(number) else {
        return if number == 0 { "-".into() } else { "???".into() };
    };
    let (base, brackets) = known.shown.strip_suffix("[]").map_or((known.shown, ""), |base| (base, "[]"));
    let of = if brackets.is_empty() { number } else { known.element };
    match (of, modifier) {
        (1042 | 1043, Some(modifier)) if modifier >= 4 => format!("{base}({}){brackets}", modifier - 4),
        (1700, Some(modifier)) if modifier >= 4 => {
            let digits = modifier - 4;
            format!("{base}({},{}){brackets}", digits >> 16 & 0xffff, digits & 0xffff)
        }
        (1083 | 1114 | 1184, Some(modifier)) if modifier >= 0 => {
            let (first, rest) = base.split_once(' ').unwrap_or((base, ""));
            format!("{first}({modifier}) {rest}{brackets}")
        }
        // A CHAR that says nothing of its length has one letter, unless it is told so.
        (1042, Some(_)) => format!("bpchar{brackets}"),
        _ => known.shown.to_owned(),
    }
}

/// The rows of `pg_type`.
pub(super) fn rows(rows: &mut Rows) {
    for known in KNOWN.iter() {
        let [sort, category, preferred, alignment, storage] = known.letters;
        let function = |place: usize| Cell::from(known.functions[place]);
        rows.push([
            ("oid", known.number.into()),
            ("typname", known.name.into()),
            ("typnamespace", PG_CATALOG.into()),
            ("typowner", OWNER.into()),
            ("typlen", known.bytes.into()),
            ("typbyval", known.by_value.into()),
            ("typtype", sort.into()),
            ("typcategory", category.into()),
            ("typispreferred", (preferred == "!").into()),
            ("typisdefined", true.into()),
            ("typdelim", ",".into()),
            ("typsubscript", function(6)),
            ("typelem", known.element.into()),
            ("typarray", known.array.into()),
            ("typinput", function(0)),
            ("typoutput", function(1)),
            ("typreceive", function(2)),
            ("typsend", function(3)),
            ("typmodin", function(4)),
            ("typmodout", function(5)),
            ("typanalyze", if known.functions[0] == "array_in" { "array_typanalyze" } else { "-" }.into()),
            ("typalign", alignment.into()),
            ("typstorage", storage.into()),
            ("typtypmod", (-1).into()),
            ("typcollation", known.collation.into()),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checked against PostgreSQL 15.
    #[test]
    fn types_are_written_as_postgresql_writes_them() {
        for (number, modifier, shown) in [
            (16, None, "boolean"),
            (23, Some(-1), "integer"),
            (1700, Some(655_366), "numeric(10,2)"),
            (1700, Some(-1), "numeric"),
            (1231, Some(655_366), "numeric(10,2)[]"),
            (1043, Some(14), "character varying(10)"),
            (1042, None, "character"),
            (1042, Some(-1), "bpchar"),
            (1114, Some(3), "timestamp(3) without time zone"),
            (1184, Some(-1), "timestamp with time zone"),
            (18, Some(-1), "\"char\""),
            (1009, Some(-1), "text[]"),
            (0, None, "-"),
            (99_999, None, "???"),
        ] {
            assert_eq!(format_type(number, modifier), shown, "{number} {modifier:?}");
        }
    }

    #[test]
    fn types_are_found_by_all_their_names() {
        for (name, number) in [
            ("int4", 23),
            ("INTEGER", 23),
            ("pg_catalog.int8", 20),
            ("character varying(10)", 1043),
            ("numeric(10,2)", 1700),
            ("timestamp(3) with time zone", 1184),
            ("char", 1042),
            ("\"char\"", 18),
            ("text[]", 1009),
            ("_oid", 1028),
            ("regclass", 2205),
        ] {
            assert_eq!(by_name(name), Some(number), "{name}");
        }
        assert_eq!((by_name("hstore"), by_name(""), by_name(")(")), (None, None, None));
    }

    #[test]
    fn every_type_of_a_column_is_there() {
        for kind in [Type::Boolean, Type::Text, Type::Uuid, Type::Time, Type::Date, Type::Bytea, Type::Char(3)] {
            assert!(numbered(of_column(&kind).0).is_some(), "{kind:?}");
        }
        assert_eq!(KNOWN.len(), lines(include_str!("types.txt")).len());
        let is_array_of = |array: u32, element: u32| numbered(array).is_some_and(|array| array.element == element);
        assert!(KNOWN.iter().all(|known| known.array == 0 || is_array_of(known.array, known.number)));
    }
}
