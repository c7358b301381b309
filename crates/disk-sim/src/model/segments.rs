//! Simulates the drive's read cache: each segment holds a run of sectors, and read-ahead extends at
//! most one segment at a time.

use crate::model::geometry::Geometry;
use crate::model::parameters::Nanos;

/// A cached run of sectors, from `start` up to but excluding `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    start: u64,
    end: u64,
    /// The counter `uses` when the segment was last used.
    used: u64,
}

/// The read-ahead that follows a read: at the time `since`, the head had read up to `from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stream {
    segment: usize,
    from: u64,
    since: Nanos,
    /// The sector at which read-ahead ends, unless a later read in the sequence extends it.
    limit: u64,
}

/// The result of looking up a run of sectors in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// All sectors are cached.
    Hit,
    /// The head is reading ahead towards the sectors. The last sector passes the head at this time.
    Passes(Nanos),
    /// The first sectors are cached; the sectors from this one on must be read.
    From(u64),
    /// No sector is cached.
    Miss,
}

/// The read cache's segments, and the read-ahead in progress.
#[derive(Debug, Clone)]
pub(crate) struct Segments {
    segments: Vec<Segment>,
    stream: Option<Stream>,
    count_max: usize,
    sectors_max: u64,
    sectors_of_drive: u64,
    uses: u64,
}

impl Segments {
    pub(crate) fn new(count_max: usize, sectors_max: u64, sectors_of_drive: u64) -> Self {
        let segments = Vec::with_capacity(count_max);
        Self { segments, stream: None, count_max, sectors_max, sectors_of_drive, uses: 0 }
    }

    /// Returns the sector up to which the head has read ahead at `now`; `None` if there is no
    /// read-ahead.
    pub(crate) fn stream_at(&self, geometry: &Geometry, now: Nanos) -> Option<u64> {
        let Stream { from, since, limit, .. } = self.stream?;
        let elapsed = now.saturating_sub(since);
        Some(from + geometry.sectors_within(from, elapsed, limit.saturating_sub(from)))
    }

    /// Returns how long the head reads ahead between `from` and `to`.
    pub(crate) fn read_ahead_ns(&self, geometry: &Geometry, from: Nanos, to: Nanos) -> Nanos {
        let Some(stream) = self.stream else { return 0 };
        let sectors = stream.limit.saturating_sub(stream.from);
        let end = stream.since + geometry.transfer_ns(stream.from, sectors);
        end.min(to).saturating_sub(from.max(stream.since))
    }

    /// Looks up the sectors from `sector` up to but excluding `end`, as cached at `now`.
    pub(crate) fn lookup(&self, geometry: &Geometry, now: Nanos, sector: u64, end: u64) -> Lookup {
        let mut best = Lookup::Miss;
        for (index, segment) in self.segments.iter().enumerate() {
            let stream = self.stream.filter(|stream| stream.segment == index);
            let has_up_to = match stream {
                Some(_) => self.stream_at(geometry, now).unwrap_or(segment.end),
                None => segment.end,
            };
            if sector < segment.start {
                continue;
            }
            if end <= has_up_to {
                return Lookup::Hit;
            }
            // During read-ahead the head reaches the sectors without a seek. Once read-ahead has
            // stopped at its limit, the following sectors have already passed the head, so the
            // drive must access the medium for them.
            let is_reading_ahead = |s: &Stream| has_up_to < s.limit && sector <= s.limit;
            if let Some(stream) = stream.filter(is_reading_ahead) {
                let passes = stream.since + geometry.transfer_ns(stream.from, end - stream.from);
                best = Lookup::Passes(passes);
            } else if sector < has_up_to && best == Lookup::Miss {
                best = Lookup::From(has_up_to);
            }
        }
        best
    }

