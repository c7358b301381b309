//! Defines the options of a log.

use std::time::Duration;

use crate::calendar::Schedule;
use crate::error::{Error, Result};

/// The handling of lines that are appended while all buffers are full, because the disk is slow or
/// full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// The append blocks until a buffer is free. No line is lost, but a full disk blocks all
    /// threads that log.
    ///
    /// This is the default, because a log that lacks the lines of an incident is worse than a short
    /// stall, and eight buffers hold the lines that an ordinary service logs in several seconds.
    #[default]
    Wait,
    /// The line is dropped and counted. The log then contains a note with the number of dropped
    /// lines.
    DropNewest,
}

/// The times at which the background thread syncs written lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncMode {
    /// The log never syncs. The kernel writes dirty pages back, usually within 30 s, and a power
    /// cut may lose these lines, also those in closed files. [`crate::LineLog::sync`] returns an
    /// error.
    Never,
    /// The log syncs a file when it is closed, and on [`crate::LineLog::sync`].
    #[default]
    OnClose,
    /// The log syncs at this interval while lines are written, when a file is closed, and on
    /// [`crate::LineLog::sync`]. At least 1 ms.
    Every(Duration),
}

/// The format to which closed files are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Zstandard (RFC 8878), with checksums.
    Zstd {
        /// The level, 1 to 19: higher levels compress better, and take more time and memory.
        level: u8,
    },
}

impl Compression {
    /// Zstandard at its default level.
    pub const ZSTD: Self = Self::Zstd { level: 3 };
}

/// The limits on closed files. [`Options::full_disk_files_min`] can remove more files. Each time a file is closed and when the log is opened, the oldest
/// closed files are removed until no limit is exceeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// The maximum number of closed files, not counting `current`; `None` sets no limit. Default:
    /// 10.
    pub files_max: Option<u32>,
    /// The maximum total length of the closed files and `current`, in bytes. Compressed files count
    /// with their compressed length. `current` counts as [`Options::file_bytes_max`], and so does,
    /// with [`Options::compress`], the temporary file of a compression. Thus the limit is exceeded
    /// only while one of these files contains a line longer than that. Default: no limit.
    pub bytes_max: Option<u64>,
    /// The maximum time a file is kept after it was closed. Default: no limit.
    pub age_max: Option<Duration>,
}

impl Default for Retention {
    fn default() -> Self {
        Self { files_max: Some(10), bytes_max: None, age_max: None }
    }
}

/// Options of a log.
#[derive(Debug, Clone)]
pub struct Options {
    /// Behaviour: the handling of lines that are appended while all buffers are full.
    pub when_full: WhenFull,
    /// Behaviour: the times at which written lines are synced.
    pub sync: SyncMode,
    /// Behaviour: the limits on closed files. Files that exceed a limit are removed.
    pub keep: Retention,
    /// Behaviour: compression of closed files. A background thread of low priority compresses each
    /// file after it was closed, to a file of the same name with the suffix `.zst`, which then
    /// replaces it. Callers never wait for it. A crash at any moment leaves the file, compressed or
    /// not; opening the log compresses all closed files that are not. A file that would not become
    /// shorter stays as it is. Default: `None`.
    pub compress: Option<Compression>,
    /// Behaviour: removal of closed files while the disk is full. With `Some(n)`, each time a write
    /// fails because the disk or the quota is full, the oldest closed file is removed and the write
    /// is retried, as long as more than `n` closed files exist. If the removal frees no space, the
    /// next file is removed only after [`Options::retry_pause`]. With `None`, no file is removed,
    /// and the write is retried until another program frees space. Default: `None`.
    pub full_disk_files_min: Option<u32>,
    /// Behaviour: the length, in bytes, at which a file is closed at the next end of a line; `None`
    /// sets no limit. At least 4 KiB. Default: 16 MiB.
    pub file_bytes_max: Option<u64>,
    /// Behaviour: the times at which the current file is closed, unless it is empty. Default: none.
    pub file_times: Option<Schedule>,
    /// Behaviour: the maximum time that a line stays in memory before it is written, provided that
    /// the disk is fast enough. 1 ms to 1 min. Default: 200 ms.
    pub write_delay_max: Duration,
    /// Behaviour: the pause before a failed write is retried, unless a caller waits for it. 1 ms to
    /// 1 h. Default: 1 s.
    pub retry_pause: Duration,
    /// Behaviour: a description of this process, which other processes that try to open the
    /// directory receive in [`Error::InUse`]. Default: the id of this process.
    pub holder: String,
    /// Performance: the length of a buffer in bytes, which is also the maximum length of a write. 4
    /// KiB to 64 MiB. Default: 1 MiB.
    pub buffer_bytes: u32,
    /// Performance: the number of buffers, which determines the memory that the log uses. 2 to
    /// 1,024. Default: 8.
    pub buffers: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            when_full: WhenFull::default(),
            sync: SyncMode::default(),
            keep: Retention::default(),
            compress: None,
            full_disk_files_min: None,
            file_bytes_max: Some(16 << 20),
            file_times: None,
            write_delay_max: Duration::from_millis(200),
            retry_pause: Duration::from_secs(1),
            holder: format!("process {}", std::process::id()),
            buffer_bytes: 1 << 20,
            buffers: 8,
        }
    }
}

