//! Defines and checks the configuration of a relay.

use std::ops::RangeInclusive;
use std::thread::available_parallelism;
use std::time::Duration;

use haul_http_engine::AccessLog;
use haul_pipe::PoolOptions;
use haul_reactor::{Address, AdmissionLimit, Clock, HostAddress, TcpOptions};
use haul_tls::Acceptor;

use crate::error::{Error, Result};
use crate::http_options::HttpOptions;
use crate::proxy::{Trusted, Version};
use crate::target::{Balance, CheckOptions};
use crate::transfer_mode::TransferMode;

/// The configuration of a relay.
#[derive(Debug, Clone)]
pub struct Config {
    /// The addresses to accept connections on; port 0 selects any free port.
    pub listen: Vec<Address>,
    /// The addresses or host names of the targets, at least one.
    pub targets: Vec<HostAddress>,
    /// The time between two resolutions of the host names of targets. They are also resolved after
    /// a failed connection, at most once a second. Default: 30 s.
    pub resolve_interval: Duration,
    /// The algorithm that selects a target.
    pub balance: Balance,
    /// Intervals and thresholds of the health checks of the targets.
    pub checks: CheckOptions,
    /// The address that serves `/metrics`, `/health` and `/ready`. `None` (the default): the relay
    /// serves none of them.
    pub admin: Option<Address>,
    /// The clients that may connect; each of their connections must begin with a PROXY header.
    /// `None` (the default): any client may connect, and no header is expected.
    pub proxy_in: Option<Trusted>,
    /// The version of the PROXY header sent to targets. `None` (the default): no header is sent.
    pub proxy_out: Option<Version>,
    /// The settings of TLS with clients, which the relay terminates. `None` (the default): the relay
    /// accepts plaintext.
    pub tls: Option<Acceptor>,
    /// `true` to allow plain HTTP on addresses that other machines can reach: a proxy or the network
    /// encrypts. Bytes that the relay does not parse need no permission. Default: `false`.
    pub is_plain_http_allowed: bool,
    /// Options of HTTP. `None` (the default): the relay does not parse the bytes it moves.
    pub http: Option<HttpOptions>,
    /// The log of HTTP requests, one line each. `None` (the default): no log.
    pub access_log: Option<AccessLog>,
    /// Limits on connections, times and bytes.
    pub limits: Limits,
    /// TCP options of the sockets to clients and to targets.
    pub tcp: TcpOptions,
    /// The transfer methods the relay may use: copy, splice, or both.
    pub transfer_mode: TransferMode,
    /// The size and number of the pipes of each thread.
    pub pool: PoolOptions,
    /// The number of threads, 1 to 1,024; each has its own sockets and pipes. By default one per
    /// CPU.
    pub threads: usize,
    /// The clock of the limits of time on connections. Default: [`Clock::System`].
    pub clock: Clock,
}

/// The accepted pipe sizes in bytes: splicing through a smaller pipe is slower than copying, and
/// the kernel refuses larger pipes.
const PIPE_BYTES: RangeInclusive<usize> = (64 << 10)..=(1 << 30);

/// Limits on connections, times and bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of open client connections. Beyond the limit, a new connection replaces
    /// the oldest one that waits for a request or for the rest of a head, of the client that has the
    /// most connections, if connections of each client are limited; if none waits, the new
    /// connection stays in the accept queue. Default: 10,000.
    pub connections_max: usize,
    /// The maximum number of open connections of one client, which is an IPv4 address or an IPv6
    /// prefix of 64 bits. Beyond the limit, a new connection replaces the oldest one of the client
    /// that waits for a request or for the rest of a head; if none waits, it is refused. 0:
    /// unlimited. `None` (the default): half of [`Self::connections_max`], but unlimited if
    /// [`Config::proxy_in`] is set, because a proxy opens the connections of many clients.
    pub peer_connections_max: Option<usize>,
    /// The time in which a target must accept a connection before the next target is tried.
    /// Default: 5 s.
    pub connect_time_max: Duration,
    /// The time without traffic after which a connection is reset. `None`: unlimited. Default: 1 h.
    pub idle_time_max: Option<Duration>,
    /// The time without traffic after which a half-closed connection, of which one side has sent
    /// EOF, is reset. `None`: unlimited. Default: 10 min.
    pub half_closed_time_max: Option<Duration>,
    /// The time within which a client must complete each of its PROXY header, its TLS handshake and,
    /// from the first byte on, the head of an HTTP request. Default: 10 s.
    pub head_time_max: Duration,
    /// The time after the start of draining at which the remaining connections are reset. Default:
    /// 30 s.
    pub drain_time_max: Duration,
    /// The number of bytes a direction of a connection moves before other connections run; its last
    /// burst may exceed this number. Default: 1 MiB.
    pub budget_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            peer_connections_max: None,
            connect_time_max: Duration::from_secs(5),
            idle_time_max: Some(Duration::from_hours(1)),
            half_closed_time_max: Some(Duration::from_mins(10)),
            head_time_max: Duration::from_secs(10),
            drain_time_max: Duration::from_secs(30),
            budget_bytes: 1 << 20,
        }
    }
}

