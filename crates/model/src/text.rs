//! What a text typed by a person may contain before it reaches a ticket.

use unicode_normalization::char::is_combining_mark;

/// Marks on one letter; Vietnamese and vocalised Hebrew need three.
const MAX_MARKS: usize = 4;

/// How long a text may be, in characters.
#[derive(Debug, Clone, Copy)]
pub struct Limit(pub usize);

impl Limit {
    /// Names of people and events.
    pub const NAME: Self = Self(200);
    /// A place.
    pub const LOCATION: Self = Self(200);
    /// A seat, row or ticket class.
    pub const SEAT: Self = Self(60);
    /// An e-mail address (RFC 5321).
    pub const EMAIL: Self = Self(254);
    /// A telephone number, or a chat of Telegram, as somebody wrote it.
    pub const CONTACT: Self = Self(100);
}

/// Why a text was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Nothing but white space.
    #[error("must not be empty")]
    Empty,
    /// Longer than the limit.
    #[error("must have at most {limit} characters, has {length}")]
    TooLong {
        /// What is allowed.
        limit: usize,
        /// What was given.
        length: usize,
    },
    /// Only characters that leave no mark on paper.
    #[error("must have at least one visible character")]
    Invisible,
    /// So many marks on one letter that they would cover the lines above.
    #[error("has more than {MAX_MARKS} combining marks on one letter")]
    TooManyMarks,
    /// A character that has no place in a line of text.
    #[error("contains U+{:04X}, a control character that cannot be printed", *.0 as u32)]
    Unprintable(char),
    /// Not of the shape `someone@example.com`.
    #[error("must be an e-mail address such as someone@example.com")]
    NotAnEmail,
}

/// Checks one line of text and returns it without surrounding white space.
pub fn check_text(text: &str, limit: Limit) -> Result<String, TextError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(TextError::Empty);
    }
    let length = text.chars().count();
    if length > limit.0 {
        return Err(TextError::TooLong { limit: limit.0, length });
    }
    if let Some(c) = text.chars().find(|c| is_unprintable(*c)) {
        return Err(TextError::Unprintable(c));
    }
    if text.chars().all(is_invisible) {
        return Err(TextError::Invisible);
    }
    let mut marks = 0;
    for c in text.chars() {
        marks = if is_combining_mark(c) { marks + 1 } else { 0 };
        if marks > MAX_MARKS {
            return Err(TextError::TooManyMarks);
        }
    }
    Ok(text.to_owned())
}

/// Checks an e-mail address: one `@`, something on both sides, no spaces. More only a mail can tell.
pub fn check_email(text: &str) -> Result<String, TextError> {
    let text = check_text(text, Limit::EMAIL)?;
    match text.split_once('@') {
        Some((local, domain))
            if !local.is_empty()
                && !domain.is_empty()
                && !domain.contains('@')
                && !text.contains(char::is_whitespace) =>
        {
            Ok(text)
        }
        _ => Err(TextError::NotAnEmail),
    }
}

/// Characters without a shape of their own: spaces, joiners, direction marks, combining marks.
fn is_invisible(c: char) -> bool {
    c.is_whitespace()
        || is_combining_mark(c)
        || matches!(c,
            '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200F}' | '\u{2060}'..='\u{2064}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}'
            | '\u{FFA0}')
}

/// Control characters, line and paragraph separators, private-use and non-characters, and the
/// explicit direction overrides that make a text read as something else than it is.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{2028}' | '\u{2029}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2066}'..='\u{2069}'
            | '\u{FEFF}'
            | '\u{E000}'..='\u{F8FF}'
            | '\u{FFF9}'..='\u{FFFB}'
            | '\u{FDD0}'..='\u{FDEF}'
            | '\u{F0000}'..='\u{10FFFF}')
        || (c as u32) & 0xFFFE == 0xFFFE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_of_the_world_pass_unchanged() {
        for name in [
            "Zoë O'Connor-Łukasz",
            "Иван Петров",
            "محمد علي",
            "דָּוִד",
            "<script>alert(1)</script>",
            "../../etc/passwd",
            "#let x = 1",
        ] {
            assert_eq!(check_text(name, Limit::NAME), Ok(name.to_owned()));
        }
        assert_eq!(check_text("  Ann \n", Limit::NAME), Ok("Ann".to_owned()));
    }

    #[test]
    fn what_cannot_be_printed_is_refused_by_name() {
        assert_eq!(check_text(" \t ", Limit::NAME), Err(TextError::Empty));
        assert_eq!(check_text("a\0b", Limit::NAME), Err(TextError::Unprintable('\0')));
        assert_eq!(
            check_text("a\u{202E}b", Limit::NAME).unwrap_err().to_string(),
            "contains U+202E, a control character that cannot be printed"
        );
        assert!(check_text(&"x".repeat(10_000), Limit::NAME).is_err());
        assert_eq!(check_text("\u{200B}\u{200E}", Limit::NAME), Err(TextError::Invisible));
        let zalgo = format!("Z{}", "\u{301}".repeat(20));
        assert_eq!(check_text(&zalgo, Limit::NAME), Err(TextError::TooManyMarks));
    }

    #[test]
    fn an_email_has_two_sides() {
        assert!(check_email("ann@example.com").is_ok());
        for text in ["ann", "@x", "ann@", "a b@c", "a@b@c"] {
            assert!(check_email(text).is_err(), "{text}");
        }
    }
}
