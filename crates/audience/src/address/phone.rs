//! Telephone numbers, as E.164.
//!
//! A number with a plus is international. With a `country`, another one belongs to that country if that makes it valid; a mobile
//! number of the country whose plus was lost goes first. Else a number with `00` is international, and at last the digits are read
//! as if a plus stood before them: exports write `79991234567`.

use rlibphonenumber::{PHONE_NUMBER_UTIL, PhoneNumberFormat, PhoneNumberType, Region};

use super::{Invalid, is_blank};

/// Longest text that is looked at, in bytes.
const LONGEST: usize = 64;
/// Fewest digits of a number; islands in the Pacific have four.
const FEWEST: usize = 4;
/// Fewest digits of a mobile number, without the code of its country, whose plus may have been lost.
const FEWEST_OF_MOBILE: usize = 8;

/// The region of a country, such as `DE`.
pub(super) fn region(country: &str) -> Result<Region, Invalid> {
    let upper = country.trim().to_ascii_uppercase();
    let known = upper.parse::<Region>().ok();
    // Every two letters are a region; those without telephones have no code.
    let known =
        known.filter(|known| PHONE_NUMBER_UTIL.get_country_code_for_region(*known).is_some());
    known.ok_or_else(|| Invalid::new("is no country; write two letters such as DE or RU"))
}

/// Normalises a number.
pub(super) fn normalise(text: &str, country: Option<&str>) -> Result<String, Invalid> {
    if text.len() > LONGEST {
        return Err(Invalid::new(format!("is longer than {LONGEST} bytes")));
    }
    let country = country.map(|code| Ok((region(code)?, code))).transpose()?;
    let (digits, is_international) = digits(text)?;
    if digits.len() < FEWEST {
        return Err(Invalid::new("has too few digits for a telephone number"));
    }
    let with_plus = || valid(&format!("+{digits}"), None);
    if is_international {
        return with_plus().ok_or_else(|| Invalid::new("is no telephone number of any country"));
    }
    let without_00 = || valid(&format!("+{}", digits.strip_prefix("00")?), None);
    if let Some((region, code)) = country {
        let lost_plus = || mobile_without_plus(&digits, region);
        let read = lost_plus().or_else(|| valid(&digits, Some(region)));
        return read.or_else(without_00).or_else(with_plus).ok_or_else(|| {
            Invalid::new(format!(
                "is no telephone number of {}; write it with + and the code of its country",
                code.trim().to_ascii_uppercase()
            ))
        });
    }
    without_00().or_else(with_plus).ok_or_else(|| {
        Invalid::new(
            "is no telephone number of any country; write it with + and the code of its country, or name the country",
        )
    })
}

/// The mobile number of a region that these digits are if a plus is put before them. Where numbers differ in length, such digits
/// can be read as a number without its leading zero, too: `4915123456789` as one of the town whose code is 0491.
fn mobile_without_plus(digits: &str, region: Region) -> Option<String> {
    let code = PHONE_NUMBER_UTIL.get_country_code_for_region(region)?.to_string();
    if digits.strip_prefix(&code)?.len() < FEWEST_OF_MOBILE {
        return None;
    }
    let number = PHONE_NUMBER_UTIL.parse(format!("+{digits}"), None).ok()?;
    let kind = PHONE_NUMBER_UTIL.get_number_type(&number);
    let is_mobile = matches!(kind, PhoneNumberType::Mobile | PhoneNumberType::FixedLineOrMobile);
    is_mobile.then(|| PHONE_NUMBER_UTIL.format(&number, PhoneNumberFormat::E164).into_owned())
}

/// E.164, if it is a number that can exist.
fn valid(text: &str, region: Option<Region>) -> Option<String> {
    let number = PHONE_NUMBER_UTIL.parse(text, region).ok()?;
    if !PHONE_NUMBER_UTIL.is_valid_number(&number) {
        return None;
    }
    let written = PHONE_NUMBER_UTIL.format(&number, PhoneNumberFormat::E164);
    Some(written.into_owned())
}

