//! Controls a running server from other threads.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use haul_admin_endpoint::{AllowedHosts, RecentRequests};
use haul_http_engine::{Connections, PeerRate};
use haul_reactor::{self as reactor, Address};

use super::shutdown::Shutdown;
use crate::buffers::Buffers;
use crate::context::Shared;
use crate::metrics::{Counts, Stats};

/// A handle to a running server for other threads.
pub struct Handle {
    shared: Arc<Shared>,
    connections: Arc<Connections<()>>,
    peer_rate: Option<Arc<PeerRate>>,
    threads: Vec<ThreadHandle>,
    pub(crate) shutdown: Shutdown,
}

/// The state of a serving thread that other threads read.
pub(crate) struct ThreadHandle {
    pub(crate) reactor: reactor::Handle,
    pub(crate) counts: Arc<Counts>,
    pub(crate) buffers: Buffers,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("shutdown", &self.shutdown).finish_non_exhaustive()
    }
}

impl Handle {
    pub(crate) fn new(
        shared: Arc<Shared>,
        connections: Arc<Connections<()>>,
        peer_rate: Option<Arc<PeerRate>>,
        threads: Vec<ThreadHandle>,
    ) -> Self {
        Self { shared, connections, peer_rate, threads, shutdown: Shutdown::default() }
    }

    /// Stops accepting, and ends the server when the responses under way are complete or the drain
    /// time is over.
    pub fn drain(&self) {
        // First: a thread without connections ends at once, and its end must not seem unexpected.
        self.shutdown.request(false);
        self.threads.iter().for_each(|thread| thread.reactor.drain());
    }

    /// Ends the server at once, and closes all connections.
    pub fn stop(&self) {
        self.threads.iter().for_each(|thread| thread.reactor.stop());
        self.shutdown.request(true);
    }

    /// Returns `false` if the directory that is served was removed.
    pub(crate) fn has_root(&self) -> bool {
        self.shared.finder.root.exists()
    }

    /// Returns `true` once [`Self::drain`] or [`Self::stop`] was called.
    pub(crate) fn is_stopping(&self) -> bool {
        self.shutdown.is_requested()
    }

    /// Returns the recent requests with errors, and the slow ones.
    pub(crate) fn recent(&self) -> &RecentRequests {
        &self.shared.recent
    }

    /// Returns the hosts whose requests are accepted at the admin address.
    pub(crate) fn admin_hosts(&self, address: &Address) -> AllowedHosts {
        AllowedHosts::at(address, self.shared.host_names.clone())
    }

    /// Removes expired entries of the caches.
    pub(crate) fn sweep(&self) {
        let now_ms = self.shared.ms(Instant::now());
        self.shared.cache.sweep(now_ms);
        self.shared.listings.sweep(now_ms);
    }

    /// Returns the statistics so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        // First: the responses of all connections that are counted as closed are then counted.
        let connections = self.connections.stats();
        let mut stats = Stats {
            connections: connections.accepted,
            connections_open: connections.open,
            connections_refused: connections.refused,
            connections_evicted: connections.evicted,
            requests_refused: self.peer_rate.as_ref().map_or(0, |rate| rate.limit.refused()),
            too_slow: connections.slow,
            ..Stats::default()
        };
        for thread in &self.threads {
            stats.add(&thread.counts);
            let buffers = thread.buffers.stats();
            stats.buffers_created += buffers.created;
            stats.buffers_leased += buffers.leased;
            stats.buffers_refused += buffers.refused;
        }
        let (cached_files, cached_bytes) = self.shared.cache.hot_size();
        stats.cached_files = cached_files as u64;
        stats.cached_bytes = cached_bytes;
        stats.open_files = self.shared.cache.open_size() as u64;
        stats.listings_bytes = self.shared.listings.alive_bytes();
        let disk = self.shared.disk.stats();
        stats.disk_jobs_waiting = disk.queued as u64;
        stats.disk_jobs_refused = disk.refused;
        stats.disk_jobs_dropped = disk.dropped;
        stats
    }
}
