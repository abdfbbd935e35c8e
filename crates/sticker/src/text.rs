//! The text of a sticker: what is refused, and what is drawn of the rest.
//!
//! Texts are NFC and trimmed; Windows' line ends count as line breaks. Equal [`Text`]s give equal stickers, so it is what
//! caches take as their key.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

use crate::Error;

/// Most graphemes of a text, line breaks not counted.
pub const MAX_GRAPHEMES: usize = 200;
/// Most lines of a text.
pub const MAX_LINES: usize = 8;
/// Most characters that one grapheme is made of; UAX 15 calls texts with up to 30 marks in a row stream-safe.
pub(crate) const MAX_PARTS: usize = 31;
/// Longer texts are refused before anything is done with them.
const MAX_BYTES: usize = MAX_GRAPHEMES * MAX_PARTS * 4;

/// A text that can be drawn.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Text(String);

impl Text {
    /// Checks a text that a person typed.
    pub fn new(typed: &str) -> Result<Self, Error> {
        if typed.len() > MAX_BYTES {
            return Err(Error::TooLong);
        }
        let broken = typed.replace("\r\n", "\n");
        check_controls(&broken)?;
        let lines: Vec<String> =
            broken.trim().split('\n').map(|line| line.trim().nfc().collect()).collect();
        let text = lines.join("\n");
        check_something_is_seen(&text)?;
        if lines.len() > MAX_LINES {
            return Err(Error::TooManyLines(lines.len()));
        }
        check_length(&lines)?;
        Ok(Self(text))
    }

    /// The text as it is drawn; lines are separated by `\n`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Line breaks are the only control characters with a meaning here.
fn check_controls(text: &str) -> Result<(), Error> {
    let is_refused = |c: char| {
        c.is_control() && c != '\n'
            || matches!(c, '\u{2028}' | '\u{2029}' | '\u{FFF9}'..='\u{FFFC}')
    };
    match text.chars().enumerate().find(|&(_, c)| is_refused(c)) {
        Some((index, character)) => Err(Error::ControlCharacter { character, position: index + 1 }),
        None => Ok(()),
    }
}

fn check_something_is_seen(text: &str) -> Result<(), Error> {
    let mut drawn = text.chars().filter(|&c| !is_blank(c)).peekable();
    if drawn.peek().is_none() {
        return Err(Error::Empty);
    }
    if drawn.all(is_combining_mark) { Err(Error::OnlyMarks) } else { Ok(()) }
}

/// Characters that draw nothing by themselves. Selectors of emoji count as marks elsewhere.
fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || matches!(c as u32,
            0xAD | 0x34F | 0x61C | 0x115F | 0x1160 | 0x180B..=0x180F | 0x200B..=0x200F | 0x202A..=0x202E
            | 0x2060..=0x206F | 0x2800 | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xE0000..=0xE0FFF)
}

fn check_length(lines: &[String]) -> Result<(), Error> {
    let mut count = 0;
    for grapheme in lines.iter().flat_map(|line| line.graphemes(true)) {
        count += 1;
        if count > MAX_GRAPHEMES {
            return Err(Error::TooLong);
        }
        if grapheme.chars().count() > MAX_PARTS {
            return Err(Error::TooManyParts);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(typed: &str) -> String {
        Text::new(typed).unwrap().as_str().to_owned()
    }

    #[test]
    fn texts_are_composed_and_trimmed() {
        assert_eq!(drawn("  Zoe\u{308} \r\n  Ann\t".trim_end_matches('\t')), "Zoë\nAnn");
        assert_eq!(drawn("\n\nHi\n"), "Hi");
        assert_eq!(drawn("a\n\nb"), "a\n\nb");
    }

    #[test]
    fn texts_without_anything_to_see_are_refused() {
        for typed in
            ["", " ", "\n \n", "\u{3000}\u{A0}", "\u{200B}\u{FE0F}\u{200D}", "\u{3164}", "\u{2800}"]
        {
            assert_eq!(Text::new(typed), Err(Error::Empty), "{typed:?}");
        }
        for typed in ["\u{301}", "\u{301}\u{302}", " \u{301}\n\u{64B}"] {
            assert_eq!(Text::new(typed), Err(Error::OnlyMarks), "{typed:?}");
        }
    }

    #[test]
    fn control_characters_are_refused_with_their_place() {
        for (typed, character, position) in [
            ("a\0b", '\0', 2),
            ("\u{1B}[2J", '\u{1B}', 1),
            ("tab\there", '\t', 4),
            ("ends with\r", '\r', 10),
            ("x\u{85}", '\u{85}', 2),
            ("x\u{2028}y", '\u{2028}', 2),
        ] {
            let refused = Text::new(typed);
            assert_eq!(refused, Err(Error::ControlCharacter { character, position }), "{typed:?}");
        }
        let message = Text::new("a\u{7}").unwrap_err().to_string();
        assert_eq!(message, "character 2 of the text is a control character (U+0007); remove it");
    }

    #[test]
    fn graphemes_are_counted_not_characters() {
        assert!(Text::new(&"👩‍👩‍👧".repeat(MAX_GRAPHEMES)).is_ok());
        assert!(Text::new(&"x".repeat(MAX_GRAPHEMES)).is_ok());
        assert_eq!(Text::new(&"x".repeat(MAX_GRAPHEMES + 1)), Err(Error::TooLong));
        assert_eq!(Text::new(&"x".repeat(10_000)), Err(Error::TooLong));
        assert_eq!(Text::new(&"é".repeat(10_000_000)), Err(Error::TooLong));
    }

    #[test]
    fn marks_and_joined_parts_are_bounded() {
        assert_eq!(Text::new(&format!("a{}", "\u{301}".repeat(300))), Err(Error::TooManyParts));
        assert_eq!(Text::new(&"👩\u{200D}".repeat(100)), Err(Error::TooManyParts));
    }

    #[test]
    fn lines_are_bounded() {
        assert!(Text::new("1\n2\n3\n4\n5\n6\n7\n8").is_ok());
        assert_eq!(Text::new("1\n2\n3\n4\n5\n6\n7\n8\n9"), Err(Error::TooManyLines(9)));
    }
}
