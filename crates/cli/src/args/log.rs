//! The part of the table for `haul log`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use haul_line_log::{Keep, Options, SyncWhen, WhenFull};

use crate::units::{parse_bytes, parse_time};

/// The bytes of a buffer of the log.
const BUFFER_BYTES: u32 = 1 << 20;

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// The directory of the log; it is made when it is not there
    pub(crate) dir: PathBuf,
    /// How long a file gets before the next one is begun, or "none"
    ///
    /// A file ends at the end of a line. It grows longer for a line that does not fit otherwise,
    /// twice as long at most; what is longer than that is cut, and the files together give it back.
    #[arg(long, value_name = "SIZE", default_value = "16MiB", help_heading = "Rotation")]
    #[arg(value_parser = parse_max_size)]
    pub(crate) max_size: MaxSize,
    /// Begin a file for each of these times, such as 1h or 1d, counted in UTC
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "Rotation")]
    pub(crate) rotate_every: Option<Duration>,
    /// How many closed files are kept, or "all"; the oldest are removed
    #[arg(long, value_name = "N", default_value = "10", help_heading = "Rotation")]
    #[arg(value_parser = parse_keep)]
    pub(crate) keep: KeepFiles,
    /// How many bytes all files may take, the current one counted as --max-size
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, help_heading = "Rotation")]
    pub(crate) keep_bytes: Option<u64>,
    /// Remove files that were closed longer ago than this, such as 30d
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "Rotation")]
    pub(crate) keep_time: Option<Duration>,
    /// Put the time before each line
    ///
    /// It is the time at which its first byte was read.
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "utc", help_heading = "Lines")]
    pub(crate) timestamps: Option<Stamps>,
    /// Write everything to stdout too, as it came
    #[arg(long, help_heading = "Lines")]
    pub(crate) tee: bool,
    /// When lines are synced: "never", "close" (when a file is closed, and at the end), or a time
    /// such as 1s (so often too, while lines come)
    ///
    /// A power cut may take what was not synced; the end of the process, or its kill, takes only
    /// what came in the last 0.2 s.
    #[arg(long, value_name = "WHEN", default_value = "close", help_heading = "Disk")]
    #[arg(value_parser = parse_sync)]
    pub(crate) sync: SyncPolicy,
    /// What happens when the disk is slower than the lines, or full, and --memory is used up
    #[arg(long, value_name = "WHAT", default_value = "wait", help_heading = "Disk")]
    pub(crate) when_full: WhenFullPolicy,
    /// The memory for lines on their way to the disk, 2MiB to 1GiB
    #[arg(long, value_name = "SIZE", default_value = "8MiB", help_heading = "Disk")]
    #[arg(hide_short_help = true, value_parser = parse_memory)]
    pub(crate) memory: u64,
}

/// A length of files, if there is one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MaxSize(pub(crate) Option<u64>);

/// A number of files, if there is one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeepFiles(pub(crate) Option<u32>);

#[derive(Debug, Clone, Copy)]
pub(crate) struct SyncPolicy(pub(crate) SyncWhen);

/// How times are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stamps {
    /// 2026-11-21T07:23:14.500000Z, as RFC 3339 has it
    Utc,
    /// 1795245794.500000, seconds since 1970
    Unix,
    /// @400000006b0146ec1dcd6500, as multilog has it
    Tai64n,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenFullPolicy {
    /// The service waits, and nothing is lost
    Wait,
    /// Lines are dropped; the log says how many, and where
    Drop,
}

impl LogArgs {
    /// The options of the library; `holder` is who other processes hear has the directory.
    pub(crate) fn options(&self, holder: &str) -> Options {
        Options {
            when_full: match self.when_full {
                WhenFullPolicy::Wait => WhenFull::Wait,
                WhenFullPolicy::Drop => WhenFull::DropNewest,
            },
            sync: self.sync.0,
            keep: Keep {
                files_max: self.keep.0,
                bytes_max: self.keep_bytes,
                age_max: self.keep_time,
            },
            file_bytes_max: self.max_size.0,
            file_time: self.rotate_every,
            holder: holder.to_owned(),
            buffer_bytes: BUFFER_BYTES,
            buffers: u32::try_from(self.memory / u64::from(BUFFER_BYTES)).unwrap_or(u32::MAX),
            ..Options::default()
        }
    }
}

fn parse_max_size(text: &str) -> Result<MaxSize, String> {
    match text {
        "none" => Ok(MaxSize(None)),
        _ => parse_bytes(text).map(|bytes| MaxSize(Some(bytes))),
    }
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
        "never" => Ok(SyncPolicy(SyncWhen::Never)),
        "close" => Ok(SyncPolicy(SyncWhen::Closing)),
        _ => parse_time(text)
            .map(|every| SyncPolicy(SyncWhen::Every(every)))
            .map_err(|why| format!("{why}; or \"never\" or \"close\"")),
    }
}

fn parse_memory(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    if !(2 << 20..=1 << 30).contains(&bytes) {
        return Err("it must lie between 2MiB and 1GiB".to_owned());
    }
    Ok(bytes)
}
