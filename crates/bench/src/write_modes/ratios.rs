//! Computes the ratios between modes, and the numbers of journal writes. Performs no I/O.

use super::measure::Pass;
use super::modes::{Cell, Preparation, Sync};
use super::passes::Strategy;
use super::table::{journal_writes, median_us};
use crate::contest::Contest;
use crate::report::Report;

/// The name of each ratio, the mode of the dividend, and that of the divisor: preparation, sync and
/// pass.
type Modes = (Preparation, Sync, usize);
const RATIOS: &[(&str, Modes, Modes)] = {
    use Preparation::{Append, Fallocate, Filled, Recycled, ZeroRange};
    use Sync::{DirectDsync, Fdatasync, Fsync, Nothing};
    &[
        ("recycled_vs_append_fdatasync", (Append, Fdatasync, 1), (Recycled, Fdatasync, 1)),
        ("recycled_vs_fallocate_fdatasync", (Fallocate, Fdatasync, 1), (Recycled, Fdatasync, 1)),
        ("recycled_vs_filled_fdatasync", (Filled, Fdatasync, 1), (Recycled, Fdatasync, 1)),
        ("recycled_vs_append_direct_dsync", (Append, DirectDsync, 1), (Recycled, DirectDsync, 1)),
        ("fallocate_vs_append_fsync", (Append, Fsync, 1), (Fallocate, Fsync, 1)),
        ("filled_vs_append_fsync", (Append, Fsync, 1), (Filled, Fsync, 1)),
        ("filled_vs_zero_range_fdatasync", (ZeroRange, Fdatasync, 1), (Filled, Fdatasync, 1)),
        ("fdatasync_vs_fsync_filled", (Filled, Fsync, 1), (Filled, Fdatasync, 1)),
        ("unsynced_vs_fsync_filled", (Filled, Fsync, 1), (Filled, Nothing, 1)),
        ("pass_2_vs_1_zero_range_fsync", (ZeroRange, Fsync, 1), (ZeroRange, Fsync, 2)),
        ("pass_2_vs_1_zero_range_fdatasync", (ZeroRange, Fdatasync, 1), (ZeroRange, Fdatasync, 2)),
    ]
};

/// Adds ratios between modes for records of 4 KiB, and numbers of journal writes. A ratio is that
/// of the median latencies, which the stalls of a busy machine hardly affect.
pub(super) fn add_ratios(contest: &Contest<Strategy, Pass>, prefix: &str, report: &mut Report) {
    let strategy = |record_bytes, (preparation, sync, pass)| Strategy {
        cell: Cell { sync, record_bytes, preparation },
        pass,
    };
    for (name, dividend, divisor) in RATIOS.iter().copied() {
        let (a, b) = (strategy(4096, dividend), strategy(4096, divisor));
        report.ratio(format!("{prefix}{name}_4k"), contest.ratio(&a, &b, median_us));
    }
    for (preparation, record_bytes, length) in [
        (Preparation::Recycled, 4096, "4k"),
        (Preparation::Append, 4096, "4k"),
        (Preparation::Fallocate, 512, "512"),
    ] {
        let strategy = strategy(record_bytes, (preparation, Sync::Fdatasync, 1));
        let writes = contest.samples(&strategy, journal_writes);
        report.amount(format!("{prefix}journal_writes_per_record_{preparation}_{length}"), writes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::passes::contest;
    use super::super::table::FIELDS;
    use super::super::tests::{CELL, pass, report};
    use super::*;

    #[test]
    fn ratios_are_of_pages_in_the_first_pass() {
        let recycled = Cell { preparation: Preparation::Recycled, ..CELL };
        let mut contest = contest(FIELDS, &[CELL, recycled, Cell { record_bytes: 512, ..CELL }]);
        contest.record(0, pass(2, 300, Some(5)));
        contest.record(1, pass(2, 100, Some(0)));
        contest.record(2, pass(1, 7, Some(9)));
        contest.record(4, pass(1, 7, Some(9)));
        let mut report = report(&contest);
        add_ratios(&contest, "", &mut report);
        assert_eq!(report.ratios.len(), 3);
        let near = |name: &str, expected: f64| (report.ratios[name].value - expected).abs() < 0.01;
        assert!(near("recycled_vs_append_fdatasync_4k", 3.0));
        assert!(near("journal_writes_per_record_recycled_4k", 0.0));
        assert!(near("journal_writes_per_record_append_4k", 2.5));
    }
}
