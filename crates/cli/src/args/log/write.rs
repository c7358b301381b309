//! Defines the arguments with which `haul log` writes.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use haul_line_log::{Compression, Options, Retention, Schedule, StampFormat, SyncMode, WhenFull};

use crate::args::values::{parse_bytes_between, parse_bytes_from, parse_time_from};
use crate::units::{parse_bytes, parse_time};

/// The size of a buffer of the log, in bytes. `--memory` is divided into such buffers.
const BUFFER_BYTES: u32 = 1 << 20;

#[derive(Debug, Args)]
pub(crate) struct LogWriteArgs {
    /// Directory of the log; created if missing
    ///
    /// If it has the name of a subcommand, write it with ./, such as ./show.
    pub(crate) dir: PathBuf,
    /// Size at which the log is rotated, or "none"
    ///
    /// Files end at the end of a line. A file grows up to twice this size for a line that does not
    /// fit otherwise; longer lines are split over consecutive files.
    #[arg(long, value_name = "SIZE", default_value = "16MiB", help_heading = "Rotation")]
    #[arg(value_parser = parse_max_size)]
    pub(crate) max_size: MaxSize,
    /// Rotate at multiples of TIME in UTC, such as 1h or 1d [default: never]
    ///
    /// 1h rotates on the hour, 1d at midnight.
    #[arg(long, value_name = "TIME", value_parser = parse_period, help_heading = "Rotation")]
    pub(crate) rotate_every: Option<Duration>,
    /// Rotate each day at the local time HH:MM, such as 00:00 [default: never]
    ///
    /// The time zone is that of the variable TZ, or of the system. A day on which the clock is
    /// changed has 23 or 25 hours. A time that the clock skips rotates when the clock is set
    /// forward; a time that it shows twice rotates once.
    #[arg(long, value_name = "HH:MM", value_parser = parse_day_time, help_heading = "Rotation")]
    #[arg(conflicts_with = "rotate_every")]
    pub(crate) rotate_at: Option<DayTime>,
    /// Number of closed files to keep, or "all"; the oldest are removed
    #[arg(long, value_name = "N", default_value = "10", help_heading = "Rotation")]
    #[arg(value_parser = parse_keep)]
    pub(crate) keep: KeepFiles,
    /// Maximum total size of all files; the oldest closed files are removed
    ///
    /// The current file counts as --max-size.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, help_heading = "Rotation")]
    pub(crate) keep_bytes: Option<u64>,
    /// Remove files that were closed longer ago than TIME, such as 30d
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "Rotation")]
    pub(crate) keep_time: Option<Duration>,
    /// Compress closed files in the background: "zstd", or "zstd:LEVEL" with a level of 1 to 19
    ///
    /// A compressed file replaces the file after it was synced and compared with it. Compressed
    /// files count with their length in --keep-bytes, and so does a file being compressed.
    #[arg(long, value_name = "FORMAT", value_parser = parse_compress, help_heading = "Rotation")]
    pub(crate) compress: Option<Compression>,
    /// Prefix each line with the time at which its first byte was read
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "utc", help_heading = "Lines")]
    pub(crate) timestamps: Option<TimestampFormat>,
    /// Copy the input to stdout, too
    ///
    /// If stdout cannot be written, the log still gets all lines, and the exit code is 1.
    #[arg(long, help_heading = "Lines")]
    pub(crate) tee: bool,
    /// At the end, print the counts of the run as one JSON object to stdout
    ///
    /// The keys are lines and bytes (of the input), written_bytes, closed_files, removed_files,
    /// compressed_files, dropped_lines, lost_lines, write_failures, sync_failures and seconds.
    #[arg(long, conflicts_with = "tee", help_heading = "Output")]
    pub(crate) json: bool,
    /// Time of syncs: "never", "close", or an interval such as 1s
    ///
    /// "close" syncs each file when it is closed, also at exit. A power failure may lose lines that
    /// are not synced; if the process is killed, only input of the last 0.2 s is lost.
    #[arg(long, value_name = "WHEN", default_value = "close", help_heading = "Disk")]
    #[arg(value_parser = parse_sync)]
    pub(crate) sync: SyncPolicy,
    /// Action if --memory is used up because the disk is too slow or full
    #[arg(long, value_name = "POLICY", default_value = "wait", help_heading = "Disk")]
    pub(crate) when_full: WhenFullPolicy,
    /// Number of closed files that --when-full remove-oldest never removes
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Disk")]
    pub(crate) keep_min: u32,
    /// Memory for lines not yet written to the log, 2MiB to 1GiB
    #[arg(long, value_name = "SIZE", default_value = "8MiB", help_heading = "Disk")]
    #[arg(hide_short_help = true, value_parser = parse_bytes_between("2MiB", "1GiB"))]
    pub(crate) memory: u64,
}

