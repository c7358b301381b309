//! Opens the logs of servers: rotated files, or stdout.

mod overlap;
mod server_log;
mod shared_lines;
mod stdout_log;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haul_file_server::Lines;
use haul_line_log::{Environment, Error, LineLog, Options, Retention, SyncMode, WhenFull};

use crate::args::AccessLogArgs;
use crate::handover::Predecessor;
use crate::reload::LogFiles;
use crate::report::{Exit, Failure, OrFail, Result};
pub(crate) use server_log::ServerLog;
pub(crate) use shared_lines::SharedLines;
use stdout_log::StdoutLines;

/// The interval at which the audit log is synced.
const AUDIT_SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// Returns the options of an access log.
pub(crate) fn access_options(args: &AccessLogArgs, holder: &str) -> Options {
    Options {
        // On a full disk the log drops lines, because requests must not wait for the log.
        when_full: WhenFull::DropNewest,
        keep: Retention { files_max: Some(args.log_keep), ..Retention::default() },
        file_bytes_max: Some(args.log_size),
        holder: format!("{holder}, process {}", std::process::id()),
        ..Options::default()
    }
}

/// Returns the options of an audit log, whose files are never removed.
pub(crate) fn audit_options(args: &AccessLogArgs, holder: &str) -> Options {
    Options {
        keep: Retention { files_max: None, ..Retention::default() },
        sync: SyncMode::Every(AUDIT_SYNC_INTERVAL),
        ..access_options(args, holder)
    }
}

/// The destination of a log.
pub(crate) enum Log {
    Files(Arc<LineLog>),
    Stdout(Arc<StdoutLines>),
}

impl Log {
    /// Opens the log in the directory `to`, or on stdout for `-`. `name` is the name of the log in
    /// messages.
    pub(crate) fn open(
        name: &'static str,
        to: &Path,
        options: &Options,
        predecessor: &Predecessor,
    ) -> Result<Self> {
        if to == Path::new("-") {
            let lines = StdoutLines::start(name);
            return lines
                .map(|lines| Self::Stdout(Arc::new(lines)))
                .or_fail(|| "cannot start a thread for a log".to_owned());
        }
        let open = || LineLog::open(to, options.clone(), Environment::default());
        let is_in_use = |error: &Error| matches!(error, Error::InUse { .. });
        let log = predecessor.retry(is_in_use, open).map_err(|error| not_opened(to, error))?;
        Ok(Self::Files(Arc::new(log)))
    }

    pub(crate) fn lines(&self) -> Arc<dyn Lines> {
        match self {
            Self::Files(log) => Arc::clone(log) as Arc<dyn Lines>,
            Self::Stdout(lines) => Arc::clone(lines) as Arc<dyn Lines>,
        }
    }

    /// Returns the log if its files can be rotated.
    pub(crate) fn files(&self) -> Option<LogFiles> {
        match self {
            Self::Files(log) => Some(LogFiles::of(log)),
            Self::Stdout(_) => None,
        }
    }

    /// Writes the lines that were appended, and closes the log.
    pub(crate) fn close(self) -> Result {
        match self {
            Self::Files(log) => log.close().or_fail(|| "a log is incomplete".to_owned()),
            Self::Stdout(lines) => lines.close(),
        }
    }
}

fn not_opened(to: &Path, error: Error) -> Failure {
    Failure::new(format!("cannot log to {}", to.display())).because(error).exit(Exit::NotStarted)
}
