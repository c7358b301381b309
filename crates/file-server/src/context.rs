//! State that the threads of a server share, and the state of each thread.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use haul_admin_endpoint::{AllowedHosts, RecentRequest, RecentRequests};

use crate::buffers::Buffers;
use crate::config::{Cold, Tiers};
use crate::file::description::mixed;
use crate::file::frequency::FrequencySketch;
use crate::file::tier::TierRules;
use crate::listing::cache::ListingCache;
use crate::lookup::cache::FileCache;
use crate::lookup::disk_threads::DiskThreads;
use crate::lookup::finder::Finder;
use crate::lookup::single_flight::SingleFlight;
use crate::metrics::Counts;
use crate::outcome::{DiskResult, DiskWork};

/// The state of a server.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) finder: Arc<Finder>,
    pub(crate) hosts: AllowedHosts,
    /// The names accepted besides addresses and `localhost`.
    pub(crate) host_names: Vec<String>,
    pub(crate) cache: Arc<FileCache>,
    pub(crate) listings: Arc<ListingCache>,
    pub(crate) single_flight: Arc<SingleFlight<DiskWork, DiskResult>>,
    /// Counts the requests for windows that are not in memory.
    pub(crate) frequency: FrequencySketch,
    pub(crate) rules: TierRules,
    pub(crate) disk: DiskThreads,
    /// The longest file of the cache; 0 if the cache is disabled.
    pub(crate) hot_bytes_max: u64,
    pub(crate) started: Instant,
    pub(crate) recent: RecentRequests,
}

impl Shared {
    /// Returns a time in milliseconds since the start of the server.
    pub(crate) fn ms(&self, now: Instant) -> u64 {
        ms_since(self.started, now)
    }
}

pub(crate) fn ms_since(started: Instant, now: Instant) -> u64 {
    let since = now.saturating_duration_since(started);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The state of a serving thread.
#[derive(Debug)]
pub(crate) struct ThreadContext {
    pub(crate) shared: Arc<Shared>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) buffers: Buffers,
    boundaries: AtomicU64,
}

impl ThreadContext {
    /// Creates the state of a thread. `seed` must be random, so that clients cannot predict the
    /// boundaries of multipart bodies.
    pub(crate) fn new(shared: &Arc<Shared>, tiers: &Tiers, is_tls: bool, seed: u64) -> Self {
        // Bytes in a pipe cannot be encrypted.
        let cold = if is_tls { Cold::Copy } else { tiers.cold };
        Self {
            shared: Arc::clone(shared),
            counts: Arc::new(Counts::new()),
            buffers: Buffers::new(cold, tiers.buffers_max),
            boundaries: AtomicU64::new(seed),
        }
    }

    /// Counts a request whose response begins, and records it if it was slow or has an error.
    /// `request` returns its method, target and client.
    pub(crate) fn begin_response<'r>(
        &self,
        status: u16,
        duration: Duration,
        request: impl FnOnce() -> Option<(&'r str, &'r str, Option<IpAddr>)>,
    ) {
        self.counts.latency.record(duration);
        let recent = &self.shared.recent;
        if !recent.includes(status, duration) {
            return;
        }
        let Some((method, target, client)) = request() else { return };
        let path = target.split_once('?').map_or(target, |(path, _)| path);
        let client = client.map(|client| client.to_string());
        let request = RecentRequest {
            ended: SystemTime::now(),
            kind: method.into(),
            path: path.into(),
            status,
            duration,
            answering: None,
            details: vec![("client", client.map(Into::into))],
        };
        recent.add(request, recent.is_slow(duration));
    }

    /// Returns a boundary between the parts of a body: 64 random bits, which no file contains.
    pub(crate) fn boundary(&self) -> String {
        let number = self.boundaries.fetch_add(1, Ordering::Relaxed);
        format!("haul-{:016x}", mixed(number))
    }
}
