//! What was done, counted: by each thread for itself, added up when somebody asks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use haul_pipe::PoolStats;

use crate::choice::Way;
use crate::http::{HttpCounters, HttpStats};
use crate::target::Seen;

/// A number that one thread raises and others read.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Raises it.
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    /// What it is.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What one direction moved.
#[derive(Debug, Default)]
pub(crate) struct MovedCounters {
    bytes: [Counter; 2],
    bursts: [Counter; 2],
}

impl MovedCounters {
    /// Counts one burst that came.
    pub(crate) fn burst(&self, way: Way, bytes: usize) {
        self.bytes[way as usize].add(bytes as u64);
        self.bursts[way as usize].add(1);
    }
}

/// The counters of one thread.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// From those who connect to the targets.
    pub(crate) up: MovedCounters,
    /// From the targets.
    pub(crate) down: MovedCounters,
    /// How often there was no pipe, or none that is worth it, so that whatever came was copied.
    pub(crate) no_pipe: Counter,
    /// Directions that turned to copies because splices are refused.
    pub(crate) splice_refused: Counter,
    /// Connections accepted.
    pub(crate) accepted: Counter,
    /// Those that are over, by how they ended.
    pub(crate) ended: [Counter; ENDS],
    /// What is counted of HTTP.
    pub(crate) http: HttpCounters,
}

impl Counters {
    /// Counts a connection that is over.
    pub(crate) fn ended(&self, how: Ended) {
        self.ended[how as usize].add(1);
    }
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Both sides ended, and every byte was handed on.
    Clean,
    /// One side reset the connection, so the other one was reset.
    Reset,
    /// No byte moved for too long.
    Idle,
    /// One side had ended, and the other one said nothing for too long.
    HalfClosed,
    /// No target could be connected to.
    NoTarget,
    /// The PROXY header was missing, wrong or late, or its sender is not trusted.
    BadProxy,
    /// The time for connections to end was over.
    Drained,
}

const ENDS: usize = 7;

impl Ended {
    /// All of them.
    pub const ALL: [Self; ENDS] = [
        Self::Clean,
        Self::Reset,
        Self::Idle,
        Self::HalfClosed,
        Self::NoTarget,
        Self::BadProxy,
        Self::Drained,
    ];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Reset => "reset",
            Self::Idle => "idle",
            Self::HalfClosed => "half_closed",
            Self::NoTarget => "no_target",
            Self::BadProxy => "bad_proxy",
            Self::Drained => "drained",
        }
    }
}

/// What one direction moved, so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes that were copied.
    pub bytes_copied: u64,
    /// Bytes that were spliced.
    pub bytes_spliced: u64,
    /// In so many bursts.
    pub bursts_copied: u64,
    /// In so many bursts.
    pub bursts_spliced: u64,
}

impl Moved {
    fn add(&mut self, counters: &MovedCounters) {
        self.bytes_copied += counters.bytes[Way::Copy as usize].get();
        self.bytes_spliced += counters.bytes[Way::Splice as usize].get();
        self.bursts_copied += counters.bursts[Way::Copy as usize].get();
        self.bursts_spliced += counters.bursts[Way::Splice as usize].get();
    }
}

/// What a relay did so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// For how long it has been running.
    pub since: Duration,
    /// From those who connect to the targets.
    pub up: Moved,
    /// From the targets.
    pub down: Moved,
    /// How often there was no pipe, or none that is worth it, so that whatever came was copied.
    pub no_pipe: u64,
    /// Directions that turned to copies because splices are refused.
    pub splice_refused: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections there are.
    pub active: u64,
    /// Those that are over, in the order of [`Ended::ALL`].
    pub ended: [u64; ENDS],
    /// What was done with HTTP.
    pub http: HttpStats,
    /// The pipes of all threads.
    pub pipes: PoolStats,
    /// Each target.
    pub targets: Vec<Seen>,
}

impl Stats {
    /// How many ended so.
    pub fn ended(&self, how: Ended) -> u64 {
        self.ended[how as usize]
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
        // They go on counting meanwhile.
        self.active = self.accepted.saturating_sub(self.ended.iter().sum());
        self.pipes.made += pipes.made;
        self.pipes.closed += pipes.closed;
        self.pipes.undersized += pipes.undersized;
        self.pipes.refused += pipes.refused;
        self.pipes.leased += pipes.leased;
        self.pipes.free += pipes.free;
    }
}
