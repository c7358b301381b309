//! The access log of a server that may replace another process, which still has the log open.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use haul_file_server::Lines;
use haul_line_log::{Environment, Error, LineLog, Options};

use super::{Log, SharedLines, not_opened, overlap};
use crate::handover::Predecessor;
use crate::reload::LogFiles;
use crate::report::{Failure, OrFail, Result, chain, print_message, try_print_message};

/// The interval at which a server tries to open a log that is in use, and to append the lines of
/// other processes.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// An access log. While another process has it open, the lines go to a log of this process in a
/// directory within, and are appended to the log later.
pub(crate) struct ServerLog(State);

enum State {
    Plain(Log),
    Overlapping { files: LogFiles, stop: Sender<()>, thread: JoinHandle<Result> },
}

impl ServerLog {
    /// Opens the log in the directory `to`, or on stdout for `-`, and passes `lines` to it. If
    /// another process has it open, and `may_overlap` is not set, this is an error.
    pub(crate) fn open(
        name: &'static str,
        to: &Path,
        options: &Options,
        lines: &Arc<SharedLines>,
        may_overlap: bool,
    ) -> Result<Self> {
        if to == Path::new("-") || !(may_overlap || overlap::exists(to)) {
            let log = Log::open(name, to, options, &Predecessor::default())?;
            lines.set(log.lines());
            return Ok(Self(State::Plain(log)));
        }
        let (opened, is_main) = match LineLog::open(to, options.clone(), Environment::default()) {
            Err(in_use @ Error::InUse { .. }) if may_overlap => {
                let own = overlap::open(to, options);
                print_message(&chain(&format!("the {name} is appended later"), Some(&in_use)));
                (own, false)
            }
            opened => (opened, true),
        };
        let log = Arc::new(opened.map_err(|error| not_opened(to, error))?);
        let files = LogFiles::of(&log);
        lines.set(Arc::clone(&log) as Arc<dyn Lines>);
        let (stop, stopped) = channel();
        let mut merger = Merger {
            dir: to.to_path_buf(),
            options: options.clone(),
            lines: Arc::clone(lines),
            files: files.clone(),
            log,
            is_main,
        };
        let thread = thread::Builder::new().name("merge-log".to_owned());
        let thread = thread.spawn(move || merger.run(&stopped));
        let thread = thread.or_fail(|| "cannot start a thread for a log".to_owned())?;
        Ok(Self(State::Overlapping { files, stop, thread }))
    }

    /// Returns the log if its files can be rotated.
    pub(crate) fn files(&self) -> Option<LogFiles> {
        match &self.0 {
            State::Plain(log) => log.files(),
            State::Overlapping { files, .. } => Some(files.clone()),
        }
    }

    /// Writes the lines that were appended, and closes the log. The server must have ended.
    pub(crate) fn close(self) -> Result {
        match self.0 {
            State::Plain(log) => log.close(),
            State::Overlapping { stop, thread, .. } => {
                drop(stop);
                thread.join().unwrap_or_else(|_panic| Err(Failure::new("a log failed")))
            }
        }
    }
}

/// Opens the log when the other process has closed it, and appends the lines of processes that
/// could not open it.
struct Merger {
    dir: PathBuf,
    options: Options,
    lines: Arc<SharedLines>,
    files: LogFiles,
    /// The log that gets the lines.
    log: Arc<LineLog>,
    /// `true` if it is the log itself.
    is_main: bool,
}

impl Merger {
    /// Runs until the server ends, and closes the log.
    fn run(&mut self, stopped: &Receiver<()>) -> Result {
        let mut is_complete = false;
        loop {
            is_complete = is_complete || self.step();
            let wait = if is_complete { Duration::MAX } else { RETRY_INTERVAL };
            if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                break;
            }
        }
        // Lines of processes that have ended in the meantime are appended now. If the log is still in
        // use, the lines of this process remain in their own directory, and the process that has the
        // log open, or the next one, appends them.
        if !self.is_main {
            self.log.close().or_fail(|| "a log is incomplete".to_owned())?;
        }
        self.step();
        self.log.close().or_fail(|| "a log is incomplete".to_owned())
    }

    /// Opens the log if possible, and appends the lines of other processes. Returns `true` if there
    /// is nothing left to do.
    fn step(&mut self) -> bool {
        if !self.is_main {
            let opened = LineLog::open(&self.dir, self.options.clone(), Environment::default());
            let Ok(log) = opened.map(Arc::new) else { return false };
            self.lines.set(Arc::clone(&log) as Arc<dyn Lines>);
            self.files.set(&log);
            let own = std::mem::replace(&mut self.log, log);
            self.is_main = true;
            if let Err(error) = own.close() {
                try_print_message(&chain("a log is incomplete", Some(&error)));
            }
        }
        let merged = overlap::merge(&self.dir, &self.log);
        merged.unwrap_or_else(|error| {
            let action = "cannot append the lines of another process to the log";
            try_print_message(&chain(action, Some(&error)));
            true
        })
    }
}
