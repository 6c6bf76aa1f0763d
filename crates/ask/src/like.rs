//! LIKE: `%` stands for any characters, `_` for one.

use counterfoil_proof::{Type, Value};

use crate::error::Error;
use crate::set::{Set, behind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Character(char),
    One,
    Many,
}

/// A pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    tokens: Vec<Token>,
    /// Texts that begin as the pattern does.
    pub(crate) prefixed: Set,
    /// Whether these are all that it matches, and nothing else.
    pub(crate) is_prefix: bool,
}

impl Pattern {
    /// Reads a pattern in which `escape` takes the meaning from the character behind it.
    pub(crate) fn parse(text: &str, escape: Option<char>) -> Result<Self, Error> {
        let mut tokens = Vec::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            tokens.push(match character {
                _ if Some(character) == escape => Token::Character(
                    characters.next().ok_or_else(|| Error::Syntax("a LIKE pattern that ends in its escape".into()))?,
                ),
                '%' => Token::Many,
                '_' => Token::One,
                _ => Token::Character(character),
            });
        }
        // No more may be matched by two than by one, and it would take longer.
        tokens.dedup_by(|a, b| *a == Token::Many && *b == Token::Many);
        let literal: String =
            tokens.iter().map_while(|token| if let Token::Character(c) = token { Some(*c) } else { None }).collect();
        let rest = &tokens[literal.chars().count()..];
        let mut encoded = Vec::new();
        // A text of any length encodes.
        let _ = Type::Text.encode(&Value::Text(literal), &mut encoded);
        let (prefixed, is_prefix) = match rest {
            [] => (Set::point(&encoded), true),
            _ => {
                // Without its end the encoding is what all longer texts begin with.
                encoded.truncate(encoded.len() - 2);
                (Set::range(&encoded, &behind(&encoded)), rest == [Token::Many])
            }
        };
        Ok(Self { tokens, prefixed, is_prefix })
    }

    /// Whether it matches a text: where a `%` took too few characters, the last one takes one more.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let (mut rest, mut at) = (text, 0);
        let mut last_many: Option<(usize, &str)> = None;
        loop {
            let next = rest.chars().next();
            match (self.tokens.get(at), next) {
                (Some(Token::Many), _) => {
                    last_many = Some((at, rest));
                    at += 1;
                }
                (Some(Token::One), Some(character)) => {
                    rest = &rest[character.len_utf8()..];
                    at += 1;
                }
                (Some(Token::Character(wanted)), Some(character)) if *wanted == character => {
                    rest = &rest[character.len_utf8()..];
                    at += 1;
                }
                (None, None) => return true,
                _ => {
                    let Some((many, from)) = last_many else { return false };
                    let Some(character) = from.chars().next() else { return false };
                    rest = &from[character.len_utf8()..];
                    last_many = Some((many, rest));
                    at = many + 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Pattern;

    fn naive(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            (['%', rest @ ..], _) => naive(rest, text) || (!text.is_empty() && naive(pattern, &text[1..])),
            (['_', rest @ ..], [_, behind @ ..]) => naive(rest, behind),
            ([wanted, rest @ ..], [character, behind @ ..]) => wanted == character && naive(rest, behind),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn patterns_match_as_their_definition_says(pattern in "[ab%_é]{0,6}", text in "[abé]{0,8}") {
            let parsed = Pattern::parse(&pattern, Some('\\')).expect("no escape in it");
            let (pattern, characters): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
            prop_assert_eq!(parsed.matches(&text), naive(&pattern, &characters));
        }
    }

    #[test]
    fn an_escape_takes_the_meaning() {
        let matches = |pattern: &str, text: &str| Pattern::parse(pattern, Some('\\')).expect("a pattern").matches(text);
        assert!(matches("10\\%", "10%") && !matches("10\\%", "100") && matches("a\\\\b", "a\\b"));
        assert!(Pattern::parse("a\\", Some('\\')).is_err());
        assert!(Pattern::parse("a\\", None).expect("a pattern").matches("a\\"));
    }
}
