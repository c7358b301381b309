//! Models a hard disk drive as a state machine, without clock and I/O, that turns requests with
//! arrival times into completion times.

mod counters;
mod destage;
mod geometry;
mod parameters;
mod plan;
mod seek;
mod segments;
mod sweep;
#[cfg(test)]
mod tests;
mod write_cache;

pub use counters::{Counters, ServiceTime};
pub use parameters::{MS, Nanos, Parameters, SECTOR_BYTES};

use geometry::Geometry;
use plan::{Method, Plan};
use seek::SeekCurve;
use segments::Segments;
use write_cache::WriteCache;

/// A request kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reads sectors.
    Read,
    /// Writes sectors.
    Write,
    /// Makes all acknowledged writes durable (cache flush).
    Sync,
}

/// A request to a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What the drive is asked to do.
    pub kind: Kind,
    /// The first sector; 0 for a sync.
    pub sector: u64,
    /// The number of sectors; 0 for a sync.
    pub sectors: u64,
    /// The arrival time, in virtual time.
    pub arrived_ns: Nanos,
}

/// A drive's state: head position, caches, and times until which it is busy.
#[derive(Debug, Clone)]
pub struct Drive {
    parameters: Parameters,
    geometry: Geometry,
    seek: SeekCurve,
    segments: Segments,
    write_cache: WriteCache,
    /// The last sector that has passed under the head. During read-ahead, [`Segments::stream_at`]
    /// determines this sector instead.
    at_sector: u64,
    /// When the last request completed. The drive serves requests one at a time.
    free_ns: Nanos,
    /// Until when the arm is busy with a request or a background write.
    arm_free_ns: Nanos,
    /// When the write cache became more than half full; `None` once it is at most a quarter full.
    over_half_since_ns: Option<Nanos>,
    counters: Counters,
}

impl Drive {
    /// Creates a drive with `bytes` bytes, idle at time 0.
    #[must_use]
    pub fn new(parameters: Parameters, bytes: u64) -> Self {
        let sectors = bytes / SECTOR_BYTES;
        let geometry = Geometry::new(&parameters, sectors);
        let seek = SeekCurve::new(&parameters, geometry.cylinders());
        let segment_sectors = parameters.segment_bytes / SECTOR_BYTES;
        let segments = Segments::new(parameters.segments, segment_sectors, sectors);
        Self {
            parameters,
            geometry,
            seek,
            segments,
            write_cache: WriteCache::default(),
            at_sector: 0,
            free_ns: 0,
            arm_free_ns: 0,
            over_half_since_ns: None,
            counters: Counters::default(),
        }
    }

    /// Returns the counters since the drive was created.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns a lower bound for the time in which the arm can access all runs (sector, sectors),
    /// given in ascending order, in one sweep from the first to the last. The bound ignores caches.
    /// It assumes that the arm moves from each track with runs directly to the next one, arrives at
    /// the best rotational position, and leaves the track once all its runs have passed the head.
    #[must_use]
    pub fn sweep_ns(&self, runs: impl IntoIterator<Item = (u64, u64)>) -> Nanos {
        let Parameters { revolution_ns, head_skew_ns, .. } = self.parameters;
        sweep::sweep_ns(&self.geometry, &self.seek, revolution_ns, head_skew_ns, runs)
    }

    /// Returns the last request's completion time.
    #[must_use]
    pub fn free_ns(&self) -> Nanos {
        self.free_ns
    }

    /// Returns the index of the waiting request to serve next; `waiting` is sorted by age, the
    /// oldest first. Among the first [`Parameters::queue_depth`] requests, the drive chooses the
    /// oldest one that the cache can serve, else the one whose first sector the head reaches
    /// soonest. The oldest request is chosen if it has waited longer than
    /// [`Parameters::patience_ns`]. No request overtakes a sync.
    ///
    /// # Source
    /// \[Jacobson91\]: shortest access time first. A request's age matters only when it exceeds the
    /// patience.
    #[must_use]
    pub fn choose(&self, waiting: &[Request]) -> Option<usize> {
        let oldest = waiting.first()?;
        let waited_ns = self.free_ns.saturating_sub(oldest.arrived_ns);
        if oldest.kind == Kind::Sync || waited_ns > self.parameters.patience_ns {
            return Some(0);
        }
        let seen = waiting.iter().take(self.parameters.queue_depth.max(1));
        let before_sync = seen.take_while(|request| request.kind != Kind::Sync).enumerate();
        before_sync.min_by_key(|(_, request)| self.reached_ns(request)).map(|(index, _)| index)
    }

