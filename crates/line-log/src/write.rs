//! The log as a writer of the standard library, and so of `tracing` and of what else takes one.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Write};

use crate::log::LineLog;

/// How long a formatted line may be whose memory is kept for the next one.
const KEPT_BYTES: usize = 64 << 10;

thread_local! {
    static LINE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Each call is one [`LineLog::append`]: all bytes or an error. `write!` and `writeln!` put their
/// parts together first, so that they are one call, too.
impl Write for &LineLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        Ok(self.append(bytes)?)
    }

    /// Takes the parts of a line one by one only from whoever formats by hand.
    fn write_fmt(&mut self, arguments: fmt::Arguments<'_>) -> io::Result<()> {
        if let Some(text) = arguments.as_str() {
            return self.write_all(text.as_bytes());
        }
        // Taken, not borrowed: what is formatted may itself write lines.
        let mut line = LINE.take();
        line.clear();
        let formatted = line.write_fmt(arguments);
        let written = formatted.and_then(|()| self.write_all(&line));
        if line.capacity() <= KEPT_BYTES {
            LINE.set(line);
        }
        written
    }

    /// [`LineLog::write_out`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(self.write_out()?)
    }
}

/// As for a reference.
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
