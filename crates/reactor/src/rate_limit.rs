//! Limits the rate of requests of each peer with a token bucket.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::num::NonZero;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::admission::peer::Peer;

/// The number of separately locked parts of the table of peers.
const SHARDS: usize = 16;
/// The maximum number of peers in a shard whose buckets are not full.
const SHARD_PEERS_MAX: usize = 4096;

/// A rate of requests: so many in a period, and so many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The number of requests in each period.
    pub requests: NonZero<u32>,
    /// The period.
    pub period: Duration,
    /// The number of requests that a peer may send at once after a pause (the size of the token
    /// bucket).
    pub burst: NonZero<u32>,
}

/// A string that is not a valid rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid rate \"{0}\": expected a number of requests per second or minute, such as 100/s or 30/min"
)]
pub struct ParseRateError(String);

impl FromStr for Rate {
    type Err = ParseRateError;

    /// Parses a rate such as `100/s` or `30/min`. The burst has the requests of one second.
    fn from_str(text: &str) -> Result<Self, ParseRateError> {
        let invalid = || ParseRateError(text.to_owned());
        let (number, period_s) = match text.split_once('/') {
            Some((number, "s")) => (number, 1),
            Some((number, "min")) => (number, 60),
            _ => return Err(invalid()),
        };
        let requests: NonZero<u32> = number.parse().map_err(|_not_a_number| invalid())?;
        let burst = NonZero::new(requests.get() / period_s).unwrap_or(NonZero::<u32>::MIN);
        Ok(Self { requests, period: Duration::from_secs(period_s.into()), burst })
    }
}

impl Rate {
    /// Returns the time in which one token is added to the bucket.
    pub fn interval(&self) -> Duration {
        self.period / self.requests.get()
    }
}

/// A limit on the requests of each peer, shared by the threads of a server. A peer is an IPv4
/// address or an IPv6 prefix of 64 bits.
///
/// At most 65,536 peers are tracked. Peers whose bucket is full again are dropped from the table;
/// if none is, other peers are, whose buckets then count as full.
#[derive(Debug)]
pub struct RateLimit {
    interval_ns: u64,
    burst: u64,
    started: Instant,
    hasher: RandomState,
    refused: AtomicU64,
    shards: [Mutex<Shard>; SHARDS],
}

/// For each peer, the time at which its bucket will be full, in nanoseconds.
type Shard = HashMap<Peer, u64>;

impl RateLimit {
    /// Creates a limit with full buckets.
    pub fn new(rate: Rate) -> Self {
        Self {
            interval_ns: nanoseconds(rate.interval()).max(1),
            burst: rate.burst.get().into(),
            started: Instant::now(),
            hasher: RandomState::new(),
            refused: AtomicU64::new(0),
            shards: Default::default(),
        }
    }

    /// Takes a token for a request of `peer`.
    ///
    /// # Errors
    /// If the bucket is empty: the time after which it has a token.
    pub fn try_take(&self, peer: IpAddr, now: Instant) -> Result<(), Duration> {
        let peer = Peer::of(peer);
        let now_ns = nanoseconds(now.saturating_duration_since(self.started));
        let index = self.hasher.hash_one(peer) % SHARDS as u64;
        let mut shard = self.shards[usize::try_from(index).unwrap_or(0)].lock();
        if shard.len() >= SHARD_PEERS_MAX && !shard.contains_key(&peer) {
            shard.retain(|_, full_at_ns| *full_at_ns > now_ns);
            if shard.len() >= SHARD_PEERS_MAX {
                shard.clear();
            }
        }
        let full_at_ns = shard.entry(peer).or_insert(0);
        let next_ns = (*full_at_ns).max(now_ns).saturating_add(self.interval_ns);
        // The bucket is empty if it needs more than `burst` intervals to become full.
        let latest_ns = now_ns.saturating_add(self.interval_ns.saturating_mul(self.burst));
        if next_ns > latest_ns {
            self.refused.fetch_add(1, Relaxed);
            return Err(Duration::from_nanos(next_ns - latest_ns));
        }
        *full_at_ns = next_ns;
        Ok(())
    }

    /// Returns the number of requests for which there was no token.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str, burst: u32) -> Rate {
        Rate { burst: NonZero::new(burst).unwrap(), ..text.parse().unwrap() }
    }

    #[test]
    fn rates_are_parsed_with_their_unit() {
        for (text, requests, seconds, burst) in
            [("100/s", 100, 1, 100), ("30/min", 30, 60, 1), ("600/min", 600, 60, 10)]
        {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(rate.requests.get(), requests, "{text}");
            assert_eq!((rate.period.as_secs(), rate.burst.get()), (seconds, burst), "{text}");
        }
        for text in ["", "100", "0/s", "1/h", "-1/s", "1.5/s", "/s"] {
            let error = text.parse::<Rate>().unwrap_err().to_string();
            assert!(error.contains("such as 100/s"), "{error}");
        }
    }

    #[test]
    fn burst_is_taken_at_once_and_refilled_at_the_rate() {
        let limit = RateLimit::new(rate("10/s", 3));
        let (peer, other) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let at = |ms| limit.started + Duration::from_millis(ms);
        for _ in 0..3 {
            assert_eq!(limit.try_take(peer, at(1000)), Ok(()));
        }
        assert_eq!(limit.try_take(peer, at(1000)), Err(Duration::from_millis(100)));
        assert_eq!(limit.try_take(other, at(1000)), Ok(()), "another peer has its own bucket");
        assert_eq!(limit.try_take(peer, at(1060)), Err(Duration::from_millis(40)));
        assert_eq!(limit.try_take(peer, at(1100)), Ok(()));
        assert!(limit.try_take(peer, at(1100)).is_err());
        let taken = (0..10).filter(|_| limit.try_take(peer, at(60_000)).is_ok()).count();
        assert_eq!(taken, 3, "a long pause fills the bucket, and not more");
        assert_eq!(limit.refused(), 3 + 7);
    }

    #[test]
    fn number_of_tracked_peers_is_bounded() {
        let limit = RateLimit::new(rate("1/min", 1));
        for number in 0..200_000_u32 {
            limit.try_take(number.to_be_bytes().into(), limit.started).ok();
        }
        let tracked: usize = limit.shards.iter().map(|shard| shard.lock().len()).sum();
        assert!(tracked <= SHARDS * SHARD_PEERS_MAX, "{tracked}");
    }
}
