//! From writes at random places to requests in one direction. Pure.

use std::ops::Range;

use crate::order::sort;
use crate::overlap::each_newest;

/// One write, as the plan sees it: sixteen bytes, so that a million of them sort in the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Where in the file.
    pub offset: u64,
    /// The order of the writes: of two at the same place the greater stands.
    pub number: u32,
    /// The length, at least 1.
    pub bytes: u32,
}

impl Entry {
    /// Where it ends.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes.into())
    }
}

/// What a request costs on a device beside its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// Microseconds of one more request.
    pub request_us: u64,
    /// Bytes a second once it is under way.
    pub bytes_per_second: u64,
}

impl Costs {
    /// A disk with heads, 100 MB/s. Neighbours it takes in passing; what lies between two of them
    /// passes all the same, so that a request costs little more than being asked for.
    pub const SPINNING: Self = Self { request_us: 500, bytes_per_second: 100_000_000 };
    /// One without: 100,000 requests and 2 GB a second.
    pub const SOLID: Self = Self { request_us: 10, bytes_per_second: 2_000_000_000 };

    /// The bytes that pass in the time of one request.
    fn request_bytes(self) -> u64 {
        let bytes = u128::from(self.request_us) * u128::from(self.bytes_per_second) / 1_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Whether two requests `gap_bytes` apart, of which `read_ends` (0 to 2) must read a unit at
    /// that end anyway, are cheaper as one that reads and writes back what lies between.
    ///
    /// Apart they are two writes and `read_ends` reads; together one write and one read, and the
    /// gap is transferred twice. So `read_ends` requests are saved: none where nothing is read.
    #[must_use]
    pub fn fills(self, gap_bytes: u64, read_ends: u64) -> bool {
        is_cheaper(gap_bytes, read_ends, self.request_bytes())
    }
}

/// [`Costs::fills`], where it is known already how many bytes pass in the time of a request.
fn is_cheaper(gap_bytes: u64, read_ends: u64, request_bytes: u64) -> bool {
    gap_bytes.saturating_mul(2) < request_bytes.saturating_mul(read_ends)
}

/// What requests must look like.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Requests begin and end at multiples of this power of two, and read what they would
    /// otherwise destroy in the first and the last unit.
    pub unit_bytes: u64,
    /// Only in front of this, a multiple of the unit: behind it, where the file ends within a
    /// unit, requests are exactly the bytes written.
    pub units_end: u64,
    /// The longest request, a multiple of the unit.
    pub request_bytes_max: u64,
    /// What a request costs.
    pub costs: Costs,
}

/// The part of a write that is the newest at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Where in the file.
    pub offset: u64,
    /// The length.
    pub bytes: u32,
    /// The write it comes from.
    pub number: u32,
    /// Where in that write.
    pub from: u32,
}

impl Piece {
    /// Where it ends.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes.into())
    }

    /// The same piece, cut in two at `at`, which lies within.
    fn cut(self, at: u64) -> (Self, Self) {
        let front = u32::try_from(at - self.offset).unwrap_or(self.bytes).min(self.bytes);
        let behind = Self {
            offset: at,
            bytes: self.bytes - front,
            from: self.from + front,
            number: self.number,
        };
        (Self { bytes: front, ..self }, behind)
    }
}

/// Bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Where.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
}

impl Extent {
    /// Where it ends.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

/// One write request: its reads, then its pieces over them, fill it without a hole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What it writes.
    pub extent: Extent,
    /// Whether it is of whole units.
    pub is_units: bool,
    /// Its part of [`Plan::pieces`].
    pub pieces: Range<usize>,
    /// Its part of [`Plan::reads`].
    pub reads: Range<usize>,
}

/// What is to be asked of the device, all of it in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The writes.
    pub requests: Vec<Request>,
    /// What they write.
    pub pieces: Vec<Piece>,
    /// What is read first, because it lies between pieces.
    pub reads: Vec<Extent>,
}

/// Plans the writes `entries`, which are sorted on the way: fastest where they come in the order of
/// their numbers.
#[must_use]
pub fn plan(entries: &mut [Entry], rules: &Rules) -> Plan {
    sort(entries);
    let request_bytes = rules.costs.request_bytes();
    let mut builder = Builder { rules, request_bytes, plan: Plan::default(), run: None };
    builder.plan.pieces.reserve(entries.len());
    each_newest(entries, &mut |piece| builder.add(piece));
    builder.end_run();
    builder.plan
}

