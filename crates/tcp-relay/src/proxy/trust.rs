//! Decides which peers may send PROXY headers.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network in CIDR notation, such as `10.0.0.0/8`, or a single address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    bits: u8,
}

/// A string that is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a network; write an address or a prefix such as 10.0.0.0/8")]
pub struct InvalidNetwork(String);

impl Network {
    /// Returns `true` if the network contains `address`; an IPv4-mapped IPv6 address counts as
    /// IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let same = |left: u128, right: u128, width: u32| {
            let beyond = width - u32::from(self.bits).min(width);
            (left ^ right).checked_shr(beyond).unwrap_or(0) == 0
        };
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(one)) => {
                same(first.to_bits().into(), one.to_bits().into(), 32)
            }
            (IpAddr::V6(first), IpAddr::V6(one)) => same(first.to_bits(), one.to_bits(), 128),
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let read = || {
            let (address, bits) = match text.split_once('/') {
                Some((address, bits)) => (address, Some(bits)),
                None => (text, None),
            };
            let first: IpAddr = address.parse().ok()?;
            let most = if first.is_ipv4() { 32 } else { 128 };
            let bits = match bits {
                None => most,
                Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                    bits.parse().ok()?
                }
                Some(_) => return None,
            };
            // An IPv4-mapped network is stored as IPv4, because `contains` compares canonical
            // addresses.
            match (first.to_canonical(), bits) {
                (IpAddr::V4(v4), 96..=128) if first.is_ipv6() => {
                    Some(Self { first: v4.into(), bits: bits - 96 })
                }
                _ => (bits <= most).then_some(Self { first, bits }),
            }
        };
        read().ok_or_else(|| InvalidNetwork(text.to_owned()))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

/// The peers that may send PROXY headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Trusted {
    /// Every peer.
    #[default]
    All,
    /// Peers in these networks, and peers of unix sockets, whose access is controlled by file
    /// permissions. Connections of other peers are reset.
    Only(Vec<Network>),
}

impl Trusted {
    /// Returns `true` if the peer may send a PROXY header; `None` stands for a peer on a unix
    /// socket.
    pub fn allows(&self, peer: Option<IpAddr>) -> bool {
        match (self, peer) {
            (Self::All, _) | (_, None) => true,
            (Self::Only(networks), Some(peer)) => {
                networks.iter().any(|network| network.contains(peer))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_contains_addresses_with_its_prefix() {
        for (network, address, expected) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.6", false),
            ("192.0.2.128/25", "192.0.2.127", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::ffff:10.0.0.0/104", "10.9.9.9", true),
            ("::ffff:10.0.0.0/104", "11.9.9.9", false),
            ("::/0", "::1", true),
            ("::/0", "192.0.2.1", false),
        ] {
            let parsed: Network = network.parse().unwrap();
            assert_eq!(
                parsed.contains(address.parse().unwrap()),
                expected,
                "{address} of {network}"
            );
        }
    }

    #[test]
    fn invalid_network_is_refused_with_an_example() {
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "10.0.0.0/", "10.0.0.0/+8", "host"] {
            let why = text.parse::<Network>().unwrap_err().to_string();
            assert!(why.contains("10.0.0.0/8"), "{text}: {why}");
        }
        assert_eq!("10.0.0.0/8".parse::<Network>().unwrap().to_string(), "10.0.0.0/8");
    }

    #[test]
    fn only_named_networks_are_trusted() {
        let only = Trusted::Only(vec!["127.0.0.0/8".parse().unwrap()]);
        assert!(only.allows(Some("127.0.0.1".parse().unwrap())) && only.allows(None));
        assert!(!only.allows(Some("192.0.2.1".parse().unwrap())));
        assert!(Trusted::All.allows(Some("192.0.2.1".parse().unwrap())));
        assert!(!Trusted::Only(Vec::new()).allows(Some("127.0.0.1".parse().unwrap())));
    }
}
