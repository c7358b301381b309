//! Defines the addresses, results and errors that both versions of the PROXY header share.

use std::net::{IpAddr, SocketAddr};

/// The length in bytes of the longest accepted header; a header of version 2 may carry
/// type-length-value (TLV) fields besides the addresses.
pub const HEADER_BYTES_MAX: usize = 4096;

/// The version of a PROXY header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Version 1, one line of text.
    V1,
    /// Version 2, a binary header.
    V2,
}

/// The source and destination address of a client's connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoints {
    /// No addresses are known: for example, the proxy connects on its own behalf and not for a
    /// client.
    Unknown,
    /// TCP addresses of the client's connection.
    Tcp {
        /// The client's address.
        from: SocketAddr,
        /// The address the client connected to.
        to: SocketAddr,
    },
    /// Names of unix sockets; the client's name is usually empty.
    Unix {
        /// The name of the client's socket.
        from: Vec<u8>,
        /// The name of the socket the client connected to.
        to: Vec<u8>,
    },
}

impl Endpoints {
    /// Returns the client's IP address; `None` for unix sockets and unknown addresses.
    pub fn client(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp { from, .. } => Some(from.ip()),
            Self::Unknown | Self::Unix { .. } => None,
        }
    }
}

/// The result of parsing the beginning of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// The bytes are the beginning of a header.
    Partial,
    /// The bytes begin with a complete header.
    Complete {
        /// The addresses in the header.
        endpoints: Endpoints,
        /// The length of the header; the client's bytes follow.
        header_bytes: usize,
    },
}

/// The reason why bytes are not a valid header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHeader {
    /// The bytes do not begin with a PROXY header.
    #[error("it does not begin with a PROXY header")]
    NoSignature,
    /// The line of version 1 is malformed.
    #[error("the PROXY line is malformed")]
    Line,
    /// The binary header of version 2 is malformed.
    #[error("the binary PROXY header is malformed")]
    Binary,
    /// The checksum in a header of version 2 does not match its bytes.
    #[error("the checksum of the PROXY header is wrong")]
    Checksum,
    /// The header is longer than [`HEADER_BYTES_MAX`], or the line of version 1 is longer than the
    /// protocol allows.
    #[error("the PROXY header is too long")]
    TooLong,
}

/// Returns `true` if `bytes` and `pattern` are equal up to the length of the shorter one.
pub(super) fn is_prefix_compatible(bytes: &[u8], pattern: &[u8]) -> bool {
    let common = bytes.len().min(pattern.len());
    bytes[..common] == pattern[..common]
}

/// Converts both addresses to one family: an IPv4-mapped address becomes IPv4; if the families
/// still differ, the IPv4 address is mapped to IPv6.
pub(super) fn to_common_family(from: SocketAddr, to: SocketAddr) -> (SocketAddr, SocketAddr) {
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
