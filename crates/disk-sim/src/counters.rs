//! What a drive was asked, and where its time went.

use serde_json::{Value, json};

use crate::model::Nanos;

/// Where the time of a request went. Their sum is the request's service time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts {
    /// The drive's processor thought.
    pub overhead_ns: Nanos,
    /// The arm was still emptying the write cache.
    pub waiting_ns: Nanos,
    /// The arm moved, or another head was chosen.
    pub seek_ns: Nanos,
    /// The platter turned to the place.
    pub rotation_ns: Nanos,
    /// Sectors passed under the head.
    pub transfer_ns: Nanos,
    /// Bytes went over the cable, with nothing else going on.
    pub interface_ns: Nanos,
}

impl Parts {
    /// All of them.
    #[must_use]
    pub fn total_ns(&self) -> Nanos {
        self.overhead_ns
            + self.waiting_ns
            + self.seek_ns
            + self.rotation_ns
            + self.transfer_ns
            + self.interface_ns
    }

    /// What was added since `before`.
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

    /// What the arm was busy with.
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

/// Everything counted since the disk was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests served: reads, writes and syncs.
    pub requests: u64,
    /// Reads among them.
    pub reads: u64,
    /// Writes among them.
    pub writes: u64,
    /// Syncs among them: the kernel asked that all acknowledged writes be on the medium.
    pub syncs: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Reads for which the head did not have to go anywhere: cached, or just passing.
    pub cache_hits: u64,
    /// Writes acknowledged from the volatile write cache.
    pub cached_writes: u64,
    /// Times the head read a run of sectors for a request.
    pub media_reads: u64,
    /// Times the head wrote a run of sectors.
    pub media_writes: u64,
    /// Times the arm moved to another cylinder.
    pub seeks: u64,
    /// How far it moved, in cylinders.
    pub seek_cylinders: u64,
    /// How far it moved, in sectors between the end of one access and the beginning of the next.
    pub seek_sectors: u64,
    /// The most requests that waited at once.
    pub depth_max: u64,
    /// Times the power was cut.
    pub power_cuts: u64,
    /// Virtual time all requests took, by part.
    pub service: Parts,
    /// Virtual time in which the write cache was emptied while nothing was asked, by part.
    pub background: Parts,
}

impl Counters {
    /// The sum of the service times of all requests, by the model.
    #[must_use]
    pub fn service_ns(&self) -> Nanos {
        self.service.total_ns()
    }

    /// What was counted since `before` was read from the same disk. The depth is the greatest
    /// there ever was.
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
        }
    }

    /// All of them, as the file `counters.json` has them.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let parts = |parts: &Parts| {
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
        })
    }
}