    /// Records a read from the cache: marks the segment as used, and extends its read-ahead to half
    /// a segment beyond `end`. Read-ahead that has stopped at its limit resumes when the next
    /// sector passes the head again, but only if it can then read at least a quarter of a segment.
    pub(crate) fn touch(&mut self, geometry: &Geometry, now: Nanos, sector: u64, end: u64) {
        let has_up_to = self.stream_at(geometry, now);
        let farthest = (end + self.sectors_max / 2).min(self.sectors_of_drive);
        self.uses += 1;
        for (index, segment) in self.segments.iter_mut().enumerate() {
            let stream = self.stream.as_mut().filter(|stream| stream.segment == index);
            let up_to = stream.as_ref().and(has_up_to).unwrap_or(segment.end);
            if sector < segment.start || sector > up_to {
                continue;
            }
            segment.used = self.uses;
            let Some(stream) = stream else { continue };
            if up_to == stream.limit {
                if farthest < up_to + self.sectors_max / 4 {
                    continue;
                }
                let wait_ns = geometry.rotation_ns(now, &geometry.locate(up_to));
                (stream.from, stream.since) = (up_to, now + wait_ns);
            }
            stream.limit = stream.limit.max(farthest);
            let oldest = stream.limit.saturating_sub(self.sectors_max);
            segment.start = segment.start.max(oldest.min(sector));
        }
    }

    /// Ends read-ahead at `now`; the sectors read so far stay cached.
    pub(crate) fn stop(&mut self, geometry: &Geometry, now: Nanos) {
        let Some(has_up_to) = self.stream_at(geometry, now) else { return };
        if let Some(Stream { segment, .. }) = self.stream.take() {
            let segment = &mut self.segments[segment];
            segment.end = segment.end.max(has_up_to);
        }
    }

    /// Records a read of a run from the medium that completes at `now`; read-ahead starts where the
    /// run ends.
    pub(crate) fn read(&mut self, now: Nanos, sector: u64, end: u64) {
        self.uses += 1;
        let limit = (end + self.sectors_max / 2).min(self.sectors_of_drive);
        let continues = |segment: &Segment| segment.start <= sector && sector <= segment.end;
        let index = match self.segments.iter().position(continues) {
            Some(index) => index,
            None => self.make_room(),
        };
        let segment = &mut self.segments[index];
        let oldest = limit.saturating_sub(self.sectors_max).min(sector);
        segment.start = if continues(segment) { segment.start.max(oldest) } else { sector };
        segment.end = end;
        segment.used = self.uses;
        self.stream = Some(Stream { segment: index, from: end, since: now, limit });
    }

    fn make_room(&mut self) -> usize {
        const EMPTY: Segment = Segment { start: u64::MAX, end: 0, used: 0 };
        if self.segments.len() < self.count_max.max(1) {
            self.segments.push(EMPTY);
            return self.segments.len() - 1;
        }
        let oldest = self.segments.iter().enumerate().min_by_key(|(_, segment)| segment.used);
        let index = oldest.map_or(0, |(index, _)| index);
        self.segments[index] = EMPTY;
        index
    }

    /// Removes a run from the cache because the host writes to it.
    pub(crate) fn invalidate(&mut self, geometry: &Geometry, now: Nanos, sector: u64, end: u64) {
        let read_ahead = self.stream.filter(|stream| sector < stream.limit);
        if read_ahead.is_some_and(|stream| self.segments[stream.segment].start < end) {
            self.stop(geometry, now);
        }
        for segment in &mut self.segments {
            if segment.start < end && sector < segment.end {
                // A segment is contiguous, so only the longer of the two remaining parts stays
                // cached.
                let (before, after) =
                    (sector.saturating_sub(segment.start), segment.end.saturating_sub(end));
                if before >= after {
                    segment.end = sector
                } else {
                    segment.start = end
                }
                segment.end = segment.end.max(segment.start);
            }
        }
    }

    /// Empties the cache, as a power cut does.
    pub(crate) fn clear(&mut self) {
        (self.segments, self.stream) = (Vec::new(), None);
    }
}
