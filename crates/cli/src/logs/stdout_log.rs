//! Writes a log to stdout on a separate thread, so that a slow reader delays no request.

use std::io;

use haul_file_server::Lines;
use haul_line_log::LineQueue;

use crate::output::unwritten;
use crate::report::{Result, try_print_message};

/// A queue of log lines that a thread writes to stdout.
pub(crate) struct StdoutLines(LineQueue);

impl StdoutLines {
    pub(super) fn start() -> io::Result<Self> {
        LineQueue::start("access-log", io::stdout()).map(Self)
    }

    /// Writes the queued lines, and prints the number of dropped lines to stderr.
    pub(super) fn close(&self) -> Result {
        let (dropped, written) = self.0.close();
        if dropped > 0 {
            try_print_message(&format!("{dropped} lines of a log were dropped"));
        }
        written.map_err(unwritten)
    }
}

impl Lines for StdoutLines {
    fn append(&self, line: &[u8]) {
        self.0.append(line);
    }
}
