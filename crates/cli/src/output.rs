//! Lines on stdout, for people and for programs.

use std::fmt::{self, Write as _};
use std::io::{self, BufWriter, Stdout, Write};

use crate::report::{Exit, Failure, Result};

/// Stdout, collected into large writes. A reader that goes away ends the program quietly.
pub(crate) struct Output(BufWriter<Stdout>);

impl Output {
    pub(crate) fn new() -> Self {
        Self(BufWriter::with_capacity(64 << 10, io::stdout()))
    }

    /// One line.
    pub(crate) fn line(&mut self, line: impl fmt::Display) -> Result {
        writeln!(self.0, "{line}").map_err(unwritten)
    }

    /// Bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result {
        self.0.write_all(bytes).map_err(unwritten)
    }

    /// Hands everything so far to the kernel.
    pub(crate) fn send(&mut self) -> Result {
        self.0.flush().map_err(unwritten)
    }

    /// Hands everything to the kernel.
    pub(crate) fn finish(mut self) -> Result {
        self.send()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// How the program ends when stdout cannot be written to.
pub(crate) fn unwritten(error: io::Error) -> Failure {
    let exit = match error.kind() {
        io::ErrorKind::BrokenPipe => Exit::NobodyReads,
        _ => Exit::Failed,
    };
    Failure::new("cannot write to stdout").because(error).exit(exit)
}

/// A name in one line: control characters, which could also speak to the terminal, are escaped.
pub(crate) struct Name<'a>(pub(crate) &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            if character.is_control() {
                write!(f, "{}", character.escape_default())?;
            } else {
                f.write_char(character)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_never_breaks_its_line() {
        assert_eq!(Name("a b/ä\n\u{1b}[31m").to_string(), "a b/ä\\n\\u{1b}[31m");
    }
}
