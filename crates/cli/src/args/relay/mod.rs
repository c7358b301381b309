//! Defines the arguments of `haul relay`.

mod http;

use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use haul_tcp_relay::proxy::{Network, Trusted, Version};
use haul_tcp_relay::{
    Address, Balance, CheckOptions, Config, HostAddress, Limits, TcpOptions, TransferMode,
};

use crate::args::values::{parse_bytes_between, parse_time_from};
use crate::args::{AccessLogArgs, ConfigArgs, TlsArgs};
use crate::units::parse_time;
use http::HttpArgs;

#[derive(Debug, Args)]
#[command(mut_arg("access_log", |log| log.requires("http")))]
#[command(mut_arg("log_format", |format| format.requires("http")))]
#[command(mut_arg("log_size", |size| size.requires("http")))]
#[command(mut_arg("log_keep", |keep| keep.requires("http")))]
pub(crate) struct RelayArgs {
    /// Listen on this address; repeatable
    ///
    /// Such as 127.0.0.1:8080, localhost:8080 or unix:/run/relay.sock. An IPv6 address stands in
    /// brackets, before its port. Port 0 selects a free port. The first address of a host name is used; it is resolved once, at the start.
    /// Sockets that a service manager passes (LISTEN_FDS) are used instead.
    #[arg(long, value_name = "ADDRESS", help_heading = "Relay")]
    pub(crate) listen: Vec<HostAddress>,
    /// Forward connections to this target; repeatable
    ///
    /// An address or a host name with a port, such as app.example:80. All addresses of a host name
    /// are tried in turn.
    #[arg(long, value_name = "ADDRESS", required_unless_present = "print_config")]
    #[arg(help_heading = "Relay")]
    pub(crate) to: Vec<HostAddress>,
    /// Resolve the host names of targets at this interval
    ///
    /// They are also resolved after a failed connection. If a name cannot be resolved, its previous
    /// addresses are used.
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Targets")]
    #[arg(hide_short_help = true, value_parser = parse_time_from("1ms"))]
    pub(crate) resolve_every: Duration,
    /// Listen on this address for /metrics, /health and /ready [default: none]
    #[arg(long, value_name = "ADDRESS", help_heading = "Relay")]
    pub(crate) admin: Option<Address>,
    /// Number of relaying threads [default: one per core]
    #[arg(long, value_name = "N", help_heading = "Relay")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub(crate) threads: Option<usize>,
    /// Print the ready line, and the statistics at exit, as one JSON object each
    ///
    /// The ready line has kind (ready), listen, to and admin. The statistics have kind (closed).
    #[arg(long, help_heading = "Relay")]
    pub(crate) json: bool,

