//! Reading PDF syntax: enough to check what a compiled template brings along and to renumber it.

use std::ops::Range;

/// A piece of PDF syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    DictOpen,
    DictClose,
    ArrayOpen,
    ArrayClose,
    Name,
    /// A whole number without sign.
    Integer(u64),
    /// Any other number.
    Number,
    String,
    /// `true`, `R`, `obj`, …
    Keyword,
}

/// Reads tokens one after the other. Ends at the end of the bytes, or gives `Err` at what is no PDF.
pub(crate) struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Not PDF syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

impl<'a> Tokens<'a> {
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn skip_space(&mut self) {
        while let Some(byte) = self.peek(0) {
            if byte == b'%' {
                while self.peek(0).is_some_and(|byte| byte != b'\n' && byte != b'\r') {
                    self.at += 1;
                }
            } else if !is_space(byte) {
                return;
            } else {
                self.at += 1;
            }
        }
    }

    /// The next token and where it is; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(Token, Range<usize>)>, Malformed> {
        self.skip_space();
        let start = self.at;
        let Some(first) = self.peek(0) else { return Ok(None) };
        let token = match first {
            b'<' if self.peek(1) == Some(b'<') => {
                self.at += 2;
                Token::DictOpen
            }
            b'>' if self.peek(1) == Some(b'>') => {
                self.at += 2;
                Token::DictClose
            }
            b'<' => {
                self.at += 1;
                loop {
                    let byte = self.peek(0).ok_or(Malformed)?;
                    self.at += 1;
                    match byte {
                        b'>' => break,
                        _ if byte.is_ascii_hexdigit() || is_space(byte) => {}
                        _ => return Err(Malformed),
                    }
                }
                Token::String
            }
            b'(' => {
                self.literal()?;
                Token::String
            }
            b'[' | b']' => {
                self.at += 1;
                if first == b'[' { Token::ArrayOpen } else { Token::ArrayClose }
            }
            b'/' => {
                self.at += 1;
                self.regular();
                Token::Name
            }
            b'>' | b')' | b'{' | b'}' => return Err(Malformed),
            _ => {
                self.regular();
                word_token(&self.bytes[start..self.at])
            }
        };
        Ok(Some((token, start..self.at)))
    }

    fn regular(&mut self) {
        while self.peek(0).is_some_and(is_regular) {
            self.at += 1;
        }
    }

    fn literal(&mut self) -> Result<(), Malformed> {
        let mut depth = 0_usize;
        loop {
            let byte = self.peek(0).ok_or(Malformed)?;
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'(' => depth += 1,
                b')' => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
    }
}

fn word_token(word: &[u8]) -> Token {
    if word.len() < 18 && word.iter().all(u8::is_ascii_digit) {
        Token::Integer(word.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
    } else if word.iter().all(|byte| byte.is_ascii_digit() || b"+-.".contains(byte)) {
        Token::Number
    } else {
        Token::Keyword
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | b'\t' | b'\n' | 0xC | b'\r' | b' ')
}

/// Whether a byte can stand in a name as it is.
pub(crate) fn is_regular(byte: u8) -> bool {
    !is_space(byte) && !b"()<>[]{}/%".contains(&byte)
}

/// Checks the inside of a dictionary: names with values, everything closed, references only to the
/// objects `1..=last`.
pub(crate) fn check_entries(entries: &str, last: u32) -> Result<(), Malformed> {
    let bytes = entries.as_bytes();
    let mut tokens = Tokens::new(bytes, 0);
    let mut open = Vec::new();
    let mut recent = [None; 2];
    while let Some((token, range)) = tokens.next()? {
        match token {
            Token::DictOpen | Token::ArrayOpen if open.len() < 32 => open.push(token),
            Token::DictOpen | Token::ArrayOpen => return Err(Malformed),
            Token::DictClose if open.pop() == Some(Token::DictOpen) => {}
            Token::ArrayClose if open.pop() == Some(Token::ArrayOpen) => {}
            Token::DictClose | Token::ArrayClose => return Err(Malformed),
            Token::Keyword => match &bytes[range] {
                b"R" => match recent {
                    [Some(object), Some(0)] if (1..=u64::from(last)).contains(&object) => {}
                    _ => return Err(Malformed),
                },
                b"true" | b"false" | b"null" => {}
                _ => return Err(Malformed),
            },
            Token::Name | Token::Integer(_) | Token::Number | Token::String => {}
        }
        recent = [recent[1], if let Token::Integer(value) = token { Some(value) } else { None }];
    }
    if open.is_empty() { Ok(()) } else { Err(Malformed) }
}

/// Puts `entry` into the dictionary `category` of `resources`, which passed [`check_entries`];
/// `false` if that dictionary is somewhere else.
pub(crate) fn add_resource(resources: &mut String, category: &str, entry: &str) -> bool {
    let mut tokens = Tokens::new(resources.as_bytes(), 0);
    let mut depth = 0_usize;
    let mut found = false;
    let mut place = None;
    while let Ok(Some((token, range))) = tokens.next() {
        if found {
            if token != Token::DictOpen {
                return false;
            }
            place = Some(range.end);
            break;
        }
        match token {
            Token::DictOpen | Token::ArrayOpen => depth += 1,
            Token::DictClose | Token::ArrayClose => depth = depth.saturating_sub(1),
            Token::Name if depth == 0 => found = &resources[range] == category,
            _ => {}
        }
    }
    match place {
        Some(place) => resources.insert_str(place, entry),
        None => resources.push_str(&format!("{category}<<{entry}>>")),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_entries_pass() {
        for entries in [
            "",
            "/ExtGState<</a 3 0 R>>/Pattern<</p 5 0 R>>",
            "/Group<</S/Transparency/CS/DeviceRGB/I false>>/X[1 -2.5 (a\\)b) <00FF>]",
        ] {
            assert_eq!(check_entries(entries, 5), Ok(()), "{entries}");
        }
    }

    #[test]
    fn entries_that_would_leave_their_dictionary_are_refused() {
        for entries in [
            ">>endobj",
            "/A<<",
            "/A(unclosed",
            "/A 6 0 R",
            "/A 0 0 R",
            "/A 1 1 R",
            "/A R",
            "/A[>>",
            "/A stream",
            "/A<zz>",
            "/A}",
        ] {
            assert_eq!(check_entries(entries, 5), Err(Malformed), "{entries}");
        }
    }

    #[test]
    fn a_resource_joins_its_category() {
        let mut resources = "/Pattern<</ExtGState 1 0 R>>/ExtGState<</a 3 0 R>>".to_owned();
        assert!(add_resource(&mut resources, "/ExtGState", "/Sg0 1 0 R"));
        assert!(add_resource(&mut resources, "/XObject", "/Si0 2 0 R"));
        assert_eq!(
            resources,
            "/Pattern<</ExtGState 1 0 R>>/ExtGState<</Sg0 1 0 R/a 3 0 R>>/XObject<</Si0 2 0 R>>"
        );
        assert!(!add_resource(&mut "/XObject 5 0 R".to_owned(), "/XObject", "/Si0 2 0 R"));
    }
}
