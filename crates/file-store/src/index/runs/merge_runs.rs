//! Merges adjacent runs into a new one.

use std::sync::Arc;

use haul_disk::Disk;

use crate::error::Result;
use crate::index::runs::cursor::Cursor;
use crate::index::runs::merge::{Deletions, Merged};
use crate::index::runs::run::Run;
use crate::index::runs::source::Source;
use crate::index::runs::writer::{RunInfo, RunWriter};

/// The bytes that a merge reads ahead in each run.
const READAHEAD_BYTES: usize = 256 << 10;

/// The number of keys after which a merge calls `pace` even if it wrote nothing.
const KEYS_PER_CALL: u64 = 1 << 14;

/// The file to which a merge writes its run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output<'a> {
    /// The file's name, which must not exist.
    pub(crate) name: &'a str,
    /// The run's ID.
    pub(crate) id: u64,
}

/// Merges `inputs`, given from newest to oldest and adjacent in age, into one run.
///
/// `drop_deletions` is allowed only if the oldest of all runs is an input. `pace` is called after
/// each write with the number of bytes written so far. It may sleep to limit the rate, and cancels
/// the merge by returning `false`: the result is then `None`, and the caller removes the file, as
/// after an error.
///
/// # Errors
/// `Damaged` if an input is damaged; a failed read, write or sync, which is final.
///
/// # Durability
/// The run survives a power cut if the caller syncs the directory, too.
pub(crate) fn merge_runs(
    disk: &dyn Disk,
    inputs: &[Arc<Run>],
    output: Output<'_>,
    drop_deletions: bool,
    pace: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<RunInfo>> {
    let cursors = inputs.iter().map(|run| Cursor::new(Arc::clone(run), READAHEAD_BYTES)).collect();
    // Tombstones are delivered in either case, so that `pace` is called while they are dropped.
    let mut merged = Merged::new(cursors, Deletions::Deliver);
    let mut writer = RunWriter::create(disk, output.name, output.id)?;
    let (mut keys, mut written) = (0, 0);
    merged.advance()?;
    while let Some((key, value)) = merged.current() {
        if value.is_some() || !drop_deletions {
            writer.push(key, value)?;
        }
        keys += 1;
        if keys % KEYS_PER_CALL == 0 || writer.written_bytes() > written {
            written = writer.written_bytes();
            if !pace(written) {
                return Ok(None);
            }
        }
        merged.advance()?;
    }
    writer.finish().map(Some)
}
