//! A server's configuration.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use haul_http_engine::AccessLog;
use haul_reactor::{Listener, Rate, TcpOptions};
use haul_tls::Acceptor;

use crate::access::keys::credentials::Credentials;
use crate::access::keys::key_file::KeyFile;
use crate::access::keys::key_ring::KeyRing;
use crate::audit::AuditLog;
use crate::encryption::operator::EncryptionKeys;
use crate::error::{Error, Result};
use crate::events::target::EventTargets;
use crate::oidc::provider::Providers;
use crate::request::domains::invalid;

/// A server's configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address for S3 and plain HTTP. Port 0 chooses any free port.
    pub listen: SocketAddr,
    /// The address for the admin page, the metrics and the health check.
    pub admin: SocketAddr,
    /// The address for the websites of buckets, which clients read without signatures. `None`:
    /// there are none. Default: `None`.
    pub website: Option<SocketAddr>,
    /// Domains under which each bucket's website has a host name: `BUCKET.DOMAIN`. All other hosts
    /// are the names of buckets themselves.
    pub website_domains: Vec<String>,
    /// The administrator's key pair, which has all rights. Without it and without `keys`, every
    /// client has all rights, and the addresses must be loopback addresses. Default: none.
    pub credentials: Option<Credentials>,
    /// The key file's keys, with their rights.
    pub keys: Option<Arc<KeyRing>>,
    /// The key file, which the console changes; `None` if the keys are changed only elsewhere.
    pub key_file: Option<Arc<dyn KeyFile>>,
    /// The OpenID Connect providers whose users may have temporary keys. Their policies are those of
    /// `keys`, without which a server has no providers.
    pub providers: Option<Arc<Providers>>,
    /// The keys with which the server encrypts objects (SSE-S3 and SSE-KMS). Without them, the
    /// server rejects requests for such encryption.
    pub encryption: Option<Arc<EncryptionKeys>>,
    /// The targets of bucket notifications. The store must have been opened with their
    /// [queues](EventTargets::queues). Default: none.
    pub events: Option<Arc<EventTargets>>,
    /// Terminates TLS at `listen`, and at `admin` and `website` unless these are loopback addresses.
    /// `None` means plain HTTP.
    pub tls: Option<Acceptor>,
    /// `true` if public addresses may use plain HTTP, because a proxy or the network encrypts.
    pub is_plain_http_allowed: bool,
    /// Domains under which each bucket has a host name: a request to `BUCKET.DOMAIN` uses this
    /// bucket. All other requests have the bucket in their path.
    pub domains: Vec<String>,
    /// `true` if only reads are allowed. Other requests fail with `AccessDenied`.
    pub is_read_only: bool,
    /// Limits on connections, times and bytes.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 9000).into(),
            admin: (Ipv4Addr::LOCALHOST, 9001).into(),
            website: None,
            website_domains: Vec::new(),
            credentials: None,
            keys: None,
            key_file: None,
            providers: None,
            encryption: None,
            events: None,
            tls: None,
            is_plain_http_allowed: false,
            domains: Vec::new(),
            is_read_only: false,
            limits: Limits::default(),
        }
    }
}

impl Config {
    /// Returns an error if a setting is invalid or unsafe.
    pub(crate) fn check(&self) -> Result<()> {
        for domain in self.domains.iter().chain(&self.website_domains) {
            if let Some(why) = invalid(domain) {
                return Err(Error::Domain { domain: domain.clone(), why });
            }
        }
        if let Some(credentials) = &self.credentials {
            credentials.check()?;
        }
        if self.providers.is_some() && self.keys.is_none() {
            let why =
                "the policies of their users are in a key file, which the server does not have";
            return Err(Error::Provider { why: why.to_owned() });
        }
        let addresses = [self.listen, self.admin].into_iter().chain(self.website);
        if self.credentials.is_some() || self.keys.is_some() {
            if self.tls.is_none() && !self.is_plain_http_allowed {
                for address in addresses {
                    if !address.ip().is_loopback() {
                        return Err(Error::PlainHttp { address });
                    }
                }
            }
        } else {
            for address in addresses {
                if !address.ip().is_loopback() {
                    return Err(Error::Public { address });
                }
            }
        }
        self.limits.check()
    }
}

