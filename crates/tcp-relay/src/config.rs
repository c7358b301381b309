//! The choices a relay leaves to its owner.

use std::ops::RangeInclusive;
use std::thread::available_parallelism;
use std::time::Duration;

use haul_pipe::PoolOptions;
use haul_reactor::{Address, TcpOptions};

use crate::choice::Moving;
use crate::error::{Error, Result};
use crate::http::HttpOptions;
use crate::proxy::{Trusted, Version};
use crate::target::{Balance, CheckOptions};

/// How a relay behaves.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where connections are accepted; port 0 is any free one.
    pub listen: Vec<Address>,
    /// Where they go.
    pub targets: Vec<Address>,
    /// Which of the targets gets a connection.
    pub balance: Balance,
    /// How targets are checked.
    pub checks: CheckOptions,
    /// Where metrics and health are told; nowhere.
    pub admin: Option<Address>,
    /// Each connection begins with a PROXY header, which these may send; none does.
    pub proxy_in: Option<Trusted>,
    /// The PROXY header targets get; none.
    pub proxy_out: Option<Version>,
    /// How HTTP is relayed; none: bytes are, whatever they mean.
    pub http: Option<HttpOptions>,
    /// What is bounded.
    pub limits: Limits,
    /// How connections of TCP are kept, on both sides.
    pub tcp: TcpOptions,
    /// Which ways bytes may take.
    pub moving: Moving,
    /// The pipes of each thread.
    pub pool: PoolOptions,
    /// How many threads move bytes, each with its own sockets and pipes; one a core.
    pub threads: usize,
}

/// Through less nothing is spliced; more the kernel gives to nobody.
const PIPE_BYTES: RangeInclusive<usize> = (64 << 10)..=(1 << 30);

/// What is bounded, and by how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once; those that are too many wait until others end. 10,000.
    pub connections_max: usize,
    /// How long a target may take to accept, before the next one is tried. 5 s.
    pub connect_time_max: Duration,
    /// How long a connection may be without any byte. 1 h.
    pub idle_time_max: Option<Duration>,
    /// The same, when one side has ended. 10 min.
    pub half_closed_time_max: Option<Duration>,
    /// How long a PROXY header may take. 5 s.
    pub proxy_time_max: Duration,
    /// How long connections may go on when the relay is told to stop. 30 s.
    pub drain_time_max: Duration,
    /// How many bytes one direction of one connection may take before it is the others' turn.
    /// 1 MiB.
    pub share_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            connect_time_max: Duration::from_secs(5),
            idle_time_max: Some(Duration::from_hours(1)),
            half_closed_time_max: Some(Duration::from_mins(10)),
            proxy_time_max: Duration::from_secs(5),
            drain_time_max: Duration::from_secs(30),
            share_bytes: 1 << 20,
        }
    }
}

impl Config {
    /// A relay between these, and everything else as it is by default.
    pub fn new(listen: Vec<Address>, targets: Vec<Address>) -> Self {
        Self {
            listen,
            targets,
            balance: Balance::default(),
            checks: CheckOptions::default(),
            admin: None,
            proxy_in: None,
            proxy_out: None,
            http: None,
            limits: Limits::default(),
            tcp: TcpOptions::default(),
            moving: Moving::default(),
            pool: PoolOptions::default(),
            threads: available_parallelism().map_or(1, usize::from),
        }
    }

    /// Refuses what cannot work.
    pub(crate) fn check(&self) -> Result<()> {
        let is_long = |time: Option<Duration>| time.is_none_or(|time| !time.is_zero());
        let limits = &self.limits;
        let right = [
            (!self.listen.is_empty(), "there must be an address to listen on"),
            (!self.targets.is_empty(), "there must be a target"),
            ((1..=1024).contains(&self.threads), "there may be 1 to 1,024 threads"),
            (limits.connections_max > 0, "there must be room for one connection"),
            (limits.share_bytes > 0, "a share must have at least one byte"),
            (PIPE_BYTES.contains(&self.pool.pipe_bytes), "a pipe has 64 KiB to 1 GiB"),
            (!limits.connect_time_max.is_zero(), "connecting takes some time"),
            (!limits.proxy_time_max.is_zero(), "a PROXY header takes some time"),
            (is_long(limits.idle_time_max), "an idle time must be longer than nothing"),
            (is_long(limits.half_closed_time_max), "an idle time must be longer than nothing"),
            (is_long(self.tcp.keepalive), "a keep-alive time must be longer than nothing"),
            (is_long(self.checks.every), "the time between checks must be longer than nothing"),
            (self.checks.rise > 0 && self.checks.fall > 0, "rise and fall count from 1 on"),
            (self.checks.eject_after > 0, "failures count from 1 on"),
        ];
        if let Some(Err(why)) = self.http.as_ref().map(HttpOptions::check) {
            return Err(Error::Invalid(why));
        }
        match right.iter().find(|(is_right, _)| !is_right) {
            Some((_, why)) => Err(Error::Invalid(why)),
            None => Ok(()),
        }
    }
}
