//! The part of the table for `haul relay`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use haul_tcp_relay::proxy::{Network, Trusted, Version};
use haul_tcp_relay::{
    Address, Balance, CheckOptions, Config, Limits, Moving, PoolOptions, TcpOptions,
};

use super::relay_http::HttpArgs;
use crate::units::{parse_bytes, parse_time};

#[derive(Debug, Args)]
pub(crate) struct RelayArgs {
    /// An address connections are accepted on; may be given several times
    ///
    /// Such as 127.0.0.1:8080, `[::]:8080` or unix:/run/relay.sock. Port 0 takes any free one.
    #[arg(long, value_name = "ADDRESS", required = true, help_heading = "Relay")]
    pub(crate) listen: Vec<Address>,
    /// An address they go to; may be given several times
    #[arg(long, value_name = "ADDRESS", required = true, help_heading = "Relay")]
    pub(crate) to: Vec<Address>,
    /// The address of the metrics and the health check
    #[arg(long, value_name = "ADDRESS", help_heading = "Relay")]
    pub(crate) admin: Option<Address>,
    /// How many threads move bytes [default: one a core]
    #[arg(long, value_name = "N", help_heading = "Relay")]
    pub(crate) threads: Option<usize>,
    /// Print what was done as one JSON object at the end
    #[arg(long, help_heading = "Relay")]
    pub(crate) json: bool,

    /// Which target gets a connection
    #[arg(long, value_name = "HOW", default_value = "round-robin", help_heading = "Targets")]
    pub(crate) balance: BalanceArg,
    /// Connect to each target so often, only to see whether it answers, or "never"
    #[arg(long, value_name = "TIME", default_value = "never", help_heading = "Targets")]
    #[arg(value_parser = parse_every)]
    pub(crate) check_every: Maybe,
    /// How many checks in a row must succeed before a target that is down is used again
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Targets")]
    #[arg(hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rise: u32,
    /// How many checks in a row must fail before a target is not used any more
    #[arg(long, value_name = "N", default_value_t = 3, help_heading = "Targets")]
    #[arg(hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) fall: u32,
    /// How many connections in a row must fail before a target is left out for a while
    #[arg(long, value_name = "N", default_value_t = 3, help_heading = "Targets")]
    #[arg(hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) eject_after: u32,
    /// For how long it is left out
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = "Targets")]
    #[arg(hide_short_help = true, value_parser = parse_time)]
    pub(crate) eject_time: Duration,

    #[command(flatten)]
    pub(crate) http: HttpArgs,

    /// Expect a PROXY header, version 1 or 2, before each connection
    ///
    /// A connection that begins otherwise is closed.
    #[arg(long, help_heading = "PROXY protocol")]
    pub(crate) proxy_in: bool,
    /// Who may send PROXY headers, such as 10.0.0.0/8,192.0.2.7 [default: everybody]
    ///
    /// Everybody else is sent away. Whoever comes through a unix socket may.
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',', requires = "proxy_in")]
    #[arg(help_heading = "PROXY protocol")]
    pub(crate) proxy_from: Vec<Network>,
    /// How long a PROXY header may take
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = "PROXY protocol")]
    #[arg(hide_short_help = true, value_parser = parse_time)]
    pub(crate) proxy_time: Duration,
    /// Tell targets who the client is, by a PROXY header of this version
    #[arg(long, value_name = "VERSION", help_heading = "PROXY protocol")]
    pub(crate) proxy_out: Option<VersionArg>,

    /// How many connections there may be at once; others wait until one ends
    #[arg(long, value_name = "N", default_value_t = 10_000, help_heading = "Limits")]
    pub(crate) max_connections: usize,
    /// How long a target may take to accept, before the next one is tried
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = "Limits")]
    #[arg(value_parser = parse_time)]
    pub(crate) connect_time: Duration,
    /// How long a connection may be without any byte, or "never"
    #[arg(long, value_name = "TIME", default_value = "1h", help_heading = "Limits")]
    #[arg(value_parser = parse_every)]
    pub(crate) idle_time: Maybe,
    /// The same when one side has ended, or "never"
    #[arg(long, value_name = "TIME", default_value = "10min", help_heading = "Limits")]
    #[arg(value_parser = parse_every)]
    pub(crate) half_closed_time: Maybe,
    /// How long connections may go on once the relay is told to stop
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Limits")]
    #[arg(value_parser = parse_time)]
    pub(crate) drain_time: Duration,
    /// After how long a silent peer is asked whether it is there, or "never"
    #[arg(long, value_name = "TIME", default_value = "1min", help_heading = "Limits")]
    #[arg(hide_short_help = true, value_parser = parse_every)]
    pub(crate) keepalive: Maybe,
    /// How long sent bytes may stay unacknowledged (TCP_USER_TIMEOUT) [default: the kernel's]
    #[arg(long, value_name = "TIME", help_heading = "Limits", value_parser = parse_time)]
    #[arg(hide_short_help = true)]
    pub(crate) unacknowledged_time: Option<Duration>,

    /// How bytes move
    #[arg(long = "move", value_name = "HOW", default_value = "auto", help_heading = "Moving")]
    pub(crate) moving: MoveArg,
    /// The size of a pipe, 64KiB to 1GiB
    #[arg(long, value_name = "SIZE", default_value = "1MiB", help_heading = "Moving")]
    #[arg(hide_short_help = true, value_parser = parse_bytes)]
    pub(crate) pipe_size: u64,
    /// How many pipes each thread may have; without one, bytes are copied
    #[arg(long, value_name = "N", default_value_t = 256, help_heading = "Moving")]
    #[arg(hide_short_help = true)]
    pub(crate) pipes: usize,
    /// How many bytes one direction of a connection moves before it is the others' turn
    #[arg(long, value_name = "SIZE", default_value = "1MiB", help_heading = "Moving")]
    #[arg(hide_short_help = true, value_parser = parse_bytes)]
    pub(crate) share: u64,
}

