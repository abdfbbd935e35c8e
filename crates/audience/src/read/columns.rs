//! The meaning of columns and keys, by their names.

use stampede_guests::{CHAT_NAMES, MAIL_NAMES, PHONE_NAMES, plain_name};
use stampede_model::campaign::AddressKind;

/// Longest name of a field, in bytes.
const LONGEST_NAME: usize = 64;

/// What a column or a key of a row holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The address.
    Address,
    /// The recipient's own message.
    Message,
    /// The recipient's own time zone.
    TimeZone,
    /// The field of this name.
    Field(String),
}

/// Names of columns that hold an address of any kind.
const ANY: [&str; 5] = ["address", "to", "recipient", "адрес", "кому"];
/// Names of columns that hold a message.
const MESSAGE: [&str; 4] = ["message", "text", "сообщение", "текст"];
/// Names of columns that hold a time zone.
const TIME_ZONE: [&str; 5] = ["timezone", "time zone", "tz", "часовой пояс", "таймзона"];

/// How well a name fits the address of a kind: 0 does not.
pub(super) fn address_rank(name: &str, kind: AddressKind) -> u8 {
    let (spaced, joined) = plain_name(name);
    let is_one = |names: &[&str]| names.iter().any(|known| *known == spaced || *known == joined);
    let own: &[&[&str]] = match kind {
        AddressKind::Phone => &[PHONE_NAMES],
        AddressKind::Mail => &[MAIL_NAMES],
        AddressKind::Chat => &[CHAT_NAMES],
        AddressKind::Any => &[PHONE_NAMES, MAIL_NAMES, CHAT_NAMES],
    };
    if is_one(&ANY) {
        2
    } else if own.iter().any(|names| is_one(names)) {
        // A table with "phone" and "address" may mean the street by the latter.
        3
    } else {
        0
    }
}

/// Whether a name is known, whatever the kind of addresses is: the delimiter is found by that.
pub(super) fn is_known(name: &str) -> bool {
    address_rank(name, AddressKind::Any) > 0 || !matches!(plain_meaning(name), Meaning::Field(_))
}

/// The meaning of a name that is not the address.
pub(super) fn plain_meaning(name: &str) -> Meaning {
    let (spaced, joined) = plain_name(name);
    let is_one = |names: &[&str]| names.iter().any(|known| *known == spaced || *known == joined);
    if is_one(&MESSAGE) {
        Meaning::Message
    } else if is_one(&TIME_ZONE) {
        Meaning::TimeZone
    } else {
        Meaning::Field(field_name(name))
    }
}

/// A name as templates can use it: letters and digits stay, everything between them becomes `_`.
pub(super) fn field_name(name: &str) -> String {
    let is_kept = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let words = name.split(|c: char| !is_kept(c)).filter(|word| !word.is_empty());
    let mut field = words.collect::<Vec<_>>().join("_");
    let is_edge = |c: char| matches!(c, '-' | '.');
    field = field.trim_matches(is_edge).to_owned();
    if field.starts_with(char::is_numeric) {
        field.insert(0, '_');
    }
    let mut end = field.len().min(LONGEST_NAME);
    while !field.is_char_boundary(end) {
        end -= 1;
    }
    field.truncate(end);
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_known_by_many_names() {
        use AddressKind as K;
        for (name, kind, expected) in [
            ("phone", K::Phone, 3),
            ("phoneNumber", K::Phone, 3),
            ("Phone Number", K::Phone, 3),
            ("PHONE_NUMBER", K::Phone, 3),
            ("Телефон", K::Phone, 3),
            ("to", K::Phone, 2),
            ("email", K::Phone, 0),
            ("E-Mail", K::Mail, 3),
            ("Эл. почта", K::Mail, 3),
            ("ADDRESS", K::Mail, 2),
            ("chat_id", K::Chat, 3),
            ("email", K::Any, 3),
            ("name", K::Any, 0),
        ] {
            assert_eq!(address_rank(name, kind), expected, "{name} {kind:?}");
        }
    }

    #[test]
    fn names_of_columns_become_names_that_templates_can_use() {
        for (name, expected) in [
            ("name", "name"),
            (" First  name ", "First_name"),
            ("Имя гостя", "Имя_гостя"),
            ("Ф.И.О.", "Ф.И.О"),
            ("order-id", "order-id"),
            ("Price, incl. tax (€)", "Price_incl._tax"),
            ("2nd name", "_2nd_name"),
            ("{{ x }}", "x"),
            ("---", ""),
            (&"я".repeat(100), &"я".repeat(32)),
        ] {
            assert_eq!(field_name(name), expected, "{name:?}");
        }
    }
}
