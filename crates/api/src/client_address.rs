//! The address of the client of a request, also behind proxies.
//!
//! ```text
//!   client 203.0.113.9 ──▶ proxy 10.0.0.7 ──▶ proxy 10.0.0.8 ──▶ server
//!                          X-Forwarded-For: 203.0.113.9, 10.0.0.7      peer: 10.0.0.8
//! ```
//!
//! A header is believed only if the connection comes from a trusted proxy (`TRUSTED_PROXIES`). Then it is read from right to
//! left, the order in which proxies were passed last: trusted addresses are skipped, and the first other one is the client.
//! Everything left of it was written by the client itself, and is not read. Text that is no address ends the reading: the
//! last address before it counts.
//!
//! A proxy writes one of the two headers and may pass the other one on as the client sent it. If both are there and name
//! different clients, neither is believed, and the proxy's own address counts.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::{ConnectInfo, Request};
use http::header::FORWARDED;
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderName};
use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// More proxies than this are not passed by an honest request.
const MOST_HOPS: usize = 32;

/// The proxies whose headers are believed. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies {
    networks: Arc<[IpNet]>,
    /// Whether the log tells already that headers of a proxy are ignored.
    told: Arc<AtomicBool>,
}

impl TrustedProxies {
    /// Reads addresses and networks, separated by commas or spaces.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = text.split([',', ' ']).filter(|part| !part.is_empty());
        let network = |part: &str| {
            match part.parse::<IpAddr>() {
            // As the addresses of connections are.
            Ok(address) => Ok(IpNet::from(address.to_canonical())),
            Err(_) => part.parse::<IpNet>().map_err(|_| {
                format!("must be addresses or networks such as 127.0.0.1, 10.0.0.0/8; {part:?} is neither")
            }),
        }
        };
        let networks = parts.map(network).collect::<Result<Vec<IpNet>, String>>()?;
        Ok(Self { networks: networks.into(), ..Self::default() })
    }

    /// Whether an address is that of a trusted proxy.
    pub(crate) fn trust(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&address))
    }

    /// The client of a connection from `peer`.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let peer = peer.to_canonical();
        if !self.trust(peer) {
            self.tell(peer, headers);
            return peer;
        }
        let x_forwarded_for = self.walk(peer, headers, &X_FORWARDED_FOR, |entry| Some(entry));
        let forwarded = self.walk(peer, headers, &FORWARDED, forwarded_for);
        match (x_forwarded_for, forwarded) {
            (Some(one), Some(other)) if one != other => peer,
            (Some(client), _) | (None, Some(client)) => client,
            (None, None) => peer,
        }
    }

    /// Follows a header from right to left; `None`: there is no such header.
    fn walk(
        &self,
        peer: IpAddr,
        headers: &HeaderMap,
        name: &HeaderName,
        node: impl Fn(&str) -> Option<&str>,
    ) -> Option<IpAddr> {
        let lines: Vec<_> = headers.get_all(name).iter().collect();
        let entries = lines.iter().rev().flat_map(|line| line.as_bytes().rsplit(|b| *b == b','));
        let mut client = peer;
        for entry in entries.take(MOST_HOPS) {
            let text = std::str::from_utf8(entry).ok();
            let Some(address) = text.and_then(&node).and_then(address) else { break };
            client = address;
            if !self.trust(address) {
                break;
            }
        }
        (!lines.is_empty()).then_some(client)
    }

    /// Tells once that a proxy nearby is not trusted: all of its clients share one address and its limits.
    fn tell(&self, peer: IpAddr, headers: &HeaderMap) {
        let is_near = match peer {
            IpAddr::V4(address) => address.is_loopback() || address.is_private(),
            IpAddr::V6(address) => address.is_loopback() || address.is_unique_local(),
        };
        let is_news = is_near
            && headers.contains_key(X_FORWARDED_FOR)
            && !self.told.swap(true, Ordering::Relaxed);
        if is_news {
            tracing::warn!(
                proxy = %peer,
                "X-Forwarded-For is ignored: the proxy is not in TRUSTED_PROXIES, so all of its clients count as one address"
            );
        }
    }
}

/// `for` of an element of `Forwarded` (RFC 7239).
fn forwarded_for(element: &str) -> Option<&str> {
    let pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let mut nodes = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case("for"));
    nodes.next().map(|(_, node)| node.trim().trim_matches('"'))
}

/// An address with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().or_else(|_| text.parse().map(|at: SocketAddr| at.ip()));
    address.ok().map(|address| address.to_canonical())
}

/// The client's address in the extensions of a request.
#[derive(Debug, Clone, Copy)]
struct Client(IpAddr);

/// Notes the address of the client.
pub(crate) fn note(proxies: &TrustedProxies, request: &mut Request) {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    if let Some(peer) = peer {
        let client = Client(proxies.client(peer, request.headers()));
        request.extensions_mut().insert(client);
    }
}

