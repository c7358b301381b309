//! The read cache: a few sequences of sectors, and the one that is growing by read-ahead.

use crate::model::geometry::Geometry;
use crate::model::parameters::Nanos;

/// A sequence of sectors in the drive's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    start: u64,
    end: u64,
    /// When it was used last, as a count of uses.
    used: u64,
}

/// The head reading on after the last request: it has read up to `from` at `since`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stream {
    segment: usize,
    from: u64,
    since: Nanos,
    /// Read-ahead goes no further than this, until somebody reads on.
    limit: u64,
}

/// How the cache can serve a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// All of it is there.
    Hit,
    /// The head is on its way there: the last sector will have passed at this time.
    Passes(Nanos),
    /// The first sectors are there; the rest must be read.
    From(u64),
    /// Nothing is there.
    Miss,
}

/// All segments.
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

    /// Where the head has read up to at `now`, if it is reading on.
    pub(crate) fn stream_at(&self, geometry: &Geometry, now: Nanos) -> Option<u64> {
        let Stream { from, since, limit, .. } = self.stream?;
        let elapsed = now.saturating_sub(since);
        Some(from + geometry.sectors_within(from, elapsed, limit.saturating_sub(from)))
    }

    /// Looks for a run of sectors at `now`.
    pub(crate) fn look_up(&self, geometry: &Geometry, now: Nanos, sector: u64, end: u64) -> Lookup {
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
            // Still turning, the head needs only go on; once it has stopped, the place is past.
            let goes_on = |s: &Stream| has_up_to < s.limit && sector <= s.limit;
            if let Some(stream) = stream.filter(goes_on) {
                let passes = stream.since + geometry.transfer_ns(stream.from, end - stream.from);
                best = Lookup::Passes(passes);
            } else if sector < has_up_to && best == Lookup::Miss {
                best = Lookup::From(has_up_to);
            }
        }
        best
    }

    /// Something up to `end` is read from the cache: it stays longer, and the head reads on
    /// farther. If at `now` it has stopped, it goes on when the place comes around again, unless
    /// there is little room yet.
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
                let wait_ns = geometry.rotation_ns(now, &geometry.place(up_to));
                (stream.from, stream.since) = (up_to, now + wait_ns);
            }
            stream.limit = stream.limit.max(farthest);
            let oldest = stream.limit.saturating_sub(self.sectors_max);
            segment.start = segment.start.max(oldest.min(sector));
        }
    }

    /// The head leaves at `now`: what it has read so far stays, and no more comes.
    pub(crate) fn stop(&mut self, geometry: &Geometry, now: Nanos) {
        let Some(has_up_to) = self.stream_at(geometry, now) else { return };
        if let Some(Stream { segment, .. }) = self.stream.take() {
            let segment = &mut self.segments[segment];
            segment.end = segment.end.max(has_up_to);
        }
    }

    /// A run was read from the medium until `now`, and the head reads on from there.
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

    /// A run is written: no old copy of it may be read.
    pub(crate) fn forget(&mut self, geometry: &Geometry, now: Nanos, sector: u64, end: u64) {
        let reading_on = self.stream.filter(|stream| sector < stream.limit);
        if reading_on.is_some_and(|stream| self.segments[stream.segment].start < end) {
            self.stop(geometry, now);
        }
        for segment in &mut self.segments {
            if segment.start < end && sector < segment.end {
                // The longer of what is left on both sides.
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

    /// Nothing is left: the power is gone.
    pub(crate) fn clear(&mut self) {
        (self.segments, self.stream) = (Vec::new(), None);
    }
}
