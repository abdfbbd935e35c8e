//! Text that people typed, made safe for a log or a terminal.
//!
//! A line break would write a line of its own into a log, an escape sequence would move the cursor, and a
//! bidirectional override would show the text in another order than it is. Such characters are shown as the
//! escapes of JSON (`\n`, `\u001b`), so that escaped JSON is still the same JSON.

use std::fmt::{self, Display, Formatter, Write};

/// Shows a value with its control characters escaped.
#[derive(Debug, Clone, Copy)]
pub struct Printable<T> {
    value: T,
    layout: Layout,
}

/// Whether line breaks and tabs belong to the value's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// One line: line breaks and tabs are escaped.
    Line,
    /// Several lines: line breaks and tabs stay.
    Lines,
}

impl<T: Display> Printable<T> {
    /// Shows the value in one line.
    pub fn line(value: T) -> Self {
        Self { value, layout: Layout::Line }
    }

    /// Shows the value with its line breaks and tabs; everything else is escaped.
    pub fn lines(value: T) -> Self {
        Self { value, layout: Layout::Lines }
    }
}

impl<T: Display> Display for Printable<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(Escaping { inner: f, layout: self.layout }, "{}", self.value)
    }
}

struct Escaping<'a, 'b> {
    inner: &'a mut Formatter<'b>,
    layout: Layout,
}

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| self.escapes(*c)) {
            self.inner.write_str(&rest[..at])?;
            match c {
                '\n' => self.inner.write_str("\\n")?,
                '\r' => self.inner.write_str("\\r")?,
                '\t' => self.inner.write_str("\\t")?,
                c => write!(self.inner, "\\u{:04x}", u32::from(c))?,
            }
            rest = &rest[at + c.len_utf8()..];
        }
        self.inner.write_str(rest)
    }
}

impl Escaping<'_, '_> {
    fn escapes(&self, c: char) -> bool {
        match c {
            '\n' | '\t' => self.layout == Layout::Line,
            // Line and paragraph separator; marks, embeddings, overrides and isolates of bidirectional text.
            '\u{2028}' | '\u{2029}' => true,
            '\u{61c}' | '\u{200e}' | '\u{200f}' => true,
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
            // C0, DEL and C1.
            c => c.is_control(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\nERROR forged\r\tb\u{1b}[2J\u{7f}\u{85}\u{9b}1m\u{2028}\u{2029}\u{202e}c\u{2066}\u{200f} é 漢";

    #[test]
    fn what_could_forge_a_line_or_move_a_cursor_is_escaped() {
        let line = Printable::line(HOSTILE).to_string();
        let wanted = "a\\nERROR forged\\r\\tb\\u001b[2J\\u007f\\u0085\\u009b1m\\u2028\\u2029\\u202ec\\u2066\\u200f é 漢";
        assert_eq!(line, wanted);
        let lines = Printable::lines("a\n\tb\r\u{1b}").to_string();
        assert_eq!(lines, "a\n\tb\\r\\u001b");
    }

    #[test]
    fn escaped_json_is_the_same_json() {
        let value = serde_json::json!({ "name": HOSTILE });
        let escaped = Printable::line(value.to_string()).to_string();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
        assert!(escaped.chars().all(|c| c.is_alphanumeric() || c.is_ascii()), "{escaped}");
    }
}
