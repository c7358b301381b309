//! Models a hard disk drive as a state machine, without clock and I/O, that turns requests with
//! arrival times into completion times.

mod geometry;
mod parameters;
mod seek;
mod segments;
mod sweep;
#[cfg(test)]
mod tests;
mod write_cache;

pub use parameters::{MS, Nanos, Parameters, SECTOR_BYTES};

use crate::counters::{Counters, ServiceTime};
use geometry::{Geometry, Location};
use seek::SeekCurve;
use segments::{Lookup, Segments};
use write_cache::WriteCache;

/// The maximum number of sectors in one write from the write cache to the medium (destaging).
const DESTAGE_SECTORS_MAX: u64 = 2048;

/// The number of dirty runs (adjacent sectors that are only in the write cache) among which the
/// drive chooses the next one to destage.
const DESTAGE_CHOICE: usize = 32;

/// The kind of a request.
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
    /// The kind of the request.
    pub kind: Kind,
    /// The first sector; 0 for a sync.
    pub sector: u64,
    /// The number of sectors; 0 for a sync.
    pub sectors: u64,
    /// The arrival time, in virtual time.
    pub arrived_ns: Nanos,
}

/// The state of a drive: head position, caches, and times until which it is busy.
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
    /// The completion time of the last request. The drive serves requests one at a time.
    free_ns: Nanos,
    /// The time until which the arm is busy with a request or a background write.
    arm_free_ns: Nanos,
    /// The time at which the write cache became more than half full; `None` once it is at most a
    /// quarter full.
    over_half_since_ns: Option<Nanos>,
    counters: Counters,
}

/// The time components and the completion time of an access to the medium.
#[derive(Debug, Clone, Copy)]
struct Access {
    parts: ServiceTime,
    done_ns: Nanos,
}

/// The planned service of a request: its time components, completion time and method.
#[derive(Debug, Clone, Copy)]
struct Plan {
    parts: ServiceTime,
    done_ns: Nanos,
    method: Method,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    /// The drive reads from or writes to a cache, without the arm.
    Cache,
    /// The drive accesses the medium from this sector to the end of the request.
    Media(u64),
    /// The drive destages the whole write cache.
    Destage,
}

impl Drive {
    /// Creates a drive of `bytes` bytes, idle at time 0.
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

    /// Returns the counters since the creation of the drive.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns a lower bound of the time in which the arm can access all of the runs (sector,
    /// sectors), given in ascending order, in one sweep from the first to the last. The bound
    /// ignores caches. It assumes that the arm moves from each track with runs directly to the next
    /// one, arrives at the best rotational position, and leaves the track once all its runs have
    /// passed the head.
    #[must_use]
    pub fn sweep_ns(&self, runs: impl IntoIterator<Item = (u64, u64)>) -> Nanos {
        let Parameters { revolution_ns, head_skew_ns, .. } = self.parameters;
        sweep::sweep_ns(&self.geometry, &self.seek, revolution_ns, head_skew_ns, runs)
    }

    /// Returns the completion time of the last request.
    #[must_use]
    pub fn free_ns(&self) -> Nanos {
        self.free_ns
    }

    /// Returns the index of the waiting request to serve next; `waiting` is sorted by age, the
    /// oldest first. Of the first [`Parameters::queue_depth`] requests, the drive chooses the
    /// oldest one that the cache can serve, else the one whose first sector the head reaches
    /// soonest. The oldest request is chosen if it has waited longer than
    /// [`Parameters::patience_ns`]. No request overtakes a sync.
    ///
    /// # Source
    /// \[Jacobson91\]: shortest access time first. The age of a request matters only when it
    /// exceeds the patience.
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

    /// Returns the time at which the head reaches the first sector of the request; 0 if the cache
    /// has all of its sectors.
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

    fn plan(&self, request: &Request) -> Plan {
        let start = self.free_ns.max(request.arrived_ns);
        let begin = start.max(request.arrived_ns + self.parameters.overhead_ns);
        let mut parts = ServiceTime { overhead_ns: begin - start, ..ServiceTime::default() };
        let (sector, end) = (request.sector, request.sector + request.sectors);
        let interface_ns = self.parameters.interface_ns(request.sectors);
        let from_cache = |moment: Nanos, parts: &mut ServiceTime| {
            parts.transfer_ns += moment.saturating_sub(begin + interface_ns);
            parts.interface_ns += interface_ns;
            let done_ns = begin + parts.total_ns() - parts.overhead_ns;
            Plan { parts: *parts, done_ns, method: Method::Cache }
        };
        match request.kind {
            Kind::Sync => Plan { parts, done_ns: begin, method: Method::Destage },
            Kind::Write if self.parameters.write_cache_bytes > 0 => from_cache(begin, &mut parts),
            Kind::Write => self.plan_medium(begin, parts, sector, end, interface_ns),
            Kind::Read if self.write_cache.covers(sector, end) => from_cache(begin, &mut parts),
            Kind::Read => match self.segments.lookup(&self.geometry, begin, sector, end) {
                Lookup::Hit => from_cache(begin, &mut parts),
                Lookup::From(first) => self.plan_medium(begin, parts, first, end, interface_ns),
                Lookup::Miss => self.plan_medium(begin, parts, sector, end, interface_ns),
                Lookup::Passes(moment) => {
                    let access = self.plan_medium(begin, parts, sector, end, interface_ns);
                    let passing = from_cache(moment, &mut parts);
                    if passing.done_ns <= access.done_ns { passing } else { access }
                }
            },
        }
    }

