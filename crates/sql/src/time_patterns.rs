//! Patterns of PostgreSQL's `to_char`, `to_date` and `to_timestamp` for times, as `strftime` writes them.

/// Names, which are written as the pattern is.
const NAMES: [(&str, &str); 8] = [
    ("Month", "%B"),
    ("Mon", "%b"),
    ("Day", "%A"),
    ("Dy", "%a"),
    ("AM", "%p"),
    ("PM", "%p"),
    ("am", "%P"),
    ("pm", "%P"),
];
/// Everything else that is a part of a pattern there, in whatever letters, longer ones first; none: it is not known here.
const PARTS: [(&str, Option<&str>); 59] = [
    ("SSSSS", None),
    ("Y,YYY", None),
    ("MONTH", None),
    ("SSSS", None),
    ("IDDD", None),
    ("YYYY", Some("%Y")),
    ("IYYY", Some("%G")),
    ("HH24", Some("%H")),
    ("HH12", Some("%I")),
    ("A.D.", None),
    ("A.M.", None),
    ("B.C.", None),
    ("P.M.", None),
    ("YYY", None),
    ("IYY", None),
    ("MON", None),
    ("DAY", None),
    ("DDD", Some("%j")),
    ("FF1", None),
    ("FF2", None),
    ("FF3", None),
    ("FF4", None),
    ("FF5", None),
    ("FF6", None),
    ("TZH", None),
    ("TZM", None),
    ("YY", Some("%y")),
    ("MM", Some("%m")),
    ("DD", Some("%d")),
    ("HH", Some("%I")),
    ("MI", Some("%M")),
    ("SS", Some("%S")),
    ("MS", Some("%3f")),
    ("US", Some("%6f")),
    ("IW", Some("%V")),
    ("TZ", Some("%Z")),
    ("AD", None),
    ("AM", None),
    ("BC", None),
    ("CC", None),
    ("DY", None),
    ("FM", None),
    ("FX", None),
    ("ID", None),
    ("IY", None),
    ("OF", None),
    ("PM", None),
    ("RM", None),
    ("SP", None),
    ("TH", None),
    ("TM", None),
    ("WW", None),
    ("D", None),
    ("I", None),
    ("J", None),
    ("Q", None),
    ("W", None),
    ("Y", None),
    ("%", None),
];

/// A pattern as `strftime` has it; none: it has parts that are not known here.
pub(crate) fn of_strftime(pattern: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(letter) = rest.chars().next() {
        if let Some((quoted, tail)) = rest.strip_prefix('"').and_then(|tail| tail.split_once('"')) {
            out.push_str(&quoted.replace('%', "%%"));
            rest = tail;
        } else if let Some((tail, ours)) = NAMES.iter().find_map(|(name, ours)| Some((rest.strip_prefix(name)?, ours)))
        {
            out.push_str(ours);
            rest = tail;
        } else if let Some((part, ours)) = PARTS.iter().find(|(part, _)| begins_with(rest, part)) {
            out.push_str((*ours)?);
            rest = &rest[part.len()..];
        } else {
            out.push(letter);
            rest = &rest[letter.len_utf8()..];
        }
    }
    Some(out)
}

fn begins_with(text: &str, part: &str) -> bool {
    text.get(..part.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(part))
}

#[cfg(test)]
mod tests {
    use super::of_strftime;

    #[test]
    fn patterns_are_what_they_are_there_or_unknown() {
        assert_eq!(of_strftime("YYYY-MM-DD HH24:MI:SS.US").as_deref(), Some("%Y-%m-%d %H:%M:%S.%6f"));
        assert_eq!(of_strftime("yyyy/mm/dd hh12:mi pm").as_deref(), Some("%Y/%m/%d %I:%M %P"));
        assert_eq!(of_strftime("Dy, DD Mon YYYY \"at\" HH12 AM").as_deref(), Some("%a, %d %b %Y at %I %p"));
        for unknown in ["FMDD", "Q", "WW", "MON", "DAY", "SSSS", "YYY", "DDTH", "HH12 a.m.", "FF3", "50%"] {
            assert_eq!(of_strftime(unknown), None, "{unknown}");
        }
    }
}
