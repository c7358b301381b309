//! The drive as a pure machine: it is told requests and times, and answers with times.

mod dirty;
mod geometry;
mod parameters;
mod seek;
mod segments;
mod sweep;
#[cfg(test)]
mod tests;

pub use parameters::{MS, Nanos, Parameters, SECTOR_BYTES};

use crate::counters::{Counters, Parts};
use dirty::Dirty;
use geometry::{Geometry, Place};
use seek::SeekCurve;
use segments::{Lookup, Segments};

/// The longest run written to the medium at once while the write cache is emptied.
const DESTAGE_SECTORS_MAX: u64 = 2048;

/// How many runs are looked at to choose the next to be written.
const DESTAGE_CHOICE: usize = 32;

/// What a drive is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// To read sectors.
    Read,
    /// To write sectors.
    Write,
    /// To put every acknowledged write on the medium.
    Sync,
}

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What is asked.
    pub kind: Kind,
    /// The first sector; 0 for a sync.
    pub sector: u64,
    /// How many; 0 for a sync.
    pub sectors: u64,
    /// When it arrived.
    pub arrived_ns: Nanos,
}

/// A drive in motion: where the arm is, what the caches hold, until when it is busy.
#[derive(Debug, Clone)]
pub struct Drive {
    parameters: Parameters,
    geometry: Geometry,
    seek: SeekCurve,
    segments: Segments,
    dirty: Dirty,
    /// Where the head is, unless it is reading on.
    at_sector: u64,
    /// Requests are taken one after the other; this one ended then.
    free_ns: Nanos,
    /// The arm is busy until then, maybe in the background.
    arm_free_ns: Nanos,
    /// Since when the write cache has been getting too full.
    pressed_since_ns: Option<Nanos>,
    counters: Counters,
}

/// An access to the medium: what it costs and when it is done.
#[derive(Debug, Clone, Copy)]
struct Access {
    parts: Parts,
    done_ns: Nanos,
}

/// What serving a request comes to.
#[derive(Debug, Clone, Copy)]
struct Plan {
    parts: Parts,
    done_ns: Nanos,
    how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// Without the arm.
    FromMemory,
    /// By going to a run of sectors, this one up to the end of the request.
    FromSector(u64),
    /// By emptying the write cache first.
    AfterDestage,
}

