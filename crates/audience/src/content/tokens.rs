//! The words inside of one output or tag.

/// A word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// A field, a filter, an operator in letters: letters and digits of any script, `_`, `-` and `.` between them.
    Name(&'t str),
    /// A text with its quotes.
    Text(&'t str),
    /// A number.
    Number(&'t str),
    /// `==`, `!=`, `<>`, `<`, `<=`, `>`, `>=`, `=`.
    Operator(&'t str),
    /// `|`
    Pipe,
    /// `:`
    Colon,
    /// `,`
    Comma,
    /// Anything else.
    Other(char),
}

/// The words of a text, each with its position in bytes.
pub(super) fn tokens(text: &str) -> Vec<(usize, Token<'_>)> {
    let (mut all, mut at) = (Vec::new(), 0);
    while let Some(c) = text[at..].chars().next() {
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        let (token, length) = token(&text[at..], c);
        all.push((at, token));
        at += length;
    }
    all
}

/// The first word of a text that begins with `c`, and its length.
fn token(text: &str, c: char) -> (Token<'_>, usize) {
    let single = |token| (token, c.len_utf8());
    match c {
        '|' => single(Token::Pipe),
        ':' => single(Token::Colon),
        ',' => single(Token::Comma),
        '=' | '!' | '<' | '>' => {
            let double =
                ["==", "!=", "<>", "<=", ">="].into_iter().find(|two| text.starts_with(two));
            match double {
                Some(two) => (Token::Operator(two), 2),
                None if c == '!' => single(Token::Other(c)),
                None => single(Token::Operator(&text[..1])),
            }
        }
        '"' | '\'' => match text[1..].find(c) {
            Some(end) => (Token::Text(&text[..end + 2]), end + 2),
            None => single(Token::Other(c)),
        },
        _ if c.is_ascii_digit()
            || c == '-' && text[1..].starts_with(|c: char| c.is_ascii_digit()) =>
        {
            let is_more = |c: char| c.is_ascii_digit() || c == '.';
            let length = 1 + text[1..].find(|c| !is_more(c)).unwrap_or(text.len() - 1);
            (Token::Number(&text[..length]), length)
        }
        _ if c.is_alphabetic() || c == '_' => {
            let length = name_length(text);
            (Token::Name(&text[..length]), length)
        }
        _ => single(Token::Other(c)),
    }
}

/// A name ends with a letter, a digit or `_`: a hyphen or dot at its end belongs to what follows.
fn name_length(text: &str) -> usize {
    let mut length = 0;
    for (at, c) in text.char_indices() {
        if c.is_alphanumeric() || c == '_' || is_mark(c) {
            length = at + c.len_utf8();
        } else if c != '-' && c != '.' {
            break;
        }
    }
    length
}

/// Signs that scripts such as Devanagari write on top of letters.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36F}' | '\u{93A}'..='\u{94F}' | '\u{E31}' | '\u{E34}'..='\u{E3A}' | '\u{E47}'..='\u{E4E}')
}
