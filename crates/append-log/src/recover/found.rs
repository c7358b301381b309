//! What is in the directory of a log, and which of it counts.

use std::sync::Arc;

use haul_disk::Disk;

use crate::error::{Error, Result};
use crate::lsn::Lsn;
use crate::names::{self, Name};
use crate::options::{OnDamage, Options};
use crate::read::scan::is_first_page_zero;
use crate::recover::Segments;
use crate::recover::chain::{Chain, chain};
use crate::recover::deliver::settled;
use crate::recover::replay::{Damage, Recovered};
use crate::segments::Segment;
use crate::segments::pool::Pool;
use crate::segments::seal::seal;
use crate::ways::Ways;

/// What the directory of a log holds.
#[derive(Default)]
pub(super) struct Found {
    pub(super) segments: Segments,
    pub(super) spares: Vec<u32>,
    /// An earlier write or sync failed.
    pub(super) is_latched: bool,
    pub(super) highest: u32,
}

/// The files of the log, and of the segments those whose header can be read.
pub(super) fn list(disk: &dyn Disk, options: &Options, recovered: &mut Recovered) -> Result<Found> {
    let mut found = Found::default();
    for name in disk.list("")? {
        match names::parse(&name) {
            Name::Segment(number) => {
                found.highest = found.highest.max(number);
                match Segment::open(disk, number) {
                    Ok(segment) => {
                        found.segments.insert(number, Arc::new(segment));
                    }
                    Err(Error::Damaged { file, offset, what })
                        if options.on_damage == OnDamage::Report =>
                    {
                        recovered.damage.push(Damage { file, offset, what });
                    }
                    Err(other) => return Err(other),
                }
            }
            Name::Spare(number) => {
                found.highest = found.highest.max(number);
                found.spares.push(number);
            }
            Name::Latched => found.is_latched = true,
            Name::Unfinished => disk.remove(&name)?,
            Name::Other => {}
        }
    }
    disk.sync_dir("")?;
    Ok(found)
}

/// Reads those headers again from the medium that say where the log before them ends: whoever
/// acts on one that is only in memory destroys, after a power cut, what still counts.
pub(super) fn settle_links(disk: &dyn Disk, ways: &Ways, segments: &mut Segments) -> Result<()> {
    for segment in segments.values_mut().filter(|segment| segment.follows != Lsn(0)) {
        let file = settled(disk, ways, segment)?;
        *segment = Arc::new(segment.reopened(disk, &*file)?);
    }
    Ok(())
}

/// Takes the segments out that a truncation left behind, and tells where the others end.
pub(super) fn cut_off_truncated(
    disk: &dyn Disk,
    pool: &Pool,
    segments: &mut Segments,
) -> Result<Chain> {
    let links: Vec<_> = segments.values().map(|s| (s.number, s.follows)).collect();
    let chain = chain(&links);
    for number in &chain.cut_off {
        if let Some(segment) = segments.remove(number) {
            pool.retire(segment)?;
        }
    }
    for (number, end) in &chain.ends {
        if let Some(segment) = segments.get(number) {
            segment.end_at(*end);
            // The end stands in a later segment's header; now it stands here too. A medium that
            // refuses is no reason not to open: the header still says it.
            drop(seal(disk, segment, *end));
        }
    }
    Ok(chain)
}

/// Takes the segments behind the last one that was ever written to out of `segments`.
pub(super) fn split_off_not_begun(disk: &dyn Disk, segments: &mut Segments) -> Result<Segments> {
    let mut not_begun = Segments::new();
    while let Some(last) = segments.last_entry() {
        if !is_first_page_zero(last.get(), &last.get().sequential(disk, false)?)? {
            break;
        }
        let (number, segment) = last.remove_entry();
        not_begun.insert(number, segment);
    }
    Ok(not_begun)
}
