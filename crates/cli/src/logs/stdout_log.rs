//! Writes a log to stdout on a separate thread, so that a slow reader delays no request.

use std::io;

use haul_file_server::Lines;
use haul_line_log::LineQueue;

use crate::output::unwritten;
use crate::report::{Result, try_print_message};

/// A queue of log lines that a thread writes to stdout.
pub(crate) struct StdoutLines {
    queue: LineQueue,
    /// The name of the log.
    name: &'static str,
}

impl StdoutLines {
    /// Starts the thread. `name` is the name of the log in messages.
    pub(super) fn start(name: &'static str) -> io::Result<Self> {
        let queue = LineQueue::start("log", io::stdout())?;
        Ok(Self { queue, name })
    }

    /// Writes the queued lines, and prints the number of dropped lines to stderr.
    pub(super) fn close(&self) -> Result {
        let (dropped, written) = self.queue.close();
        if dropped > 0 {
            try_print_message(&format!("{dropped} lines of the {} were dropped", self.name));
        }
        written.map_err(unwritten)
    }
}

impl Lines for StdoutLines {
    fn append(&self, line: &[u8]) {
        self.queue.append(line);
    }
}