/// The digits of a number in any script, and whether a plus stands before them.
fn digits(text: &str) -> Result<(String, bool), Invalid> {
    let prefixes = ["tel:", "whatsapp:", "sms:", "'"];
    let text = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
    if is_rounded(text) {
        return Err(Invalid::new(
            "was rounded by a spreadsheet; format the column as text and export it again",
        ));
    }
    // Spreadsheets write numbers as 79991234567.0.
    let text = text.strip_suffix(".0").unwrap_or(text);
    let (mut digits, mut has_plus) = (String::new(), false);
    for c in text.chars() {
        match c {
            '+' | '＋' if digits.is_empty() && !has_plus => has_plus = true,
            // (0) in +44 (0) 20 … is handled by the rules of the country.
            '-' | '.' | '(' | ')' | '/' | '[' | ']' | '‐'..='―' | '−' | '－' => {}
            c if is_blank(c) => {}
            c => match digit(c) {
                Some(digit) => digits.push(digit),
                None => {
                    return Err(Invalid::new(format!(
                        "contains {c:?}, which is no part of a telephone number"
                    )));
                }
            },
        }
    }
    if has_plus && let Some(rest) = text.split_once("(0)").map(|(before, _)| before) {
        // +44 (0) 20 7946 0018: the zero is dialled inside the country only.
        let before = rest.chars().filter_map(digit).count();
        if digits.get(before..=before) == Some("0") && !digits.starts_with("39") {
            digits.remove(before);
        }
    }
    Ok((digits, has_plus))
}

