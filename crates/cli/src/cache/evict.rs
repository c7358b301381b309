//! `haul cache evict`.

use haul_disk::{Error, Op, evict};
use serde_json::json;

use super::amount::{Cached, in_bytes};
use super::devices::Devices;
use super::files::{Files, Found, Troubles, cached_if_told, open_quietly, words};
use crate::args::EvictArgs;
use crate::output::Output;
use crate::report::Result;
use crate::units::Count;

pub(super) fn run(args: &EvictArgs) -> Result {
    let troubles = Troubles::default();
    let mut devices = Devices::default();
    let mut told = Told::default();
    for found in Files::of(&args.files, &troubles).iter() {
        match evict_one(&found, args.sync) {
            Ok((before, after)) => {
                told.before += before;
                told.after += after;
                if after.resident > 0 && devices.kind(found.device, &found.path).in_memory {
                    told.in_memory += after.resident;
                } else {
                    told.stayed.add(&after);
                }
            }
            Err(error) => troubles.tell(&words(&error)),
        }
    }
    told.tell(args)?;
    troubles.result()
}

/// What was in memory before, and after.
fn evict_one(found: &Found, sync: bool) -> haul_disk::Result<(Cached, Cached)> {
    let fd = open_quietly(found)?;
    let before = cached_if_told(&found.path, &fd)?;
    if sync && before.resident + before.untold > 0 {
        rustix::fs::fdatasync(&fd).map_err(|errno| Error::new(Op::Sync, &found.path, errno))?;
    }
    evict(&fd, 0, u64::MAX)?;
    Ok((before, cached_if_told(&found.path, &fd)?))
}

/// Why pages stayed, in pages.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Stayed {
    dirty: u64,
    writeback: u64,
    in_use: u64,
}

impl Stayed {
    fn add(&mut self, after: &Cached) {
        let dirty = after.dirty.min(after.resident);
        let writeback = after.writeback.min(after.resident - dirty);
        self.dirty += dirty;
        self.writeback += writeback;
        self.in_use += after.resident - dirty - writeback;
    }
}

/// What came of it.
#[derive(Debug, Default)]
struct Told {
    before: Cached,
    after: Cached,
    stayed: Stayed,
    /// Pages of files that are nowhere else.
    in_memory: u64,
}

impl Told {
    fn tell(&self, args: &EvictArgs) -> Result {
        let Self { before, after, stayed, in_memory } = self;
        let gone = before.resident.saturating_sub(after.resident);
        let mut output = Output::new();
        if args.files.json {
            let mut summary = after.json();
            summary["kind"] = json!("summary");
            summary["evicted_pages"] = json!(gone);
            summary["stayed_pages"] = json!({
                "dirty": stayed.dirty, "writeback": stayed.writeback, "in_use": stayed.in_use,
                "in_memory_file_system": in_memory,
            });
            output.line(summary)?;
        } else {
            let files = Count(before.files, "file");
            output.line(format_args!("evicted {} of {files}", in_bytes(gone)))?;
            if after.untold > 0 {
                let others = in_bytes(after.untold);
                output
                    .line(format_args!("  {others} are of others: what came of it is not told"))?;
            }
            for (pages, why) in self.reasons(args.sync) {
                output.line(format_args!("  {} stayed: {why}", in_bytes(pages)))?;
            }
        }
        output.finish()
    }

    fn reasons(&self, sync: bool) -> impl Iterator<Item = (u64, &'static str)> {
        let dirty = if sync {
            "written to meanwhile"
        } else {
            "written, and not yet on the medium; --sync writes it first"
        };
        let Stayed { dirty: dirty_pages, writeback, in_use } = self.stayed;
        [
            (dirty_pages, dirty),
            (writeback, "on its way to the medium"),
            (in_use, "mapped by a program, locked, or just being read"),
            (self.in_memory, "the file system is in memory"),
        ]
        .into_iter()
        .filter(|(pages, _)| *pages > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_that_stayed_has_one_reason() {
        for (resident, dirty, writeback, expected) in [
            (0, 0, 0, (0, 0, 0)),
            (9, 0, 0, (0, 0, 9)),
            (9, 4, 3, (4, 3, 2)),
            // Asked while pages change: never more reasons than pages.
            (9, 9, 9, (9, 0, 0)),
            (2, 5, 0, (2, 0, 0)),
        ] {
            let mut stayed = Stayed::default();
            stayed.add(&Cached { resident, dirty, writeback, ..Cached::default() });
            let (dirty, writeback, in_use) = expected;
            assert_eq!(stayed, Stayed { dirty, writeback, in_use });
        }
    }
}
