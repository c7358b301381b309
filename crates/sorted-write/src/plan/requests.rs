//! Plans the requests to a file: sorts the writes, and merges two requests where a single one takes
//! less time.

use std::ops::Range;

use super::costs::{Costs, is_cheaper};
use super::entry::{Entry, Piece};
use super::extent::Extent;
use super::overlap::for_each_newest;
use super::radix_sort::sort;

/// Constraints on the requests to a file.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The write unit's length in bytes, a power of two. Requests begin and end at multiples of
    /// this length. If a unit is only partially written, its other bytes are read first.
    pub unit_bytes: u64,
    /// The file offset at which the last whole unit ends, a multiple of the unit. Beyond this
    /// offset, requests contain exactly the bytes written, because a whole unit would extend the
    /// file.
    pub units_end: u64,
    /// The maximum request length in bytes, a multiple of the unit.
    pub request_bytes_max: u64,
    /// The device's cost model.
    pub costs: Costs,
}

/// A write request. Its pieces and the ranges that are read for it together cover its extent
/// completely. If both contain a byte, the piece's byte is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The file range that the request writes.
    pub extent: Extent,
    /// `true` if the request consists of whole units.
    pub is_units: bool,
    /// The range in [`Plan::pieces`] that the request writes.
    pub pieces: Range<usize>,
    /// The range in [`Plan::reads`] that must be read before the request is written.
    pub reads: Range<usize>,
}

/// The planned requests to a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The write requests, by ascending offset.
    pub requests: Vec<Request>,
    /// All requests' pieces, in ascending order.
    pub pieces: Vec<Piece>,
    /// The ranges to read before the requests are written: partially written units and gaps between
    /// pieces.
    pub reads: Vec<Extent>,
}

/// Sorts `entries` and plans the requests that write them. Sorting is fastest if the entries are in
/// number order.
#[must_use]
pub fn plan(entries: &mut [Entry], rules: &Rules) -> Plan {
    let mut plan = Plan::default();
    sort(entries, &mut Vec::new());
    build(entries, rules, &mut plan);
    plan
}

/// A planner that reuses one plan's memory for the next.
#[derive(Debug, Default)]
pub(crate) struct Planner {
    entries: Vec<Entry>,
    spare: Vec<Entry>,
    plan: Plan,
}

impl Planner {
    /// Plans the requests that execute `writes`, as [`plan`] does.
    pub(crate) fn plan(&mut self, writes: &[Entry], rules: &Rules) -> &Plan {
        self.entries.clear();
        self.entries.extend_from_slice(writes);
        sort(&mut self.entries, &mut self.spare);
        self.plan.requests.clear();
        self.plan.pieces.clear();
        self.plan.reads.clear();
        build(&self.entries, rules, &mut self.plan);
        &self.plan
    }
}

/// Fills an empty plan with requests for sorted entries.
fn build(entries: &[Entry], rules: &Rules, plan: &mut Plan) {
    let request_bytes = rules.costs.request_bytes();
    plan.pieces.reserve(entries.len());
    let mut builder = Builder { rules, request_bytes, plan, run: None };
    for_each_newest(entries, &mut |piece| builder.add(piece));
    builder.end_run();
}

/// A request under construction.
#[derive(Debug)]
struct Run {
    start: u64,
    /// The file offset at which the last unit with a piece ends.
    end: u64,
    /// The file offset at which the last piece ends.
    covered: u64,
    unit: u64,
    first_piece: usize,
    first_read: usize,
}

struct Builder<'a> {
    rules: &'a Rules,
    /// The cached result of [`Costs::request_bytes`]: computing it takes a 128-bit division.
    request_bytes: u64,
    plan: &'a mut Plan,
    run: Option<Run>,
}

impl Builder<'_> {
    /// Appends a piece, and splits it where a request must end.
    fn add(&mut self, mut piece: Piece) {
        loop {
            let units_end = self.rules.units_end;
            let unit = if piece.offset < units_end { self.rules.unit_bytes } else { 1 };
            if !self.extends_run(&piece, unit) {
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
                true => piece.split(limit),
                false => (piece, Piece { bytes: 0, ..piece }),
            };
            debug_assert!(fits.bytes > 0 && fits.offset >= run.covered, "pieces are in order");
            debug_assert!(fits.end() - run.start <= self.rules.request_bytes_max);
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

    /// `true` if the piece is added to the current request instead of starting another.
    fn extends_run(&self, piece: &Piece, unit: u64) -> bool {
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
        let partial_ends = u64::from(run.covered < run.end) + u64::from(piece.offset > first);
        is_cheaper(gap_bytes, partial_ends, self.request_bytes)
    }

    /// Adds a read for the units that contain the current request's unwritten range `from..to`.
    /// Extends the previous read instead if transferring the bytes between this read and the
    /// previous one takes less time than another request.
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
        let before = self.plan.requests.last();
        debug_assert!(
            before.is_none_or(|before| before.extent.end() <= run.start),
            "the file is written in one direction, and no byte twice"
        );
        debug_assert!(run.start < run.end && run.first_piece < self.plan.pieces.len());
        debug_assert!(run.end - run.start <= self.rules.request_bytes_max + run.unit);
        self.plan.requests.push(Request {
            extent: Extent { offset: run.start, bytes: run.end - run.start },
            is_units: run.start < self.rules.units_end,
            pieces: run.first_piece..self.plan.pieces.len(),
            reads: run.first_read..self.plan.reads.len(),
        });
    }
}
