//! What owner and provider say to one another: frames, each a message.
//!
//! ```text
//! frame        length u32, big-endian | a message (postcard)
//! owner        Hello, and then as often as it likes: Put, Remove, Drop, each answered by Done; Ask, answered by Parts and Done
//! provider     Done, Part, Failed
//! ```
//! Before Hello has shown a token nothing longer than [`HELLO_BYTES_MAX`] is read. What is longer than [`FRAME_BYTES_MAX`] is never said:
//! rows are put in several messages, and answers have parts.

use std::io::{Read, Write};

use counterfoil_disperse::Failure;
use counterfoil_disperse::fragments::{Answer, Data, Fragments, Name, Question};
use serde::{Deserialize, Serialize};
use zeroize::Zeroize as _;

/// The version of these messages: both sides have the same, or part.
pub const VERSION: u16 = 1;
/// Bytes of a first message at most.
pub const HELLO_BYTES_MAX: usize = 512;
/// Bytes of a token at most: it is in the first message.
pub const TOKEN_BYTES_MAX: usize = HELLO_BYTES_MAX - 16;
/// Bytes of a message at most.
pub const FRAME_BYTES_MAX: usize = 64 << 20;
/// Bytes of rows in a message, unless one row has more.
const ROWS_BYTES: usize = 4 << 20;

/// What an owner says.
#[derive(Serialize, Deserialize)]
pub enum Request {
    /// Who it is.
    Hello {
        /// Of these messages.
        version: u16,
        /// What it was given.
        token: String,
    },
    /// Take these rows in.
    Put {
        /// The table.
        table: Name,
        /// The rows.
        rows: Fragments,
    },
    /// Let go of rows.
    Remove {
        /// The table.
        table: Name,
        /// Where they are, ascending.
        places: Vec<u64>,
    },
    /// Answer.
    Ask {
        /// The table.
        table: Name,
        /// The question.
        question: Question,
    },
    /// Let go of a table.
    Drop {
        /// The table.
        table: Name,
    },
}

/// What a provider says.
#[derive(Serialize, Deserialize)]
pub enum Reply {
    /// It was done, or that was all.
    Done,
    /// A part of an answer.
    Part(Answer),
    /// It was not done.
    Failed {
        /// What kind of failure it is: one of the numbers of [`failure`].
        kind: u8,
        /// For people.
        text: String,
    },
}

impl Reply {
    /// A failure as it is said.
    #[must_use]
    pub fn of(failure: &Failure) -> Self {
        let (kind, text) = match failure {
            Failure::Refused(text) => (1, text.clone()),
            Failure::Malformed(text) => (2, text.clone()),
            Failure::Unreachable(text) => (3, text.clone()),
            Failure::NoTable => (4, failure.to_string()),
            Failure::CalledOff => (3, "called off".to_owned()),
        };
        Self::Failed { kind, text }
    }
}

/// A failure as it was said.
#[must_use]
pub fn failure(kind: u8, text: String) -> Failure {
    // What somebody else says goes to a terminal: no more of it than fits there, and no control characters.
    let text: String = text.chars().filter(|letter| !letter.is_control()).take(300).collect();
    match kind {
        1 => Failure::Refused(text),
        3 => Failure::Unreachable(text),
        4 => Failure::NoTable,
        _ => Failure::Malformed(text),
    }
}

/// Rows in parts that fit into messages.
pub fn parts(rows: &Fragments) -> Vec<Fragments> {
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let mut bytes = 0;
    for row in 0..rows.places.len() {
        let own = rows.row_bytes(row);
        match parts.last_mut() {
            Some(part) if bytes + own <= ROWS_BYTES => part.push(row),
            _ => {
                parts.push(vec![row]);
                bytes = 0;
            }
        }
        bytes += own;
    }
    parts.iter().map(|part| rows.chosen(part)).collect()
}

/// An answer in parts that fit into messages: sums are in the first one.
pub fn answers(mut answer: Answer) -> Vec<Answer> {
    let is_short = (0..answer.rows.places.len()).map(|row| answer.rows.row_bytes(row)).sum::<usize>() <= ROWS_BYTES;
    if is_short {
        return vec![answer];
    }
    let parts = parts(&std::mem::take(&mut answer.rows));
    let mut answers: Vec<Answer> = parts.into_iter().map(|rows| Answer { rows, ..Answer::default() }).collect();
    if let Some(first) = answers.first_mut() {
        first.added = answer.added;
        first.sums = answer.sums;
    }
    answers
}

/// Whether what somebody else says of rows holds together.
#[must_use]
pub fn is_whole(rows: &Fragments) -> bool {
    rows.is_even()
        && rows.columns.iter().all(|(_, data)| match data {
            Data::Shares(shares) => shares.iter().all(|share| *share >> 61 == 0),
            Data::Strings(_) => true,
        })
}

fn unreachable(error: &std::io::Error) -> Failure {
    Failure::Unreachable(error.to_string())
}

/// Says a message.
///
/// # Errors
/// [`Failure::Unreachable`]; [`Failure::Refused`] for one that is too long.
pub fn say(stream: &mut impl Write, message: &impl Serialize) -> Result<(), Failure> {
    let mut bytes = postcard::to_allocvec(message).expect("memory takes what it is given");
    if bytes.len() > FRAME_BYTES_MAX {
        return Err(Failure::Refused("a row that is too large for one message".into()));
    }
    let length = (bytes.len() as u32).to_be_bytes();
    let said = stream.write_all(&length).and_then(|()| stream.write_all(&bytes)).and_then(|()| stream.flush());
    forget(&mut bytes);
    said.map_err(|error| unreachable(&error))
}