impl Config {
    /// Creates a configuration with these addresses and defaults for everything else.
    pub fn new(listen: Vec<Address>, targets: Vec<impl Into<HostAddress>>) -> Self {
        Self {
            listen,
            targets: targets.into_iter().map(Into::into).collect(),
            resolve_interval: Duration::from_secs(30),
            balance: Balance::default(),
            checks: CheckOptions::default(),
            admin: None,
            proxy_in: None,
            proxy_out: None,
            tls: None,
            is_plain_http_allowed: false,
            http: None,
            access_log: None,
            limits: Limits::default(),
            tcp: TcpOptions::default(),
            transfer_mode: TransferMode::default(),
            pool: PoolOptions::default(),
            threads: available_parallelism().map_or(1, usize::from),
            clock: Clock::System,
        }
    }

    /// Returns the limits of open connections: in total, and of one client.
    pub(crate) fn admission(&self) -> AdmissionLimit {
        let Limits { connections_max, peer_connections_max, .. } = self.limits;
        let default = if self.proxy_in.is_some() { 0 } else { (connections_max / 2).max(1) };
        match peer_connections_max.unwrap_or(default) {
            0 => AdmissionLimit::new(connections_max),
            peer_max => AdmissionLimit::with_peer_limit(connections_max, peer_max),
        }
    }

    /// Returns an error if a setting is invalid.
    pub(crate) fn check(&self) -> Result<()> {
        let is_plain_http = self.http.is_some() && self.tls.is_none();
        let listen = self.listen.iter().filter(|_| is_plain_http);
        let mut public = listen.chain(&self.admin).filter(|address| !address.is_local());
        if let Some(address) = public.next().filter(|_| !self.is_plain_http_allowed) {
            return Err(Error::PlainHttp { address: address.to_string() });
        }
        let is_positive = |time: Option<Duration>| time.is_none_or(|time| !time.is_zero());
        let limits = &self.limits;
        let rules = [
            (!self.listen.is_empty(), "no address to listen on is given"),
            (!self.targets.is_empty(), "no target is given"),
            (self.http.is_some() || self.access_log.is_none(), "an access log needs HTTP"),
            ((1..=1024).contains(&self.threads), "the number of threads must be 1 to 1,024"),
            (limits.connections_max > 0, "the maximum of connections must be at least 1"),
            (limits.budget_bytes > 0, "the byte budget of a direction must be at least 1"),
            (PIPE_BYTES.contains(&self.pool.pipe_bytes), "the pipe size must be 64 KiB to 1 GiB"),
            (!self.resolve_interval.is_zero(), "the resolve interval must be longer than 0"),
            (!limits.connect_time_max.is_zero(), "the connect timeout must be longer than 0"),
            (!limits.head_time_max.is_zero(), "the timeout of heads must be longer than 0"),
            (is_positive(limits.idle_time_max), "the idle timeout must be longer than 0"),
            (
                is_positive(limits.half_closed_time_max),
                "the half-closed timeout must be longer than 0",
            ),
            (is_positive(self.tcp.keepalive), "the TCP keep-alive time must be longer than 0"),
            (is_positive(self.checks.interval), "the check interval must be longer than 0"),
            (self.checks.rise > 0 && self.checks.fall > 0, "rise and fall must be at least 1"),
            (self.checks.eject_after > 0, "the failures before an ejection must be at least 1"),
        ];
        if let Some(Err(why)) = self.http.as_ref().map(HttpOptions::check) {
            return Err(Error::Invalid(why));
        }
        match rules.iter().find(|(is_valid, _)| !is_valid) {
            Some((_, why)) => Err(Error::Invalid(why)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_on_public_address_needs_permission() {
        let with = |listen: &str, is_http: bool, admin: &str, is_plain_http_allowed| {
            let targets: Vec<HostAddress> = vec!["127.0.0.1:1".parse().unwrap()];
            let config = Config::new(vec![listen.parse().unwrap()], targets);
            let http = is_http.then(HttpOptions::default);
            let admin = Some(admin.parse().unwrap());
            let checked = Config { http, admin, is_plain_http_allowed, ..config }.check();
            !matches!(checked, Err(Error::PlainHttp { .. }))
        };
        let local = "127.0.0.1:0";
        for listen in ["127.0.0.1:0", "[::1]:0", "[::ffff:127.0.0.1]:0", "unix:/x"] {
            assert!(with(listen, true, local, false), "{listen}");
        }
        for public in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
            assert!(!with(public, true, local, false) && with(public, true, local, true));
            assert!(with(public, false, local, false), "it may be encrypted");
            assert!(!with(local, false, public, false) && with(local, false, public, true));
        }
    }
}
