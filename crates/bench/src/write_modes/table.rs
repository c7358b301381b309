//! Defines the columns of the report. Performs no I/O.

use haul_measure::Latencies;

use super::measure::Pass;
use super::modes::{Preparation, Sync};
use super::passes::Strategy;
use crate::contest::Field;
use crate::fio;
use crate::report::Column;

pub(super) const BAR: &str = "records_per_s";

/// The columns of the table. Counts are per record, and medians of the rounds, so that a single
/// `sync` of another program, which commits every journal, does not affect them.
pub(super) const FIELDS: &[Field<Strategy, Pass>] = &[
    Field::label("sync", "sync", |strategy| strategy.cell.sync.name().into()),
    Field::parameter(Column::number("record_bytes", "bytes", 0), |strategy| {
        (strategy.cell.record_bytes as f64).into()
    }),
    Field::parameter(Column::number("pass", "pass", 0), |strategy| (strategy.pass as f64).into()),
    Field::label("way", "preparation", |strategy| strategy.cell.preparation.name().into()),
    Field::median(Column::number("median_us", "µs", 1), median_us),
    Field::percentile_us(Column::number("p99_us", "p99 µs", 1).ranked(3), 99.0, latencies),
    Field::spread(Column::number("records_per_s", "records/s", 0), 9, |pass| {
        Some(pass.records as f64 / pass.time.as_secs_f64())
    }),
    Field::median(Column::number("device_written_bytes", "B written", 0).ranked(6), |pass| {
        pass.each(pass.counters?.written_bytes)
    }),
    Field::median(Column::number("data_writes", "writes", 2).ranked(4), |pass| {
        pass.each(pass.traffic?.data.writes)
    }),
    Field::median(Column::number("journal_writes", "journal", 2).ranked(1), journal_writes),
    Field::median(Column::number("journal_bytes", "journal B", 0).ranked(8), |pass| {
        pass.each(pass.traffic?.journal.bytes)
    }),
    Field::median(Column::number("metadata_writes", "metadata", 2).ranked(5), |pass| {
        pass.each(pass.traffic?.metadata.writes)
    }),
    Field::median(Column::number("other_writes", "others", 2).ranked(7), |pass| {
        pass.each(pass.traffic?.others.writes)
    }),
    Field::median(Column::number("device_syncs", "syncs", 2).ranked(2), |pass| {
        pass.each(pass.counters?.syncs)
    }),
    Field::median(Column::number("device_reads", "reads", 2).ranked(6), |pass| {
        pass.each(pass.counters?.reads)
    }),
    Field::median(Column::number("device_write_requests", "requests", 2).ranked(10), |pass| {
        pass.each(pass.counters?.writes)
    }),
    Field::median(Column::number("fua_writes", "FUA", 2).ranked(10), |pass| {
        pass.each(pass.traffic?.fua)
    }),
    Field::total(Column::number("records", "records", 0).ranked(11), |passes| {
        Some(passes.iter().map(|pass| pass.records as f64).sum())
    }),
    Field::parameter(fio::COLUMN, |strategy| fio::cell(fio_options(strategy))),
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
