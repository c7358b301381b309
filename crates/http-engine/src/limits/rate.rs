//! The rate of requests of each peer.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use haul_reactor::RateLimit;

/// The rate of requests of each peer, and the response to requests above it.
#[derive(Debug)]
pub struct PeerRate {
    /// The rate.
    pub limit: RateLimit,
    /// The status of the response.
    pub status: u16,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The body of the response.
    pub body: &'static str,
}

impl PeerRate {
    /// Counts a request; returns the time after which it can be repeated if the rate is exceeded.
    pub(crate) fn take(&self, peer: Option<IpAddr>, now: Instant) -> Result<(), Duration> {
        peer.map_or(Ok(()), |peer| self.limit.try_take(peer, now))
    }
}
