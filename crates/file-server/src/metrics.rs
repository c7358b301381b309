//! Counters of responses. Each thread has its own; [`Stats`] has their sums.

use std::sync::atomic::{AtomicU64, Ordering};

use haul_admin_endpoint::MetricType::{Counter, Histogram};
use haul_admin_endpoint::{Exposition, LatencyHistogram, LatencyStats};

use crate::file::tier::Tier;

/// Statuses from 100 to 599.
const STATUSES: usize = 500;

/// A counter that one thread increments and others read.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, amount: u64) {
        // With one writer, an atomic addition, which costs more, is not necessary.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counts of one thread.
#[derive(Debug)]
pub(crate) struct Counts {
    statuses: Box<[Count]>,
    tier_requests: [Count; Tier::ALL.len()],
    tier_bytes: [Count; Tier::ALL.len()],
    /// The times from the head of a request to that of its response.
    pub(crate) latency: LatencyHistogram,
    /// Responses that ended early: the client closed, or the file was truncated.
    pub(crate) cut_short: Count,
    /// Lookups and reads passed to disk threads.
    pub(crate) disk_jobs: Count,
    /// Windows that should have been read directly and were not: no buffer was free, or the file
    /// system does not support it.
    pub(crate) fallbacks: Count,
}

impl Counts {
    pub(crate) fn new() -> Self {
        Self {
            statuses: (0..STATUSES).map(|_| Count::default()).collect(),
            tier_requests: Default::default(),
            tier_bytes: Default::default(),
            latency: LatencyHistogram::default(),
            cut_short: Count::default(),
            disk_jobs: Count::default(),
            fallbacks: Count::default(),
        }
    }

    /// Counts a response that has ended.
    pub(crate) fn answered(&self, status: u16, tier: Tier) {
        if let Some(count) = self.statuses.get(usize::from(status).wrapping_sub(100)) {
            count.add(1);
        }
        if let Some(count) = self.tier_requests.get(tier as usize) {
            count.add(1);
        }
    }

    /// Counts bytes of a body that the kernel has accepted.
    pub(crate) fn sent(&self, tier: Tier, bytes: u64) {
        if let Some(count) = self.tier_bytes.get(tier as usize) {
            count.add(bytes);
        }
    }
}

/// Statistics of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Responses by status code.
    pub statuses: Vec<(u16, u64)>,
    /// Responses and body bytes, by tier.
    pub tiers: Vec<(Tier, u64, u64)>,
    /// Times from the head of a request to the head of its response.
    pub latency: LatencyStats,
    /// Connections accepted.
    pub connections: u64,
    /// Open connections.
    pub connections_open: u64,
    /// Connections refused because their client was at its limit.
    pub connections_refused: u64,
    /// Waiting connections closed in favor of a new one.
    pub connections_evicted: u64,
    /// Requests refused because their client exceeded its rate.
    pub requests_refused: u64,
    /// Connections closed because a client was too slow.
    pub too_slow: u64,
    /// Responses that ended early: the client closed, or the file was truncated.
    pub cut_short: u64,
    /// Lookups and reads passed to disk threads.
    pub disk_jobs: u64,
    /// Disk jobs that are queued.
    pub disk_jobs_waiting: u64,
    /// Disk jobs refused because the queue was full.
    pub disk_jobs_refused: u64,
    /// Disk jobs dropped because their clients had disconnected.
    pub disk_jobs_dropped: u64,
    /// Windows of 2 MiB that should have been read with `O_DIRECT` and were not.
    pub fallbacks: u64,
    /// Files in the application cache.
    pub cached_files: u64,
    /// Bytes in the application cache.
    pub cached_bytes: u64,
    /// Files kept open for later requests.
    pub open_files: u64,
    /// Bytes of directory listings, cached or being sent.
    pub listings_bytes: u64,
    /// Buffers or pipes created.
    pub buffers_created: u64,
    /// Buffers or pipes in use.
    pub buffers_leased: u64,
    /// Requests for a buffer or pipe when none was free.
    pub buffers_refused: u64,
}

impl Stats {
    pub(crate) fn add(&mut self, counts: &Counts) {
        for (index, count) in
            counts.statuses.iter().enumerate().filter(|(_, count)| count.get() > 0)
        {
            let status = u16::try_from(index + 100).unwrap_or(0);
            match self.statuses.binary_search_by_key(&status, |row| row.0) {
                Ok(at) => self.statuses[at].1 += count.get(),
                Err(at) => self.statuses.insert(at, (status, count.get())),
            }
        }
        if self.tiers.is_empty() {
            self.tiers = Tier::ALL.map(|tier| (tier, 0, 0)).into();
        }
        for (tier, requests, bytes) in &mut self.tiers {
            *requests += counts.tier_requests[*tier as usize].get();
            *bytes += counts.tier_bytes[*tier as usize].get();
        }
        self.latency.add(&counts.latency);
        self.cut_short += counts.cut_short.get();
        self.disk_jobs += counts.disk_jobs.get();
        self.fallbacks += counts.fallbacks.get();
    }