    /// Returns the time at which the head reaches the request's first sector; 0 if the cache has
    /// all its sectors.
    fn reached_ns(&self, request: &Request) -> Nanos {
        let plan = self.plan(request);
        if plan.method == Method::Cache && plan.parts.transfer_ns == 0 {
            return 0;
        }
        // The completion time is not used, since it would favour short requests, which divert the
        // head from a sequential stream.
        let transfer_ns = self.geometry.transfer_ns(request.sector, request.sectors);
        plan.done_ns.saturating_sub(transfer_ns)
    }

    /// Serves a request and counts it; returns its completion time.
    pub fn serve(&mut self, request: &Request) -> Nanos {
        let start = self.free_ns.max(request.arrived_ns);
        let begin = start.max(request.arrived_ns + self.parameters.overhead_ns);
        self.counters.read_ahead_ns +=
            self.segments.read_ahead_ns(&self.geometry, self.free_ns, start);
        self.destage_in_background(if request.kind == Kind::Read { start } else { begin });
        let mut plan = self.plan(request);
        match (request.kind, plan.method) {
            (Kind::Read, Method::Cache) => self.read_from_cache(request, &plan),
            (Kind::Read, _) => self.read_from_medium(request, &plan),
            (Kind::Write, Method::Media(_)) => self.write_through(request, &plan),
            (Kind::Write, _) => {
                self.make_room(request.sectors, &mut plan);
                self.take_into_cache(request, plan.done_ns);
            }
            (Kind::Sync, _) => self.make_room(Nanos::MAX, &mut plan),
        }
        self.free_ns = plan.done_ns;
        self.count(request, &plan);
        debug_assert_eq!(plan.parts.total_ns(), plan.done_ns - start, "{request:?}");
        plan.done_ns
    }

    /// Empties the read cache and the write cache, as a power cut does.
    pub fn lose_caches(&mut self) {
        self.segments.clear();
        self.write_cache.clear();
        self.over_half_since_ns = None;
        self.counters.power_cuts += 1;
    }

    /// Moves the arm to a run at `now`: counts the seek and its distance, and ends read-ahead.
    fn leave_for(&mut self, now: Nanos, sector: u64, end: u64) {
        let (here, from) = (self.head_sector(now), self.head_at(now));
        let cylinders = from.cylinder.abs_diff(self.geometry.locate(sector).cylinder);
        self.counters.seeks += u64::from(cylinders > 0);
        self.counters.seek_cylinders += cylinders;
        self.counters.seek_sectors += (here + 1).abs_diff(sector);
        self.segments.stop(&self.geometry, now);
        self.at_sector = end - 1;
    }

    fn read_from_cache(&mut self, request: &Request, plan: &Plan) {
        let end = request.sector + request.sectors;
        let begin = plan.done_ns - plan.parts.transfer_ns - plan.parts.interface_ns;
        self.segments.touch(&self.geometry, begin, request.sector, end);
    }

    fn read_from_medium(&mut self, request: &Request, plan: &Plan) {
        let Method::Media(first) = plan.method else { return };
        let end = request.sector + request.sectors;
        let passed_ns = plan.done_ns - plan.parts.interface_ns;
        let left_ns = passed_ns - plan.parts.arm_ns();
        self.leave_for(left_ns, first, end);
        self.segments.read(passed_ns, request.sector, end);
        self.arm_free_ns = passed_ns;
        self.counters.media_reads += 1;
    }

    fn write_through(&mut self, request: &Request, plan: &Plan) {
        let end = request.sector + request.sectors;
        let passed_ns = plan.done_ns - plan.parts.interface_ns;
        self.leave_for(passed_ns - plan.parts.arm_ns(), request.sector, end);
        self.segments.invalidate(&self.geometry, passed_ns, request.sector, end);
        self.arm_free_ns = passed_ns;
        self.counters.media_writes += 1;
    }

    fn count(&mut self, request: &Request, plan: &Plan) {
        let bytes = request.sectors * SECTOR_BYTES;
        let from_cache = u64::from(plan.method == Method::Cache);
        let counters = &mut self.counters;
        counters.requests += 1;
        counters.service.add(&plan.parts);
        match request.kind {
            Kind::Read => {
                counters.reads += 1;
                counters.bytes_read += bytes;
                counters.cache_hits += from_cache;
            }
            Kind::Write => {
                counters.writes += 1;
                counters.bytes_written += bytes;
                counters.cached_writes += from_cache;
            }
            Kind::Sync => counters.syncs += 1,
        }
    }
}
