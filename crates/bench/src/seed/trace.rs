//! Shows the block trace of one synced write to a growing, a reserved and a filled file, as the
//! pictures of text 001 do.

use std::path::PathBuf;

use haul_measure::{Error, Result, Watcher};

use super::{compare, require_space};
use crate::host::Host;
use crate::options::size;
use crate::report::{Column, Report, Row, Samples, Value};
use crate::trace::{Line, Trace, Traffic};
use crate::write_modes::target_fs::TargetFs;
use crate::write_modes::{Cell, LOG, OLD, Preparation, Sync, VirtualDisk, Writer, prepare, remove};

/// Options of `haul bench seed trace`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the test file or the image of the virtual disk
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Trace a new file system in an image file: ext4, ext4-nojournal, xfs, btrfs
    ///
    /// The image is in DIR. Without this option, the file system of DIR is traced, with the
    /// requests of all programs.
    #[arg(long, value_name = "NAME")]
    pub virtual_disk: Option<VirtualDisk>,
    /// Sync of the record: fsync, fdatasync, none, open-sync, ...
    #[arg(long, value_name = "NAME", default_value = "fsync")]
    pub sync: Sync,
    /// Length of the record
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = record_size)]
    pub record: u64,
    /// Also write all lines of the kernel's trace to FILE
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

fn record_size(text: &str) -> Result<u64, String> {
    size(text, 1..=16 << 20, "1 B to 16MiB")
}

const PREPARATIONS: [Preparation; 3] =
    [Preparation::Append, Preparation::Fallocate, Preparation::Filled];

const COLUMNS: &[Column] = &[
    Column::number("time_us", "µs", 0),
    Column::text("action", "action"),
    Column::text("task", "task"),
    Column::text("flags", "flags"),
    Column::number("sector", "sector", 0),
    Column::number("bytes", "bytes", 0),
];

/// The figures of the text: the bytes of the journal for one record.
const TEXT: [(&str, f64); 3] = [
    ("append_journal_bytes", 20480.0),
    ("fallocate_journal_bytes", 12288.0),
    ("filled_journal_bytes", 0.0),
];

const SECTOR_BYTES: u64 = 512;

/// Runs the experiment. All files are removed when this returns, and also when the process is
/// killed.
///
/// # Errors
/// Returns [`crate::Error::Cancelled`] if the watcher cancels, an error without root or the
/// kernel's tracing, and the errors of the disk.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    require_space(&options.dir, 4 * options.record)?;
    let place = match options.virtual_disk {
        None => TargetFs::below(&options.dir, &[LOG, OLD])?,
        Some(kind) => TargetFs::on_virtual_disk(kind, &options.dir, 2 * options.record)?,
    };
    let mut report = Report::new("seed trace", Host::here(), COLUMNS, "bytes");
    report.host.storage.push(place.facts.clone());
    report.notes.push(options.note());
    let mut raw = String::new();
    for (number, preparation) in PREPARATIONS.into_iter().enumerate() {
        watcher.step(number, PREPARATIONS.len(), preparation.name());
        watcher.check()?;
        raw += &format!("# {preparation}, {}\n", options.sync);
        raw += &trace(&place, preparation, options, &mut report)?;
    }
    if let Some(path) = &options.trace {
        let what = || format!("write the trace to {}", path.display());
        std::fs::write(path, raw).map_err(|source| Error::other(what())(source))?;
    }
    if options.sync == Sync::Fsync && options.record == 4096 {
        compare(&mut report, "", &TEXT);
    }
    Ok(report)
}

/// The mark in the trace before the traced record.
const MARK: &str = "record";

/// Writes two records, and traces the second one. Returns the lines of the kernel.
fn trace(
    place: &TargetFs,
    preparation: Preparation,
    options: &Options,
    report: &mut Report,
) -> Result<String> {
    let tracing = place.tracing_of_all()?;
    let cell = Cell { sync: options.sync, record_bytes: options.record, preparation };
    let table = format!("{preparation}, {}", options.sync);
    let Some(mut prepared) = prepare(place, &cell, 2)? else {
        report.rows.push(Row::new(&table, "", Vec::new()).without_numbers("not supported"));
        return Ok(String::new());
    };
    let mut writer = Writer::new(&cell, &mut prepared)?;
    tracing.start()?;
    // The second record follows at once: a clock tick between them would change the timestamps of
    // the file, which fsync writes to the journal.
    writer.write(0)?;
    tracing.mark(MARK)?;
    writer.write(1)?;
    // Waits until the device is idle, so that the completions are in the trace.
    place.counters();
    let text = tracing.stop_text()?;
    drop(prepared);
    remove(place)?;
    let Some((own, text)) = traced(&text) else {
        return Err(Error::Missing("the kernel's trace lost events".to_owned()));
    };
    report.rows.extend(rows(&table, text));
    let traffic = Traffic::of(&Trace::parse(text, MARK), own, place.journalling);
    let requests = traffic.data.writes + traffic.journal.writes + traffic.metadata.writes;
    for (name, number) in [
        ("journal_bytes", traffic.journal.bytes),
        ("journal_writes", traffic.journal.writes),
        ("metadata_writes", traffic.metadata.writes),
        ("writes", requests),
        ("syncs", traffic.syncs),
    ] {
        let counted = Samples::new(preparation.name(), [number as f64]);
        report.amount(format!("{preparation}_{name}"), Some(counted));
    }
    Ok(text.to_owned())
}