/// Hears a message of `bytes_max` bytes at most; none: the other side has ended.
///
/// # Errors
/// [`Failure::Unreachable`], [`Failure::Malformed`].
pub fn hear<T: for<'a> Deserialize<'a>>(stream: &mut impl Read, bytes_max: usize) -> Result<Option<T>, Failure> {
    let mut length = [0; 4];
    match stream.read(&mut length[..1]).map_err(|error| unreachable(&error))? {
        0 => return Ok(None),
        _ => stream.read_exact(&mut length[1..]).map_err(|error| unreachable(&error))?,
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > bytes_max {
        return Err(Failure::Malformed("a message that is too long".into()));
    }
    // As much room as has come, not as much as was announced.
    let mut bytes = Vec::new();
    stream.take(length as u64).read_to_end(&mut bytes).map_err(|error| unreachable(&error))?;
    if bytes.len() < length {
        return Err(Failure::Unreachable("the other side has ended in the middle of a message".into()));
    }
    let message = match postcard::take_from_bytes(&bytes) {
        Ok((message, [])) => Ok(Some(message)),
        _ => {
            let text = format!("no message of version {VERSION}: take the newer program on both sides");
            Err(Failure::Malformed(text))
        }
    };
    forget(&mut bytes);
    message
}

/// Overwrites what may have held a token.
fn forget(bytes: &mut [u8]) {
    if bytes.len() <= HELLO_BYTES_MAX {
        bytes.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use counterfoil_disperse::fragments::Strings;
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> Name {
        Name::parse(text).expect("a name")
    }

    proptest! {
        #[test]
        fn whatever_comes_is_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let framed = [&(bytes.len() as u32).to_be_bytes()[..], &bytes].concat();
            if let Ok(Some(Reply::Part(answer))) = hear::<Reply>(&mut &framed[..], FRAME_BYTES_MAX) {
                // What was heard can be looked at.
                for (_, data) in &answer.rows.columns {
                    if let Data::Strings(strings) = data {
                        prop_assert_eq!(strings.iter().count(), strings.len());
                    }
                }
            }
            let _ = hear::<Request>(&mut &framed[..], FRAME_BYTES_MAX);
            let _ = hear::<Request>(&mut &bytes[..], HELLO_BYTES_MAX);
        }

        #[test]
        fn changed_messages_are_heard_as_something_or_refused(at in any::<prop::sample::Index>(), bit in 0_u8..8) {
            let mut strings = Strings::default();
            [&b"one"[..], b"", b"three"].iter().for_each(|string| strings.push(string));
            let columns = vec![
                (name("c0000000000000001"), Data::Strings(strings)),
                (name("c0000000000000002"), Data::Shares(vec![1, 2, 3])),
            ];
            let rows = Fragments { places: vec![7, 8, 9], columns };
            let mut bytes = Vec::new();
            say(&mut bytes, &Request::Put { table: name("t0000000000000001"), rows }).expect("said");
            let at = 4 + at.index(bytes.len() - 4);
            bytes[at] ^= 1 << bit;
            if let Ok(Some(Request::Put { rows, .. })) = hear(&mut &bytes[..], FRAME_BYTES_MAX)
                && is_whole(&rows)
            {
                let all: Vec<usize> = (0..rows.places.len()).collect();
                prop_assert_eq!(rows.chosen(&all), rows);
            }
        }
    }

    #[test]
    fn what_is_announced_takes_no_room_and_what_is_long_is_not_read() {
        let announced = [&u32::MAX.to_be_bytes()[..], b"x"].concat();
        assert!(matches!(hear::<Request>(&mut &announced[..], FRAME_BYTES_MAX), Err(Failure::Malformed(_))));
        let short = [&1000_u32.to_be_bytes()[..], b"x"].concat();
        assert!(matches!(hear::<Request>(&mut &short[..], FRAME_BYTES_MAX), Err(Failure::Unreachable(_))));
        assert!(matches!(hear::<Request>(&mut &short[..], HELLO_BYTES_MAX), Err(Failure::Malformed(_))));
        assert!(matches!(hear::<Request>(&mut &[][..], 1), Ok(None)));
    }

    #[test]
    fn rows_and_answers_are_cut_into_parts_that_fit() {
        let mut strings = Strings::default();
        (0..10).for_each(|_| strings.push(&vec![7; 1 << 20]));
        let rows =
            Fragments { places: (0..10).collect(), columns: vec![(name("c0000000000000001"), Data::Strings(strings))] };
        let cut = parts(&rows);
        assert_eq!(cut.iter().map(|part| part.places.len()).collect::<Vec<_>>(), [3, 3, 3, 1]);
        let answer = Answer { rows, added: 5, sums: vec![9] };
        let cut = answers(answer);
        assert_eq!(
            cut.iter().map(|part| (part.added, part.sums.len())).collect::<Vec<_>>(),
            [(5, 1), (0, 0), (0, 0), (0, 0)]
        );
        assert_eq!(answers(Answer { added: 5, sums: vec![9], ..Answer::default() }).len(), 1);
    }
}
