//! Provides a read-only view of a log: it contains the records that existed when the view was
//! opened.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use haul_disk::Disk;

use super::deliver::{ReadSegment, deliver};
use super::list::{has_name, list};
use super::report::ReadOnlyReport;
use crate::error::{Error, Result};
use crate::lsn::{Lsn, Position};
use crate::options::Options;
use crate::record::Record;
use crate::replay::{Replay, SegmentInfo};
use crate::segments::Segment;

/// A read-only view of a log, opened by [`crate::Log::open_read_only`]. It does not contain records
/// appended after it was opened.
///
/// All methods may be called from several threads at once.
pub struct ReadOnlyLog {
    disk: Arc<dyn Disk>,
    pub(super) segments: BTreeMap<u32, ReadSegment>,
}

impl ReadOnlyLog {
    /// Implements [`crate::Log::open_read_only`].
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        options: &Options,
        replay: &mut dyn Replay,
    ) -> Result<(Self, ReadOnlyReport)> {
        options.check()?;
        let mut report = ReadOnlyReport::default();
        let listed = list(&*disk, options, &mut report)?;
        let segments = deliver(&*disk, listed, options.on_damage, &mut report, replay)?;
        Ok((Self { disk, segments }, report))
    }

    /// Returns the LSN at which the log ended when it was opened.
    #[must_use]
    pub fn end(&self) -> Lsn {
        let last = self.segments.last_key_value();
        last.map_or(Lsn(0), |(number, last)| Lsn::new(*number, last.end))
    }

    /// Returns the segments by ascending number.
    #[must_use]
    pub fn segments(&self) -> Vec<SegmentInfo> {
        self.segments.values().map(|read| read.segment.info()).collect()
    }

    /// Reads the record at `at` with one request and verifies its checksum.
    ///
    /// # Errors
    /// Returns [`Error::Damaged`] if the checksum does not match, [`Error::Invalid`] if the record
    /// is not in this log, and [`Error::SegmentRemoved`] if the checksum does not match because the
    /// writing process removed the segment.
    pub fn read(&self, at: Position) -> Result<Record> {
        let read = self.segment(at.lsn.segment())?;
        if at.lsn.offset() >= read.end {
            return Err(Error::Invalid("the position is after the end of the log"));
        }
        match read.segment.read(at) {
            Err(Error::Damaged { .. }) if !self.has_name(&read.segment)? => {
                Err(Error::SegmentRemoved { file: read.segment.path.clone() })
            }
            outcome => outcome,
        }
    }

    pub(super) fn segment(&self, number: u32) -> Result<&ReadSegment> {
        self.segments.get(&number).ok_or(Error::Invalid("no segment has this number"))
    }

    /// `true` if the segment's file still exists under its name. The writing process overwrites a
    /// file only after its name's removal is durable, so bytes read before this check belong to the
    /// segment.
    pub(super) fn has_name(&self, segment: &Segment) -> Result<bool> {
        has_name(&*self.disk, segment.number)
    }
}

impl fmt::Debug for ReadOnlyLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let segments = self.segments.keys();
        f.debug_struct("ReadOnlyLog").field("segments", &segments).finish_non_exhaustive()
    }
}