/// The address of the client that sent a request.
pub(crate) fn client_address(parts: &Parts) -> Option<IpAddr> {
    noted(&parts.extensions)
}

/// The address that [`note`] has noted; without it, the one that the connection comes from.
pub(crate) fn noted(extensions: &Extensions) -> Option<IpAddr> {
    let peer =
        || extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip().to_canonical());
    extensions.get::<Client>().map(|client| client.0).or_else(peer)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// The client that a server behind 10.0.0.0/8 and ::1 sees.
    fn client(peer: &str, headers: &[(&str, &str)]) -> String {
        let proxies = TrustedProxies::parse("10.0.0.0/8, ::1 2001:db8:1::/48").unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        proxies.client(peer.parse().unwrap(), &map).to_string()
    }

    #[test]
    fn nobody_is_believed_but_trusted_proxies() {
        let spoofed = [("x-forwarded-for", "198.51.100.1"), ("forwarded", "for=198.51.100.1")];
        assert_eq!(client("203.0.113.9", &spoofed), "203.0.113.9");
        assert_eq!(client("11.0.0.1", &spoofed), "11.0.0.1");
        assert_eq!(client("10.0.0.8", &spoofed), "198.51.100.1");
        assert_eq!(client("::ffff:10.0.0.8", &spoofed), "198.51.100.1");
        assert_eq!(client("10.0.0.8", &[]), "10.0.0.8");
        let nobody = TrustedProxies::default();
        let mut headers = HeaderMap::new();
        headers.insert(X_FORWARDED_FOR, HeaderValue::from_static("198.51.100.1"));
        assert_eq!(nobody.client([10, 0, 0, 8].into(), &headers).to_string(), "10.0.0.8");
    }

    #[test]
    fn headers_are_read_from_right_to_left_up_to_the_first_stranger() {
        let cases = [
            ("198.51.100.1, 203.0.113.9, 10.0.0.7", "203.0.113.9"),
            ("10.0.0.1,10.0.0.2", "10.0.0.1"),
            ("203.0.113.9:4711 , 10.0.0.7:80", "203.0.113.9"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("2001:db8::1,2001:db8:1::7", "2001:db8::1"),
            ("::ffff:203.0.113.9", "203.0.113.9"),
        ];
        for (value, wanted) in cases {
            assert_eq!(client("10.0.0.8", &[("x-forwarded-for", value)]), wanted, "{value}");
        }
        let lines =
            [("x-forwarded-for", "198.51.100.1, 203.0.113.9"), ("x-forwarded-for", "10.0.0.7")];
        assert_eq!(client("10.0.0.8", &lines), "203.0.113.9");
    }

    #[test]
    fn forwarded_is_read_as_rfc_7239_writes_it() {
        let cases = [
            ("for=203.0.113.9;proto=https;by=10.0.0.7", "203.0.113.9"),
            ("for=198.51.100.1, For=\"[2001:db8::1]:4711\"", "2001:db8::1"),
            ("for=203.0.113.9, for=10.0.0.7", "203.0.113.9"),
            ("for=203.0.113.9, for=unknown", "10.0.0.8"),
            ("for=203.0.113.9, for=_hidden, for=10.0.0.7", "10.0.0.7"),
            ("by=10.0.0.7", "10.0.0.8"),
        ];
        for (value, wanted) in cases {
            assert_eq!(client("10.0.0.8", &[("forwarded", value)]), wanted, "{value}");
        }
    }

    #[test]
    fn a_header_that_the_proxy_only_passes_on_does_not_count() {
        let both = |x, f| client("10.0.0.8", &[("x-forwarded-for", x), ("forwarded", f)]);
        assert_eq!(both("203.0.113.9", "for=198.51.100.1"), "10.0.0.8");
        assert_eq!(both("198.51.100.1, 203.0.113.9", "for=203.0.113.9"), "203.0.113.9");
    }

    #[test]
    fn garbage_is_harmless() {
        let hops = vec!["10.0.0.1"; 20_000].join(",");
        let commas = ",".repeat(60_000);
        for value in ["", ",,,", "x", "999.1.1.1", "\u{fffd}, \u{1f600}", &commas, &hops] {
            let seen = client("10.0.0.8", &[("x-forwarded-for", value)]);
            assert!(seen.starts_with("10.0.0."), "{seen}");
        }
        assert_eq!(client("10.0.0.8", &[("x-forwarded-for", "203.0.113.9, <script>")]), "10.0.0.8");
        assert_eq!(client("10.0.0.8", &[("forwarded", "for=;for==;\"for=1,")]), "10.0.0.8");
    }

    #[test]
    fn lists_of_proxies_are_checked() {
        assert_eq!(TrustedProxies::parse(" ").unwrap().networks.len(), 0);
        for wrong in ["proxy.example", "10.0.0.0/33", "10.0.0.1/", "10.0.0.1;10.0.0.2"] {
            let told = TrustedProxies::parse(wrong).unwrap_err();
            assert!(told.contains("must be addresses or networks"), "{told}");
        }
    }
}