/// The addresses on which a server listens, with the ports that were assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// The S3 and plain HTTP address.
    pub listen: SocketAddr,
    /// The admin page, `/metrics` and `/health`.
    pub admin: SocketAddr,
    /// The websites of buckets.
    pub website: Option<SocketAddr>,
    /// `true` if the server terminates TLS at `listen`.
    pub has_tls: bool,
}

impl Addresses {
    /// Returns `true` if the server terminates TLS at `admin`.
    #[must_use]
    pub fn admin_has_tls(&self) -> bool {
        self.has_tls && !self.admin.ip().is_loopback()
    }

    /// Returns `true` if the server terminates TLS at `website`.
    #[must_use]
    pub fn website_has_tls(&self) -> bool {
        self.has_tls && self.website.is_some_and(|address| !address.ip().is_loopback())
    }

    /// Returns the URL for S3 and plain HTTP.
    #[must_use]
    pub fn listen_url(&self) -> String {
        url(self.listen, self.has_tls)
    }

    /// Returns the S3 host and port for a client that reached the admin address as `host`.
    pub(crate) fn listen_host(&self, host: &str) -> String {
        if !self.listen.ip().is_unspecified() {
            return self.listen.to_string();
        }
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        format!("{name}:{}", self.listen.port())
    }

    /// Returns the URL for websites, if there are any.
    #[must_use]
    pub fn website_url(&self) -> Option<String> {
        self.website.map(|address| url(address, self.website_has_tls()))
    }

    /// Returns the admin page's URL.
    #[must_use]
    pub fn admin_url(&self) -> String {
        url(self.admin, self.admin_has_tls())
    }
}

