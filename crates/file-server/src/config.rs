//! The configuration of a server.

use std::path::PathBuf;
use std::time::Duration;

use haul_http_engine::AccessLog;
use haul_reactor::{Address, Clock, Rate};
use haul_tls::Acceptor;

use crate::error::{Error, Result};

/// The configuration of a server.
#[derive(Debug, Clone)]
pub struct Config {
    /// The directory whose files are served.
    pub dir: PathBuf,
    /// The address clients connect to. `127.0.0.1:8080`.
    pub listen: Address,
    /// The address of metrics and health, which is served without TLS; do not make it public. `None`.
    pub admin: Option<Address>,
    /// `true` to allow plain HTTP on addresses that other machines can reach, and to serve requests
    /// for any host. `false`.
    pub is_public: bool,
    /// The settings of TLS; `None` serves plaintext. `None`.
    pub tls: Option<Acceptor>,
    /// Additional host names that are served on a loopback address. Other requests must name
    /// `localhost` or an IP address as their host, which prevents DNS rebinding by web pages.
    /// Empty.
    pub hosts: Vec<String>,
    /// The number of serving threads, each with its own listener. One for each CPU.
    pub threads: usize,
    /// The name of the serving threads. `files`.
    pub thread_name: String,
    /// The files that are served, and fields of their responses.
    pub content: Content,
    /// Caches, and the reads of files that are not cached.
    pub tiers: Tiers,
    /// Limits on clients.
    pub limits: Limits,
    /// The access log, one line a request. `None`.
    pub access_log: Option<AccessLog>,
    /// The time from which on a request is slow, for the list of slow requests at the admin address;
    /// `None` for no list. 1 s.
    pub slow_request_time: Option<Duration>,
    /// The clock of the limits of time on connections. [`Clock::System`].
    pub clock: Clock,
}

/// The files that are served, and fields of their responses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// `true` to list directories without an index. `false`.
    pub listings: bool,
    /// `true` to serve names that begin with a dot; otherwise only `/.well-known` is. `false`.
    pub dotfiles: bool,
    /// `true` to serve `a.br`, `a.zst` and `a.gz` as content codings of `a`. `true`.
    pub precompressed: bool,
    /// The value of `Cache-Control`. `None`.
    pub cache_control: Option<String>,
}

impl Default for Content {
    fn default() -> Self {
        Self { listings: false, dotfiles: false, precompressed: true, cache_control: None }
    }
}

/// Caches, and the reads of files that are not cached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiers {
    /// The size of the application cache; 0 disables it. `None`: an eighth of the memory of the
    /// machine, or of the process's control group.
    pub cache_bytes: Option<u64>,
    /// The longest file in the application cache. 64 KiB.
    pub cache_object_bytes_max: u64,
    /// The number of other files kept open. 1,024.
    pub open_files: usize,
    /// The time for which a lookup stays valid. 1 s; 0 checks the file on each request.
    pub valid: Duration,
    /// The length below which files are always read through the page cache. 1 MiB.
    pub direct_bytes_min: u64,
    /// The number of recent requests from which on a file is read through the page cache. 3.
    pub promote_asked: u32,
    /// The length above which files never are. `None`: an eighth of the memory.
    pub promote_bytes_max: Option<u64>,
    /// The number of threads for lookups and reads that may block. 4.
    pub disk_threads: usize,
    /// The lookups and small reads that may be queued for them; further requests are answered with
    /// 503. 4,096.
    pub disk_queue_max: usize,
    /// The method by which cold files are sent. Copying.
    pub cold: Cold,
    /// The buffers of 2 MiB, or pipes of 1 MiB, of each serving thread; a cold download uses one or
    /// two, to a slow client one. 64.
    pub buffers_max: usize,
}

impl Default for Tiers {
    fn default() -> Self {
        Self {
            cache_bytes: None,
            cache_object_bytes_max: 64 << 10,
            open_files: 1024,
            valid: Duration::from_secs(1),
            direct_bytes_min: 1 << 20,
            promote_asked: 3,
            promote_bytes_max: None,
            disk_threads: 4,
            disk_queue_max: 4096,
            cold: Cold::default(),
            buffers_max: 64,
        }
    }
}

/// The method by which cold files get from the disk to the client, bypassing the page cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cold {
    /// Reads into a buffer of huge pages, and copies to the socket once.
    #[default]
    Copy,
    /// Reads into a pipe and splices to the socket: no copy, but small pages, each of which is
    /// allocated, read, sent and freed separately.
    Splice,
}

