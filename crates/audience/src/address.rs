//! Addresses, normalised: two spellings of one address become the same text.
//!
//! | kind | normalised |
//! |---|---|
//! | phone | E.164 with its plus: `+79991234567` |
//! | mail | the domain in lower case, in letters of ASCII (`xn--…`); the local part as it is |
//! | chat | the number; or `@name` in lower case |
//! | any | a phone or mail if it looks like one, else the text |

mod mail;
mod phone;

use stampede_model::campaign::AddressKind;

/// Longest address of the kind `any`, in bytes.
const LONGEST: usize = 1_024;
/// Longest name of a Telegram chat, without its `@`.
const LONGEST_NAME: usize = 32;
/// Shortest name of a Telegram chat: some short ones were auctioned.
const SHORTEST_NAME: usize = 4;

/// The text is no address; it displays as the reason, such as `has too few digits`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(String);

impl Invalid {
    fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Normalises an address. `country` (such as `DE`) is that of telephone numbers without the code of a country.
pub fn normalise(kind: AddressKind, given: &str, country: Option<&str>) -> Result<String, Invalid> {
    let text = given.trim_matches(is_blank);
    if text.is_empty() {
        return Err(Invalid::new("is missing"));
    }
    match kind {
        AddressKind::Phone => phone::normalise(text, country),
        AddressKind::Mail => mail::normalise(text),
        AddressKind::Chat => chat(text),
        AddressKind::Any => any(text, country),
    }
}

/// Whether a country is known; the message says what is wrong with it.
pub fn check_country(country: &str) -> Result<(), Invalid> {
    phone::region(country).map(|_| ())
}

/// Spaces, and characters without a shape that are copied along with addresses: direction marks, the byte order mark.
pub(crate) fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

/// A chat of Telegram.
fn chat(text: &str) -> Result<String, Invalid> {
    let link =
        ["https://t.me/", "http://t.me/", "t.me/"].iter().find_map(|link| text.strip_prefix(link));
    if let Some(name) = text.strip_prefix('@').or(link) {
        let is_name = (SHORTEST_NAME..=LONGEST_NAME).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        return match is_name {
            true => Ok(format!("@{}", name.to_ascii_lowercase())),
            false => Err(Invalid::new("is no name of a chat: @ and 4 to 32 letters, digits or _")),
        };
    }
    match text.parse::<i64>() {
        Ok(number) if number != 0 && !text.starts_with('+') => Ok(number.to_string()),
        _ => Err(Invalid::new("must be the number of a chat, or the @name of a channel")),
    }
}

fn any(text: &str, country: Option<&str>) -> Result<String, Invalid> {
    if let Ok(address) = mail::normalise(text) {
        return Ok(address);
    }
    // A short number or one with letters is an id of somebody's own, not a telephone.
    if let Ok(number) = phone::normalise(text, country) {
        return Ok(number);
    }
    if text.len() > LONGEST {
        return Err(Invalid::new(format!("is longer than {LONGEST} bytes")));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(Invalid::new(format!("contains U+{:04X}", u32::from(c)))),
        None => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat_of(text: &str) -> Option<String> {
        normalise(AddressKind::Chat, text, None).ok()
    }

    #[test]
    fn a_chat_is_a_number_or_a_name() {
        for (given, expected) in [
            ("123456789", Some("123456789")),
            (" -1001234567890 ", Some("-1001234567890")),
            ("@Stampede_News", Some("@stampede_news")),
            ("https://t.me/Stampede_News", Some("@stampede_news")),
            ("007", Some("7")),
            ("0", None),
            ("@abc", None),
            ("@имя_канала", None),
            ("@a b c d", None),
            ("stampede", None),
            ("+79991234567", None),
            ("99999999999999999999", None),
            ("", None),
        ] {
            assert_eq!(chat_of(given).as_deref(), expected, "{given:?}");
        }
    }

    #[test]
    fn any_address_is_normalised_by_its_looks() {
        for (given, expected) in [
            ("79991234567", "+79991234567"),
            ("+1 (415) 555-2671", "+14155552671"),
            ("Ann@EXAMPLE.com", "Ann@example.com"),
            ("user-17", "user-17"),
            ("Зоя Петрова", "Зоя Петрова"),
            ("12", "12"),
        ] {
            assert_eq!(normalise(AddressKind::Any, given, None).unwrap(), expected, "{given:?}");
        }
        for bad in ["", "  ", "a\nb", "a\0b", &"x".repeat(1_025)] {
            assert!(normalise(AddressKind::Any, bad, None).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn countries_are_checked() {
        assert!(check_country("DE").is_ok() && check_country("ru").is_ok());
        assert!(check_country("XX").is_err() && check_country("Germany").is_err());
    }
}
