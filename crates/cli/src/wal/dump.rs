//! `haul wal dump`: prints the records of a log.

use haul_append_log::{Lsn, OnDamage, Position, Replay, SegmentInfo};

use super::open::{check, disk, read};
use super::print::Printer;
use crate::args::WalDumpArgs;
use crate::report::Result;

/// Prints the records between two LSNs. Segments without such records are not read.
struct Dump<'a> {
    from: Lsn,
    to: Lsn,
    printer: Printer<'a>,
}

impl Replay for Dump<'_> {
    fn is_known(&mut self, _: SegmentInfo) -> bool {
        true
    }

    fn apply_known(&mut self, segment: SegmentInfo) -> bool {
        let number = segment.number;
        number < self.from.segment() || number > self.to.segment() || self.printer.has_failed()
    }

    fn record(&mut self, at: Position, payload: &[u8]) {
        if (self.from..self.to).contains(&at.lsn) {
            self.printer.record(at, payload);
        }
    }
}

pub(super) fn run(args: &WalDumpArgs) -> Result {
    let disk = disk(&args.dir)?;
    let (from, to) = (args.from.unwrap_or_default(), args.to.unwrap_or(Lsn(u64::MAX)));
    let mut dump = Dump { from, to, printer: Printer::new(&args.format) };
    let (_, report) = read(&disk, OnDamage::Report, &mut dump)?;
    dump.printer.send()?;
    check(&report)
}