impl Options {
    /// Returns the number of bytes that `keep.bytes_max` reserves for the current file and for the
    /// temporary file of a compression.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        let files = if self.compress.is_some() { 2 } else { 1 };
        self.file_bytes_max.unwrap_or(0).saturating_mul(files)
    }

    /// Validates the options.
    pub(crate) fn check(&self) -> Result<()> {
        let ms = Duration::from_millis;
        let checks = [
            (
                self.file_bytes_max.is_none_or(|bytes| (4 << 10..=1 << 60).contains(&bytes)),
                "file_bytes_max must be 4 KiB or more",
            ),
            (
                self.file_times.is_none_or(Schedule::is_valid),
                "file_times must be whole seconds, one or more, or a time of the day",
            ),
            (
                (ms(1)..=Duration::from_mins(1)).contains(&self.write_delay_max),
                "write_delay_max must lie between 1 ms and 1 min",
            ),
            (
                (ms(1)..=Duration::from_hours(1)).contains(&self.retry_pause),
                "retry_pause must lie between 1 ms and 1 h",
            ),
            (
                !matches!(self.sync, SyncMode::Every(every) if every < ms(1)),
                "SyncMode::Every must be 1 ms or more",
            ),
            (
                (4 << 10..=64 << 20).contains(&self.buffer_bytes),
                "buffer_bytes must lie between 4 KiB and 64 MiB",
            ),
            ((2..=1024).contains(&self.buffers), "buffers must lie between 2 and 1,024"),
            (
                self.keep.bytes_max.is_none_or(|all| self.reserved_bytes() <= all),
                "keep.bytes_max must be at least file_bytes_max: the current file is counted; with \
                 compression, it must be twice that",
            ),
            (
                self.compress.is_none_or(|Compression::Zstd { level }| (1..=19).contains(&level)),
                "the level of Zstd must lie between 1 and 19",
            ),
        ];
        match checks.into_iter().find(|(is_valid, _)| !is_valid) {
            Some((_, reason)) => Err(Error::Invalid(reason)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_options_are_refused_by_name() {
        Options::default().check().unwrap();
        type Change = fn(&mut Options);
        let wrong: &[(&str, Change)] = &[
            ("file_bytes_max", |o| o.file_bytes_max = Some(4095)),
            ("file_times", |o| o.file_times = Some(Schedule::Every(Duration::from_millis(1500)))),
            ("file_times", |o| o.file_times = Some(Schedule::Every(Duration::ZERO))),
            ("file_times", |o| o.file_times = Some(Schedule::Daily(86_400))),
            ("write_delay_max", |o| o.write_delay_max = Duration::ZERO),
            ("retry_pause", |o| o.retry_pause = Duration::from_hours(2)),
            ("SyncMode", |o| o.sync = SyncMode::Every(Duration::ZERO)),
            ("buffer_bytes", |o| o.buffer_bytes = 1 << 30),
            ("buffers", |o| o.buffers = 1),
            ("keep.bytes_max", |o| o.keep.bytes_max = Some(1 << 20)),
            ("keep.bytes_max", |o| {
                o.keep.bytes_max = Some(16 << 20);
                o.compress = Some(Compression::ZSTD);
            }),
            ("Zstd", |o| o.compress = Some(Compression::Zstd { level: 0 })),
            ("Zstd", |o| o.compress = Some(Compression::Zstd { level: 20 })),
        ];
        for (name, change) in wrong {
            let mut options = Options::default();
            change(&mut options);
            let refused = options.check();
            assert!(matches!(refused, Err(Error::Invalid(why)) if why.contains(name)), "{name}");
        }
    }
}
