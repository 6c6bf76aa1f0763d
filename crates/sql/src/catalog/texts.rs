//! Texts as PostgreSQL reads and writes them: names, literals, arrays, JSON.

use super::functions::Given;
use super::server::KEYWORDS;

/// A name as SQL reads it back: in quotes if it is a word that cannot be a name everywhere, or has other than small letters.
pub(super) fn quote_ident(name: &str) -> String {
    let plain = name.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '_')
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !KEYWORDS.iter().any(|(_, _, words)| words.split_whitespace().any(|word| word == name));
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// The parts of a name as SQL reads it: folded where they are not in quotes.
pub(super) fn parse_ident(text: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    loop {
        let part = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (part, behind) = in_quotes(quoted)?;
                rest = behind;
                part
            }
            None => {
                let end = rest
                    .find(|letter: char| letter == '.' || letter.is_whitespace() || letter == '"')
                    .unwrap_or(rest.len());
                let part = rest[..end].to_lowercase();
                rest = &rest[end..];
                part
            }
        };
        if part.is_empty() {
            return None;
        }
        parts.push(part);
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(behind) => rest = behind.trim_start(),
            None => return rest.is_empty().then_some(parts),
        }
    }
}

/// What stands before the quote that ends it, and what behind.
fn in_quotes(text: &str) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut rest = text;
    loop {
        let (before, behind) = rest.split_once('"')?;
        part.push_str(before);
        match behind.strip_prefix('"') {
            Some(behind) => {
                part.push('"');
                rest = behind;
            }
            None => return Some((part, behind)),
        }
    }
}

/// A literal as SQL reads it back.
pub(super) fn quote_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The parts of `{a,"b c",NULL}`.
pub(super) fn parts(text: &str) -> Option<Vec<Option<String>>> {
    let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let (part, behind) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (part, behind) = quoted_part(quoted)?;
                (Some(part), behind)
            }
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let part = rest[..end].trim();
                if part.contains(['{', '}', '"']) {
                    return None;
                }
                (Some(part.to_owned()).filter(|part| !part.eq_ignore_ascii_case("null")), &rest[end..])
            }
        };
        parts.push(part);
        rest = behind.trim_start();
        match rest.strip_prefix(',') {
            Some(behind) => rest = behind.trim_start(),
            None if rest.is_empty() => {}
            None => return None,
        }
    }
    Some(parts)
}

fn quoted_part(text: &str) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((part, &text[at + 1..])),
            '\\' => part.push(letters.next()?.1),
            _ => part.push(letter),
        }
    }
    None
}

/// Bytes as people read them, as PostgreSQL rounds them.
pub(super) fn pretty(bytes: i64) -> String {
    const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    let (mut size, mut unit) = (i128::from(bytes), 0);
    while size.abs() >= 10 * 1024 && unit + 1 < UNITS.len() {
        size = (size + size.signum() * 512) / 1024;
        unit += 1;
    }
    format!("{size} {}", UNITS[unit])
}

/// An object of names and values by turns, with the blanks that PostgreSQL sets.
pub(super) fn json(given: &[Given]) -> String {
    let pairs = given.chunks(2).map(|pair| match pair {
        [name, value] => format!("{} : {}", json_text(&name_text(name)), json_value(value)),
        _ => String::new(),
    });
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
}

fn name_text(given: &Given) -> String {
    match given {
        Given::Text(text) => text.clone(),
        other => json_value(other),
    }
}

fn json_value(given: &Given) -> String {
    match given {
        Given::Null => "null".into(),
        Given::Truth(truth) => truth.to_string(),
        Given::Number(number) => number.to_string(),
        Given::Text(text) => json_text(text),
        Given::List(list) => format!("[{}]", list.iter().map(json_value).collect::<Vec<_>>().join(",")),
    }
}

fn json_text(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if u32::from(letter) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_must_be_and_read_back() {
        for (name, quoted) in [
            ("a", "a"),
            ("name", "name"),
            ("a_1", "a_1"),
            ("user", "\"user\""),
            ("int", "\"int\""),
            ("A b", "\"A b\""),
            ("q\"q", "\"q\"\"q\""),
            ("1a", "\"1a\""),
        ] {
            assert_eq!(quote_ident(name), quoted);
            assert_eq!(parse_ident(quoted), Some(vec![name.to_owned()]));
        }
        assert_eq!(parse_ident(" Public . \"T.x\" "), Some(vec!["public".into(), "T.x".into()]));
        for wrong in ["", ".", "a.", "\"open", "a b", "a\"b\""] {
            assert_eq!(parse_ident(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn arrays_written_as_text_have_parts() {
        let some = |parts: &[&str]| Some(parts.iter().map(|part| Some((*part).to_owned())).collect::<Vec<_>>());
        assert_eq!(parts("{r,p,f}"), some(&["r", "p", "f"]));
        assert_eq!(parts(" { 1 , \"a,\\\"b\" } "), some(&["1", "a,\"b"]));
        assert_eq!(parts("{}"), some(&[]));
        assert_eq!(parts("{NULL}"), Some(vec![None]));
        for wrong in ["", "{", "{\"a}", "{{1}}", "{\"a\"b}"] {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
    }
}
