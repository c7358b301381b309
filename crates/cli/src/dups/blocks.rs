//! `haul dups blocks`: shares equal blocks of files.

use std::io::Write;
use std::path::Path;

use haul_bulk_read::{ReadOptions, WalkOptions};
use haul_duplicates::act::SkipReason;
use haul_duplicates::blocks::{Events, Options, SharedRange, Stats, share_blocks};
use haul_duplicates::{Error, Phase};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::progress::Watch;
use crate::args::BlocksArgs;
use crate::json::set_path;
use crate::output::{Output, unwritten};
use crate::report::{Failure, Result, print_message};
use crate::units::{Bytes, Count};

pub(super) fn run(args: &BlocksArgs) -> Result {
    let threads = args.threads.map(usize::from);
    let walk = WalkOptions {
        hidden: true,
        one_file_system: args.one_fs,
        bytes_min: args.min,
        threads,
        ..WalkOptions::default()
    };
    let plain = Options::default();
    let read = ReadOptions { kind: args.disk_kind.map(Into::into), threads, ..plain.read };
    let options = Options { block_bytes: args.block_size, dry_run: args.dry_run, read };
    let printer = Printer {
        args,
        watch: Watch::new(args.progress, &args.paths),
        output: Mutex::new((Output::new(), Ok(()))),
    };
    let stats = share_blocks(&args.paths, &walk, &options, &printer);
    let Printer { watch, output, .. } = printer;
    let watched = watch.finish();
    let (mut output, printed) = output.into_inner();
    printed?;
    if args.json {
        output.line(totals(args, &stats))?;
    }
    output.finish()?;
    let (ranges, bytes) = (Count(stats.ranges, "range"), Bytes(stats.shared_bytes));
    let verb = if args.dry_run { "would share" } else { "shared" };
    let already = match stats.already_shared_bytes {
        0 => String::new(),
        bytes => format!(" ({} shared before)", Bytes(bytes)),
    };
    print_message(&format!("{verb} {ranges} of {bytes}{already}, skipped {}", stats.skipped));
    watched?;
    if stats.skipped > 0 { Err(Failure::reported()) } else { Ok(()) }
}

/// A receiver of events that prints the shared ranges.
struct Printer<'a> {
    args: &'a BlocksArgs,
    watch: Watch,
    /// The output, and its first error.
    output: Mutex<(Output, Result)>,
}

impl haul_duplicates::Events for Printer<'_> {
    fn failed(&self, error: Error) {
        self.watch.failed(error);
    }

    fn phase(&self, phase: Phase, items: u64, bytes: u64) {
        self.watch.phase(phase, items, bytes);
    }

    fn progress(&self, items: u64, bytes: u64) {
        self.watch.progress(items, bytes);
    }

    fn skipped(&self, path: &Path, reason: haul_bulk_read::SkipReason) {
        self.watch.skipped(path, reason);
    }
}

impl Events for Printer<'_> {
    fn shared(&self, range: &SharedRange<'_>) {
        let line = match (self.args.json, self.args.dry_run) {
            (true, _) => json_line(range).to_string().into_bytes(),
            (false, true) => range.command(),
            (false, false) => return,
        };
        let mut output = self.output.lock();
        let written = output.0.write_all(&[&line[..], b"\n"].concat()).map_err(unwritten);
        if output.1.is_ok() {
            output.1 = written;
        }
    }

    fn range_skipped(&self, range: &SharedRange<'_>, reason: &SkipReason) {
        let SharedRange { to, to_offset, bytes, .. } = range;
        let bytes = Bytes(*bytes);
        self.watch.print(&format!("skipped {bytes} of {} at {to_offset}: {reason}", to.display()));
    }
}

fn json_line(range: &SharedRange<'_>) -> Value {
    let mut line = json!({
        "from_offset": range.from_offset,
        "to_offset": range.to_offset,
        "bytes": range.bytes,
    });
    set_path(&mut line, "from", range.from);
    set_path(&mut line, "to", range.to);
    line
}

fn totals(args: &BlocksArgs, stats: &Stats) -> Value {
    json!({
        "dry_run": args.dry_run,
        "block_bytes": args.block_size,
        "files": stats.files,
        "read_bytes": stats.bytes,
        "ranges": stats.ranges,
        "shared_bytes": stats.shared_bytes,
        "already_shared_bytes": stats.already_shared_bytes,
        "skipped": stats.skipped,
    })
}
