//! Addresses for mail.

use super::Invalid;

/// Longest address, in bytes (RFC 5321, 4.5.3.1.3: a path of 256 with its angle brackets).
const LONGEST: usize = 254;
/// Longest part before the `@`, in bytes (RFC 5321, 4.5.3.1.1).
const LONGEST_LOCAL: usize = 64;

/// Normalises an address. A name around it (`Ann <ann@example.com>`) is refused: which of the two was meant is not ours to say.
pub(super) fn normalise(text: &str) -> Result<String, Invalid> {
    let text = text.strip_prefix("mailto:").unwrap_or(text);
    let Some((local, domain)) = text.rsplit_once('@') else {
        return Err(Invalid::new("must be an address such as someone@example.com"));
    };
    check_local(local)?;
    let domain = domain_of(domain)?;
    let address = format!("{local}@{domain}");
    match address.len() {
        ..=LONGEST => Ok(address),
        length => Err(Invalid::new(format!("is longer than {LONGEST} bytes, has {length}"))),
    }
}

fn check_local(local: &str) -> Result<(), Invalid> {
    if local.is_empty() {
        return Err(Invalid::new("has nothing before its @"));
    }
    if local.len() > LONGEST_LOCAL {
        return Err(Invalid::new(format!("has more than {LONGEST_LOCAL} bytes before its @")));
    }
    // Also keeps out what would end a header or begin another address: spaces, line breaks, commas, brackets, quotes.
    let is_allowed = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c);
    if let Some(c) = local.chars().find(|c| !is_allowed(*c)) {
        return Err(Invalid::new(match c.is_control() {
            true => format!("contains U+{:04X}", u32::from(c)),
            false => format!("contains {c:?} before its @"),
        }));
    }
    if local.starts_with('.') || local.ends_with('.') || local.contains("..") {
        return Err(Invalid::new("has a dot too many before its @"));
    }
    Ok(())
}

/// The domain in lower case, in letters of ASCII.
fn domain_of(domain: &str) -> Result<String, Invalid> {
    let wrong = || Invalid::new(format!("has no domain after its @: {:?}", shortened(domain)));
    let ascii = idna::domain_to_ascii_strict(domain.trim_end_matches('.')).map_err(|_| wrong())?;
    // A mail server on the internet has a dot in its name, and its last part is not a number.
    let (_, top) = ascii.rsplit_once('.').ok_or_else(wrong)?;
    let is_name = top.len() > 1 && !top.bytes().all(|byte| byte.is_ascii_digit());
    if is_name { Ok(ascii) } else { Err(wrong()) }
}

fn shortened(domain: &str) -> String {
    domain.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domain_is_lower_case_ascii_and_the_rest_stays() {
        for (given, expected) in [
            ("ann@example.com", "ann@example.com"),
            ("Ann.Lee+tag@EXAMPLE.Co.UK", "Ann.Lee+tag@example.co.uk"),
            ("зоя@почта.рф", "зоя@xn--80a1acny.xn--p1ai"),
            ("info@MÜNCHEN.de", "info@xn--mnchen-3ya.de"),
            ("mailto:o'neil@example.com", "o'neil@example.com"),
            ("a@example.com.", "a@example.com"),
        ] {
            assert_eq!(normalise(given).unwrap(), expected, "{given}");
        }
    }

    #[test]
    fn what_would_break_a_header_is_refused() {
        for bad in [
            "ann",
            "@example.com",
            "ann@",
            "ann@localhost",
            "ann@1.2.3.4",
            "ann@[1.2.3.4]",
            "ann@example.com\r\nBcc: x@y.zz",
            "ann\n@example.com",
            "a b@example.com",
            "Ann <ann@example.com>",
            "a,b@example.com",
            "a@b@example.com",
            "\"a\"@example.com",
            "a..b@example.com",
            ".a@example.com",
            "a@exa mple.com",
            "a@-example.com",
            "a@example..com",
            "a@exam\u{0}ple.com",
            "a\u{202e}b@example.com",
            "ann@example.com,bob@example.com",
            "ann@example.com;bob@example.com",
        ] {
            assert!(normalise(bad).is_err(), "{bad:?}");
        }
        assert!(normalise(&format!("{}@example.com", "x".repeat(65))).is_err());
        assert!(normalise(&format!("x@{}.com", "a.".repeat(130))).is_err());
    }
}
