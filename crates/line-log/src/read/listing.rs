//! Lists the files of a log, also while it is being written.

use std::sync::Arc;

use haul_disk::{Disk, File, Result};

use super::file::Source;
use crate::calendar::Clock;
use crate::names::{self, CURRENT, Name, READ_ONLY, Stamp};

/// The maximum number of attempts to list the files without a rotation in between.
const ATTEMPTS_MAX: usize = 1000;

/// The maximum error of modification times in microseconds: the kernel takes them from a clock that
/// it advances only some hundred times per second.
const MODIFIED_ERROR_US: u64 = 1_000_000;

/// A file of a log, and the times in which its lines were written.
#[derive(Debug)]
pub(super) struct LogFile {
    kind: Kind,
    /// The time at which the preceding file was closed, in microseconds since the Unix epoch.
    pub(super) begin_us: u64,
    /// The time at which the file was closed or, of the current file, last written.
    end_us: u64,
}

#[derive(Debug)]
enum Kind {
    Closed(Stamp),
    Current(Arc<dyn File>),
}

/// The files of a log, from the oldest to the newest.
#[derive(Debug)]
pub(super) struct Listing(Vec<LogFile>);

impl Listing {
    /// Lists the closed files and opens the current one. If a rotation takes place meanwhile, tries
    /// again: each line must be in one of the files, and in only one.
    pub(super) fn read(disk: &dyn Disk, clock: &dyn Clock) -> Result<Self> {
        let mut stamps = closed(disk)?;
        for _ in 0..ATTEMPTS_MAX {
            let current = match disk.open(CURRENT, READ_ONLY) {
                Ok(file) => Some(file),
                Err(error) if error.is_not_found() => None,
                Err(error) => return Err(error),
            };
            let after = closed(disk)?;
            let newest = |stamps: &[Stamp]| stamps.last().map(|stamp| stamp.at_us);
            let is_unchanged = newest(&stamps) == newest(&after);
            stamps = after;
            if is_unchanged {
                return Ok(Self::new(stamps, current, clock));
            }
        }
        let source = std::io::Error::from(std::io::ErrorKind::ResourceBusy);
        Err(haul_disk::Error::new(haul_disk::Op::List, disk.root(), source))
    }

    fn new(stamps: Vec<Stamp>, current: Option<Arc<dyn File>>, clock: &dyn Clock) -> Self {
        let mut begin_us = 0;
        let mut files: Vec<_> = stamps
            .into_iter()
            .map(|stamp| {
                let begin_us = std::mem::replace(&mut begin_us, stamp.at_us);
                LogFile { kind: Kind::Closed(stamp), begin_us, end_us: stamp.at_us }
            })
            .collect();
        files.extend(current.map(|file| {
            let modified_us = clock.modified_us(&*file).unwrap_or(u64::MAX);
            let end_us = modified_us.saturating_add(MODIFIED_ERROR_US);
            LogFile { kind: Kind::Current(file), begin_us, end_us }
        }));
        Self(files)
    }

    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns the files that may contain lines of a time from `since_us` on. A line has the time at
    /// which it was read, so it is older than the time at which its file was closed.
    pub(super) fn since(self, since_us: Option<u64>) -> impl Iterator<Item = LogFile> {
        let since_us = since_us.unwrap_or(0);
        self.0.into_iter().skip_while(move |file| file.end_us < since_us)
    }
}

/// Lists the closed files, sorted by time. Of a file and its compressed copy, lists the first: the
/// copy is there only until the file is removed.
fn closed(disk: &dyn Disk) -> Result<Vec<Stamp>> {
    let mut stamps: Vec<Stamp> = Vec::new();
    for name in disk.list("")? {
        if let Name::Closed(stamp) = names::parse(&name) {
            let original = Stamp { is_compressed: false, ..stamp };
            if stamps.last() != Some(&original) {
                stamps.push(stamp);
            }
        }
    }
    Ok(stamps)
}

impl LogFile {
    pub(super) fn name(&self) -> String {
        match &self.kind {
            Kind::Closed(stamp) => names::closed(*stamp),
            Kind::Current(_) => CURRENT.to_owned(),
        }
    }

    /// Opens the file, compressed or not: it may have been compressed since it was listed.
    pub(super) fn open(&self, disk: &dyn Disk) -> Result<Source> {
        let root = disk.root();
        match &self.kind {
            Kind::Current(file) => Source::plain(Arc::clone(file), root.join(CURRENT)),
            Kind::Closed(stamp) => {
                let open = |is_compressed| {
                    let name = names::closed(Stamp { is_compressed, ..*stamp });
                    disk.open(&name, READ_ONLY).map(|file| (file, root.join(name)))
                };
                if !stamp.is_compressed {
                    match open(false) {
                        Ok((file, path)) => return Source::plain(file, path),
                        Err(error) if error.is_not_found() => {}
                        Err(error) => return Err(error),
                    }
                }
                let (file, path) = open(true)?;
                Source::compressed(file, path)
            }
        }
    }
}
