//! What people see of a text.

use crate::address::is_blank as is_invisible;

/// Whether a text shows nothing at all: providers refuse it.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(is_invisible)
}

/// The text that people see of HTML: without tags, and with characters in place of entities. Providers count its length.
pub fn visible(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(at) = rest.find(['<', '&']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let (seen, length) = match rest.starts_with('<') {
            true => (None, tag(rest)),
            false => entity(rest),
        };
        text.extend(seen);
        rest = &rest[length..];
    }
    text.push_str(rest);
    text
}

/// The length of the tag at the beginning of a text. A bracket inside of quotes does not end it.
fn tag(text: &str) -> usize {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match quote {
            Some(opened) if c == opened => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == '>' => return at + 1,
            None => {}
        }
    }
    text.len()
}

/// The character of the entity at the beginning of a text, and the length of the entity. An ampersand alone is itself.
fn entity(text: &str) -> (Option<char>, usize) {
    const LONGEST: usize = 10;
    let end = text.char_indices().take(LONGEST).find(|(_, c)| *c == ';').map(|(at, _)| at);
    let Some(end) = end else { return (Some('&'), 1) };
    let number = |digits: &str, radix| u32::from_str_radix(digits, radix).ok();
    let seen = match &text[1..end] {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some('\u{a0}'),
        name => match name.strip_prefix('#') {
            Some(hex) if hex.starts_with(['x', 'X']) => {
                number(&hex[1..], 16).and_then(char::from_u32)
            }
            Some(digits) => number(digits, 10).and_then(char::from_u32),
            None => None,
        },
    };
    match seen {
        Some(seen) => (Some(seen), end + 1),
        None => (Some('&'), 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_not_seen_and_entities_are_one_character() {
        for (html, seen) in [
            ("plain", "plain"),
            ("<b>Ann</b> &amp; <i title=\"a>b\">Bob</i>", "Ann & Bob"),
            ("1 &lt; 2 &gt; 0 &quot;&apos;&#39;&#x1F600;&nbsp;.", "1 < 2 > 0 \"''😀\u{a0}."),
            ("AT&T &unknown; &#xD800; &", "AT&T &unknown; &#xD800; &"),
            ("я<br/>я&я;", "яя&я;"),
            ("open <b", "open "),
            ("", ""),
        ] {
            assert_eq!(visible(html), seen, "{html}");
        }
    }

    #[test]
    fn a_text_of_spaces_and_marks_is_blank() {
        for blank in ["", " \t\r\n", "\u{a0}\u{200b}\u{feff}\u{2060}"] {
            assert!(is_blank(blank), "{blank:?}");
        }
        assert!(!is_blank(".") && !is_blank("\u{200b}x"));
    }
}
