//! Buffers output to stdout and turns its errors into failures of the command.

use std::fmt;
use std::io::{self, BufWriter, Stdout, Write};

pub use haul_units::Name;

use crate::report::{Exit, Failure, Result, print_message};

/// A buffer for stdout. If the reader of stdout closed it, writes fail with [`Exit::BrokenPipe`]:
/// the program then ends without a message.
pub struct Output(BufWriter<Stdout>);

impl Default for Output {
    fn default() -> Self {
        Self::new()
    }
}

impl Output {
    /// Creates an empty buffer for stdout.
    pub fn new() -> Self {
        Self(BufWriter::with_capacity(64 << 10, io::stdout()))
    }

    /// Writes one line.
    pub fn line(&mut self, line: impl fmt::Display) -> Result {
        writeln!(self.0, "{line}").map_err(unwritten)
    }

    /// Writes raw bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result {
        self.0.write_all(bytes).map_err(unwritten)
    }

    /// Writes the buffered bytes to stdout.
    pub fn send(&mut self) -> Result {
        self.0.flush().map_err(unwritten)
    }

    /// Writes the buffered bytes to stdout and consumes the buffer.
    pub fn finish(mut self) -> Result {
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

/// Prints one line to stdout: the whole result of a command.
pub fn print_line(line: impl fmt::Display) -> Result {
    let mut output = Output::new();
    output.line(line)?;
    output.finish()
}

/// Prints the summary of a command: with `--json` as a line of JSON to stdout, otherwise as a
/// message to stderr.
pub fn print_summary(is_json: bool, json: impl fmt::Display, text: &str) -> Result {
    if is_json {
        return print_line(json);
    }
    print_message(text);
    Ok(())
}

/// Converts an error of writing to stdout to a failure.
pub fn unwritten(error: io::Error) -> Failure {
    let exit = match error.kind() {
        io::ErrorKind::BrokenPipe => Exit::BrokenPipe,
        _ => Exit::Failed,
    };
    Failure::new("cannot write to stdout").because(error).exit(exit)
}

#[cfg(test)]
mod tests {
    use std::process::ExitCode;

    use super::*;
    use crate::report::exit_code;

    #[test]
    fn closed_stdout_is_no_error_of_the_command() {
        let failure = |kind: io::ErrorKind| unwritten(kind.into());
        let exit = exit_code(Err(failure(io::ErrorKind::BrokenPipe)));
        assert_eq!(exit, ExitCode::SUCCESS);
        let full = failure(io::ErrorKind::StorageFull);
        assert!(full.text().is_some_and(|text| text.starts_with("cannot write to stdout: ")));
    }
}
