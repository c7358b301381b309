//! Prints records.

use std::fmt::Write;

use haul_append_log::Position;
use serde_json::json;

use crate::args::RecordFormat;
use crate::output::{Name, Output};
use crate::report::Result;

/// Prints records to stdout, until a write fails.
pub(super) struct Printer<'a> {
    format: &'a RecordFormat,
    output: Output,
    outcome: Result,
}

impl<'a> Printer<'a> {
    pub(super) fn new(format: &'a RecordFormat) -> Self {
        Self { format, output: Output::new(), outcome: Ok(()) }
    }

    /// `true` if a write to stdout has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.outcome.is_err()
    }

    /// Prints a record, unless a write has failed.
    pub(super) fn record(&mut self, at: Position, payload: &[u8]) {
        if self.outcome.is_ok() {
            self.outcome = self.print(at, payload);
        }
    }

    fn print(&mut self, at: Position, payload: &[u8]) -> Result {
        if self.format.raw {
            return self.output.bytes(payload);
        }
        if self.format.json {
            return self.output.line(json!({
                "kind": "record",
                "lsn": at.lsn.to_string(),
                "bytes": at.payload_bytes,
                "payload": hex(payload),
            }));
        }
        let shown = &payload[..payload.len().min(self.format.payload_bytes)];
        let more = if shown.len() < payload.len() { "..." } else { "" };
        let text = String::from_utf8_lossy(shown);
        let line = format!("{}\t{}\t{}{more}", at.lsn, at.payload_bytes, Name(&text));
        self.output.line(line)
    }

    /// Sends the printed records to stdout. Fails if a write has failed.
    pub(super) fn send(&mut self) -> Result {
        std::mem::replace(&mut self.outcome, Ok(()))?;
        self.output.send()
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        write!(text, "{byte:02x}").ok();
    }
    text
}
