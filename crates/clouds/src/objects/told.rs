//! What went wrong, told from what was seen.

use counterfoil_disperse::Failure;
use hyper::StatusCode;

use super::errand::Seen;

/// Letters of a server's word for what went wrong at most.
const WORD_MAX: usize = 64;

/// Why an operation failed. The library's own text is not told: it repeats what was sent, and what the server says, which may repeat a key.
pub(super) fn told(error: &opendal::Error, seen: &Seen) -> Failure {
    if let Some(failure) = &seen.failure {
        return failure.clone();
    }
    let Some(status) = seen.status else {
        return Failure::Refused(format!("no request can be made of it ({})", error.kind()));
    };
    let number = status.as_u16();
    let what = word(error.message()).map_or(number.to_string(), |word| format!("{word}, {number}"));
    match number {
        200..=299 => Failure::Malformed(format!("what the server says does not fit what it was asked ({what})")),
        300..=399 => Failure::Refused(format!("the server leads elsewhere ({what}): name the address where it is")),
        401 | 403 => Failure::Refused(format!("the server does not grant it ({what})")),
        404 => Failure::Refused(format!("it is not there ({what})")),
        413 | 507 => Failure::Refused(format!("there is no room ({what})")),
        416 => Failure::Malformed(format!("it is shorter than what was written ({what})")),
        408 | 423 | 425 | 429 | 500..=599 => Failure::Unreachable(format!("the server cannot do it now ({what})")),
        _ => Failure::Refused(format!("the server answers {what}")),
    }
}

/// Whether a server's answer says that a folder is missing, in which something was to be.
pub(super) fn lacks_folder(status: Option<StatusCode>) -> bool {
    matches!(status, Some(StatusCode::CONFLICT | StatusCode::NOT_FOUND))
}

/// The word that S3 has for it.
fn word(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("code: \"")?;
    let (word, _) = rest.split_once('"')?;
    let is_word = !word.is_empty() && word.len() <= WORD_MAX && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_word.then_some(word)
}

#[cfg(test)]
mod tests {
    use super::{Seen, told};
    use counterfoil_disperse::Failure;
    use hyper::StatusCode;
    use opendal::{Error, ErrorKind};

    #[test]
    fn a_failure_is_of_its_sort_and_repeats_nothing() {
        let message = "S3Error { code: \"SignatureDoesNotMatch\", message: \"AKIAHUSH\" }";
        let failure = |number: u16, message: &str| {
            let mut seen = Seen::new(1, 1);
            seen.status = StatusCode::from_u16(number).ok();
            told(&Error::new(ErrorKind::Unexpected, message), &seen)
        };
        let refused = failure(403, message);
        assert!(matches!(&refused, Failure::Refused(what) if what.contains("SignatureDoesNotMatch, 403")), "{refused}");
        assert!(!refused.to_string().contains("HUSH"));
        for (number, is_refused) in [(301, true), (400, true), (404, true), (507, true), (500, false), (429, false)] {
            assert_eq!(matches!(failure(number, "HUSH"), Failure::Refused(_)), is_refused, "{number}");
        }
        assert!(matches!(failure(416, "HUSH"), Failure::Malformed(_)));
        assert!(matches!(failure(200, "code: \"HUSH HUSH\""), Failure::Malformed(what) if !what.contains("HUSH")));
    }
}