impl Drive {
    /// A drive of `bytes`, at rest at time 0. The caches are as the parameters say.
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
            dirty: Dirty::default(),
            at_sector: 0,
            free_ns: 0,
            arm_free_ns: 0,
            pressed_since_ns: None,
            counters: Counters::default(),
        }
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The least time in which an arm that goes upward once can pass over all of the runs (sector,
    /// sectors), which are given in ascending order: by the shortest way from each track to the
    /// next, and on each no longer than the platter needs to bring all of them by. Caches are left
    /// out. It is a bound, not a forecast: how the platter stands on arrival is always the best.
    #[must_use]
    pub fn sweep_ns(&self, runs: impl IntoIterator<Item = (u64, u64)>) -> Nanos {
        let Parameters { revolution_ns, head_skew_ns, .. } = self.parameters;
        sweep::sweep_ns(&self.geometry, &self.seek, revolution_ns, head_skew_ns, runs)
    }

    /// When the last request was done.
    #[must_use]
    pub fn free_ns(&self) -> Nanos {
        self.free_ns
    }

    /// Which of the waiting requests, oldest first, is served next: of the first 32 the oldest that
    /// needs no waiting for the medium, else the one whose first sector passes soonest; but the
    /// oldest of all if it has waited too long, and nothing overtakes a sync.
    ///
    /// # Source
    /// \[Jacobson91\]: the shortest access time first. Here age counts at the end of patience only.
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

    /// When the head is where the request begins; 0 if memory has it all.
    fn reached_ns(&self, request: &Request) -> Nanos {
        let plan = self.plan(request);
        if plan.how == How::FromMemory && plan.parts.transfer_ns == 0 {
            return 0;
        }
        // Not when it is done: a short request would lure the head away from where it reads.
        let transfer_ns = self.geometry.transfer_ns(request.sector, request.sectors);
        plan.done_ns.saturating_sub(transfer_ns)
    }

    /// Serves a request, and counts it: when it is done.
    pub fn serve(&mut self, request: &Request) -> Nanos {
        let start = self.free_ns.max(request.arrived_ns);
        let begin = start.max(request.arrived_ns + self.parameters.overhead_ns);
        self.destage_in_background(if request.kind == Kind::Read { start } else { begin });
        let mut plan = self.plan(request);
        match (request.kind, plan.how) {
            (Kind::Read, How::FromMemory) => self.read_from_memory(request, &plan),
            (Kind::Read, _) => self.read_from_medium(request, &plan),
            (Kind::Write, How::FromSector(_)) => self.write_through(request, &plan),
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

    /// The power is gone: both caches are empty.
    pub fn lose_caches(&mut self) {
        self.segments.clear();
        self.dirty.clear();
        self.pressed_since_ns = None;
        self.counters.power_cuts += 1;
    }

    fn plan(&self, request: &Request) -> Plan {
        let start = self.free_ns.max(request.arrived_ns);
        let begin = start.max(request.arrived_ns + self.parameters.overhead_ns);
        let mut parts = Parts { overhead_ns: begin - start, ..Parts::default() };
        let (sector, end) = (request.sector, request.sector + request.sectors);
        let interface_ns = self.parameters.interface_ns(request.sectors);
        let from_memory = |moment: Nanos, parts: &mut Parts| {
            parts.transfer_ns += moment.saturating_sub(begin + interface_ns);
            parts.interface_ns += interface_ns;
            let done_ns = begin + parts.total_ns() - parts.overhead_ns;
            Plan { parts: *parts, done_ns, how: How::FromMemory }
        };
        match request.kind {
            Kind::Sync => Plan { parts, done_ns: begin, how: How::AfterDestage },
            Kind::Write if self.parameters.write_cache_bytes > 0 => from_memory(begin, &mut parts),
            Kind::Write => self.plan_medium(begin, parts, sector, end, interface_ns),
            Kind::Read if self.dirty.covers(sector, end) => from_memory(begin, &mut parts),
            Kind::Read => match self.segments.look_up(&self.geometry, begin, sector, end) {
                Lookup::Hit => from_memory(begin, &mut parts),
                Lookup::From(first) => self.plan_medium(begin, parts, first, end, interface_ns),
                Lookup::Miss => self.plan_medium(begin, parts, sector, end, interface_ns),
                Lookup::Passes(moment) => {
                    let there = self.plan_medium(begin, parts, sector, end, interface_ns);
                    let here = from_memory(moment, &mut parts);
                    if here.done_ns <= there.done_ns { here } else { there }
                }
            },
        }
    }

    /// Plans to go to the medium; the cable carries what has passed while the rest passes.
    fn plan_medium(
        &self,
        begin: Nanos,
        mut parts: Parts,
        sector: u64,
        end: u64,
        interface_ns: Nanos,
    ) -> Plan {
        let go = begin.max(self.arm_free_ns);
        parts.waiting_ns += go - begin;
        let access = self.access(go, sector, end);
        parts.add(&access.parts);
        let carried_ns = begin + interface_ns;
        parts.interface_ns += carried_ns.saturating_sub(access.done_ns);
        let done_ns = access.done_ns.max(carried_ns);
        Plan { parts, done_ns, how: How::FromSector(sector) }
    }

    /// The arm goes to a run at `now`, waits for it to come around, and lets it pass.
    fn access(&self, now: Nanos, sector: u64, end: u64) -> Access {
        let (from, to) = (self.head_at(now), self.geometry.place(sector));
        let seek_ns = match from.cylinder.abs_diff(to.cylinder) {
            0 if from.head == to.head => 0,
            0 => self.parameters.head_skew_ns,
            cylinders => self.seek.time_ns(cylinders),
        };
        let rotation_ns = self.geometry.rotation_ns(now + seek_ns, &to);
        let transfer_ns = self.geometry.transfer_ns(sector, end - sector);
        let parts = Parts { seek_ns, rotation_ns, transfer_ns, ..Parts::default() };
        Access { parts, done_ns: now + parts.total_ns() }
    }

    /// The sector the head has passed last.
    fn head_sector(&self, now: Nanos) -> u64 {
        let reads_on = self.segments.stream_at(&self.geometry, now);
        reads_on.map_or(self.at_sector, |up_to| up_to.saturating_sub(1))
    }

    fn head_at(&self, now: Nanos) -> Place {
        self.geometry.place(self.head_sector(now))
    }

    /// The arm moves at `now`: counts how far, and ends read-ahead.
    fn leave_for(&mut self, now: Nanos, sector: u64, end: u64) {
        let (here, from) = (self.head_sector(now), self.head_at(now));
        let cylinders = from.cylinder.abs_diff(self.geometry.place(sector).cylinder);
        self.counters.seeks += u64::from(cylinders > 0);
        self.counters.seek_cylinders += cylinders;
        self.counters.seek_sectors += (here + 1).abs_diff(sector);
        self.segments.stop(&self.geometry, now);
        self.at_sector = end - 1;
    }

    fn read_from_memory(&mut self, request: &Request, plan: &Plan) {
        let end = request.sector + request.sectors;
        let begin = plan.done_ns - plan.parts.transfer_ns - plan.parts.interface_ns;
        self.segments.touch(&self.geometry, begin, request.sector, end);
    }

    fn read_from_medium(&mut self, request: &Request, plan: &Plan) {
        let How::FromSector(first) = plan.how else { return };
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
        self.segments.forget(&self.geometry, passed_ns, request.sector, end);
        self.arm_free_ns = passed_ns;
        self.counters.media_writes += 1;
    }

    fn take_into_cache(&mut self, request: &Request, now: Nanos) {
        let end = request.sector + request.sectors;
        self.segments.forget(&self.geometry, now, request.sector, end);
        self.dirty.add(request.sector, end);
        if self.dirty.sectors() > self.parameters.write_cache_sectors() / 2 {
            self.pressed_since_ns.get_or_insert(now);
        }
    }

    /// Empties the write cache until so many sectors have room; the request waits for that.
    fn make_room(&mut self, sectors: u64, plan: &mut Plan) {
        let limit = self.parameters.write_cache_sectors();
        let has_room = |dirty: u64| dirty == 0 || dirty.saturating_add(sectors) <= limit;
        // What was begun in the background ends first, for a sync.
        if sectors == u64::MAX || !has_room(self.dirty.sectors()) {
            let waiting_ns = self.arm_free_ns.saturating_sub(plan.done_ns);
            plan.parts.waiting_ns += waiting_ns;
            plan.done_ns += waiting_ns;
        }
        while !has_room(self.dirty.sectors()) {
            let Some(access) = self.destage_one(plan.done_ns) else { return };
            plan.parts.add(&access.parts);
            plan.done_ns = access.done_ns;
        }
    }

    /// What the drive did by itself until `now`: it empties its write cache when that has
    /// become half full, down to a quarter, or when nobody has asked for anything for a while.
    fn destage_in_background(&mut self, now: Nanos) {
        loop {
            let is_idle_ns = self.free_ns + self.parameters.idle_before_destage_ns;
            let may_ns = self.pressed_since_ns.map_or(is_idle_ns, |since| since.min(is_idle_ns));
            let begin = may_ns.max(self.arm_free_ns);
            if begin > now {
                return;
            }
            let Some(access) = self.destage_one(begin) else { return };
            self.counters.background.add(&access.parts);
        }
    }

    /// Writes the run that is reached soonest of the next ones upwards; where the arm was is gone.
    ///
    /// # Source
    /// \[Jacobson91\]: nearest by access time within a window. The window goes upwards and around,
    /// so that no run is left for ever.
    fn destage_one(&mut self, now: Nanos) -> Option<Access> {
        let next = self.dirty.upwards(self.head_sector(now) + 1).take(DESTAGE_CHOICE);
        let reached = |run: &(u64, u64)| self.access(now, run.0, run.0 + 1).done_ns;
        let (sector, _) = next.min_by_key(reached)?;
        let (sector, end) = self.dirty.take(sector, DESTAGE_SECTORS_MAX)?;
        let access = self.access(now, sector, end);
        self.leave_for(now, sector, end);
        self.arm_free_ns = access.done_ns;
        self.counters.media_writes += 1;
        if self.dirty.sectors() <= self.parameters.write_cache_sectors() / 4 {
            self.pressed_since_ns = None;
        }
        Some(access)
    }

    fn count(&mut self, request: &Request, plan: &Plan) {
        let bytes = request.sectors * SECTOR_BYTES;
        let from_memory = u64::from(plan.how == How::FromMemory);
        let counters = &mut self.counters;
        counters.requests += 1;
        counters.service.add(&plan.parts);
        match request.kind {
            Kind::Read => {
                counters.reads += 1;
                counters.bytes_read += bytes;
                counters.cache_hits += from_memory;
            }
            Kind::Write => {
                counters.writes += 1;
                counters.bytes_written += bytes;
                counters.cached_writes += from_memory;
            }
            Kind::Sync => counters.syncs += 1,
        }
    }
}