    /// Load balancing method
    #[arg(long, value_name = "METHOD", default_value = "round-robin", help_heading = "Targets")]
    pub(crate) balance: BalanceArg,
    /// Check each target by connecting at this interval, or "never"
    #[arg(long, value_name = "TIME", default_value = "never", help_heading = "Targets")]
    #[arg(value_parser = parse_time_limit)]
    pub(crate) check_every: TimeLimit,
    /// Number of consecutive successful checks before a target counts as up
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Targets")]
    #[arg(hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rise: u32,
    /// Number of consecutive failed checks before a target counts as down
    #[arg(long, value_name = "N", default_value_t = 3, help_heading = "Targets")]
    #[arg(hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) fall: u32,
    /// Number of consecutive failed connections after which a target is ejected
    ///
    /// While a target is ejected, clients are connected to it only if no target that is up accepts.
    #[arg(long, value_name = "N", default_value_t = 3, help_heading = "Targets")]
    #[arg(hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) eject_after: u32,
    /// Time for which a target is ejected
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = "Targets")]
    #[arg(hide_short_help = true, value_parser = parse_time)]
    pub(crate) eject_time: Duration,

    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    /// Allow plain HTTP on public addresses
    ///
    /// Without certificates, --http accepts only loopback addresses and unix sockets; --admin always
    /// does. Without --http, the relay forwards any bytes, which may be encrypted, on any address.
    #[arg(long, help_heading = "Relay")]
    pub(crate) plain_http: bool,
    #[command(flatten)]
    pub(crate) http: HttpArgs,
    #[command(flatten)]
    pub(crate) log: AccessLogArgs,

    /// Require a PROXY header, version 1 or 2, on each connection
    ///
    /// Connections without it are closed.
    #[arg(long, help_heading = "PROXY protocol")]
    pub(crate) proxy_in: bool,
    /// Accept PROXY headers only from these networks, such as 10.0.0.0/8,192.0.2.7 [default: any]
    ///
    /// Connections from other networks are closed. Unix sockets are always accepted.
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',', requires = "proxy_in")]
    #[arg(help_heading = "PROXY protocol")]
    pub(crate) proxy_from: Vec<Network>,
    /// Send a PROXY header of this version to targets
    #[arg(long, value_name = "VERSION", help_heading = "PROXY protocol")]
    pub(crate) proxy_out: Option<VersionArg>,

    /// Maximum number of open connections
    ///
    /// Beyond the limit, a new connection replaces the oldest one that waits for a request (with
    /// --http) or for a PROXY header, of the client with the most connections, or waits until one is
    /// closed.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(help_heading = "Limits", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) connections: usize,
    /// Maximum number of connections of one client; 0 means no limit [default: half of
    /// --connections]
    ///
    /// A client is an IPv4 address or an IPv6 /64 prefix. Beyond the limit, a new connection
    /// replaces the oldest one of the client that waits for a request (with --http) or for a PROXY
    /// header, or is refused. With --proxy-in, the default is no limit, because a proxy opens the
    /// connections of many clients.
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) connections_per_client: Option<usize>,
    /// Time to connect to a target before the next one is tried
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = "Limits")]
    #[arg(value_parser = parse_time_from("1ms"))]
    pub(crate) connect_time: Duration,
    /// Maximum time to receive a PROXY header, a TLS handshake or a request head
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = "Limits")]
    #[arg(hide_short_help = true, value_parser = parse_time_from("1ms"))]
    pub(crate) head_time: Duration,
    /// Idle time after which a connection is closed, or "never" [default: 1h; 1min between requests]
    ///
    /// With --http, the time between two requests of a client. A WebSocket may be idle for an hour,
    /// or for TIME if that is longer.
    #[arg(long, value_name = "TIME", help_heading = "Limits", value_parser = parse_time_limit)]
    pub(crate) idle_time: Option<TimeLimit>,
    /// Idle time after which a half-closed connection is closed, or "never"
    #[arg(long, value_name = "TIME", default_value = "10min", help_heading = "Limits")]
    #[arg(value_parser = parse_time_limit)]
    pub(crate) half_closed_time: TimeLimit,
    /// Time for open connections to finish after a signal to stop
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Limits")]
    #[arg(value_parser = parse_time)]
    pub(crate) drain_time: Duration,
    /// Idle time after which TCP keepalive probes are sent, or "never"
    #[arg(long, value_name = "TIME", default_value = "1min", help_heading = "Limits")]
    #[arg(hide_short_help = true, value_parser = parse_time_limit)]
    pub(crate) keepalive: TimeLimit,
    /// Abort a connection if sent data is not acknowledged for TIME
    ///
    /// Sets TCP_USER_TIMEOUT. By default the limit of the kernel applies, about fifteen minutes.
    #[arg(long, value_name = "TIME", help_heading = "Limits", value_parser = parse_time)]
    #[arg(hide_short_help = true)]
    pub(crate) unacknowledged_time: Option<Duration>,

    /// Method of moving bytes from one socket to the other
    #[arg(
        long = "move",
        value_name = "METHOD",
        default_value = "auto",
        help_heading = "Forwarding"
    )]
    pub(crate) moving: MoveArg,
    /// Size of each pipe for splicing, 64KiB to 1GiB
    #[arg(long, value_name = "SIZE", default_value = "1MiB", help_heading = "Forwarding")]
    #[arg(hide_short_help = true, value_parser = parse_bytes_between("64KiB", "1GiB"))]
    pub(crate) pipe_size: u64,
    #[command(flatten)]
    config: ConfigArgs,
}