/// A time, if there is one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Maybe(pub(crate) Option<Duration>);

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum BalanceArg {
    /// One after the other
    RoundRobin,
    /// Who has the fewest
    LeastConnections,
    /// The same for the same client, while it is up
    Source,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum VersionArg {
    /// A line of text
    V1,
    /// Binary
    V2,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum MoveArg {
    /// Small bursts copied, large ones spliced
    Auto,
    /// All copied
    Copy,
    /// All spliced
    Splice,
}

impl RelayArgs {
    /// The configuration of the library.
    pub(crate) fn config(&self) -> Config {
        let mut config = Config::new(self.listen.clone(), self.to.clone());
        config.admin = self.admin.clone();
        config.threads = self.threads.unwrap_or(config.threads);
        config.balance = match self.balance {
            BalanceArg::RoundRobin => Balance::RoundRobin,
            BalanceArg::LeastConnections => Balance::LeastConnections,
            BalanceArg::Source => Balance::Source,
        };
        config.checks = CheckOptions {
            every: self.check_every.0,
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
        config.moving = match self.moving {
            MoveArg::Auto => Moving::Auto,
            MoveArg::Copy => Moving::Copy,
            MoveArg::Splice => Moving::Splice,
        };
        let bytes = |size| usize::try_from(size).unwrap_or(usize::MAX);
        config.pool = PoolOptions { pipe_bytes: bytes(self.pipe_size), pipes_max: self.pipes };
        config.tcp =
            TcpOptions { keepalive: self.keepalive.0, user_timeout: self.unacknowledged_time };
        config.http = self.http.options();
        config.limits = self.limits(bytes(self.share));
        config
    }

    fn limits(&self, share_bytes: usize) -> Limits {
        Limits {
            connections_max: self.max_connections,
            connect_time_max: self.connect_time,
            idle_time_max: self.idle_time.0,
            half_closed_time_max: self.half_closed_time.0,
            proxy_time_max: self.proxy_time,
            drain_time_max: self.drain_time,
            share_bytes,
        }
    }
}

fn parse_every(text: &str) -> Result<Maybe, String> {
    match text {
        "never" => Ok(Maybe(None)),
        _ => parse_time(text)
            .map(|time| Maybe(Some(time)))
            .map_err(|why| format!("{why}; or \"never\"")),
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
            "--pipes=3",
            "--threads=1",
        ];
        let config = parsed(&arguments).unwrap().config();
        assert_eq!(config.targets.len(), 2);
        assert_eq!((config.balance, config.moving), (Balance::Source, Moving::Copy));
        assert_eq!(config.checks.every, Some(Duration::from_secs(2)));
        assert!(matches!(&config.proxy_in, Some(Trusted::Only(two)) if two.len() == 2));
        assert_eq!((config.proxy_out, config.limits.idle_time_max), (Some(Version::V2), None));
        assert_eq!((config.pool.pipes_max, config.threads), (3, 1));
    }

    #[test]
    fn mistakes_are_explained() {
        for (arguments, why) in [
            (["--to", "localhost:80"], "127.0.0.1:80"),
            (["--proxy-from", "10.0.0.0/8"], "--proxy-in"),
            (["--idle-time", "5"], "never"),
            (["--rise", "0"], "1"),
            (["--proxy-out", "v3"], "v2"),
        ] {
            let said = parsed(&arguments).unwrap_err();
            assert!(said.contains(why), "{arguments:?}: {said}");
        }
    }
}