/// Limits on clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections of all threads together. Beyond the limit, new connections replace the oldest ones
    /// that wait for a request or for the rest of a head, those of the client with the most first;
    /// if none waits, they stay in the kernel's queue. 10,000.
    pub connections: usize,
    /// Connections of one client, which is an IPv4 address or an IPv6 prefix of 64 bits. Beyond the
    /// limit, a new connection replaces the oldest one of the client that waits for a request or
    /// for the rest of a head; if none waits, it is refused. 0: unlimited. `None`: half of
    /// [`Self::connections`].
    pub peer_connections: Option<usize>,
    /// The rate of requests of one client, above which they are answered with 429. `None`.
    pub peer_rate: Option<Rate>,
    /// Requests of one connection. 100,000.
    pub requests: u32,
    /// The time for a request head. 10 s.
    pub head_time: Duration,
    /// The time a connection may be idle between requests. 60 s.
    pub idle_time: Duration,
    /// The interval in which the progress of a response is checked. 30 s.
    pub send_time: Duration,
    /// The least bytes a second a client must accept on average in that interval. 1 KiB.
    pub send_rate_min: u64,
    /// The time responses have to complete once the server drains. 30 s.
    pub drain_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connections: 10_000,
            peer_connections: None,
            peer_rate: None,
            requests: 100_000,
            head_time: seconds(10),
            idle_time: seconds(60),
            send_time: seconds(30),
            send_rate_min: 1 << 10,
            drain_time: seconds(30),
        }
    }
}

impl Limits {
    /// Returns the limits of open connections: in total, and of one client.
    pub(crate) fn connections_max(&self) -> (usize, usize) {
        let peer_max = match self.peer_connections {
            Some(0) => usize::MAX,
            Some(max) => max,
            None => (self.connections / 2).max(1),
        };
        (self.connections, peer_max)
    }
}

impl Config {
    /// Creates a configuration that serves `dir`, with the default of each field.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            listen: Address::Tcp(([127, 0, 0, 1], 8080).into()),
            admin: None,
            is_public: false,
            tls: None,
            hosts: Vec::new(),
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            thread_name: "files".to_owned(),
            content: Content::default(),
            tiers: Tiers::default(),
            limits: Limits::default(),
            access_log: None,
            slow_request_time: Some(Duration::from_secs(1)),
            clock: Clock::System,
        }
    }

    /// Returns an error if a setting is invalid, or an address is public without TLS and without
    /// `is_public`.
    pub(crate) fn check(&self) -> Result<()> {
        let listen = Some(&self.listen).filter(|_| self.tls.is_none());
        for address in [listen, self.admin.as_ref()].into_iter().flatten() {
            if !self.is_public && !address.is_local() {
                return Err(Error::Public { address: address.to_string() });
            }
        }
        let cache_control = self.content.cache_control.as_deref().unwrap_or_default();
        let is_text = |byte: u8| matches!(byte, b'\t' | b' '..=b'~');
        let tiers = &self.tiers;
        let rules = [
            (cache_control.bytes().all(is_text), "Cache-Control must be printable ASCII text"),
            ((1..=1024).contains(&self.threads), "the number of threads must be 1 to 1,024"),
            (
                tiers.cache_object_bytes_max <= 16 << 20,
                "the longest cached file must be at most 16 MiB",
            ),
            (
                (1..=1024).contains(&tiers.disk_threads),
                "the number of disk threads must be 1 to 1,024",
            ),
            (tiers.disk_queue_max >= 1, "the disk queue must hold at least 1 job"),
            (tiers.promote_asked >= 1, "files can be promoted after 1 request at the earliest"),
            (self.limits.connections >= 1, "the maximum must be at least one connection"),
            (
                self.limits.requests >= 1,
                "the maximum must be at least one request for each connection",
            ),
        ];
        match rules.into_iter().find(|(is_valid, _)| !is_valid) {
            Some((_, reason)) => Err(Error::Invalid(reason)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_on_public_address_requires_is_public() {
        let with = |listen: &str, admin: Option<&str>, is_public| {
            let mut config = Config::new(".");
            config.listen = listen.parse().unwrap();
            config.admin = admin.map(|admin| admin.parse().unwrap());
            config.is_public = is_public;
            config.check().is_ok()
        };
        for listen in ["127.0.0.1:0", "127.8.9.1:80", "[::1]:0", "[::ffff:127.0.0.1]:0", "unix:/x"]
        {
            assert!(with(listen, None, false), "{listen}");
        }
        for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", "[::ffff:192.0.2.1]:80"] {
            assert!(!with(listen, None, false) && with(listen, None, true), "{listen}");
            assert!(!with("127.0.0.1:0", Some(listen), false), "admin {listen}");
        }
    }

    #[test]
    fn invalid_settings_are_refused_by_name() {
        type Change = fn(&mut Config);
        let wrong: &[(&str, Change)] = &[
            ("Cache-Control", |c| c.content.cache_control = Some("a\r\nX: y".to_owned())),
            ("threads", |c| c.threads = 0),
            ("disk threads", |c| c.tiers.disk_threads = 0),
            ("disk queue", |c| c.tiers.disk_queue_max = 0),
            ("16 MiB", |c| c.tiers.cache_object_bytes_max = 1 << 30),
            ("promoted", |c| c.tiers.promote_asked = 0),
            ("one connection", |c| c.limits.connections = 0),
            ("one request", |c| c.limits.requests = 0),
        ];
        for (name, change) in wrong {
            let mut config = Config::new(".");
            config.check().unwrap();
            change(&mut config);
            let refused = config.check();
            assert!(
                matches!(refused, Err(Error::Invalid(reason)) if reason.contains(name)),
                "{name}"
            );
        }
    }
}
