//! Counts a drive's requests and sums up their service times.

use serde_json::{Value, json};

use super::Nanos;

/// A service time's components, in virtual time. Their sum is the service time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServiceTime {
    /// The command overhead in the drive's processor.
    pub overhead_ns: Nanos,
    /// The wait until the arm has finished a background write from the write cache.
    pub waiting_ns: Nanos,
    /// The time to move the arm or switch heads.
    pub seek_ns: Nanos,
    /// The rotational latency.
    pub rotation_ns: Nanos,
    /// The time in which the sectors pass under the head.
    pub transfer_ns: Nanos,
    /// The interface transfer time that does not overlap with the other components.
    pub interface_ns: Nanos,
}

impl ServiceTime {
    /// Returns the components' sum.
    #[must_use]
    pub fn total_ns(&self) -> Nanos {
        self.overhead_ns
            + self.waiting_ns
            + self.seek_ns
            + self.rotation_ns
            + self.transfer_ns
            + self.interface_ns
    }

    /// Returns each component's increase since `before`.
    fn since(&self, before: &Self) -> Self {
        Self {
            overhead_ns: self.overhead_ns - before.overhead_ns,
            waiting_ns: self.waiting_ns - before.waiting_ns,
            seek_ns: self.seek_ns - before.seek_ns,
            rotation_ns: self.rotation_ns - before.rotation_ns,
            transfer_ns: self.transfer_ns - before.transfer_ns,
            interface_ns: self.interface_ns - before.interface_ns,
        }
    }

    /// Returns the time in which the arm was busy.
    pub(crate) fn arm_ns(&self) -> Nanos {
        self.seek_ns + self.rotation_ns + self.transfer_ns
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.overhead_ns += other.overhead_ns;
        self.waiting_ns += other.waiting_ns;
        self.seek_ns += other.seek_ns;
        self.rotation_ns += other.rotation_ns;
        self.transfer_ns += other.transfer_ns;
        self.interface_ns += other.interface_ns;
    }
}

/// A drive's counters since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests served: reads, writes and syncs.
    pub requests: u64,
    /// Reads served.
    pub reads: u64,
    /// Writes served.
    pub writes: u64,
    /// Syncs (cache flushes) served.
    pub syncs: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Reads served without positioning the arm: from the cache or from read-ahead in progress.
    pub cache_hits: u64,
    /// Writes acknowledged once they were in the volatile write cache.
    pub cached_writes: u64,
    /// Reads from the medium (the platters), each of a run of sectors.
    pub media_reads: u64,
    /// Writes to the medium, each of a run of sectors.
    pub media_writes: u64,
    /// Seeks to another cylinder.
    pub seeks: u64,
    /// The total seek distance in cylinders.
    pub seek_cylinders: u64,
    /// The sum of the distances in sectors from each access's end to the next one's start.
    pub seek_sectors: u64,
    /// The maximum number of requests queued or being served.
    pub depth_max: u64,
    /// Power cuts.
    pub power_cuts: u64,
    /// The virtual service time for all requests, by component.
    pub service: ServiceTime,
    /// The virtual time for background writes from the write cache, by component.
    pub background: ServiceTime,
    /// The virtual time without a request in which the head read ahead.
    pub read_ahead_ns: Nanos,
}

impl Counters {
    /// Returns the total virtual service time for all requests.
    #[must_use]
    pub fn service_ns(&self) -> Nanos {
        self.service.total_ns()
    }

    /// Returns the total virtual time in which the drive served a request or read ahead. Unlike the
    /// service time, it does not favour a program that pauses between its requests: in a pause, the
    /// head reads on, and the service time does not contain that time.
    #[must_use]
    pub fn reading_ns(&self) -> Nanos {
        self.service_ns() + self.read_ahead_ns
    }

    /// Returns each counter's increase since `before`; `depth_max` remains the maximum since the
    /// start.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            requests: self.requests - before.requests,
            reads: self.reads - before.reads,
            writes: self.writes - before.writes,
            syncs: self.syncs - before.syncs,
            bytes_read: self.bytes_read - before.bytes_read,
            bytes_written: self.bytes_written - before.bytes_written,
            cache_hits: self.cache_hits - before.cache_hits,
            cached_writes: self.cached_writes - before.cached_writes,
            media_reads: self.media_reads - before.media_reads,
            media_writes: self.media_writes - before.media_writes,
            seeks: self.seeks - before.seeks,
            seek_cylinders: self.seek_cylinders - before.seek_cylinders,
            seek_sectors: self.seek_sectors - before.seek_sectors,
            depth_max: self.depth_max,
            power_cuts: self.power_cuts - before.power_cuts,
            service: self.service.since(&before.service),
            background: self.background.since(&before.background),
            read_ahead_ns: self.read_ahead_ns - before.read_ahead_ns,
        }
    }

    /// Returns the content for the file `counters.json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let parts = |parts: &ServiceTime| {
            json!({
                "total_ns": parts.total_ns(), "overhead_ns": parts.overhead_ns,
                "waiting_ns": parts.waiting_ns, "seek_ns": parts.seek_ns,
                "rotation_ns": parts.rotation_ns, "transfer_ns": parts.transfer_ns,
                "interface_ns": parts.interface_ns,
            })
        };
        json!({
            "requests": self.requests, "reads": self.reads, "writes": self.writes,
            "syncs": self.syncs, "bytes_read": self.bytes_read,
            "bytes_written": self.bytes_written, "cache_hits": self.cache_hits,
            "cached_writes": self.cached_writes, "media_reads": self.media_reads,
            "media_writes": self.media_writes, "seeks": self.seeks,
            "seek_cylinders": self.seek_cylinders, "seek_sectors": self.seek_sectors,
            "depth_max": self.depth_max, "power_cuts": self.power_cuts,
            "service": parts(&self.service), "background": parts(&self.background),
            "read_ahead_ns": self.read_ahead_ns,
        })
    }
}
