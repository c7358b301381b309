//! Moves dirty sectors from the write cache to the medium.

use super::plan::{Access, Plan};
use super::{Drive, Nanos, Request};

/// The maximum number of sectors in one write from the write cache to the medium (destaging).
const DESTAGE_SECTORS_MAX: u64 = 2048;

/// Among how many dirty runs the drive chooses the next one to destage. A dirty run is adjacent
/// sectors that are only in the write cache.
const DESTAGE_CHOICE: usize = 32;

impl Drive {
    pub(super) fn take_into_cache(&mut self, request: &Request, now: Nanos) {
        let end = request.sector + request.sectors;
        self.segments.invalidate(&self.geometry, now, request.sector, end);
        self.write_cache.add(request.sector, end);
        if self.write_cache.sectors() > self.parameters.write_cache_sectors() / 2 {
            self.over_half_since_ns.get_or_insert(now);
        }
    }

    /// Destages runs until the write cache has room for `sectors` more sectors; a sync passes
    /// `u64::MAX` to empty the cache. Adds the time to `plan`, the waiting request's plan.
    pub(super) fn make_room(&mut self, sectors: u64, plan: &mut Plan) {
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
    pub(super) fn destage_in_background(&mut self, now: Nanos) {
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
    pub(super) fn destage_one(&mut self, now: Nanos) -> Option<Access> {
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
}
