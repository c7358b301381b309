//! The choices a log leaves to its owner.

use std::time::Duration;

use crate::error::{Error, Result};

/// What happens to a line that comes while all memory is taken by lines the disk has not taken
/// yet: because it is slow, or full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// Whoever brings it waits. Nothing is ever lost, and a full disk stops the service.
    ///
    /// The default: a log with a hole where it mattered is worse than a slow moment, and eight
    /// buffers take seconds of an ordinary service. Where that is not so, say the other.
    #[default]
    Wait,
    /// It is dropped and counted. Where lines are missing, the log itself says how many.
    DropNewest,
}

/// When what was written is synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncWhen {
    /// Never: the kernel writes it out when it likes, usually within half a minute. A power cut
    /// may take that much of it, closed files included. [`crate::LineLog::sync`] is refused.
    Never,
    /// When a file is closed, and when asked.
    #[default]
    Closing,
    /// So often while lines come, when a file is closed, and when asked.
    Every(Duration),
}

/// Which of the closed files stay. Those that any of these would remove go, oldest first, each
/// time a file is closed and when the log is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// At most so many, `current` not counted. 10.
    pub files_max: Option<u32>,
    /// At most so many bytes, `current` counted as [`Options::file_bytes_max`]: what the directory
    /// never exceeds, but for a line that is longer than a file. No limit.
    pub bytes_max: Option<u64>,
    /// None closed longer ago than this. No limit.
    pub age_max: Option<Duration>,
}

impl Default for Keep {
    fn default() -> Self {
        Self { files_max: Some(10), bytes_max: None, age_max: None }
    }
}

/// How a log behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// Behaviour: what happens to a line for which there is no memory.
    pub when_full: WhenFull,
    /// Behaviour: when what was written is synced.
    pub sync: SyncWhen,
    /// Behaviour: which closed files stay.
    pub keep: Keep,
    /// Behaviour: how long a file gets before the next one is begun, at the end of a line. 4 KiB
    /// or more; 16 MiB.
    pub file_bytes_max: Option<u64>,
    /// Behaviour: the intervals files are for, counted from 1970 in UTC: an hour begins on the
    /// hour, a day at midnight. A file without lines is not closed. Whole seconds; none.
    pub file_time: Option<Duration>,
    /// Behaviour: how long a line may stay in memory before it is handed to the kernel, while the
    /// disk keeps up. 1 ms to 1 min; 200 ms.
    pub late_max: Duration,
    /// Behaviour: how long to wait before a write that failed is tried again. 1 ms to 1 h; 1 s.
    pub retry_pause: Duration,
    /// Behaviour: who this process says it is, for others that want the directory.
    pub holder: String,
    /// Performance: the length of a buffer, and so of a write. 4 KiB to 64 MiB; 1 MiB.
    pub buffer_bytes: u32,
    /// Performance: how many buffers there are; their bytes together bound the memory. 2 to
    /// 1,024; 8.
    pub buffers: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            when_full: WhenFull::default(),
            sync: SyncWhen::default(),
            keep: Keep::default(),
            file_bytes_max: Some(16 << 20),
            file_time: None,
            late_max: Duration::from_millis(200),
            retry_pause: Duration::from_secs(1),
            holder: format!("process {}", std::process::id()),
            buffer_bytes: 1 << 20,
            buffers: 8,
        }
    }
}

impl Options {
    /// Refuses what cannot work.
    pub(crate) fn check(&self) -> Result<()> {
        let ms = Duration::from_millis;
        let right = [
            (
                self.file_bytes_max.is_none_or(|bytes| (4 << 10..=1 << 60).contains(&bytes)),
                "file_bytes_max must be 4 KiB or more",
            ),
            (
                self.file_time.is_none_or(|time| time.as_secs() > 0 && time.subsec_nanos() == 0),
                "file_time must be whole seconds, one or more",
            ),
            (
                (ms(1)..=Duration::from_mins(1)).contains(&self.late_max),
                "late_max must lie between 1 ms and 1 min",
            ),
            (
                (ms(1)..=Duration::from_hours(1)).contains(&self.retry_pause),
                "retry_pause must lie between 1 ms and 1 h",
            ),
            (
                !matches!(self.sync, SyncWhen::Every(every) if every < ms(1)),
                "SyncWhen::Every must be 1 ms or more",
            ),
            (
                (4 << 10..=64 << 20).contains(&self.buffer_bytes),
                "buffer_bytes must lie between 4 KiB and 64 MiB",
            ),
            ((2..=1024).contains(&self.buffers), "buffers must lie between 2 and 1,024"),
            (
                self.keep.bytes_max.is_none_or(|all| self.file_bytes_max.unwrap_or(0) <= all),
                "keep.bytes_max must be file_bytes_max or more: the current file is counted",
            ),
        ];
        match right.into_iter().find(|(is_right, _)| !is_right) {
            Some((_, why)) => Err(Error::Invalid(why)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_refused_by_name() {
        Options::default().check().unwrap();
        type Change = fn(&mut Options);
        let wrong: &[(&str, Change)] = &[
            ("file_bytes_max", |o| o.file_bytes_max = Some(4095)),
            ("file_time", |o| o.file_time = Some(Duration::from_millis(1500))),
            ("file_time", |o| o.file_time = Some(Duration::ZERO)),
            ("late_max", |o| o.late_max = Duration::ZERO),
            ("retry_pause", |o| o.retry_pause = Duration::from_hours(2)),
            ("SyncWhen", |o| o.sync = SyncWhen::Every(Duration::ZERO)),
            ("buffer_bytes", |o| o.buffer_bytes = 1 << 30),
            ("buffers", |o| o.buffers = 1),
            ("keep.bytes_max", |o| o.keep.bytes_max = Some(1 << 20)),
        ];
        for (name, change) in wrong {
            let mut options = Options::default();
            change(&mut options);
            let refused = options.check();
            assert!(matches!(refused, Err(Error::Invalid(why)) if why.contains(name)), "{name}");
        }
    }
}
