//! Which addresses may be reached. Organisers choose URLs, and our network must not answer to them.
//!
//! An address is refused unless it is public unicast. The lists are those of IANA (special-purpose addresses), and in
//! addition addresses by which clouds hand out credentials. `WEBHOOK_ALLOW_PRIVATE` names exceptions.
//! The address is checked that a connection is made to, not the name: a name may resolve to another address later.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// IPv4 networks that are not public, or not for one host.
const CLOSED_V4: [(Ipv4Addr, u8); 18] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    // Shared by the customers of a provider; also the metadata of Alibaba's cloud.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Azure's service for its machines, at an address that looks public.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    // Link-local; the metadata of most clouds.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    // Protocol assignments; the metadata of Oracle's cloud.
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 31, 196, 0), 24),
    (Ipv4Addr::new(192, 52, 193, 0), 24),
    // Relays of 6to4.
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    // Reserved, and broadcast.
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// The IPv6 network of public unicast. Loopback, unique local, link-local, multicast, mapped (`::ffff:`) and translated
/// (`64:ff9b::`) addresses are outside of it.
const OPEN_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Networks inside [`OPEN_V6`] that are not public, or contain an IPv4 address.
const CLOSED_V6: [(Ipv6Addr, u8); 4] = [
    // Protocol assignments, Teredo among them.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    // 6to4.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Addresses that are not public and may be reached all the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedAddresses {
    all: bool,
    networks: Vec<IpNet>,
}

impl FromStr for AllowedAddresses {
    type Err = String;

    /// Reads a list such as `10.1.2.3, 192.168.0.0/16, fd00::/8`, or `*` for all addresses.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut allowed = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part.parse::<IpNet>() {
                Ok(network) => allowed.networks.push(network.trunc()),
                Err(_) => match part.parse::<IpAddr>() {
                    Ok(address) => allowed.networks.push(address.into()),
                    Err(_) if part == "*" => allowed.all = true,
                    Err(_) => {
                        return Err(format!(
                            "must be addresses and networks such as 10.1.2.3, 192.168.0.0/16, or *; not {part:?}"
                        ));
                    }
                },
            }
        }
        Ok(allowed)
    }
}

impl AllowedAddresses {
    /// Whether an address may be reached.
    pub fn reach(&self, address: IpAddr) -> bool {
        self.all
            || is_public(address)
            || self.networks.iter().any(|network| network.contains(&address))
    }
}

/// Whether an address is that of one host in the public internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !CLOSED_V4.iter().any(|(network, length)| {
            Ipv4Net::new(*network, *length).is_ok_and(|network| network.contains(&address))
        }),
        IpAddr::V6(address) => {
            let within = |(network, length): (Ipv6Addr, u8)| {
                Ipv6Net::new(network, length).is_ok_and(|network| network.contains(&address))
            };
            within(OPEN_V6) && !CLOSED_V6.into_iter().any(within)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_unicast_addresses_are_reached() {
        let nothing = AllowedAddresses::default();
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:7f00:1::",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:808:808::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!nothing.reach(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "93.184.216.34",
            "172.15.255.255",
            "172.32.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "168.63.129.17",
            "192.0.1.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450:4001::1",
            "2001:4860::8888",
        ] {
            assert!(nothing.reach(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn a_setting_names_exceptions() {
        let allowed: AllowedAddresses = "127.0.0.1, 10.1.0.0/16,fd00::/8".parse().unwrap();
        for (address, reached) in [
            ("127.0.0.1", true),
            ("127.0.0.2", false),
            ("10.1.2.3", true),
            ("10.2.2.3", false),
            ("fd12::1", true),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
        ] {
            assert_eq!(allowed.reach(address.parse().unwrap()), reached, "{address}");
        }
        let all: AllowedAddresses = "*".parse().unwrap();
        assert!(all.reach("169.254.169.254".parse().unwrap()));
        assert_eq!("".parse(), Ok(AllowedAddresses::default()));
        for wrong in ["localhost", "10.0.0.0/33", "10.0.0.1-10.0.0.9", "**"] {
            assert!(wrong.parse::<AllowedAddresses>().is_err(), "{wrong}");
        }
    }
}
