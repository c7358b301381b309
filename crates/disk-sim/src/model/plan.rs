//! Plans a request's service: whether a cache or the medium serves it, and when it completes.

use super::geometry::Location;
use super::segments::Lookup;
use super::{Drive, Kind, Nanos, Request, ServiceTime};

/// The time components and the completion time for an access to the medium.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    pub(super) parts: ServiceTime,
    pub(super) done_ns: Nanos,
}

/// A request's planned service: its time components, completion time and method.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) parts: ServiceTime,
    pub(super) done_ns: Nanos,
    pub(super) method: Method,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// The drive reads from or writes to a cache, without the arm.
    Cache,
    /// The drive accesses the medium from this sector to the end of the request.
    Media(u64),
    /// The drive destages the whole write cache.
    Destage,
}

impl Drive {
    pub(super) fn plan(&self, request: &Request) -> Plan {
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
    pub(super) fn plan_medium(
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
    pub(super) fn access(&self, now: Nanos, sector: u64, end: u64) -> Access {
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
    pub(super) fn head_sector(&self, now: Nanos) -> u64 {
        let read_ahead = self.segments.stream_at(&self.geometry, now);
        read_ahead.map_or(self.at_sector, |up_to| up_to.saturating_sub(1))
    }

    pub(super) fn head_at(&self, now: Nanos) -> Location {
        self.geometry.locate(self.head_sector(now))
    }
}