    /// Returns the responses and bytes of one tier.
    #[must_use]
    pub fn tier(&self, tier: Tier) -> (u64, u64) {
        let row = self.tiers.iter().find(|row| row.0 == tier);
        row.map_or((0, 0), |row| (row.1, row.2))
    }

    /// Returns the statistics in the text format of Prometheus.
    #[must_use]
    pub fn to_prometheus(&self) -> String {
        let mut page = Exposition::default();
        let help = "Responses, by status code.";
        let mut family = page.family("haul_files_requests_total", Counter, help);
        for (code, count) in &self.statuses {
            family.sample(&[("code", &code.to_string())], *count);
        }
        let help = "From the head of a request to the head of its response.";
        self.latency.write(&mut page.family(
            "haul_files_request_duration_seconds",
            Histogram,
            help,
        ));
        let help = "Responses with file data, by the tier of most of their bytes.";
        let mut family = page.family("haul_files_tier_requests_total", Counter, help);
        for (tier, requests, _) in &self.tiers {
            family.sample(&[("tier", tier.name())], *requests);
        }
        let help = "File bytes sent, by tier.";
        let mut family = page.family("haul_files_tier_sent_bytes_total", Counter, help);
        for (tier, _, bytes) in &self.tiers {
            family.sample(&[("tier", tier.name())], *bytes);
        }
        self.connections_and_jobs(&mut page);
        self.memory(&mut page);
        page.process();
        page.into_text()
    }

    fn connections_and_jobs(&self, page: &mut Exposition) {
        page.counter("haul_files_connections_total", "Connections accepted.", self.connections);
        page.gauge("haul_files_connections", "Open connections.", self.connections_open);
        let help = "Connections refused because their client was at its limit.";
        page.counter("haul_files_connections_refused_total", help, self.connections_refused);
        let help = "Waiting connections closed in favor of a new one.";
        page.counter("haul_files_connections_evicted_total", help, self.connections_evicted);
        let help = "Requests above the rate of their client.";
        page.counter("haul_files_requests_refused_total", help, self.requests_refused);
        let help = "Connections closed because the client was too slow.";
        page.counter("haul_files_slow_closed_total", help, self.too_slow);
        page.counter("haul_files_cut_short_total", "Responses that ended early.", self.cut_short);
        let help = "Lookups and reads on disk threads.";
        page.counter("haul_files_disk_jobs_total", help, self.disk_jobs);
        page.gauge("haul_files_disk_jobs_waiting", "Queued disk jobs.", self.disk_jobs_waiting);
        let help = "Disk jobs refused: queue full.";
        page.counter("haul_files_disk_jobs_refused_total", help, self.disk_jobs_refused);
        let help = "Disk jobs dropped: client gone.";
        page.counter("haul_files_disk_jobs_dropped_total", help, self.disk_jobs_dropped);
        let help = "Reads that fell back from O_DIRECT.";
        page.counter("haul_files_fallbacks_total", help, self.fallbacks);
    }

    fn memory(&self, page: &mut Exposition) {
        let help = "Files in the application cache.";
        page.gauge("haul_files_cached_files", help, self.cached_files);
        let help = "Bytes in the application cache.";
        page.gauge("haul_files_cached_bytes", help, self.cached_bytes);
        page.gauge("haul_files_open_files", "Open files in the cache.", self.open_files);
        let help = "Bytes of directory listings.";
        page.gauge("haul_files_listings_bytes", help, self.listings_bytes);
        let help = "Buffers or pipes created.";
        page.counter("haul_files_buffers_created_total", help, self.buffers_created);
        page.gauge("haul_files_buffers_in_use", "Buffers or pipes in use.", self.buffers_leased);
        let help = "Requests when no buffer was free.";
        page.counter("haul_files_buffers_refused_total", help, self.buffers_refused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_threads_are_added_for_prometheus() {
        let threads = [Counts::new(), Counts::new()];
        threads[0].answered(200, Tier::Memory);
        threads[1].answered(200, Tier::Direct);
        threads[1].answered(404, Tier::None);
        threads[0].sent(Tier::Memory, 10);
        threads[1].sent(Tier::Direct, 1 << 40);
        let mut stats = Stats { connections_open: 1, ..Stats::default() };
        threads.iter().for_each(|counts| stats.add(counts));
        assert_eq!(stats.statuses, [(200, 2), (404, 1)]);
        assert_eq!(stats.tier(Tier::Direct), (1, 1 << 40));
        let text = stats.to_prometheus();
        for line in [
            "haul_files_requests_total{code=\"200\"} 2",
            "haul_files_tier_requests_total{tier=\"memory\"} 1",
            "haul_files_tier_sent_bytes_total{tier=\"direct\"} 1099511627776",
            "haul_files_connections 1",
            "# TYPE haul_files_connections gauge",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