fn url(address: SocketAddr, has_tls: bool) -> String {
    let scheme = if has_tls { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// Sockets on which another process, such as a service manager, already listens. Connections wait
/// in their accept queues while one server stops and the next one starts.
#[derive(Debug, Default)]
pub struct Inherited {
    /// The S3 socket, in place of [`Config::listen`].
    pub listen: Option<Listener>,
    /// The admin page's socket, in place of [`Config::admin`].
    pub admin: Option<Listener>,
    /// The socket for websites, in place of [`Config::website`].
    pub website: Option<Listener>,
}

/// A server's logs.
#[derive(Debug, Clone, Default)]
pub struct Logs {
    /// Records each S3 and plain HTTP request.
    pub access: Option<AccessLog>,
    /// Records each change.
    pub audit: Option<AuditLog>,
}

/// Limits on connections, times and bytes.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Open connections per address. A connection that exceeds the limit replaces an idle one or
    /// waits in the kernel's accept queue. Default: 4,096.
    pub connections_max: usize,
    /// Open connections per peer. A peer is an IPv4 address or an IPv6 /64 network; all clients
    /// behind a proxy are one peer. A connection that exceeds the limit replaces one of the peer's
    /// idle connections or is rejected with 503. Default: 2,048.
    pub peer_connections_max: usize,
    /// The request rate per peer. A request that exceeds it is rejected with 503 `SlowDown`.
    /// Default: no limit.
    pub peer_rate: Option<Rate>,
    /// The time to receive a request head, from its first byte or from the start of the connection.
    /// Default: 10 s.
    pub head_time_max: Duration,
    /// The time for which a connection may be idle between two requests. Default: 75 s.
    pub idle_time_max: Duration,
    /// The time for which a body may make no progress. Default: 60 s.
    pub stall_time_max: Duration,
    /// The time within which requests in flight must complete once the server drains. Default: 30
    /// s.
    pub drain_time_max: Duration,
    /// A request is logged as slow if at least this time passes from its last byte to the head of
    /// its response; `None` logs no requests. Default: 1 s.
    pub slow_request_time: Option<Duration>,
    /// The maximum length of a request head. Default: 32 KiB.
    pub head_bytes_max: usize,
    /// The maximum size of an object stored with one `PUT`, or of a part. Default: 5 GiB, as in S3.
    pub object_bytes_max: u64,
    /// The maximum length of an XML request body. Default: 8 MiB.
    pub xml_bytes_max: usize,
    /// The maximum length of a body that is buffered in memory and stored with a single store call.
    /// Default: 4 MiB.
    pub small_body_bytes_max: u64,
    /// The maximum memory for the bodies of all requests. Requests wait until enough is free.
    /// Default: 256 MiB.
    pub body_memory_bytes_max: u64,
    /// The maximum memory for the bodies of one peer's requests, as part of
    /// `body_memory_bytes_max`. Default: 128 MiB.
    pub peer_body_memory_bytes_max: u64,
    /// The memory for the cache of hot objects, which have up to 4 MiB; the cache serves GET and
    /// HEAD. 0 disables the cache. Default: 64 MiB.
    pub cache_bytes_max: u64,
    /// The memory that the cache shares with bodies and with the store's pinned files: the cache
    /// takes the part that they do not use. 0: the cache has its own memory. Default: 0.
    pub shared_memory_bytes: u64,
    /// The time after which a bucket's access log records are delivered. Default: 5 min.
    pub log_delivery_time: Duration,
    /// The size at which a bucket's access log records are delivered. Default: 1 MiB.
    pub log_object_bytes: usize,
    /// The memory for undelivered access log records. Further records are dropped. Default: 64 MiB.
    pub log_memory_bytes_max: usize,
    /// The memory that the cache leaves to the system: while less memory is available in the
    /// machine, or in this process's control group, the cache shrinks. 0: it never shrinks.
    /// Default: 0.
    pub memory_free_bytes_min: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 4096,
            peer_connections_max: 2048,
            peer_rate: None,
            head_time_max: Duration::from_secs(10),
            idle_time_max: Duration::from_secs(75),
            stall_time_max: Duration::from_secs(60),
            drain_time_max: Duration::from_secs(30),
            slow_request_time: Some(Duration::from_secs(1)),
            head_bytes_max: 32 << 10,
            object_bytes_max: 5 << 30,
            xml_bytes_max: 8 << 20,
            small_body_bytes_max: 4 << 20,
            body_memory_bytes_max: 256 << 20,
            peer_body_memory_bytes_max: 128 << 20,
            cache_bytes_max: 64 << 20,
            shared_memory_bytes: 0,
            log_delivery_time: Duration::from_secs(300),
            log_object_bytes: 1 << 20,
            log_memory_bytes_max: 64 << 20,
            memory_free_bytes_min: 0,
        }
    }
}

impl Limits {
    /// Returns the options for connections from inherited sockets.
    #[must_use]
    pub fn tcp_options(&self) -> TcpOptions {
        tcp_options(self.stall_time_max)
    }

    fn check(&self) -> Result<()> {
        let fail = |name, value, why| Err(Error::Limit { name, value, why });
        if self.connections_max == 0 {
            return fail("connections_max", 0, "it must be at least 1");
        }
        if self.peer_connections_max == 0 {
            return fail("peer_connections_max", 0, "it must be at least 1");
        }
        if self.head_bytes_max < 8 << 10 {
            let value = self.head_bytes_max as u64;
            return fail(
                "head_bytes_max",
                value,
                "it must be at least 8 KiB, which the heads of signed requests need",
            );
        }
        if self.body_memory_bytes_max > 1 << 40 {
            return fail(
                "body_memory_bytes_max",
                self.body_memory_bytes_max,
                "it must be at most 1 TiB",
            );
        }
        // A request body, or a response document.
        let one_body = (4 << 20).max(self.small_body_bytes_max).max(self.xml_bytes_max as u64);
        if self.body_memory_bytes_max < 2 * one_body {
            let why = "it must be at least 8 MiB and twice small_body_bytes_max and xml_bytes_max";
            return fail("body_memory_bytes_max", self.body_memory_bytes_max, why);
        }
        if !(one_body..=self.body_memory_bytes_max).contains(&self.peer_body_memory_bytes_max) {
            let why = "it must be at least 4 MiB, small_body_bytes_max and xml_bytes_max, and at \
                       most body_memory_bytes_max";
            let value = self.peer_body_memory_bytes_max;
            return fail("peer_body_memory_bytes_max", value, why);
        }
        Ok(())
    }
}

