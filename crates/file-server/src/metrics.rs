//! What was done, counted. Each thread counts for itself; whoever asks gets the sum.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::tier::Tier;

/// Statuses from 100 to 599.
const STATUSES: usize = 500;

/// A number that one thread raises and others read.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, amount: u64) {
        // One writer: no need for an atomic addition, which costs more.
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
    pub(crate) connections_opened: Count,
    pub(crate) connections_closed: Count,
    /// Connections closed because a client was too slow.
    pub(crate) too_slow: Count,
    /// Answers that ended early: the client went away, or the file got shorter.
    pub(crate) cut_short: Count,
    /// Look-ups and reads handed to the threads that may wait.
    pub(crate) disk_jobs: Count,
    /// Windows that were to be read past the page cache and were not: no pipe, no direct reads.
    pub(crate) fallbacks: Count,
}

impl Counts {
    pub(crate) fn new() -> Self {
        Self {
            statuses: (0..STATUSES).map(|_| Count::default()).collect(),
            tier_requests: Default::default(),
            tier_bytes: Default::default(),
            connections_opened: Count::default(),
            connections_closed: Count::default(),
            too_slow: Count::default(),
            cut_short: Count::default(),
            disk_jobs: Count::default(),
            fallbacks: Count::default(),
        }
    }

    /// One answer is over.
    pub(crate) fn answered(&self, status: u16, tier: Tier) {
        if let Some(count) = self.statuses.get(usize::from(status).wrapping_sub(100)) {
            count.add(1);
        }
        if let Some(count) = self.tier_requests.get(tier as usize) {
            count.add(1);
        }
    }

    /// Bytes of a body were taken by the kernel.
    pub(crate) fn sent(&self, tier: Tier, bytes: u64) {
        if let Some(count) = self.tier_bytes.get(tier as usize) {
            count.add(bytes);
        }
    }
}

/// What a server did and holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Answers by status.
    pub statuses: Vec<(u16, u64)>,
    /// Answers and bytes of bodies, by tier.
    pub tiers: Vec<(Tier, u64, u64)>,
    /// Connections taken so far.
    pub connections: u64,
    /// Connections open now.
    pub connections_open: u64,
    /// Connections closed because a client was too slow.
    pub too_slow: u64,
    /// Answers that ended early.
    pub cut_short: u64,
    /// Look-ups and reads handed to the threads that may wait.
    pub disk_jobs: u64,
    /// Those that wait now.
    pub disk_jobs_waiting: u64,
    /// Those that were not taken on, since too many waited.
    pub disk_jobs_refused: u64,
    /// Those that were not done, since their clients were gone.
    pub disk_jobs_dropped: u64,
    /// Windows that were to be read directly, and were not.
    pub fallbacks: u64,
    /// Files in the application's cache, and the bytes they take.
    pub cached_files: u64,
    /// The bytes they take.
    pub cached_bytes: u64,
    /// Files kept open.
    pub open_files: u64,
    /// The bytes of listings, kept or on their way to clients.
    pub listings_bytes: u64,
    /// Buffers, or pipes, made so far.
    pub carriers_made: u64,
    /// Those with bytes in them now, or about to.
    pub carriers_lent: u64,
    /// How often there was none.
    pub carriers_refused: u64,
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
        self.connections += counts.connections_opened.get();
        let closed = counts.connections_closed.get();
        self.connections_open += counts.connections_opened.get().saturating_sub(closed);
        self.too_slow += counts.too_slow.get();
        self.cut_short += counts.cut_short.get();
        self.disk_jobs += counts.disk_jobs.get();
        self.fallbacks += counts.fallbacks.get();
    }

    /// Answers and bytes of one tier.
    #[must_use]
    pub fn tier(&self, tier: Tier) -> (u64, u64) {
        let row = self.tiers.iter().find(|row| row.0 == tier);
        row.map_or((0, 0), |row| (row.1, row.2))
    }

    /// As Prometheus reads it.
    #[must_use]
    pub fn to_prometheus(&self) -> String {
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, rows: &[(String, u64)]| {
            // Writing to a string does not fail.
            write!(text, "# HELP haul_files_{name} {help}\n# TYPE haul_files_{name} {kind}\n")
                .unwrap_or_default();
            for (labels, value) in rows {
                writeln!(text, "haul_files_{name}{labels} {value}").unwrap_or_default();
            }
        };
        let statuses: Vec<_> =
            self.statuses.iter().map(|(code, n)| (format!("{{code=\"{code}\"}}"), *n)).collect();
        family("requests_total", "counter", "Answers, by status.", &statuses);
        let of_tier = |pick: fn(&(Tier, u64, u64)) -> u64| -> Vec<_> {
            let row =
                |row: &(Tier, u64, u64)| (format!("{{tier=\"{}\"}}", row.0.name()), pick(row));
            self.tiers.iter().map(row).collect()
        };
        let help = "Answers with bytes of a file, by where most of them came from.";
        family("tier_requests_total", "counter", help, &of_tier(|row| row.1));
        let help = "Bytes of files sent, by where they came from.";
        family("tier_sent_bytes_total", "counter", help, &of_tier(|row| row.2));
        for (name, kind, help, value) in self.singles() {
            family(name, kind, help, &[(String::new(), value)]);
        }
        text
    }

    fn singles(&self) -> [(&'static str, &'static str, &'static str, u64); 16] {
        let (counter, gauge) = ("counter", "gauge");
        [
            ("connections_total", counter, "Connections taken.", self.connections),
            ("connections", gauge, "Connections open.", self.connections_open),
            ("slow_closed_total", counter, "Connections closed for slowness.", self.too_slow),
            ("cut_short_total", counter, "Answers that ended early.", self.cut_short),
            ("disk_jobs_total", counter, "Look-ups and reads that may wait.", self.disk_jobs),
            ("disk_jobs_waiting", gauge, "Those that wait.", self.disk_jobs_waiting),
            ("disk_jobs_refused_total", counter, "Too many waited.", self.disk_jobs_refused),
            ("disk_jobs_dropped_total", counter, "Nobody waited.", self.disk_jobs_dropped),
            ("fallbacks_total", counter, "Direct reads that were not.", self.fallbacks),
            ("cached_files", gauge, "Files in the application's cache.", self.cached_files),
            ("cached_bytes", gauge, "Memory they take.", self.cached_bytes),
            ("open_files", gauge, "Files kept open.", self.open_files),
            ("listings_bytes", gauge, "Memory of listings.", self.listings_bytes),
            ("carriers_made_total", counter, "Buffers or pipes made.", self.carriers_made),
            ("carriers_lent", gauge, "Buffers or pipes in use.", self.carriers_lent),
            ("carriers_refused_total", counter, "How often there was none.", self.carriers_refused),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_summed_up_and_told_to_prometheus() {
        let threads = [Counts::new(), Counts::new()];
        threads[0].answered(200, Tier::Memory);
        threads[1].answered(200, Tier::Direct);
        threads[1].answered(404, Tier::None);
        threads[0].sent(Tier::Memory, 10);
        threads[1].sent(Tier::Direct, 1 << 40);
        threads[1].connections_opened.add(2);
        threads[1].connections_closed.add(1);
        let mut stats = Stats::default();
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
            assert!(text.lines().any(|told| told == line), "{line}\n{text}");
        }
    }
}
