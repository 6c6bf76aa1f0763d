use super::*;

/// Gives its bytes in pieces of one size, then an error if it has one.
struct Pieces<'a> {
    bytes: &'a [u8],
    size: usize,
    fails: bool,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.size.min(buffer.len()).min(self.bytes.len());
        buffer[..bytes].copy_from_slice(&self.bytes[..bytes]);
        self.bytes = &self.bytes[bytes..];
        match bytes {
            0 if self.fails => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            _ => Ok(bytes),
        }
    }
}

/// All lines of `bytes` as (number, text); a line that is too long as a text of its own. Reads of any size give the
/// same ones.
fn lines(bytes: &[u8]) -> Vec<(u64, String)> {
    let read = |size| {
        let mut lines = Lines::new(Pieces { bytes, size, fails: false });
        let mut all = Vec::new();
        while let Some(piece) = lines.next().expect("no error") {
            all.push(match piece {
                Piece::Line { number, text } => (number, String::from_utf8_lossy(text).into_owned()),
                Piece::TooLong { number } => (number, "too long".to_owned()),
            });
        }
        assert!(lines.buffer.len() <= 2 * LINE_BYTES_MAX + 2 * READ_BYTES, "{}", lines.buffer.len());
        all
    };
    let all = read(READ_BYTES);
    for size in [1, 7, 1000] {
        assert_eq!(all, read(size), "reads of {size}");
    }
    all
}

fn texts(bytes: &str) -> Vec<(u64, String)> {
    lines(bytes.as_bytes())
}

fn expected(pieces: &[(u64, &str)]) -> Vec<(u64, String)> {
    pieces.iter().map(|&(number, text)| (number, text.to_owned())).collect()
}

#[test]
fn empty_lines_and_comments_count_and_are_left_out() {
    assert_eq!(texts("# one\n\n  \t\r\n a=1\r\n#\nb=2"), expected(&[(4, "a=1"), (6, "b=2")]));
    assert_eq!(texts(""), []);
    assert_eq!(texts("\n\n"), []);
}

#[test]
fn lines_that_say_nothing_are_passed_over_wherever_they_stand() {
    let nothing = "\n\r\n#\n# m a=\"\r\n \n\t#\n";
    let long = format!("#{}\n", "\"".repeat(LINE_BYTES_MAX));
    let all = texts(&format!("{nothing}m a=\"\n\n#\"\n{nothing}{long}m b=1\n{nothing}\r"));
    let expected = expected(&[(7, "m a=\"\n\n#\""), (16, "too long"), (17, "m b=1")]);
    assert_eq!(all, expected);
    let many = "\n".repeat(3 * READ_BYTES);
    assert_eq!(texts(&format!("{many}m a=1{many}")), [(3 * READ_BYTES as u64 + 1, "m a=1".to_owned())]);
}

#[test]
fn a_string_goes_over_lines() {
    assert_eq!(texts("m a=\"1\n2\"\nm b=1\n"), expected(&[(1, "m a=\"1\n2\""), (3, "m b=1")]));
}

#[test]
fn a_string_without_end_costs_its_own_line_alone() {
    assert_eq!(texts("m a=\"1\nm b=1\nm c=1"), expected(&[(1, "m a=\"1"), (2, "m b=1"), (3, "m c=1")]));
    // Far behind the bytes of one line, too.
    let more = "m b=1\n".repeat(LINE_BYTES_MAX / 3);
    let all = texts(&format!("m a=\"1\n{more}"));
    assert_eq!(all.len(), 1 + LINE_BYTES_MAX / 3);
    assert_eq!(all[0].1, "m a=\"1");
}

#[test]
fn a_line_too_long_is_passed_over() {
    let fits = format!("m a=\"{}\"", "x".repeat(LINE_BYTES_MAX - 6));
    let long = format!("m a=\"{}\"", "x".repeat(LINE_BYTES_MAX));
    let longer = "y".repeat(3 * LINE_BYTES_MAX);
    let all = texts(&format!("{fits}\n{long}\n{longer}\nm b=1\n{longer}"));
    let seen: Vec<_> = all.iter().map(|(number, text)| (*number, text.len().min(20))).collect();
    assert_eq!(seen, [(1, 20), (2, 8), (3, 8), (4, 5), (5, 8)]);
}

#[test]
fn half_a_line_before_an_error_is_not_given() {
    let mut lines = Lines::new(Pieces { bytes: b"m a=1\nm a=12", size: 5, fails: true });
    assert_eq!(lines.next().unwrap(), Some(Piece::Line { number: 1, text: b"m a=1" }));
    assert!(lines.next().is_err());
}

/// Lines whose string is open at their end, read from their beginning as well as from within the string of the line
/// before: searched for an end, none has one before the longest line is over.
#[test]
fn strings_without_end_take_linear_time() {
    let bytes = "\",t=\" c=\",d=x\",e=\"\n".repeat(60_000);
    let begun = std::time::Instant::now();
    let mut lines = Lines::new(bytes.as_bytes());
    let mut count = 0;
    while lines.next().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 60_000);
    assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
}
