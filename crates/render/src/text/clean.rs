//! What people type, made harmless before it is set.
//!
//! - Line breaks, tabs and all kinds of separators become spaces, other control characters and
//!   characters that are none vanish.
//! - Spaces at both ends are taken away.
//! - At most [`MAX_CHARS`] characters are kept, and at most [`MAX_MARKS`] combining marks in a row: no
//!   language needs more, and thousands of them would make a ticket large and slow.

use std::borrow::Cow;

use unicode_normalization::char::is_combining_mark;

/// Characters of a value that are kept.
pub const MAX_CHARS: usize = 1000;
/// Combining marks in a row that are kept; UAX 15 calls texts with up to 30 stream-safe.
pub const MAX_MARKS: usize = 30;

/// The text as it is set; borrowed if nothing had to be changed.
///
/// Everything that draws a value does this first, so that all of them draw the same.
pub fn clean(text: &str) -> Cow<'_, str> {
    let trimmed = match text.as_bytes() {
        [b'!'..=b'~', .., b'!'..=b'~'] => text,
        _ => text.trim_matches(|c: char| replacement(c).is_none_or(char::is_whitespace)),
    };
    if trimmed.len() <= MAX_CHARS && trimmed.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Cow::Borrowed(trimmed);
    }
    let mut marks = 0;
    let kept = |marks: &mut usize, c: char| {
        let c = replacement(c)?;
        if is_quick(c) || !is_combining_mark(c) {
            *marks = 0;
            return Some(c);
        }
        *marks += 1;
        (*marks <= MAX_MARKS).then_some(c)
    };
    let unchanged = trimmed
        .chars()
        .take(MAX_CHARS + 1)
        .enumerate()
        .all(|(index, c)| index < MAX_CHARS && kept(&mut marks, c) == Some(c));
    if unchanged {
        return Cow::Borrowed(trimmed);
    }
    marks = 0;
    let text: String =
        trimmed.chars().filter_map(|c| kept(&mut marks, c)).take(MAX_CHARS).collect();
    Cow::Owned(text.trim_end().to_owned())
}

/// Whether cleaning drops something that a reader would miss.
pub(crate) fn loses_text(text: &str) -> bool {
    let mut marks = 0;
    text.trim().chars().enumerate().any(|(index, c)| {
        marks = if is_combining_mark(c) { marks + 1 } else { 0 };
        index >= MAX_CHARS || marks > MAX_MARKS
    })
}

/// Letters without marks: the greater part of names, decided without a table.
fn is_quick(c: char) -> bool {
    (c as u32) < 0x300
        || ('\u{370}'..'\u{483}').contains(&c)
        || ('\u{4E00}'..'\u{A000}').contains(&c)
}

fn replacement(c: char) -> Option<char> {
    match c {
        '\t' | '\n' | '\u{B}' | '\u{C}' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some(' '),
        '\0'..='\u{1F}' | '\u{7F}'..='\u{9F}' => None,
        // Interlinear annotation, the object replacement character, noncharacters.
        '\u{FFF9}'..='\u{FFFC}' | '\u{FFFE}' | '\u{FFFF}' | '\u{FDD0}'..='\u{FDEF}' => None,
        _ if c as u32 & 0xFFFE == 0xFFFE => None,
        // A byte-order mark in the middle of a text, and the tags that can hide text in a text; the
        // flags of England, Scotland and Wales are spelt with them behind a black flag.
        '\u{FEFF}' => None,
        _ => Some(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_are_not_copied() {
        for name in ["Ann Example", "Анна Ёлкина", "محمد علي", "王小明", "José Muñoz", "👩‍👩‍👧"]
        {
            assert!(matches!(clean(name), Cow::Borrowed(same) if same == name), "{name}");
        }
        assert_eq!(clean("  Ann \n"), "Ann");
    }

    #[test]
    fn controls_vanish_and_line_breaks_become_spaces() {
        assert_eq!(clean("A\0B\u{1}C\nD\r\nE\tF\u{2028}G\u{85}H\u{9B}"), "ABC D  E F G H");
        assert_eq!(clean("\u{FFFE}x\u{FEFF}y\u{1FFFF}"), "xy");
        assert_eq!(clean("\n \0"), "");
    }

    #[test]
    fn length_and_marks_are_bounded() {
        assert_eq!(clean(&"x".repeat(100_000)).chars().count(), MAX_CHARS);
        let zalgo = format!("a{}b", "\u{301}".repeat(5000));
        assert_eq!(clean(&zalgo).chars().count(), 1 + MAX_MARKS + 1);
        assert!(loses_text(&zalgo));
        assert!(!loses_text("Zoe\u{308}"));
    }
}
