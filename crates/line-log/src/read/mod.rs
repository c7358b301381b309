//! Reads the lines of a log back, all or those of a range of times.

mod file;
mod listing;
mod scan;
mod seek;

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use haul_disk::{Disk, Error as DiskError, OsDisk};

use crate::calendar::{Clock, SystemClock, micros};
use crate::error::Result;
use file::Part;
use listing::{Listing, LogFile};

/// A range of times. By default, it contains all times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The first time of the range; `None` sets no limit.
    pub since: Option<SystemTime>,
    /// The end of the range, which does not belong to it; `None` sets no limit.
    pub until: Option<SystemTime>,
}

/// The result of [`copy_lines`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct CopyReport {
    /// The number of files of the log in the directory, before any was selected.
    pub files_listed: u64,
    /// The number of files from which lines were copied.
    pub files: u64,
    /// The number of these files whose lines have no timestamps. They were selected as a whole, by
    /// the times at which they were begun and closed.
    pub files_without_timestamps: u64,
    /// The number of bytes copied.
    pub bytes: u64,
    /// The names of files that the log removed before they could be read.
    pub removed: Vec<String>,
    /// The errors of files that could not be read completely.
    pub failures: Vec<Arc<DiskError>>,
}

/// Copies the lines of the log in the directory `dir` whose timestamps are in `range`, from the
/// oldest to the newest. Passes them to `sink`, in pieces of any length with the name of their file,
/// until it returns `false`.
///
/// Reads compressed files and files being written, up to their length when they are opened. Takes no
/// lock and changes nothing, so a process may be writing the log.
///
/// The timestamps are those of [`crate::Stamper`], in any of its formats, and are expected to
/// ascend; lines without one belong to the preceding line. The first file of the range is found by
/// the names of the files, and the first line by binary search, unless the file is compressed. Files
/// whose lines have no timestamps are copied as a whole if they were written in the range, see
/// [`CopyReport::files_without_timestamps`].
///
/// # Errors
/// Returns [`crate::Error::Disk`] if the directory cannot be read. Files that cannot be read are
/// reported in [`CopyReport::failures`], and all other files are copied.
pub fn copy_lines(
    dir: impl AsRef<Path>,
    range: TimeRange,
    sink: &mut dyn FnMut(&str, &[u8]) -> bool,
) -> Result<CopyReport> {
    copy_lines_on(&OsDisk::open(dir)?, range, &SystemClock, sink)
}

/// Copies lines as [`copy_lines`] does, of the log in the root directory of `disk`. `clock` supplies
/// the modification time of the current file.
///
/// # Errors
/// Returns the errors of [`copy_lines`].
pub fn copy_lines_on(
    disk: &dyn Disk,
    range: TimeRange,
    clock: &dyn Clock,
    sink: &mut dyn FnMut(&str, &[u8]) -> bool,
) -> Result<CopyReport> {
    let (since, until) = (range.since.map(micros), range.until.map(micros));
    let files = Listing::read(disk, clock)?;
    let report = CopyReport { files_listed: files.len(), ..CopyReport::default() };
    let is_limited = since.is_some() || until.is_some();
    let mut copy = Copy { is_limited, since, until, sink, report };
    for file in files.since(since) {
        match copy.file(disk, &file) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) if error.is_not_found() => copy.report.removed.push(file.name()),
            Err(error) => copy.report.failures.push(Arc::new(error)),
        }
    }
    Ok(copy.report)
}

/// The state of a copy.
struct Copy<'a> {
    /// `true` if the range has a beginning or an end.
    is_limited: bool,
    /// The beginning of the range; `None` once a line of the range was found.
    since: Option<u64>,
    until: Option<u64>,
    sink: &'a mut dyn FnMut(&str, &[u8]) -> bool,
    report: CopyReport,
}

impl Copy<'_> {
    /// Copies the lines of a file. Returns `false` after the last line of the range.
    fn file(&mut self, disk: &dyn Disk, file: &LogFile) -> std::result::Result<bool, DiskError> {
        let mut source = file.open(disk)?;
        let is_stamped = !self.is_limited || source.has_timestamps()?;
        if !is_stamped && self.until.is_some_and(|until| file.begin_us >= until) {
            return Ok(false);
        }
        let since = self.since.filter(|_| is_stamped);
        let mut parts = source.parts(since, self.until.filter(|_| is_stamped))?;
        let name = file.name();
        let mut bytes = 0;
        let mut is_last = false;
        let copied = loop {
            match parts.next() {
                Ok(Part::Lines(lines)) => {
                    bytes += lines.len() as u64;
                    if !(self.sink)(&name, lines) {
                        is_last = true;
                        break Ok(());
                    }
                }
                Ok(Part::EndOfRange) => {
                    is_last = true;
                    break Ok(());
                }
                Ok(Part::EndOfFile) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if bytes > 0 {
            self.since = None;
            self.report.files += 1;
            self.report.files_without_timestamps += u64::from(!is_stamped);
            self.report.bytes += bytes;
        }
        copied.map(|()| !is_last)
    }
}
