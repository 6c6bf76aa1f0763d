//! Qualities of OPC UA as small numbers: what the column of `--quality-field` holds.
//!
//! | number | quality | status codes |
//! |---|---|---|
//! | 192 | good | `0x0…` to `0x3…` |
//! | 64 | uncertain | `0x4…` to `0x7…` |
//! | 0 | bad | `0x8…` to `0xF…` |
//!
//! These are the quality bits of OPC classic (`11`, `01`, `00` in the two high bits of a byte), so that a greater
//! number is a better quality, `min` is the worst of many, and data of both generations stand in one column. The two
//! high bits of a status code of OPC UA are its severity (`00` good, `01` uncertain, `10` bad, `11` reserved and read
//! as bad); what else it says is not kept.
//!
//! A field holds
//! - a word: `Good`, `Uncertain` or `Bad`, in any case, alone or as the first part of the name of a status
//!   (`GoodClamped`, `UncertainLastUsableValue`, `Bad_SensorFailure`, `BadNoCommunication`), `StatusGood` and its kin,
//!   or `OK`;
//! - a number: a status code (`0`, `2147483648u`), with or without a sign, as text also in hexadecimal (`0x80000000`);
//! - a text that ends in one in parentheses, as Telegraf sends it: `OK (0x0)`,
//!   `The server is not connected StatusBadNotConnected (0x808A0000)`.
//!
//! Numbers from 1 to 255 are no status codes (their low half means something only with a bit above it) and are read as the
//! byte of OPC classic, by its two high bits. The number 0 is both, good in one and bad in the other; here it is the status
//! code `Good`, so a source of OPC classic sends 4 (bad, configuration error) or a word where it means bad.

use crate::value::Value;

/// The value is good.
pub const GOOD: i16 = 192;
/// The value may be used with care.
pub const UNCERTAIN: i16 = 64;
/// The value may not be used.
pub const BAD: i16 = 0;

/// The quality of a status code, by its severity, or of a byte of OPC classic.
pub fn of_code(code: u32) -> i16 {
    match (code, code >> 30) {
        (1..=255, _) => [BAD, UNCERTAIN, BAD, GOOD][(code >> 6) as usize],
        (_, 0) => GOOD,
        (_, 1) => UNCERTAIN,
        _ => BAD,
    }
}

/// The quality that a text names, by the module's rules; none where it names none.
pub fn of_text(text: &str) -> Option<i16> {
    let text = text.trim();
    if let Some(inner) = text.strip_suffix(')').and_then(|text| text.rsplit_once('(')) {
        return code(inner.1.trim()).map(of_code);
    }
    code(text).map(of_code).or_else(|| word(text))
}

fn code(text: &str) -> Option<u32> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => u32::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

/// `Good`, `good_clamped`, `GoodClamped`, `StatusGood`; but not `Goods` or `badge`.
fn word(text: &str) -> Option<i16> {
    if text.eq_ignore_ascii_case("ok") {
        return Some(GOOD);
    }
    let name = match text.get(..6) {
        Some(prefix) if prefix.eq_ignore_ascii_case("status") => &text[6..],
        _ => text,
    };
    [("good", GOOD), ("uncertain", UNCERTAIN), ("bad", BAD)].into_iter().find_map(|(severity, quality)| {
        let (first, rest) = (name.get(..severity.len())?, name.get(severity.len()..)?);
        let ends =
            rest.is_empty() || rest.starts_with(|next: char| next.is_ascii_uppercase() || "_-. :,".contains(next));
        (first.eq_ignore_ascii_case(severity) && ends).then_some(quality)
    })
}

/// The quality that a field's value says; none where it says none.
pub fn of_value(value: &Value<'_>) -> Option<i16> {
    match *value {
        // A status code that went through 32 bits with a sign.
        Value::Integer(code) => {
            i32::try_from(code).map(|code| code as u32).or_else(|_| u32::try_from(code)).ok().map(of_code)
        }
        Value::Unsigned(code) => u32::try_from(code).ok().map(of_code),
        Value::Float(code) if code.fract() == 0.0 && (0.0..4_294_967_296.0).contains(&code) => {
            Some(of_code(code as u32))
        }
        Value::Text(text) => of_text(&text.unescaped()),
        Value::Float(_) | Value::Boolean(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_codes() {
        for (text, quality) in [
            ("Good", GOOD),
            ("good", GOOD),
            ("OK", GOOD),
            ("OK (0x0)", GOOD),
            ("GoodClamped", GOOD),
            ("StatusGood", GOOD),
            ("192", GOOD),
            ("216", GOOD),
            ("68", UNCERTAIN),
            ("4", BAD),
            ("0", GOOD),
            ("0x00A80000", GOOD),
            ("Uncertain", UNCERTAIN),
            ("UncertainLastUsableValue", UNCERTAIN),
            ("UNCERTAIN_SUBNORMAL", UNCERTAIN),
            ("1083179008", UNCERTAIN),
            ("Bad", BAD),
            (" BadNoCommunication ", BAD),
            ("Bad_SensorFailure", BAD),
            ("bad: sensor", BAD),
            ("0x80310000", BAD),
            ("The server is not connected StatusBadNotConnected (0x808A0000)", BAD),
            ("(0xC0000000)", BAD),
        ] {
            assert_eq!(of_text(text), Some(quality), "{text}");
        }
        for text in
            ["", "Goods", "badge", "unknown", "0xZZ", "0x", "(0x123456789)", "OK ()", "-1", "4294967296", "é", "statué"]
        {
            assert_eq!(of_text(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_status_codes() {
        assert_eq!(of_value(&Value::Unsigned(0x4000_0000)), Some(UNCERTAIN));
        assert_eq!(of_value(&Value::Integer(i64::from(i32::MIN))), Some(BAD));
        assert_eq!(of_value(&Value::Integer(0x8000_0000)), Some(BAD));
        assert_eq!(of_value(&Value::Float(0.0)), Some(GOOD));
        for value in [
            Value::Integer(i64::MIN),
            Value::Unsigned(u64::MAX),
            Value::Float(0.5),
            Value::Float(-1.0),
            Value::Boolean(true),
        ] {
            assert_eq!(of_value(&value), None);
        }
    }
}
