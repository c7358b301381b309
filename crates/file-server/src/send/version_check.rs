//! Detects that a file was rewritten in place while it is sent.

use std::time::{Duration, Instant};

use super::read::ReadError;
use crate::file::description::{OpenFile, Version};

/// The minimal time between two checks of a file.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The time after which a file to which bytes were appended has its new length: the kernel changes
/// the time of modification first.
const APPEND_TIME: Duration = Duration::from_millis(10);

/// The check of one response.
#[derive(Debug, Default)]
pub(crate) struct VersionCheck {
    /// The version of the file when its first bytes were sent, if they were not all, and the time
    /// of the last check.
    first: Option<(Version, Instant)>,
    /// The time since which the file seems to be rewritten.
    suspected: Option<Instant>,
    has_failed: bool,
}

impl VersionCheck {
    /// Takes the version of the file, of which a part was sent.
    pub(crate) fn begin(&mut self, file: &OpenFile) {
        if self.first.is_none() {
            match version(file) {
                Ok(version) => self.first = Some((version, Instant::now())),
                Err(_failed) => self.has_failed = true,
            }
        }
    }

    /// Ends a response that would consist of two versions of the file.
    ///
    /// A file rewritten in place has another time of modification. A file that became longer passes,
    /// because its old bytes are mostly unchanged, such as those of a log. The check is always done
    /// before the last bytes (`is_last`), and otherwise from time to time.
    ///
    /// # Errors
    /// The file was rewritten, or its status cannot be read.
    pub(crate) fn check(
        &mut self,
        file: &OpenFile,
        is_last: bool,
        now: Instant,
    ) -> Result<(), ReadError> {
        if self.has_failed {
            return Err(ReadError::Failed);
        }
        match self.first {
            // If the socket does not take all bytes, `begin` takes the version.
            None if is_last => return Ok(()),
            Some((_, checked)) if !is_last && now - checked < CHECK_INTERVAL => return Ok(()),
            None | Some(_) => {}
        }
        let version = version(file)?;
        let first = self.first.map_or(version, |(first, _)| first);
        self.first = Some((first, now));
        if !first.may_be_rewritten(&version) {
            self.suspected = None;
            return Ok(());
        }
        // An append changes the time before the length: a later check decides, unless these are the
        // last bytes.
        let since = *self.suspected.get_or_insert_with(Instant::now);
        let is_certain = is_last || since.elapsed() >= APPEND_TIME;
        if is_certain { Err(ReadError::Rewritten) } else { Ok(()) }
    }
}

fn version(file: &OpenFile) -> Result<Version, ReadError> {
    let stat = rustix::fs::fstat(&file.fd).map_err(|_failed| ReadError::Failed)?;
    Ok(Version::of(&stat))
}