/// A time limit; `None` for "never".
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimit(pub(crate) Option<Duration>);

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum BalanceArg {
    /// Each target in turn
    RoundRobin,
    /// The target with the fewest open connections
    LeastConnections,
    /// One target for each client address, as long as this target is up
    Source,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum VersionArg {
    /// Version 1, as text
    V1,
    /// Version 2, binary
    V2,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum MoveArg {
    /// Copy small bursts, splice large ones
    Auto,
    /// Always copy
    Copy,
    /// Always splice
    Splice,
}

impl RelayArgs {
    /// Returns the configuration of the relay, without its log and the addresses of `--listen`.
    pub(crate) fn config(&self) -> Config {
        let mut config = Config::new(Vec::new(), self.to.clone());
        config.resolve_interval = self.resolve_every;
        config.admin = self.admin.clone();
        config.threads = self.threads.unwrap_or(config.threads);
        config.balance = match self.balance {
            BalanceArg::RoundRobin => Balance::RoundRobin,
            BalanceArg::LeastConnections => Balance::LeastConnections,
            BalanceArg::Source => Balance::Source,
        };
        config.checks = CheckOptions {
            interval: self.check_every.0,
            rise: self.rise,
            fall: self.fall,
            eject_after: self.eject_after,
            eject_time: self.eject_time,
        };
        config.proxy_in = self.proxy_in.then(|| match self.proxy_from.as_slice() {
            [] => Trusted::All,
            networks => Trusted::Only(networks.to_vec()),
        });
        config.proxy_out = self.proxy_out.map(|version| match version {
            VersionArg::V1 => Version::V1,
            VersionArg::V2 => Version::V2,
        });
        config.transfer_mode = match self.moving {
            MoveArg::Auto => TransferMode::Auto,
            MoveArg::Copy => TransferMode::Copy,
            MoveArg::Splice => TransferMode::Splice,
        };
        config.pool.pipe_bytes = usize::try_from(self.pipe_size).unwrap_or(usize::MAX);
        config.tcp =
            TcpOptions { keepalive: self.keepalive.0, user_timeout: self.unacknowledged_time };
        config.is_plain_http_allowed = self.plain_http;
        config.http = self.http.options(self.idle_time.map(|limit| limit.0));
        config.limits = self.limits(&config.limits);
        config
    }

    fn limits(&self, defaults: &Limits) -> Limits {
        let idle_time = match self.idle_time {
            None => defaults.idle_time_max,
            // `None`, which is no limit, would be the least of options.
            Some(TimeLimit(given)) if self.http.http => {
                given.zip(defaults.idle_time_max).map(|(given, usual)| given.max(usual))
            }
            Some(TimeLimit(given)) => given,
        };
        Limits {
            connections_max: self.connections,
            peer_connections_max: self.connections_per_client,
            connect_time_max: self.connect_time,
            idle_time_max: idle_time,
            half_closed_time_max: self.half_closed_time.0,
            head_time_max: self.head_time,
            drain_time_max: self.drain_time,
            ..*defaults
        }
    }
}

fn parse_time_limit(text: &str) -> Result<TimeLimit, String> {
    match text {
        "never" => Ok(TimeLimit(None)),
        _ => parse_time_from("1ms")(text)
            .map(|time| TimeLimit(Some(time)))
            .map_err(|reason| format!("{reason}; or \"never\"")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn parsed(arguments: &[&str]) -> Result<RelayArgs, String> {
        let words = ["haul", "relay", "--listen", "127.0.0.1:0", "--to", "unix:/a"];
        let cli = Cli::try_parse_from(words.iter().chain(arguments)).map_err(|e| e.to_string())?;
        let Command::Relay(args) = cli.command else { panic!("not relay") };
        Ok(*args)
    }

    #[test]
    fn defaults_are_those_of_the_library() {
        let ours = parsed(&[]).unwrap().config();
        let library = Config::new(ours.listen.clone(), ours.targets.clone());
        assert_eq!(format!("{ours:?}"), format!("{library:?}"));
    }

    #[test]
    fn options_reach_the_library() {
        let arguments = [
            "--to=127.0.0.1:9",
            "--balance=source",
            "--check-every=2s",
            "--proxy-in",
            "--proxy-from=10.0.0.0/8,::1",
            "--proxy-out=v2",
            "--idle-time=never",
            "--move=copy",
            "--pipe-size=64KiB",
            "--threads=1",
        ];
        let config = parsed(&arguments).unwrap().config();
        assert_eq!(config.targets.len(), 2);
        assert_eq!((config.balance, config.transfer_mode), (Balance::Source, TransferMode::Copy));
        assert_eq!(config.checks.interval, Some(Duration::from_secs(2)));
        assert!(matches!(&config.proxy_in, Some(Trusted::Only(two)) if two.len() == 2));
        assert_eq!((config.proxy_out, config.limits.idle_time_max), (Some(Version::V2), None));
        assert_eq!((config.pool.pipe_bytes, config.threads), (64 << 10, 1));
    }

    #[test]
    fn idle_time_is_one_limit_for_connections_and_for_requests() {
        let hours = |hours| Some(Duration::from_hours(hours));
        let minutes = |minutes| Some(Duration::from_mins(minutes));
        for (arguments, connection, request) in [
            (&[][..], hours(1), None),
            (&["--idle-time=2min"], minutes(2), None),
            (&["--http"], hours(1), Some(minutes(1))),
            (&["--http", "--idle-time=2min"], hours(1), Some(minutes(2))),
            (&["--http", "--idle-time=2h"], hours(2), Some(hours(2))),
            (&["--http", "--idle-time=never"], None, Some(None)),
        ] {
            let config = parsed(arguments).unwrap().config();
            assert_eq!(config.limits.idle_time_max, connection, "{arguments:?}");
            assert_eq!(config.http.map(|http| http.idle_time_max), request, "{arguments:?}");
        }
    }

    #[test]
    fn mistakes_are_reported() {
        for (arguments, expected) in [
            (["--to", "localhost"], "localhost:80"),
            (["--proxy-from", "10.0.0.0/8"], "--proxy-in"),
            (["--idle-time", "5"], "never"),
            (["--rise", "0"], "1"),
            (["--proxy-out", "v3"], "v2"),
            (["--access-log", "log"], "--http"),
            (["--log-format", "json"], "--http"),
        ] {
            let message = parsed(&arguments).unwrap_err();
            assert!(message.contains(expected), "{arguments:?}: {message}");
        }
    }
}