/// A number such as `7.99912E+10`.
fn is_rounded(text: &str) -> bool {
    let upper = text.to_ascii_uppercase();
    upper.split_once("E+").is_some_and(|(mantissa, power)| {
        !power.is_empty()
            && power.bytes().all(|byte| byte.is_ascii_digit())
            && mantissa.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// The value of a decimal digit of the scripts in which numbers are written.
fn digit(c: char) -> Option<char> {
    const ZEROS: [char; 8] = ['0', '٠', '۰', '०', '০', '๐', '０', '༠'];
    let of = |zero: &char| u32::from(c).checked_sub(u32::from(*zero)).filter(|value| *value < 10);
    ZEROS.iter().find_map(of).and_then(|value| char::from_digit(value, 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn e164(given: &str, country: Option<&str>) -> Option<String> {
        normalise(given, country).ok()
    }

    #[test]
    fn numbers_of_many_countries_in_many_spellings_become_e164() {
        for (given, country, expected) in [
            ("79991234567", None, "+79991234567"),
            ("+7 (999) 123-45-67", None, "+79991234567"),
            ("8 999 123 45 67", Some("RU"), "+79991234567"),
            ("9991234567", Some("RU"), "+79991234567"),
            ("7 999 123-45-67", Some("RU"), "+79991234567"),
            ("+7 800 555-35-35", None, "+78005553535"),
            ("+7 812 123-45-67", None, "+78121234567"),
            ("8 (812) 123-45-67", Some("ru"), "+78121234567"),
            ("+7 701 234 5678", None, "+77012345678"),
            ("030 901820", Some("DE"), "+4930901820"),
            ("0049 30 901820", None, "+4930901820"),
            ("0049 30 901820", Some("DE"), "+4930901820"),
            ("0049 30 901820", Some("US"), "+4930901820"),
            ("4915123456789", Some("DE"), "+4915123456789"),
            ("4915123456", Some("DE"), "+494915123456"),
            ("0049 30 901820", Some("RU"), "+4930901820"),
            ("007 999 123-45-67", Some("RU"), "+79991234567"),
            ("+49 (0)30 901820", None, "+4930901820"),
            ("+49 170 1234567", Some("RU"), "+491701234567"),
            ("(415) 555-2671", Some("US"), "+14155552671"),
            ("1-415-555-2671", Some("US"), "+14155552671"),
            ("+1.415.555.2671", None, "+14155552671"),
            ("011 44 20 7946 0018", Some("US"), "+442079460018"),
            ("020 7946 0018", Some("GB"), "+442079460018"),
            ("+44 (0) 20 7946 0018", None, "+442079460018"),
            ("06 698 12345", Some("IT"), "+390669812345"),
            ("+39 06 698 12345", None, "+390669812345"),
            ("01 42 68 53 00", Some("FR"), "+33142685300"),
            ("098765 43210", Some("IN"), "+919876543210"),
            ("+91 98765 43210", None, "+919876543210"),
            ("+55 (11) 96123-4567", None, "+5511961234567"),
            ("(11) 96123-4567", Some("BR"), "+5511961234567"),
            ("+52 55 1234 5678", None, "+525512345678"),
            ("138 0013 8000", Some("CN"), "+8613800138000"),
            ("090-1234-5678", Some("JP"), "+819012345678"),
            ("010-1234-5678", Some("KR"), "+821012345678"),
            ("0412 345 678", Some("AU"), "+61412345678"),
            ("050 123 4567", Some("UA"), "+380501234567"),
            ("+375 29 123-45-67", None, "+375291234567"),
            ("050 123 4567", Some("AE"), "+971501234567"),
            ("0532 123 45 67", Some("TR"), "+905321234567"),
            ("+65 8123 4567", None, "+6581234567"),
            ("+972 50-234-5678", None, "+972502345678"),
            ("٠٥٠١٢٣٤٥٦٧", Some("AE"), "+971501234567"),
            ("＋８１９０１２３４５６７８", None, "+819012345678"),
            ("tel:+14155552671", None, "+14155552671"),
            ("'+79991234567", None, "+79991234567"),
            ("79991234567.0", None, "+79991234567"),
            ("\u{202a}+7 999 123‑45‑67\u{202c}", None, "+79991234567"),
            ("+7\u{a0}999\u{a0}1234567", None, "+79991234567"),
        ] {
            assert_eq!(e164(given, country).as_deref(), Some(expected), "{given:?} {country:?}");
        }
    }

    #[test]
    fn numbers_of_all_regions_are_read_in_all_spellings() {
        use PhoneNumberType as T;
        let kinds = [
            T::Mobile,
            T::FixedLine,
            T::TollFree,
            T::PremiumRate,
            T::SharedCost,
            T::VoIP,
            T::PersonalNumber,
            T::UAN,
        ];
        let (mut regions, mut numbers, mut wrong) = (0, 0, Vec::new());
        for region in PHONE_NUMBER_UTIL.get_supported_regions() {
            regions += 1;
            let country = format!("{region:?}");
            for kind in kinds {
                let example =
                    PHONE_NUMBER_UTIL.get_example_number_for_type_and_region(region, kind);
                let Ok(number) = example else { continue };
                numbers += 1;
                let written = |format| PHONE_NUMBER_UTIL.format(&number, format).into_owned();
                let wanted = written(PhoneNumberFormat::E164);
                let digits = &wanted[1..];
                let mut spellings = vec![
                    (wanted.clone(), None),
                    (wanted.clone(), Some("US")),
                    (written(PhoneNumberFormat::International), None),
                    (written(PhoneNumberFormat::National), Some(country.as_str())),
                    (format!("00{digits}"), None),
                    (format!("00{digits}"), Some(country.as_str())),
                    (digits.to_owned(), None),
                ];
                if kind == T::Mobile {
                    spellings.push((digits.to_owned(), Some(country.as_str())));
                }
                for (text, country) in spellings {
                    let found = e164(&text, country);
                    if found.as_deref() != Some(wanted.as_str()) {
                        wrong.push(format!("{text:?} of {country:?}: {found:?}, not {wanted}"));
                    }
                }
            }
        }
        assert!(regions >= 240 && numbers >= 1_000, "{numbers} numbers of {regions} regions");
        assert!(wrong.is_empty(), "{} are wrong: {wrong:#?}", wrong.len());
    }

    #[test]
    fn two_spellings_of_one_number_become_one_address() {
        let spellings =
            ["79991234567", "+79991234567", "8 (999) 123-45-67", "7-999-123-45-67", "9991234567"];
        for spelling in spellings {
            assert_eq!(e164(spelling, Some("RU")).as_deref(), Some("+79991234567"), "{spelling}");
        }
    }

    #[test]
    fn texts_that_are_no_numbers_are_refused_with_the_reason() {
        for (given, reason) in [
            ("7.99912E+10", "rounded by a spreadsheet"),
            ("1-800-FLOWERS", "contains 'F'"),
            ("+14155552671 ext. 5", "contains 'e'"),
            ("112", "too few digits"),
            ("+999 123456789", "no telephone number of any country"),
            ("0 999 123 45 67", "write it with + and the code of its country, or name the country"),
            ("916 000 00 08", "write it with + and the code of its country, or name the country"),
            ("+79991234567, +79990000000", "contains ','"),
            ("+7999123456789", "no telephone number"),
            ("+", "too few digits"),
            (&"1".repeat(65), "longer than"),
            ("7999123456\u{0}", "contains '\\0'"),
        ] {
            let told = normalise(given, None).unwrap_err().to_string();
            assert!(told.contains(reason), "{given:?}: {told}");
        }
        let told = normalise("12345", Some("DE")).map_err(|error| error.to_string());
        assert!(told.is_ok() || told.unwrap_err().contains("DE"));
        let told = normalise("+999 123456789", Some("RU")).unwrap_err().to_string();
        assert_eq!(told, "is no telephone number of any country");
        let told = normalise("0000 123", Some("RU")).unwrap_err().to_string();
        assert!(told.contains("of RU; write it with +"), "{told}");
        assert!(normalise("030 901820", Some("XX")).is_err());
    }
}
