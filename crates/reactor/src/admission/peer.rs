//! Identifies the clients to which limits apply.

use std::net::{IpAddr, Ipv4Addr};

/// A client: an IPv4 address, or the first 64 bits of an IPv6 address. A subscriber chooses the
/// other 64 bits freely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Peer {
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// The first 64 bits of an IPv6 address.
    V6([u16; 4]),
}

impl Peer {
    /// Returns the client at `address`.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self::V6([a, b, c, d])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peer_is_an_ipv4_address_or_an_ipv6_prefix() {
        let peer = |address: &str| Peer::of(address.parse().unwrap());
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
        assert_eq!(peer("192.0.2.1"), peer("::ffff:192.0.2.1"));
        assert_eq!(peer("2001:db8:1:2::1"), peer("2001:db8:1:2:3:4:5:6"));
        assert_ne!(peer("2001:db8:1:2::1"), peer("2001:db8:1:3::1"));
    }
}
