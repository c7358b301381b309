//! `haul cache evict`: evicts files from the page cache.

use haul_page_cache::{Evicted, Remaining};
use serde_json::json;

use super::errors::{Errors, error_text};
use super::show::{counts_json, in_bytes};
use crate::args::EvictArgs;
use crate::output::Output;
use crate::report::Result;
use crate::units::Count;

pub(super) fn run(args: &EvictArgs) -> Result {
    let errors = Errors::new(&args.files);
    let files = errors.find();
    let evicted = Evicted::run(&files, args.sync, |error| errors.report(&error_text(error)));
    print(&evicted, args)?;
    errors.result()
}

fn print(evicted: &Evicted, args: &EvictArgs) -> Result {
    let Evicted { before, after, remaining, in_memory } = evicted;
    let pages = before.resident.saturating_sub(after.resident);
    let mut output = Output::new();
    if args.files.json {
        let mut summary = counts_json(after);
        summary["kind"] = json!("summary");
        summary["evicted_pages"] = json!(pages);
        summary["stayed_pages"] = json!({
            "dirty": remaining.dirty, "writeback": remaining.writeback,
            "in_use": remaining.in_use, "in_memory_file_system": in_memory,
        });
        output.line(summary)?;
    } else {
        let files = Count(before.files, "file");
        output.line(format_args!("evicted {} of {files}", in_bytes(pages)))?;
        if after.unknown > 0 {
            let unknown = in_bytes(after.unknown);
            output.line(format_args!("  {unknown} in files of other users, not reported"))?;
        }
        for (pages, reason) in reasons(evicted, args.sync) {
            output.line(format_args!("  {} not evicted: {reason}", in_bytes(pages)))?;
        }
    }
    output.finish()
}

fn reasons(evicted: &Evicted, sync: bool) -> impl Iterator<Item = (u64, &'static str)> {
    let dirty = if sync { "modified again" } else { "dirty; --sync writes them first" };
    let Remaining { dirty: dirty_pages, writeback, in_use } = evicted.remaining;
    [
        (dirty_pages, dirty),
        (writeback, "under writeback"),
        (in_use, "mapped, locked or being read"),
        (evicted.in_memory, "file system in memory"),
    ]
    .into_iter()
    .filter(|(pages, _)| *pages > 0)
}