/// The size in bytes at which a file is rotated; `None` for no limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MaxSize(pub(crate) Option<u64>);

/// A time of the local day, in seconds after midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DayTime(pub(crate) u32);

/// The number of closed files to keep; `None` for all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeepFiles(pub(crate) Option<u32>);

#[derive(Debug, Clone, Copy)]
pub(crate) struct SyncPolicy(pub(crate) SyncMode);

/// The format of timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimestampFormat {
    /// RFC 3339: 2026-11-21T07:23:14.500000Z
    Utc,
    /// Seconds since 1970: 1795245794.500000
    Unix,
    /// TAI64N, as multilog: @400000006b0146ec1dcd6500
    Tai64n,
}

impl From<TimestampFormat> for StampFormat {
    fn from(format: TimestampFormat) -> Self {
        match format {
            TimestampFormat::Utc => Self::Utc,
            TimestampFormat::Unix => Self::Unix,
            TimestampFormat::Tai64n => Self::Tai64n,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenFullPolicy {
    /// Block the service; no line is lost
    Wait,
    /// Remove the oldest closed files while the disk is full; then as "wait"
    RemoveOldest,
    /// Drop lines; the log records how many, and where. If the disk is still full at the end of the
    /// input, lines in memory are counted and lost, and the exit code is 1
    Drop,
}

impl LogWriteArgs {
    /// Returns the options of the log. `holder` describes this process: the error message of
    /// another process that tries to open the directory of the log contains it.
    pub(crate) fn options(&self, holder: &str) -> Options {
        Options {
            when_full: match self.when_full {
                WhenFullPolicy::Wait | WhenFullPolicy::RemoveOldest => WhenFull::Wait,
                WhenFullPolicy::Drop => WhenFull::DropNewest,
            },
            sync: self.sync.0,
            keep: Retention {
                files_max: self.keep.0,
                bytes_max: self.keep_bytes,
                age_max: self.keep_time,
            },
            compress: self.compress,
            full_disk_files_min: (self.when_full == WhenFullPolicy::RemoveOldest)
                .then_some(self.keep_min),
            file_bytes_max: self.max_size.0,
            file_times: self
                .rotate_every
                .map(Schedule::Every)
                .or(self.rotate_at.map(|DayTime(second)| Schedule::Daily(second))),
            holder: holder.to_owned(),
            buffer_bytes: BUFFER_BYTES,
            buffers: u32::try_from(self.memory / u64::from(BUFFER_BYTES)).unwrap_or(u32::MAX),
            ..Options::default()
        }
    }
}

fn parse_day_time(text: &str) -> Result<DayTime, String> {
    let number = |digits: &str, end: u32| {
        let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u32>().ok().filter(|number| is_number && *number < end)
    };
    let time = text.split_once(':').and_then(|(hour, minute)| {
        Some(DayTime(number(hour, 24)? * 3600 + number(minute, 60)? * 60))
    });
    time.ok_or_else(|| "write a time of the day, from 00:00 to 23:59".to_owned())
}

fn parse_max_size(text: &str) -> Result<MaxSize, String> {
    match text {
        "none" => Ok(MaxSize(None)),
        _ => parse_bytes_from("4KiB")(text)
            .map(|bytes| MaxSize(Some(bytes)))
            .map_err(|why| format!("{why}; or \"none\"")),
    }
}

fn parse_compress(text: &str) -> Result<Compression, String> {
    let level = match text.split_once(':') {
        None if text == "zstd" => Some(Compression::ZSTD),
        Some(("zstd", level)) => level.parse().ok().map(|level| Compression::Zstd { level }),
        _ => None,
    };
    let is_valid = |Compression::Zstd { level }: &Compression| (1..=19).contains(level);
    level.filter(is_valid).ok_or_else(|| "write zstd, or zstd:1 to zstd:19".to_owned())
}

fn parse_keep(text: &str) -> Result<KeepFiles, String> {
    match text {
        "all" => Ok(KeepFiles(None)),
        _ => match text.parse() {
            Ok(files) => Ok(KeepFiles(Some(files))),
            Err(_no_number) => Err("write a number of files, or \"all\"".to_owned()),
        },
    }
}

fn parse_sync(text: &str) -> Result<SyncPolicy, String> {
    match text {
        "never" => Ok(SyncPolicy(SyncMode::Never)),
        "close" => Ok(SyncPolicy(SyncMode::OnClose)),
        _ => parse_time_from("1ms")(text)
            .map(|every| SyncPolicy(SyncMode::Every(every)))
            .map_err(|why| format!("{why}; or \"never\" or \"close\"")),
    }
}

fn parse_period(text: &str) -> Result<Duration, String> {
    match parse_time_from("1s")(text)? {
        time if time.subsec_nanos() == 0 => Ok(time),
        _ => Err("must be whole seconds".to_owned()),
    }
}
