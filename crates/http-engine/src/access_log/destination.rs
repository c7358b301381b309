//! The destination of lines.

use std::fmt;
use std::sync::Arc;

use haul_line_log::LineLog;

use super::fields::LogFormat;

/// A destination of log lines. Calls must not block: they are made by serving threads.
pub trait Lines: Send + Sync {
    /// Appends a line, which ends in a newline. Lines that cannot be written are dropped and
    /// counted.
    fn append(&self, line: &[u8]);
}

impl Lines for LineLog {
    /// Open the log with `WhenFull::DropNewest`; otherwise a full disk blocks the server.
    fn append(&self, line: &[u8]) {
        // Only a closed log refuses a line, and it is closed after the server.
        Self::append(self, line).unwrap_or_default();
    }
}

/// An access log.
#[derive(Clone)]
pub struct AccessLog {
    /// The destination of the lines.
    pub lines: Arc<dyn Lines>,
    /// The format of the lines.
    pub format: LogFormat,
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessLog").field("format", &self.format).finish_non_exhaustive()
    }
}