/// Returns the socket options for connections that are closed after `stall_time` without progress.
pub(crate) fn tcp_options(stall_time: Duration) -> TcpOptions {
    TcpOptions { user_timeout: Some(stall_time), ..TcpOptions::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials() -> Credentials {
        Credentials { access_key: "key".into(), secret_key: "secret".into() }
    }

    #[test]
    fn urls_have_the_scheme_of_their_address() {
        let urls = |admin: &str, has_tls| {
            let listen = "0.0.0.0:1".parse().unwrap();
            let admin = admin.parse().unwrap();
            let addresses = Addresses { listen, admin, website: Some(admin), has_tls };
            assert_eq!(addresses.website_url(), Some(addresses.admin_url()));
            [addresses.listen_url(), addresses.admin_url()]
        };
        assert_eq!(urls("0.0.0.0:2", true), ["https://0.0.0.0:1", "https://0.0.0.0:2"]);
        assert_eq!(urls("[::1]:2", true), ["https://0.0.0.0:1", "http://[::1]:2"]);
        assert_eq!(urls("0.0.0.0:2", false), ["http://0.0.0.0:1", "http://0.0.0.0:2"]);
    }

    #[test]
    fn links_use_the_host_name_that_reached_the_admin_address() {
        let host = |listen: &str, host: &str| {
            let (listen, admin) = (listen.parse().unwrap(), "0.0.0.0:2".parse().unwrap());
            Addresses { listen, admin, website: None, has_tls: false }.listen_host(host)
        };
        assert_eq!(host("10.0.0.1:9000", "example.org:2"), "10.0.0.1:9000");
        assert_eq!(host("0.0.0.0:9000", "example.org:2"), "example.org:9000");
        assert_eq!(host("[::]:9000", "[::1]"), "[::1]:9000");
    }

    #[test]
    fn public_address_requires_credentials() {
        let public = "0.0.0.0:9000".parse().unwrap();
        for config in [
            Config { listen: public, ..Config::default() },
            Config { admin: public, ..Config::default() },
            Config { website: Some(public), ..Config::default() },
        ] {
            assert!(matches!(config.check(), Err(Error::Public { address }) if address == public));
            let config = Config { credentials: Some(credentials()), ..config };
            let refused = config.check();
            assert!(matches!(refused, Err(Error::PlainHttp { address }) if address == public));
            let config = Config { is_plain_http_allowed: true, ..config };
            assert!(config.check().is_ok());
        }
        let loopback = Config { listen: "[::1]:0".parse().unwrap(), ..Config::default() };
        assert!(loopback.check().is_ok());
    }

    #[test]
    fn invalid_credentials_are_refused() {
        for access_key in ["", "a b", "a/b", "a:b"] {
            let credentials = Credentials { access_key: access_key.into(), ..credentials() };
            let config = Config { credentials: Some(credentials), ..Config::default() };
            assert!(matches!(config.check(), Err(Error::Credentials { .. })), "{access_key}");
        }
    }

    #[test]
    fn invalid_limits_are_refused() {
        let limits = Limits { connections_max: 0, ..Limits::default() };
        assert!(limits.check().is_err());
        let limits = Limits { peer_connections_max: 0, ..Limits::default() };
        assert!(limits.check().is_err());
        let limits = Limits { small_body_bytes_max: 1 << 30, ..Limits::default() };
        assert!(limits.check().is_err());
        for peer_body_memory_bytes_max in [1 << 20, 1 << 30] {
            let limits = Limits { peer_body_memory_bytes_max, ..Limits::default() };
            assert!(limits.check().is_err());
        }
        assert!(Limits::default().check().is_ok());
    }
}