    /// Plans an access to the medium. The interface transfers sectors while later sectors are read.
    fn plan_medium(
        &self,
        begin: Nanos,
        mut parts: ServiceTime,
        sector: u64,
        end: u64,
        interface_ns: Nanos,
    ) -> Plan {
        let start = begin.max(self.arm_free_ns);
        parts.waiting_ns += start - begin;
        let access = self.access(start, sector, end);
        parts.add(&access.parts);
        let carried_ns = begin + interface_ns;
        parts.interface_ns += carried_ns.saturating_sub(access.done_ns);
        let done_ns = access.done_ns.max(carried_ns);
        Plan { parts, done_ns, method: Method::Media(sector) }
    }

    /// Computes an access to the sectors from `sector` to `end` at `now`: seek, rotation and
    /// transfer.
    fn access(&self, now: Nanos, sector: u64, end: u64) -> Access {
        let (from, to) = (self.head_at(now), self.geometry.locate(sector));
        let seek_ns = match from.cylinder.abs_diff(to.cylinder) {
            0 if from.head == to.head => 0,
            0 => self.parameters.head_skew_ns,
            cylinders => self.seek.time_ns(cylinders),
        };
        let rotation_ns = self.geometry.rotation_ns(now + seek_ns, &to);
        let transfer_ns = self.geometry.transfer_ns(sector, end - sector);
        let parts = ServiceTime { seek_ns, rotation_ns, transfer_ns, ..ServiceTime::default() };
        Access { parts, done_ns: now + parts.total_ns() }
    }

    /// Returns the last sector that has passed under the head at `now`.
    fn head_sector(&self, now: Nanos) -> u64 {
        let read_ahead = self.segments.stream_at(&self.geometry, now);
        read_ahead.map_or(self.at_sector, |up_to| up_to.saturating_sub(1))
    }

    fn head_at(&self, now: Nanos) -> Location {
        self.geometry.locate(self.head_sector(now))
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

    fn take_into_cache(&mut self, request: &Request, now: Nanos) {
        let end = request.sector + request.sectors;
        self.segments.invalidate(&self.geometry, now, request.sector, end);
        self.write_cache.add(request.sector, end);
        if self.write_cache.sectors() > self.parameters.write_cache_sectors() / 2 {
            self.over_half_since_ns.get_or_insert(now);
        }
    }

    /// Destages runs until the write cache has room for `sectors` more sectors; a sync passes
    /// `u64::MAX` to empty the cache. Adds the time to `plan`, the plan of the waiting request.
    fn make_room(&mut self, sectors: u64, plan: &mut Plan) {
        let limit = self.parameters.write_cache_sectors();
        let has_room = |dirty: u64| dirty == 0 || dirty.saturating_add(sectors) <= limit;
        // A background write that has begun completes first, even if the request is a sync.
        if sectors == u64::MAX || !has_room(self.write_cache.sectors()) {
            let waiting_ns = self.arm_free_ns.saturating_sub(plan.done_ns);
            plan.parts.waiting_ns += waiting_ns;
            plan.done_ns += waiting_ns;
        }
        while !has_room(self.write_cache.sectors()) {
            let Some(access) = self.destage_one(plan.done_ns) else { return };
            plan.parts.add(&access.parts);
            plan.done_ns = access.done_ns;
        }
    }

    /// Executes the background writes that begin at or before `now`. The drive starts them when the
    /// write cache becomes more than half full, and stops when it is at most a quarter full. An
    /// idle drive starts them after [`Parameters::idle_before_destage_ns`].
    fn destage_in_background(&mut self, now: Nanos) {
        loop {
            let is_idle_ns = self.free_ns + self.parameters.idle_before_destage_ns;
            let may_ns = self.over_half_since_ns.map_or(is_idle_ns, |since| since.min(is_idle_ns));
            let begin = may_ns.max(self.arm_free_ns);
            if begin > now {
                return;
            }
            let Some(access) = self.destage_one(begin) else { return };
            self.counters.background.add(&access.parts);
        }
    }

    /// Destages the run that the head reaches soonest, chosen among the next [`DESTAGE_CHOICE`]
    /// dirty runs above the head.
    ///
    /// # Source
    /// \[Jacobson91\]: the run with the shortest access time within a window. The window moves in
    /// ascending order and wraps around, so that no run starves.
    fn destage_one(&mut self, now: Nanos) -> Option<Access> {
        let next = self.write_cache.ascending_from(self.head_sector(now) + 1).take(DESTAGE_CHOICE);
        let reached = |run: &(u64, u64)| self.access(now, run.0, run.0 + 1).done_ns;
        let (sector, _) = next.min_by_key(reached)?;
        let (sector, end) = self.write_cache.take(sector, DESTAGE_SECTORS_MAX)?;
        let access = self.access(now, sector, end);
        self.leave_for(now, sector, end);
        self.arm_free_ns = access.done_ns;
        self.counters.media_writes += 1;
        if self.write_cache.sectors() <= self.parameters.write_cache_sectors() / 4 {
            self.over_half_since_ns = None;
        }
        Some(access)
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
