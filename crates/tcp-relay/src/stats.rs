//! Counts bytes, bursts and ended connections in each thread, and sums the counters of all threads.

use std::time::Duration;

use haul_pipe::PoolStats;

use crate::counter::Counter;
use crate::end_reason::{END_REASONS, EndReason};
use crate::http::{HttpCounters, HttpStats};
use crate::target::TargetStats;
use crate::transfer_mode::TransferMethod;

/// Bytes and bursts moved in one direction, by [`TransferMethod`].
#[derive(Debug, Default)]
pub(crate) struct DirectionCounters {
    bytes: [Counter; 2],
    bursts: [Counter; 2],
}

impl DirectionCounters {
    /// Counts one burst read from the source.
    pub(crate) fn burst(&self, method: TransferMethod, bytes: usize) {
        self.bytes[method as usize].add(bytes as u64);
        self.bursts[method as usize].add(1);
    }
}

/// The counters of one thread.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Bytes and bursts moved from clients to targets.
    pub(crate) up: DirectionCounters,
    /// Bytes and bursts moved from targets to clients.
    pub(crate) down: DirectionCounters,
    /// Bursts copied instead of spliced, because no pipe of at least 64 KiB was available.
    pub(crate) no_pipe: Counter,
    /// Directions that changed to copying because the kernel refused to splice their sockets.
    pub(crate) splice_refused: Counter,
    /// Connections accepted.
    pub(crate) accepted: Counter,
    /// Closed connections, by [`EndReason`].
    pub(crate) ended: [Counter; END_REASONS],
    /// Counters of HTTP requests, responses and tunnels.
    pub(crate) http: HttpCounters,
}

impl Counters {
    /// Counts a closed connection.
    pub(crate) fn ended(&self, reason: EndReason) {
        self.ended[reason as usize].add(1);
    }
}

/// Bytes and bursts moved in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DirectionStats {
    /// Bytes that were copied.
    pub bytes_copied: u64,
    /// Bytes that were spliced.
    pub bytes_spliced: u64,
    /// Bursts that were copied.
    pub bursts_copied: u64,
    /// Bursts that were spliced.
    pub bursts_spliced: u64,
}

impl DirectionStats {
    fn add(&mut self, counters: &DirectionCounters) {
        self.bytes_copied += counters.bytes[TransferMethod::Copy as usize].get();
        self.bytes_spliced += counters.bytes[TransferMethod::Splice as usize].get();
        self.bursts_copied += counters.bursts[TransferMethod::Copy as usize].get();
        self.bursts_spliced += counters.bursts[TransferMethod::Splice as usize].get();
    }
}

/// Statistics of a relay since it started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// The time since the start.
    pub uptime: Duration,
    /// Bytes and bursts moved from clients to targets.
    pub up: DirectionStats,
    /// Bytes and bursts moved from targets to clients.
    pub down: DirectionStats,
    /// Bursts copied instead of spliced, because no pipe of at least 64 KiB was available.
    pub no_pipe: u64,
    /// Directions that changed to copying because the kernel refused to splice their sockets.
    pub splice_refused: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections open now.
    pub active: u64,
    /// Connections refused because their client was at its limit; not counted as accepted.
    pub refused: u64,
    /// Waiting connections that gave way to a new one.
    pub evicted: u64,
    /// Closed connections, in the order of [`EndReason::ALL`].
    pub ended: [u64; END_REASONS],
    /// Statistics of HTTP requests, responses and tunnels.
    pub http: HttpStats,
    /// The counters of the pipe pools, summed over all threads.
    pub pipes: PoolStats,
    /// The statistics of each target, in the order of the configuration.
    pub targets: Vec<TargetStats>,
}

impl Stats {
    /// Returns the number of connections that ended for `reason`.
    pub fn ended(&self, reason: EndReason) -> u64 {
        self.ended[reason as usize]
    }

    pub(crate) fn add(&mut self, counters: &Counters, pipes: PoolStats) {
        self.up.add(&counters.up);
        self.http.add(&counters.http);
        self.down.add(&counters.down);
        self.no_pipe += counters.no_pipe.get();
        self.splice_refused += counters.splice_refused.get();
        for (sum, counter) in self.ended.iter_mut().zip(&counters.ended) {
            *sum += counter.get();
        }
        self.accepted += counters.accepted.get();
        // The subtraction saturates, because the threads change the counters while this thread
        // reads them.
        self.active = self.accepted.saturating_sub(self.ended.iter().sum());
        self.pipes.created += pipes.created;
        self.pipes.closed += pipes.closed;
        self.pipes.undersized += pipes.undersized;
        self.pipes.refused += pipes.refused;
        self.pipes.leased += pipes.leased;
        self.pipes.free += pipes.free;
    }
}
