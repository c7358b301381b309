//! The PROXY protocol: who the client is, told by a proxy before the first byte. Pure.
//!
//! A header is required or it is not expected; nothing here guesses \[ProxyProtocol\].

mod trust;
mod v1;
mod v2;

use std::net::{IpAddr, SocketAddr};

pub use trust::{BadNetwork, Network, Trusted};

/// The most bytes a header may have: that of version 2 may carry more than addresses.
pub const HEADER_BYTES_MAX: usize = 4096;

/// The two forms of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// Both ends of the connection a client made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ends {
    /// Nobody says: the proxy speaks for itself, or cannot tell.
    Unknown,
    /// TCP; both addresses are of one family.
    Tcp {
        /// The client.
        from: SocketAddr,
        /// What it connected to.
        to: SocketAddr,
    },
    /// Unix sockets, by their names; the one of a client is mostly empty.
    Unix {
        /// The client.
        from: Vec<u8>,
        /// What it connected to.
        to: Vec<u8>,
    },
}

impl Ends {
    /// The address of the client.
    pub fn client(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp { from, .. } => Some(from.ip()),
            Self::Unknown | Self::Unix { .. } => None,
        }
    }
}

/// What stands at the beginning of some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// The beginning of a header; more bytes must come.
    Partial,
    /// A header.
    Whole {
        /// What it tells.
        ends: Ends,
        /// Its length; what follows is the client's.
        header_bytes: usize,
    },
}

/// Why bytes are no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadHeader {
    /// The client is no proxy, or does not speak the protocol.
    #[error("it does not begin with a PROXY header")]
    NoSignature,
    /// The line of version 1 is wrong.
    #[error("the PROXY line is malformed")]
    Line,
    /// The binary header of version 2 is wrong.
    #[error("the binary PROXY header is malformed")]
    Binary,
    /// The checksum in a header of version 2 is not that of its bytes.
    #[error("the checksum of the PROXY header is wrong")]
    Checksum,
    /// The header is longer than [`HEADER_BYTES_MAX`], or a line than the protocol allows.
    #[error("the PROXY header is too long")]
    TooLong,
}

/// Reads a header of either version from the beginning of `bytes`.
///
/// # Errors
/// [`BadHeader`] as soon as `bytes` cannot become a header, however much follows.
pub fn read(bytes: &[u8]) -> Result<Read, BadHeader> {
    match bytes.first() {
        None => Ok(Read::Partial),
        Some(&first) if first == v2::SIGNATURE[0] => v2::read(bytes),
        Some(_) => v1::read(bytes),
    }
}

/// Writes a header that tells of `ends`.
pub fn write(version: Version, ends: &Ends) -> Vec<u8> {
    match version {
        Version::V1 => v1::write(ends),
        Version::V2 => v2::write(ends),
    }
}

/// Whether `bytes` begins as `pattern` does, as far as it goes.
fn begins_as(bytes: &[u8], pattern: &[u8]) -> bool {
    let common = bytes.len().min(pattern.len());
    bytes[..common] == pattern[..common]
}

/// Both addresses in one family: version 4 written as version 6, where only one is.
fn one_family(from: SocketAddr, to: SocketAddr) -> (SocketAddr, SocketAddr) {
    let mapped = |address: SocketAddr| match address {
        SocketAddr::V4(v4) => SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()),
        SocketAddr::V6(_) => address,
    };
    let plain = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    match (plain(from), plain(to)) {
        (from, to) if from.is_ipv4() == to.is_ipv4() => (from, to),
        (from, to) => (mapped(from), mapped(to)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tcp(from: &str, to: &str) -> Ends {
        Ends::Tcp { from: from.parse().unwrap(), to: to.parse().unwrap() }
    }

    fn samples() -> Vec<Ends> {
        let unix = |from: &[u8], to: &[u8]| Ends::Unix { from: from.to_vec(), to: to.to_vec() };
        vec![
            Ends::Unknown,
            tcp("192.0.2.7:40000", "198.51.100.1:443"),
            tcp("[2001:db8::1]:1", "[2001:db8::2]:65535"),
            unix(b"", b"/run/haul.sock"),
        ]
    }

    #[test]
    fn what_is_written_is_read_back_at_every_cut() {
        for version in [Version::V1, Version::V2] {
            for ends in samples() {
                let mut bytes = write(version, &ends);
                let header_bytes = bytes.len();
                bytes.extend_from_slice(b"\r\nPROXY");
                for cut in 0..=bytes.len() {
                    let expected = match (cut >= header_bytes, version, &ends) {
                        (false, ..) => Read::Partial,
                        // A line has no word for a unix socket.
                        (true, Version::V1, Ends::Unix { .. }) => {
                            Read::Whole { ends: Ends::Unknown, header_bytes }
                        }
                        (true, ..) => Read::Whole { ends: ends.clone(), header_bytes },
                    };
                    assert_eq!(read(&bytes[..cut]), Ok(expected), "{version:?} {ends:?} at {cut}");
                }
            }
        }
    }

    #[test]
    fn addresses_of_two_families_are_told_in_one() {
        let mixed = tcp("192.0.2.7:40000", "[2001:db8::2]:443");
        for version in [Version::V1, Version::V2] {
            let Ok(Read::Whole { ends, .. }) = read(&write(version, &mixed)) else {
                panic!("{version:?} is not read back")
            };
            assert_eq!(ends, tcp("[::ffff:192.0.2.7]:40000", "[2001:db8::2]:443"), "{version:?}");
        }
        let line = write(Version::V1, &tcp("[::ffff:192.0.2.7]:1", "[::ffff:192.0.2.8]:2"));
        assert_eq!(line, b"PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n", "a socket for both families");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut signed = v2::SIGNATURE.to_vec();
            signed.extend_from_slice(&bytes);
            for bytes in [bytes, signed] {
                if let Ok(Read::Whole { header_bytes, .. }) = read(&bytes) {
                    prop_assert!(header_bytes <= bytes.len());
                }
            }
        }

        #[test]
        fn one_changed_byte_never_makes_a_longer_header(
            at in 0_usize..60, value in any::<u8>(), which in 0_usize..4, second in any::<bool>(),
        ) {
            let version = if second { Version::V2 } else { Version::V1 };
            let mut bytes = write(version, &samples()[which]);
            let length = bytes.len();
            if at < length && !(14..16).contains(&at) {
                bytes[at] = value;
                if let Ok(Read::Whole { header_bytes, .. }) = read(&bytes) {
                    prop_assert!(header_bytes <= length);
                }
            }
        }
    }
}
