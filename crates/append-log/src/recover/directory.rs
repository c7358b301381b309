//! Lists the files in a log directory, and removes segments that are no longer part of the log.

use std::sync::Arc;

use haul_disk::Disk;

use crate::append::seal::seal;
use crate::error::{Error, Result};
use crate::format::HEADER_BYTES;
use crate::lsn::Lsn;
use crate::names::{self, Name};
use crate::options::{OnDamage, Options};
use crate::read::scan::is_first_page_zero;
use crate::recover::deliver::open_durable;
use crate::replay::{Damage, Recovered, Replay};
use crate::segments::chain::{Chain, chain};
use crate::segments::pool::Pool;
use crate::segments::{RANDOM, Segment, Segments};
use crate::strategy::WriteStrategy;

/// The files found in a log directory.
#[derive(Default)]
pub(super) struct Directory {
    pub(super) segments: Segments,
    pub(super) spares: Vec<u32>,
    /// `true` if the directory contains the marker of a failed write or sync.
    pub(super) is_latched: bool,
    pub(super) highest: u32,
}

/// Lists the log's files and opens all segments with a valid header. Removes unfinished segments.
pub(super) fn list(
    disk: &dyn Disk,
    options: &Options,
    recovered: &mut Recovered,
) -> Result<Directory> {
    let mut directory = Directory::default();
    for name in disk.list("")? {
        match names::parse(&name) {
            Name::Segment(number) => {
                directory.highest = directory.highest.max(number);
                match Segment::open(disk, number, RANDOM) {
                    Ok((segment, header_damage)) => {
                        directory.segments.insert(number, Arc::new(segment));
                        recovered.header_damage.extend(header_damage);
                    }
                    // With `OnDamage::Refuse`, opening fails at this point, before any segment is
                    // changed.
                    Err(Error::Damaged { file, offset, what })
                        if options.on_damage == OnDamage::Report =>
                    {
                        recovered.damage.push(Damage { file, offset, end: u64::MAX, what });
                    }
                    Err(other) => return Err(other),
                }
            }
            Name::Spare(number) => {
                directory.highest = directory.highest.max(number);
                directory.spares.push(number);
            }
            Name::Latched => directory.is_latched = true,
            Name::Unfinished => disk.remove(&name)?,
            Name::Other => {}
        }
    }
    disk.sync_dir("")?;
    Ok(directory)
}

/// Syncs the segments with a `follows` field, the LSN at which the log before the segment ends, and
/// reads their headers again, bypassing the page cache. Otherwise a power cut could lose such a
/// header after the segments that it detaches were removed, and the log would then need these
/// segments again.
pub(super) fn reload_links(
    disk: &dyn Disk,
    strategy: &WriteStrategy,
    segments: &mut Segments,
) -> Result<()> {
    for segment in segments.values_mut().filter(|segment| segment.follows != Lsn(0)) {
        let file = open_durable(disk, strategy, segment)?;
        *segment = Arc::new(segment.reopened(disk, &*file)?);
    }
    Ok(())
}

/// Removes the segments that are no longer part of the log, and appends a seal (the record that
/// ends a segment) to each remaining segment whose end a later header declares.
pub(super) fn remove_detached(
    disk: &dyn Disk,
    pool: &Pool,
    segments: &mut Segments,
) -> Result<Chain> {
    let links: Vec<_> = segments.values().map(|s| (s.number, s.follows)).collect();
    let chain = chain(&links);
    for number in &chain.detached {
        if let Some(segment) = segments.remove(number) {
            pool.retire(segment)?;
        }
    }
    for (number, end) in &chain.ends {
        if let Some(segment) = segments.get(number) {
            segment.end_at(*end);
            // The header of the later segment already declares the end, so a failure to write the
            // seal is ignored.
            drop(seal(disk, segment, *end));
        }
    }
    Ok(chain)
}

/// Moves the unused segments (prepared, but without records) that follow the last segment with
/// records out of `segments` and returns them.
pub(super) fn split_off_unused(
    disk: &dyn Disk,
    segments: &mut Segments,
    replay: &mut dyn Replay,
) -> Result<Segments> {
    let mut unused = Segments::new();
    while let Some(last) = segments.last_entry() {
        if replay.durable_end(last.get().info()) > HEADER_BYTES
            || !is_first_page_zero(last.get(), &last.get().sequential(disk, false)?)?
        {
            break;
        }
        let (number, segment) = last.remove_entry();
        unused.insert(number, segment);
    }
    Ok(unused)
}
