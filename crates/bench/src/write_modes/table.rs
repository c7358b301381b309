//! Defines the columns of the report. Performs no I/O.

use haul_measure::Latencies;

use super::measure::{PASSES, Pass};
use super::modes::{Cell, Preparation, Sync};
use crate::contest::{Contest, Field, number};
use crate::fio;
use crate::report::{Ratio, Report};

/// A mode in one of its passes, which are numbered from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Strategy {
    pub(super) cell: Cell,
    pub(super) pass: usize,
}

/// The columns of the table. Counts are per record, and medians of the rounds, so that a single
/// `sync` of another program, which commits every journal, does not affect them.
pub(super) const FIELDS: &[Field<Strategy, Pass>] = &[
    Field::label("sync", "sync", |strategy| strategy.cell.sync.name().into()),
    number("record_bytes", "bytes", 0).label(|it| it.cell.record_bytes.into()),
    number("pass", "pass", 0).label(|strategy| (strategy.pass as f64).into()),
    Field::label("way", "preparation", |strategy| strategy.cell.preparation.name().into()),
    number("median_us", "µs", 1).median(median_us),
    number("p99_us", "p99 µs", 1).rank(3).percentile_us(99.0, latencies),
    number("records_per_s", "records/s", 0)
        .spread(9, |it| Some(it.records as f64 / it.time.as_secs_f64())),
    number("device_written_bytes", "B written", 0)
        .rank(6)
        .median(|it| it.each(it.counters?.written_bytes)),
    number("data_writes", "writes", 2).rank(4).median(|it| it.each(it.traffic?.data.writes)),
    number("journal_writes", "journal", 2).rank(1).median(journal_writes),
    number("journal_bytes", "journal B", 0).rank(8).median(|it| it.each(it.traffic?.journal.bytes)),
    number("metadata_writes", "metadata", 2)
        .rank(5)
        .median(|it| it.each(it.traffic?.metadata.writes)),
    number("other_writes", "others", 2).rank(7).median(|it| it.each(it.traffic?.others.writes)),
    number("device_syncs", "syncs", 2).rank(2).median(|pass| pass.each(pass.counters?.syncs)),
    number("device_reads", "reads", 2).rank(6).median(|pass| pass.each(pass.counters?.reads)),
    number("device_write_requests", "requests", 2)
        .rank(10)
        .median(|it| it.each(it.counters?.writes)),
    number("fua_writes", "FUA", 2).rank(10).median(|it| it.each(it.traffic?.fua)),
    number("records", "records", 0).rank(11).sum(|pass| pass.records),
    fio::COLUMN.label(|strategy| fio::cell(fio_options(strategy))),
];

/// The number of records that fio writes.
const FIO_RECORDS: u64 = 64;

/// Returns the options of fio for the same writes; `None` if fio cannot prepare the file or sync the
/// records in this way. The second pass is that over a filled file.
fn fio_options(strategy: &Strategy) -> Option<String> {
    let Strategy { cell, pass } = strategy;
    let prepare = match cell.preparation {
        _ if *pass > 1 => "--overwrite=1",
        Preparation::Append => "--fallocate=none",
        Preparation::Fallocate => "--fallocate=native",
        Preparation::Filled | Preparation::Recycled => "--overwrite=1",
        Preparation::ZeroRange | Preparation::WriteZeroes => return None,
    };
    let sync = match cell.sync {
        Sync::Nothing => "",
        Sync::Fdatasync => " --fdatasync=1",
        Sync::Fsync => " --fsync=1",
        Sync::OpenDatasync => " --sync=dsync",
        Sync::OpenSync => " --sync=sync",
        Sync::DirectDsync => " --direct=1 --sync=dsync",
        Sync::Msync => return None,
    };
    let bytes = cell.step_bytes();
    let size = bytes * FIO_RECORDS;
    Some(format!("--rw=write --bs={bytes} --size={size} --ioengine=psync {prepare}{sync}"))
}

pub(super) fn median_us(pass: &Pass) -> Option<f64> {
    pass.latencies.percentile_us(50.0)
}

fn latencies(pass: &Pass) -> &Latencies {
    &pass.latencies
}

pub(super) fn journal_writes(pass: &Pass) -> Option<f64> {
    pass.each(pass.traffic?.journal.writes)
}

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

/// Returns a contest of both passes of all modes, sorted by sync and length, then by pass.
pub(super) fn contest(cells: &[Cell]) -> Contest<Strategy, Pass> {
    let groups = cells.chunk_by(|a, b| (a.sync, a.record_bytes) == (b.sync, b.record_bytes));
    let strategies = groups.flat_map(|group| {
        (1..=PASSES).flat_map(|pass| group.iter().map(move |cell| Strategy { cell: *cell, pass }))
    });
    Contest::new(FIELDS, strategies)
}

/// Adds what the journal of ext4 costs in new blocks: the latency with a journal divided by that
/// without it, in the first pass.
pub(super) fn add_journal_cost(
    with: &Contest<Strategy, Pass>,
    without: &Contest<Strategy, Pass>,
    report: &mut Report,
) {
    let both = with.entries.iter().zip(&without.entries);
    let both = both.filter(|(with, _)| with.strategy.cell.record_bytes == 4096);
    for (with, without) in both.filter(|(with, _)| with.strategy.pass == 1) {
        let Cell { sync, preparation, .. } = with.strategy.cell;
        let name = format!("nojournal_vs_journal_{preparation}_{sync}").replace('-', "_");
        let samples = with.samples(median_us).zip(without.samples(median_us));
        report.ratio(name, samples.and_then(|(with, without)| Ratio::of(with, without)));
    }
}