/// How far the head goes from request to request: the distance from the end of each to the
/// beginning of the next, beginning at 0.
pub fn travel_bytes(extents: impl IntoIterator<Item = Extent>) -> u64 {
    let mut at = 0_u64;
    extents.into_iter().fold(0_u64, |travel, extent| {
        let distance = extent.offset.abs_diff(at);
        at = extent.end();
        travel.saturating_add(distance)
    })
}

/// A request that may still grow.
#[derive(Debug)]
struct Run {
    start: u64,
    /// Where the last unit ends.
    end: u64,
    /// Where the last piece ends.
    covered: u64,
    unit: u64,
    first_piece: usize,
    first_read: usize,
}

struct Builder<'a> {
    rules: &'a Rules,
    /// [`Costs::request_bytes`], which takes a long division.
    request_bytes: u64,
    plan: Plan,
    run: Option<Run>,
}

impl Builder<'_> {
    /// Adds a piece behind the others, cut where requests must end.
    fn add(&mut self, mut piece: Piece) {
        loop {
            let units_end = self.rules.units_end;
            let unit = if piece.offset < units_end { self.rules.unit_bytes } else { 1 };
            if !self.goes_on(&piece, unit) {
                self.end_run();
            }
            let run = self.run.get_or_insert(Run {
                start: piece.offset & !(unit - 1),
                end: piece.offset & !(unit - 1),
                covered: piece.offset & !(unit - 1),
                unit,
                first_piece: self.plan.pieces.len(),
                first_read: self.plan.reads.len(),
            });
            let mut limit = run.start.saturating_add(self.rules.request_bytes_max);
            if piece.offset < units_end {
                limit = limit.min(units_end);
            }
            let (fits, rest) = match piece.end() > limit {
                true => piece.cut(limit),
                false => (piece, Piece { bytes: 0, ..piece }),
            };
            let (from, to) = (run.covered, fits.offset);
            run.covered = fits.end();
            run.end = fits.end().next_multiple_of(unit);
            self.plan.pieces.push(fits);
            self.read_hole(from, to);
            if rest.bytes == 0 {
                return;
            }
            self.end_run();
            piece = rest;
        }
    }

    /// Whether the piece belongs to the request under way.
    fn goes_on(&self, piece: &Piece, unit: u64) -> bool {
        let Some(run) = &self.run else { return true };
        let first = piece.offset & !(unit - 1);
        let units_end = self.rules.units_end;
        let crosses_end = run.start < units_end && piece.offset >= units_end;
        if crosses_end || first >= run.start.saturating_add(self.rules.request_bytes_max) {
            return false;
        }
        let Some(gap_bytes) = first.checked_sub(run.end).filter(|gap| *gap > 0) else {
            return true;
        };
        let read_ends = u64::from(run.covered < run.end) + u64::from(piece.offset > first);
        is_cheaper(gap_bytes, read_ends, self.request_bytes)
    }

    /// Reads the units around a hole in the request under way. Where the stretch since the last
    /// read costs less than another request, it is read too.
    fn read_hole(&mut self, from: u64, to: u64) {
        let Some(run) = self.run.as_ref().filter(|_| from < to) else { return };
        let (offset, end) = (from & !(run.unit - 1), to.next_multiple_of(run.unit));
        match self.plan.reads[run.first_read..].last_mut() {
            Some(last) if offset <= last.end() || offset - last.end() < self.request_bytes => {
                last.bytes = end - last.offset;
            }
            _ => self.plan.reads.push(Extent { offset, bytes: end - offset }),
        }
    }

    fn end_run(&mut self) {
        let Some((covered, end)) = self.run.as_ref().map(|run| (run.covered, run.end)) else {
            return;
        };
        self.read_hole(covered, end);
        let Some(run) = self.run.take() else { return };
        self.plan.requests.push(Request {
            extent: Extent { offset: run.start, bytes: run.end - run.start },
            is_units: run.start < self.rules.units_end,
            pieces: run.first_piece..self.plan.pieces.len(),
            reads: run.first_read..self.plan.reads.len(),
        });
    }
}
