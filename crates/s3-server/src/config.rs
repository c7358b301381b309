//! What the owner of a server chooses.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::error::{Error, Result};

/// Where to serve, to whom, and within which limits.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address of S3 and plain HTTP. Port 0 takes any free one.
    pub listen: SocketAddr,
    /// The address of the admin page, the metrics and the health check.
    pub admin: SocketAddr,
    /// The one key pair that may do everything. Without it everyone may, and the addresses must be
    /// loopback ones.
    pub credentials: Option<Credentials>,
    /// How much of everything at once.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 9000).into(),
            admin: (Ipv4Addr::LOCALHOST, 9001).into(),
            credentials: None,
            limits: Limits::default(),
        }
    }
}

impl Config {
    /// Refuses what cannot work or would be unsafe.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(credentials) = &self.credentials {
            credentials.check()?;
        } else {
            for address in [self.listen, self.admin] {
                if !address.ip().is_loopback() {
                    return Err(Error::Public { address });
                }
            }
        }
        self.limits.check()
    }
}

/// A key pair for signatures of version 4.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The name of the key, sent with every request.
    pub access_key: String,
    /// The key itself, which never travels.
    pub secret_key: String,
}

impl Credentials {
    fn check(&self) -> Result<()> {
        let fail = |why| Err(Error::Credentials { why });
        if self.access_key.is_empty() || self.secret_key.is_empty() {
            return fail("neither the access key nor the secret key may be empty");
        }
        let odd = |byte: u8| !byte.is_ascii_graphic() || matches!(byte, b'/' | b',' | b'=' | b':');
        if self.access_key.bytes().any(odd) {
            return fail("the access key may hold neither spaces nor any of / , = :");
        }
        Ok(())
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

/// Every limit of the server.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at once, per address; more wait in the kernel's queue. 1,024.
    pub connections_max: usize,
    /// How long a client may take to send the head of a request, counted from the end of the
    /// request before; so this is also how long an idle connection is kept. 75 s.
    pub head_time_max: Duration,
    /// How long a client may send or take nothing in the middle of a body. 60 s.
    pub stall_time_max: Duration,
    /// How long requests in flight may take to finish once the server is told to stop. 30 s.
    pub drain_time_max: Duration,
    /// Bytes of the head of a request. 32 KiB.
    pub head_bytes_max: usize,
    /// Bytes of one object sent in one piece, or of one part. 5 GiB, as in S3.
    pub object_bytes_max: u64,
    /// Bytes of a request's XML. 8 MiB.
    pub xml_bytes_max: usize,
    /// Bodies of a known length up to this are collected in memory and stored with one call. 4 MiB.
    pub small_body_bytes_max: u64,
    /// Memory for the bodies of all requests together; requests wait for their share. 256 MiB.
    pub body_memory_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 1024,
            head_time_max: Duration::from_secs(75),
            stall_time_max: Duration::from_secs(60),
            drain_time_max: Duration::from_secs(30),
            head_bytes_max: 32 << 10,
            object_bytes_max: 5 << 30,
            xml_bytes_max: 8 << 20,
            small_body_bytes_max: 4 << 20,
            body_memory_bytes_max: 256 << 20,
        }
    }
}

impl Limits {
    fn check(&self) -> Result<()> {
        let fail = |name, value, why| Err(Error::Limit { name, value, why });
        if self.connections_max == 0 {
            return fail("connections_max", 0, "nobody could connect");
        }
        if self.head_bytes_max < 8 << 10 {
            let value = self.head_bytes_max as u64;
            return fail("head_bytes_max", value, "signed requests need 8 KiB");
        }
        if self.body_memory_bytes_max > 1 << 40 {
            return fail("body_memory_bytes_max", self.body_memory_bytes_max, "1 TiB is the most");
        }
        if self.body_memory_bytes_max < (8 << 20).max(2 * self.small_body_bytes_max) {
            let why = "it must hold 8 MiB, and two bodies of small_body_bytes_max";
            return fail("body_memory_bytes_max", self.body_memory_bytes_max, why);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials() -> Credentials {
        Credentials { access_key: "key".into(), secret_key: "secret".into() }
    }

    #[test]
    fn a_public_address_needs_credentials() {
        let public = "0.0.0.0:9000".parse().unwrap();
        for config in [
            Config { listen: public, ..Config::default() },
            Config { admin: public, ..Config::default() },
        ] {
            assert!(matches!(config.check(), Err(Error::Public { address }) if address == public));
            let config = Config { credentials: Some(credentials()), ..config };
            assert!(config.check().is_ok());
        }
        let loopback = Config { listen: "[::1]:0".parse().unwrap(), ..Config::default() };
        assert!(loopback.check().is_ok());
    }

    #[test]
    fn credentials_that_cannot_work_are_refused() {
        for access_key in ["", "a b", "a/b", "a:b"] {
            let credentials = Credentials { access_key: access_key.into(), ..credentials() };
            let config = Config { credentials: Some(credentials), ..Config::default() };
            assert!(matches!(config.check(), Err(Error::Credentials { .. })), "{access_key}");
        }
    }

    #[test]
    fn the_secret_key_is_not_printed() {
        assert!(!format!("{:?}", credentials()).contains("secret"));
    }

    #[test]
    fn limits_that_cannot_work_are_refused() {
        let limits = Limits { connections_max: 0, ..Limits::default() };
        assert!(limits.check().is_err());
        let limits = Limits { small_body_bytes_max: 1 << 30, ..Limits::default() };
        assert!(limits.check().is_err());
        assert!(Limits::default().check().is_ok());
    }
}
