//! Parses, formats and resolves the addresses of TCP and unix sockets.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use socket2::{Domain, SockAddr};

/// An address of a stream socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// A TCP address: `127.0.0.1:8080` or `[::1]:8080`.
    Tcp(SocketAddr),
    /// The path of a unix socket: `unix:/run/service`.
    Unix(PathBuf),
}

/// A string that is not a valid address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid address \"{0}\": expected an address such as 127.0.0.1:8080, [::1]:8080 or \
     unix:/run/service"
)]
pub struct ParseAddressError(String);

impl FromStr for Address {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, ParseAddressError> {
        match text.strip_prefix("unix:") {
            Some("") => Err(ParseAddressError(text.to_owned())),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text.parse().map(Self::Tcp).map_err(|_why| ParseAddressError(text.to_owned())),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Address {
    /// Returns `true` if only this machine can reach the address: a loopback address, or a unix
    /// socket.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }

    /// Converts the address to a `sockaddr`. Fails if a unix path exceeds the kernel's limit of 107
    /// bytes.
    pub(crate) fn to_sockaddr(&self) -> io::Result<(Domain, SockAddr)> {
        Ok(match self {
            Self::Tcp(address) => (Domain::for_address(*address), (*address).into()),
            Self::Unix(path) => (Domain::UNIX, SockAddr::unix(path)?),
        })
    }
}

/// An address, or the name of a host with a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostAddress {
    /// An address.
    Address(Address),
    /// A host name and a port: `localhost:8080`.
    Name(String, u16),
}

/// A string that is neither a valid address nor a host name with a port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid address \"{0}\": expected an address such as 127.0.0.1:8080, [::1]:8080, \
     localhost:8080 or unix:/run/service"
)]
pub struct ParseHostAddressError(String);

impl FromStr for HostAddress {
    type Err = ParseHostAddressError;

    fn from_str(text: &str) -> Result<Self, ParseHostAddressError> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let name = text.rsplit_once(':').filter(|(host, _)| is_host_name(host));
        let parsed =
            name.and_then(|(host, port)| Some(Self::Name(host.to_owned(), port.parse().ok()?)));
        parsed.ok_or_else(|| ParseHostAddressError(text.to_owned()))
    }
}

/// Returns `true` for names such as `a`, `a-1.example` and `a.example.`; an invalid IP address is
/// no name.
fn is_host_name(host: &str) -> bool {
    let labels = || host.strip_suffix('.').unwrap_or(host).split('.');
    let is_label = |label: &str| {
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (1..=63).contains(&label.len()) && label.bytes().all(is_valid)
    };
    let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    host.len() <= 254 && labels().all(is_label) && !labels().next_back().is_some_and(is_number)
}

impl fmt::Display for HostAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

impl From<Address> for HostAddress {
    fn from(address: Address) -> Self {
        Self::Address(address)
    }
}

impl HostAddress {
    /// Returns the addresses of the host, at least one, in the order in which to try them. Waits
    /// for the resolver of the system (`getaddrinfo`), unless this is an address.
    ///
    /// # Errors
    /// If the name has no address, or the resolver fails.
    pub fn resolve(&self) -> io::Result<Vec<Address>> {
        let (host, port) = match self {
            Self::Address(address) => return Ok(vec![address.clone()]),
            Self::Name(host, port) => (host.as_str(), *port),
        };
        let addresses: Vec<_> = (host, port).to_socket_addrs()?.map(Address::Tcp).collect();
        match addresses.is_empty() {
            true => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address")),
            false => Ok(addresses),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_addresses_are_addresses_or_names() {
        for text in ["127.0.0.1:8080", "[::1]:0", "unix:/run/a"] {
            let parsed: HostAddress = text.parse().unwrap();
            assert_eq!(parsed, HostAddress::Address(text.parse().unwrap()));
            assert_eq!(parsed.resolve().unwrap(), [text.parse().unwrap()]);
        }
        for text in ["localhost:80", "a-1.example.org:65535", "a_b.:1", "4you:1"] {
            let parsed: HostAddress = text.parse().unwrap();
            assert!(matches!(parsed, HostAddress::Name(..)), "{text}");
            assert_eq!(parsed.to_string(), text);
        }
        for text in
            ["localhost", ":80", "a b:80", "127.0.0.1:99999", "300.1.1.1:80", "a..b:1", "::1:x"]
        {
            let error = text.parse::<HostAddress>().unwrap_err().to_string();
            assert!(error.contains("localhost:8080"), "{error}");
        }
        let local = "localhost:80".parse::<HostAddress>().unwrap().resolve().unwrap();
        assert!(local.iter().all(|address| address.to_string().ends_with(":80")), "{local:?}");
    }

    #[test]
    fn addresses_round_trip_through_text() {
        for text in ["127.0.0.1:8080", "[::1]:0", "unix:/run/a b", "unix:relative"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in ["", "8080", "localhost:80", "unix:", "127.0.0.1", "127.0.0.1:99999"] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("expected an address such as 127.0.0.1:8080"), "{error}");
        }
    }
}