/// Returns the task that wrote the mark, and the text of a trace from this mark.
fn traced(text: &str) -> Option<(u32, &str)> {
    let marked = |line: &&str| Line::parse(line).filter(|line| line.mark() == Some(MARK)).is_some();
    let line = text.lines().find(marked)?;
    let at = text.find(line)?;
    Some((Line::parse(line)?.pid, &text[at..]))
}

/// Returns a row for each line of a trace that belongs to an operation.
fn rows(table: &str, text: &str) -> Vec<Row> {
    let lines: Vec<_> = text.lines().filter_map(Line::parse).collect();
    let began = lines.iter().find(|line| line.mark().is_some()).map_or(0, |line| line.at_us);
    let row = |line: &Line<'_>| {
        let operation = line.operation()?;
        let values: Vec<Value> = vec![
            (line.at_us.saturating_sub(began) as f64).into(),
            action(line.event)?.into(),
            line.comm.into(),
            operation.rwbs.into(),
            // A request without data has no place.
            (operation.sectors > 0).then_some(operation.sector as f64).into(),
            ((operation.sectors * SECTOR_BYTES) as f64).into(),
        ];
        Some(Row::new(table, "", values))
    };
    lines.iter().filter_map(row).collect()
}

/// Returns the letter by which `blktrace` shows an event, with its meaning.
fn action(event: &str) -> Option<&'static str> {
    Some(match event {
        "block_bio_remap" => "A remap",
        "block_bio_queue" => "Q queue",
        "block_bio_backmerge" => "M merge",
        "block_getrq" => "G get request",
        "block_rq_insert" => "I insert",
        "block_rq_issue" => "D issue",
        "block_rq_complete" => "C complete",
        _ => return None,
    })
}

impl Options {
    fn note(&self) -> String {
        format!(
            "The block trace of one write of {} B with the sync {}: the second record of a new \
             file. With fsync, a filled file has a journal commit too if a clock tick (4 ms) \
             passed since the record before. Actions have the letters of blktrace; flags are those \
             of the kernel: W write, S a task waits, M metadata, F before W the device empties its \
             write cache first, F after W the write bypasses it, FF it only empties it. The ratios \
             are counts for this record.",
            self.record, self.sync
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_letters_of_blktrace_and_the_time_since_the_mark() {
        let text = "\
# tracer: nop
            haul-7     [001] .....   99.000000: tracing_mark_write: instances/haul-7-0
            haul-7     [001] .....   99.000010: block_bio_queue: 7,0 WS 4088 + 8 [haul]
            haul-7     [001] .....  100.000000: tracing_mark_write: record
            haul-7     [001] .....  100.000010: block_bio_queue: 7,0 WS 4096 + 8 [haul]
            haul-7     [001] .....  100.000012: block_getrq: 7,0 WS 4096 + 8 [haul]
            haul-7     [001] .....  100.000020: block_rq_issue: 7,0 WS 4096 () 4096 + 8 none,0,0 [h]
    kworker/1:0H-24    [001] .....  100.000030: block_rq_issue: 7,0 FF 0 () 0 + 0 none,0,0 [k]
    kworker/1:0H-24    [001] .....  100.000031: block_unplug: [kworker] 1
";
        let (own, text) = traced(text).unwrap();
        assert_eq!((own, traced("# tracer: nop")), (7, None));
        let rows = rows("append", text);
        let actions: Vec<_> = rows.iter().map(|row| row.values[1].clone()).collect();
        assert_eq!(actions, ["Q queue", "G get request", "D issue", "D issue"].map(Value::from));
        let last = &rows[3].values;
        assert!((last[0].number().unwrap() - 30.0).abs() < 0.1, "{last:?}");
        assert_eq!(
            (&last[2], &last[4], &last[5]),
            (&"kworker/1:0H".into(), &Value::NotMeasured, &0.0.into())
        );
    }
}
