//! Where to listen and where to connect.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use socket2::{Domain, SockAddr};

/// An address of a stream socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// TCP: `127.0.0.1:8080`, `[::1]:8080`.
    Tcp(SocketAddr),
    /// A socket in the file system: `unix:/run/service`.
    Unix(PathBuf),
}

/// A text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no address: give one as 127.0.0.1:8080, [::1]:8080 or unix:/run/service")]
pub struct NoAddress(String);

impl FromStr for Address {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        match text.strip_prefix("unix:") {
            Some("") => Err(NoAddress(text.to_owned())),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text.parse().map(Self::Tcp).map_err(|_why| NoAddress(text.to_owned())),
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
    /// For the kernel. A path may be too long for it: 107 bytes are its limit.
    pub(crate) fn for_kernel(&self) -> std::io::Result<(Domain, SockAddr)> {
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
    fn addresses_are_written_as_they_are_read() {
        for text in ["127.0.0.1:8080", "[::1]:0", "unix:/run/a b", "unix:here"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in ["", "8080", "localhost:80", "unix:", "127.0.0.1", "127.0.0.1:99999"] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("give one as 127.0.0.1:8080"), "{error}");
        }
    }
}
