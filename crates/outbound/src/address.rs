//! Which URLs an endpoint may have. The address behind a name is checked later, when it is connected to (`guard.rs`).

use std::net::IpAddr;

use url::{Host, Url};

use crate::guard::AllowedAddresses;

/// Longest URL, in bytes.
pub const LONGEST: usize = 2_000;

/// Ports of databases, caches and control planes, which speak no HTTP or obey it.
const INTERNAL: [u16; 16] = [
    2375, 2376, 2379, 2380, 3306, 5432, 5672, 6379, 6380, 6443, 9092, 9200, 9300, 10_250, 11_211,
    27_017,
];
/// Ports that browsers refuse, from 1024 on: other protocols could take the request for theirs (fetch.spec.whatwg.org).
const OF_OTHER_PROTOCOLS: [u16; 15] =
    [1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6667, 6697, 10_080];

/// Reads the URL of an endpoint; the error says what would be right.
pub fn parse(text: &str, allowed: &AllowedAddresses) -> Result<Url, String> {
    if text.len() > LONGEST {
        return Err(format!("must have at most {LONGEST} bytes, has {}", text.len()));
    }
    let url = Url::parse(text.trim())
        .map_err(|error| format!("must be a URL such as https://example.com/hooks: {error}"))?;
    if !["http", "https"].contains(&url.scheme()) {
        return Err("must begin with https:// or http://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must have no user and no password; signatures prove who sends".to_owned());
    }
    if url.fragment().is_some() {
        return Err("must have no # part: it would not be sent".to_owned());
    }
    check_host(&url, allowed)?;
    check_port(url.port_or_known_default().unwrap_or_default())?;
    Ok(url)
}

/// The parser has read decimal, octal and hexadecimal spellings of IPv4 addresses already.
fn check_host(url: &Url, allowed: &AllowedAddresses) -> Result<(), String> {
    let address: Option<IpAddr> = match url.host() {
        Some(Host::Ipv4(address)) => Some(address.into()),
        Some(Host::Ipv6(address)) => Some(address.into()),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            let is_local = name == "localhost" || name.ends_with(".localhost");
            is_local.then_some(IpAddr::from([127, 0, 0, 1]))
        }
        None => return Err("must have a host".to_owned()),
    };
    match address.is_none_or(|address| allowed.reach(address)) {
        true => Ok(()),
        false => Err(NOT_PUBLIC.to_owned()),
    }
}

/// Told for addresses that are not public.
pub const NOT_PUBLIC: &str = "leads to an address that is not public; the operator can allow it with \
     WEBHOOK_ALLOW_PRIVATE";

fn check_port(port: u16) -> Result<(), String> {
    let is_refused = (port < 1024 && ![80, 443].contains(&port))
        || INTERNAL.contains(&port)
        || OF_OTHER_PROTOCOLS.contains(&port);
    match is_refused {
        true => Err(format!(
            "has port {port}, which belongs to another service; use 443, 80 or one from 1024 on"
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        parse(text, &AllowedAddresses::default()).map(String::from)
    }

    #[test]
    fn a_url_is_http_without_a_user_and_without_a_strange_port() {
        for fine in [
            "https://example.com/hooks?token=1",
            "http://example.com",
            "https://example.com:8443/x",
            "https://[2606:4700::1111]/",
            "https://1.1.1.1/",
            "https://пример.рф/",
        ] {
            assert!(read(fine).is_ok(), "{fine}: {:?}", read(fine));
        }
        for (wrong, told) in [
            ("", "must be a URL"),
            ("example.com", "must be a URL"),
            ("ftp://example.com", "https:// or http://"),
            ("file:///etc/passwd", "https:// or http://"),
            ("gopher://example.com", "https:// or http://"),
            ("https://ann@example.com", "no user"),
            ("https://:secret@example.com", "no user"),
            ("https://example.com/#x", "no # part"),
            ("https://example.com:22/", "port 22"),
            ("http://example.com:0/", "port 0"),
            ("https://example.com:6379/", "port 6379"),
            ("https://example.com:6667/", "port 6667"),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains(told), "{wrong}: {error}");
        }
        assert!(read(&format!("https://example.com/{}", "x".repeat(LONGEST))).is_err());
    }

    #[test]
    fn an_address_that_is_not_public_is_found_in_every_spelling() {
        for hidden in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.0.0.1/",
            "http://017700000001/",
            "http://0177.0.0.01/",
            "http://127.0.0.1./",
            "http://１２７.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "http://localhost/",
            "http://LOCALHOST./",
            "http://a.localhost/",
            "http://169.254.169.254/latest/meta-data",
            "http://0/",
            "http://10.0.0.1:8080/",
        ] {
            assert_eq!(read(hidden), Err(NOT_PUBLIC.to_owned()), "{hidden}");
        }
        let allowed: AllowedAddresses = "127.0.0.1".parse().unwrap();
        assert!(parse("http://localhost:3000/", &allowed).is_ok());
        assert!(parse("http://127.0.0.2:3000/", &allowed).is_err());
    }
}
