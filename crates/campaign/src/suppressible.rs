//! Addresses that people suppress, as campaigns write them: a text that could never be the address of a recipient is refused.

use stampede_model::campaign::AddressKind;

use crate::texts;

/// The most digits of the number of a chat that stand alone; telephone numbers with the code of their country have more.
const MOST_DIGITS_OF_CHAT: usize = 10;
/// Fewest digits of a telephone number without the code of its country, as far as a text is taken for one.
const FEWEST_DIGITS: usize = 7;

/// The address in the form in which recipients have it, or what is wrong with it. `kind` is that of the account that the suppression
/// holds for, `None`: it holds for all accounts of the owner, so the text itself must say what it is.
pub(crate) fn read(
    kind: Option<AddressKind>,
    country: Option<&str>,
    written: &str,
) -> Result<String, String> {
    let any = |kind| texts::normalise(kind, country, written);
    match kind {
        None | Some(AddressKind::Any) => {}
        Some(kind) => return any(kind),
    }
    let as_written = any(AddressKind::Any)?;
    let text = written.trim();
    if any(AddressKind::Mail).is_ok() || any(AddressKind::Phone).is_ok() {
        return Ok(as_written);
    }
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let is_number = digits == text.len();
    if looks_like_phone(text) && !is_number && digits >= FEWEST_DIGITS {
        return Err(any(AddressKind::Phone).err().unwrap_or_default());
    }
    if kind.is_some() {
        // The recipients of such an account may have any text as their address.
        return Ok(as_written);
    }
    match any(AddressKind::Chat) {
        Ok(chat) if !is_number || digits <= MOST_DIGITS_OF_CHAT => Ok(chat),
        _ if is_number => Err(any(AddressKind::Phone).err().unwrap_or_default()),
        _ => Err(
            "is no telephone number, mail address or chat; if recipients of an account have such \
                  addresses, name it (accountId)"
                .to_owned(),
        ),
    }
}

/// Whether a text has nothing but what people write telephone numbers with. A minus alone may be the number of a group.
fn looks_like_phone(text: &str) -> bool {
    let is_group =
        text.strip_prefix('-').is_some_and(|rest| rest.bytes().all(|it| it.is_ascii_digit()));
    let is_part = |c: char| c.is_ascii_digit() || c.is_whitespace() || "+-.()/".contains(c);
    !is_group && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_all(written: &str, country: Option<&str>) -> Result<String, String> {
        read(None, country, written)
    }

    #[test]
    fn a_text_that_no_recipient_can_have_as_its_address_is_refused() {
        for wrong in ["8 (916) 000-00-00", "916 000 00 08", "89160000000", "8-916-000-00-00"] {
            let told = of_all(wrong, None).unwrap_err();
            assert!(
                told.contains("write it with +") && told.contains("country"),
                "{wrong}: {told}"
            );
            assert_eq!(of_all(wrong, Some("RU")).unwrap().len(), "+79160000000".len(), "{wrong}");
        }
        for wrong in ["кто-то", "user-17", "Bob", "bob@"] {
            assert!(of_all(wrong, None).unwrap_err().contains("accountId"), "{wrong}");
        }
        assert_eq!(of_all(" ", None).unwrap_err(), "is missing");
    }

    #[test]
    fn what_says_itself_which_address_it_is_needs_no_account() {
        for (written, address) in [
            ("+7 (916) 000-00-00", "+79160000000"),
            ("79160000000", "+79160000000"),
            ("Bob@Example.org", "Bob@example.org"),
            ("@Stampede_News", "@stampede_news"),
            ("123456789", "123456789"),
            ("41", "41"),
            ("-1001234567890", "-1001234567890"),
        ] {
            assert_eq!(of_all(written, None).as_deref(), Ok(address), "{written}");
        }
    }

    #[test]
    fn an_account_says_which_addresses_it_has() {
        let any = |written| read(Some(AddressKind::Any), None, written);
        assert_eq!(any("user-17").as_deref(), Ok("user-17"));
        assert_eq!(any("2024-12").as_deref(), Ok("2024-12"));
        assert!(any("8 (916) 000-00-00").unwrap_err().contains("write it with +"));
        let phone = |written, country| read(Some(AddressKind::Phone), country, written);
        assert_eq!(phone("8 (916) 000-00-00", Some("RU")).as_deref(), Ok("+79160000000"));
        assert!(phone("8 (916) 000-00-00", None).unwrap_err().contains("write it with +"));
        assert!(read(Some(AddressKind::Chat), None, "кто-то").is_err());
    }
}
