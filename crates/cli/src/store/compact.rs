//! `haul store compact`: frees the space of deleted objects.

use haul_file_store::CompactionReport;
use haul_store_pool::Pool;
use serde_json::json;

use super::missing;
use crate::args::CompactArgs;
use crate::output::print_line;
use crate::progress::{Amount, Progress};
use crate::report::{OrFail, Result};
use crate::units::{Bytes, Count};

pub(super) fn run(store: &Pool, args: &CompactArgs) -> Result {
    let progress = Progress::new(args.progress.show, "volume", Amount::default());
    let compacted = store.compact_with_progress(&mut |done: &CompactionReport| {
        progress.set(Amount { things: done.volumes_removed, bytes: done.bytes_freed });
    });
    progress.finish();
    let compacted = compacted.or_fail(|| "cannot compact the store".to_owned())?;
    if args.json {
        print_line(json!({
            "freed_bytes": compacted.bytes_freed,
            "removed_volumes": compacted.volumes_removed,
            "moved_bytes": compacted.bytes_moved,
            "dead_bytes": compacted.bytes_left,
            "missing": missing::dirs(store),
        }))?;
    } else {
        print_report(&compacted)?;
    }
    missing::report(store, "compacted")
}

fn print_report(compacted: &CompactionReport) -> Result {
    print_line(format_args!(
        "freed {}: removed {}, moved {}",
        Bytes(compacted.bytes_freed),
        Count(compacted.volumes_removed, "volume"),
        Bytes(compacted.bytes_moved),
    ))?;
    let few = compacted.bytes_left.saturating_sub(compacted.bytes_not_ended);
    if few > 0 {
        print_line(format_args!(
            "{} of deleted objects remain, in volumes of which too little is dead: less than a \
             tenth, or less than 1 MiB of the one being written",
            Bytes(few)
        ))?;
    }
    if compacted.bytes_not_ended > 0 {
        print_line(format_args!(
            "{} of deleted objects remain in the volume being written, because the disk has no \
             space for the next one: free disk space, and run this again",
            Bytes(compacted.bytes_not_ended)
        ))?;
    }
    Ok(())
}
