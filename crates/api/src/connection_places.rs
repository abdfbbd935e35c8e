//! Places for connections: so many on a node, and of these only a part for one address. Otherwise one client could take them all.
//!
//! Connections of trusted proxies have no limit of their own: they carry the requests of many clients.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;

/// Connections of one IPv4 address, or of one IPv6 network of 64 bits. Visitors of a venue may share one address.
pub(crate) const OF_ONE_ADDRESS: usize = 1_024;

/// The connections of each address. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct OfAddresses(Taken);

/// Connections by address.
type Taken = Arc<Mutex<HashMap<IpAddr, usize>>>;

/// A place of an address, which is free again when it is dropped.
pub(crate) struct PlaceOfAddress {
    taken: Taken,
    address: IpAddr,
}

impl OfAddresses {
    /// A place for a connection from this address; `None`: it has too many.
    pub(crate) fn take(&self, address: IpAddr) -> Option<PlaceOfAddress> {
        let address = network(address);
        let mut taken = self.0.lock();
        let count = taken.entry(address).or_default();
        if *count >= OF_ONE_ADDRESS {
            return None;
        }
        *count += 1;
        Some(PlaceOfAddress { taken: self.0.clone(), address })
    }
}

impl Drop for PlaceOfAddress {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        if let Some(count) = taken.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.address);
            }
        }
    }
}

/// The addresses that are counted together: a client with IPv6 has all addresses of its network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_does_not_take_all_connections() {
        let places = OfAddresses::default();
        let of = |address: &str| places.take(address.parse().unwrap());
        let held: Vec<_> = (0..OF_ONE_ADDRESS).map(|_| of("2001:db8::1").unwrap()).collect();
        assert!(of("2001:db8::2").is_none(), "it is in the same network");
        assert!(of("2001:db8:0:1::1").is_some() && of("203.0.113.9").is_some());
        drop(held);
        assert!(of("2001:db8::2").is_some());
        assert!(places.0.lock().is_empty());
    }
}
