//! What two spellings of one address have in common.

use std::borrow::Cow;

/// The form in which addresses are compared: a mail address in lower case, every other address as it is. Messages go to the address as
/// it was written.
///
/// Only letters of ASCII change, as `LOWER` of both databases has it for these columns. A mail address has an `@` that is neither its
/// first nor its last letter; in SQL: `LIKE '_%@_%'`.
pub fn address_key(address: &str) -> Cow<'_, str> {
    let mut behind_first = address.chars();
    behind_first.next();
    let is_mail = behind_first.as_str().split_once('@').is_some_and(|(_, rest)| !rest.is_empty());
    if is_mail && address.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Cow::Owned(address.to_ascii_lowercase());
    }
    Cow::Borrowed(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_addresses_are_compared_without_regard_to_case_and_nothing_else_is() {
        for (address, key) in [
            ("Bob@example.org", "bob@example.org"),
            ("bob@example.org", "bob@example.org"),
            ("A@b", "a@b"),
            ("Зоя@Example.org", "Зоя@example.org"),
            ("@Channel", "@Channel"),
            ("User-17@", "User-17@"),
            ("User-17", "User-17"),
            ("+79991234567", "+79991234567"),
            ("", ""),
        ] {
            assert_eq!(address_key(address), key);
        }
    }
}
