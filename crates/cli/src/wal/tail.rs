//! `haul wal tail`: prints the last records of a log, and follows it.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use haul_append_log::{Damage, Lsn, OnDamage, Position, ReadOnlyReport, Replay, SegmentInfo};
use haul_disk::Disk;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::open::{all_damage, check, damage_line, disk, read};
use super::print::Printer;
use crate::args::WalTailArgs;
use crate::report::{Exit, Failure, Result, print_message};

/// The time between two reads of a log that is followed.
const POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

pub(super) fn run(args: &WalTailArgs) -> Result {
    let disk = disk(&args.dir)?;
    let mut printer = Printer::new(&args.format);
    let (last, report) = last_records(&disk, args.records)?;
    last.records.iter().for_each(|(at, payload)| printer.record(*at, payload));
    printer.send()?;
    if !args.follow {
        return check(&report);
    }
    let mut reported = Vec::new();
    print_new_damage(&report, &mut reported);
    let mut follower = Follower { last: last.last, segment: last.segment, printer };
    loop {
        wait_for_next_read()?;
        let (_, report) = read(&disk, OnDamage::Report, &mut follower)?;
        follower.printer.send()?;
        print_new_damage(&report, &mut reported);
    }
}

/// Waits for [`POLL`]. Fails at once if the reader of stdout has closed it: a log without new records
/// would otherwise be followed forever.
fn wait_for_next_read() -> Result {
    let stdout = io::stdout();
    // No events are requested: the kernel reports only errors and hang-ups.
    let mut closed = [PollFd::new(&stdout, PollFlags::empty())];
    match poll(&mut closed, Some(&POLL)) {
        Ok(1..) => Err(Failure::new("stdout was closed").exit(Exit::BrokenPipe)),
        _ => Ok(()),
    }
}

/// Prints the damage that is not in `reported`, and adds it.
fn print_new_damage(report: &ReadOnlyReport, reported: &mut Vec<Damage>) {
    for damage in all_damage(report) {
        if !reported.contains(damage) {
            print_message(&damage_line(damage));
            reported.push(damage.clone());
        }
    }
}

/// The last records of the segments that were read.
struct Last {
    /// The maximum number of records to keep.
    records_max: usize,
    records: VecDeque<(Position, Vec<u8>)>,
    /// The number of the first segment to read.
    from: u32,
    /// The numbers of the segments before the last one.
    older: Vec<u32>,
    /// The segment that was read last, and the LSN of its last record.
    segment: Option<SegmentInfo>,
    last: Lsn,
}

impl Replay for Last {
    fn is_known(&mut self, segment: SegmentInfo) -> bool {
        self.older.push(segment.number);
        true
    }

    fn apply_known(&mut self, segment: SegmentInfo) -> bool {
        segment.number < self.from
    }

    fn known_end(&mut self, segment: SegmentInfo) -> u32 {
        self.segment = Some(segment);
        0
    }

    fn record(&mut self, at: Position, payload: &[u8]) {
        self.last = at.lsn;
        if self.records_max == 0 {
            return;
        }
        if self.records.len() == self.records_max {
            self.records.pop_front();
        }
        self.records.push_back((at, payload.to_vec()));
    }
}

/// Returns the last `records_max` records. Reads the last segment, and then, while the records are
/// too few, twice as many segments each time.
fn last_records(disk: &Arc<dyn Disk>, records_max: usize) -> Result<(Last, ReadOnlyReport)> {
    let (mut from, mut count) = (u32::MAX, 1);
    loop {
        let (records, older) = (VecDeque::new(), Vec::new());
        let mut last = Last { records_max, records, from, older, segment: None, last: Lsn(0) };
        let (_, report) = read(disk, OnDamage::Report, &mut last)?;
        let has_all = last.older.first().is_none_or(|oldest| from <= *oldest);
        if has_all || last.records.len() == records_max {
            return Ok((last, report));
        }
        last.older.sort_unstable();
        from = last.older[last.older.len().saturating_sub(count)];
        count *= 2;
    }
}

/// Prints the records after the last printed one. Reads the last printed record again, but nothing
/// before it.
struct Follower<'a> {
    last: Lsn,
    /// The segment that was read last.
    segment: Option<SegmentInfo>,
    printer: Printer<'a>,
}

impl Replay for Follower<'_> {
    fn is_known(&mut self, segment: SegmentInfo) -> bool {
        segment.number < self.last.segment()
    }

    fn known_end(&mut self, segment: SegmentInfo) -> u32 {
        // The nonce differs if the file was used for a new segment meanwhile.
        let is_same = self.segment.replace(segment) == Some(segment);
        let has_last = segment.number == self.last.segment();
        if is_same && has_last { self.last.offset() } else { 0 }
    }

    fn record(&mut self, at: Position, payload: &[u8]) {
        if at.lsn > self.last {
            self.last = at.lsn;
            self.printer.record(at, payload);
        }
    }
}
