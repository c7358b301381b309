//! Implements [`std::io::Write`] for the log, because `tracing` and other libraries require it.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Write};

use crate::log::LineLog;

/// The maximum capacity, in bytes, of the formatting buffer that a thread keeps for its next line.
const CACHED_BYTES_MAX: usize = 64 << 10;

thread_local! {
    static LINE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Appends to the log: each call is one [`LineLog::append`] of all bytes. `write!` and `writeln!`
/// format into a buffer first, so each of them is one append, too.
impl Write for &LineLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        Ok(self.append(bytes)?)
    }

    fn write_fmt(&mut self, arguments: fmt::Arguments<'_>) -> io::Result<()> {
        if let Some(text) = arguments.as_str() {
            return self.write_all(text.as_bytes());
        }
        // The buffer is taken from the cell instead of borrowed, because a `Display` implementation
        // may log lines itself.
        let mut line = LINE.take();
        line.clear();
        let formatted = line.write_fmt(arguments);
        let written = formatted.and_then(|()| self.write_all(&line));
        if line.capacity() <= CACHED_BYTES_MAX {
            LINE.set(line);
        }
        written
    }

    /// Calls [`LineLog::write_out`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(self.write_out()?)
    }
}

/// Appends to the log like the implementation for `&LineLog`.
impl Write for LineLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        (&*self).write_all(bytes)
    }

    fn write_fmt(&mut self, arguments: fmt::Arguments<'_>) -> io::Result<()> {
        (&*self).write_fmt(arguments)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self).flush()
    }
}
