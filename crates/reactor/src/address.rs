//! Parses and formats the addresses of TCP and unix sockets.

use std::fmt;
use std::net::SocketAddr;
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
    /// Converts the address to a `sockaddr`. Fails if a unix path exceeds the kernel's limit of 107
    /// bytes.
    pub(crate) fn to_sockaddr(&self) -> std::io::Result<(Domain, SockAddr)> {
        Ok(match self {
            Self::Tcp(address) => (Domain::for_address(*address), (*address).into()),
            Self::Unix(path) => (Domain::UNIX, SockAddr::unix(path)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
