//! Defines the function that a log calls for each sealed segment.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::lsn::Lsn;

/// A sealed segment: all its records are durable, and the log writes no more to it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SealedSegment {
    /// The segment number. [`crate::segment_name`] returns the name of its file.
    pub number: u32,
    /// The path of its file.
    pub file: PathBuf,
    /// The length of the file in bytes.
    pub bytes: u32,
    /// The LSN at which its first record begins.
    pub first: Lsn,
    /// The LSN after its last record. If opening the log did not read the segment
    /// ([`crate::Replay::is_known`]), the LSN after its space for records.
    pub end: Lsn,
}

/// A function that the log calls for each sealed segment, for example to archive it.
///
/// The log calls the function on a thread of its own, without a lock, for one segment at a time, in
/// ascending order. The function may take long and may call the log: appends do not wait for it.
/// Closing the log waits until the function was called for every segment that is sealed by then.
///
/// Opening a log calls the function for each sealed segment again, because the log does not store
/// for which segments an earlier process called it. A segment may thus be reported several times,
/// but none is left out unless it was removed before the call. After [`crate::Log::truncate_back`],
/// the segment that contains the new end is reported again, and those after it are no longer part
/// of the log. If the function panics, the panic is caught, and the next segment follows.
///
/// The file is not recycled while the function runs, but if another thread removes the segment
/// meanwhile, the file loses its name. To keep each segment until it is archived, remove only
/// segments that the function has reported. A hard link to the file stays valid: the log never
/// writes to a file with a second name, and creates a new file instead of recycling it.
///
/// # Example
/// An archive of all sealed segments, which is a log that [`crate::Log::open_read_only`] can open:
/// ```
/// use std::{fs, io};
///
/// use haul_append_log::{Log, Options, Position, Room, SealHook, SealedSegment};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let (dir, archive) = (dir.path().join("log"), dir.path().join("archive"));
/// fs::create_dir(&archive)?;
/// let copies = archive.clone();
/// let hook = SealHook::new(move |sealed: &SealedSegment| {
///     let name = haul_append_log::segment_name(sealed.number);
///     // On another file system: copy to a temporary name, sync, rename, and sync the directory.
///     match fs::hard_link(&sealed.file, copies.join(name)) {
///         Err(error) if error.kind() != io::ErrorKind::AlreadyExists => eprintln!("{error}"),
///         _ => println!("archived the records from {} to {}", sealed.first, sealed.end),
///     }
/// });
/// let options = Options { on_seal: Some(hook), segment_bytes: 1 << 20, ..Options::default() };
/// # let options = Options { reserve_bytes: 0, ..options };
/// let (log, _) = Log::open_dir(dir, options, &mut |_: Position, _: &[u8]| {})?;
/// for _ in 0..40 {
///     log.append(&[&[7; 60_000]], Room::Ordinary)?.wait()?;
/// }
/// log.close()?;
/// assert_eq!(fs::read_dir(archive)?.count(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SealHook(Arc<dyn Fn(&SealedSegment) + Send + Sync>);

impl SealHook {
    /// Creates a hook that calls `function`.
    pub fn new(function: impl Fn(&SealedSegment) + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }

    pub(crate) fn call(&self, sealed: &SealedSegment) {
        (self.0)(sealed);
    }
}

impl fmt::Debug for SealHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealHook").finish_non_exhaustive()
    }
}
