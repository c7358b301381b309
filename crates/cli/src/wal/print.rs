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
    /// The number of bytes in which the next record is stored, if it is compressed.
    stored_bytes: Option<u32>,
}

impl<'a> Printer<'a> {
    pub(super) fn new(format: &'a RecordFormat) -> Self {
        Self { format, output: Output::new(), outcome: Ok(()), stored_bytes: None }
    }

    /// `true` if a write to stdout has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.outcome.is_err()
    }

    /// Adds to the next record that it is compressed, and the number of bytes in which it is stored.
    pub(super) fn stored_bytes(&mut self, bytes: u32) {
        self.stored_bytes = Some(bytes);
    }

    /// Prints a record, unless a write has failed.
    pub(super) fn record(&mut self, at: Position, payload: &[u8]) {
        let stored_bytes = self.stored_bytes.take();
        if self.outcome.is_ok() {
            self.outcome = self.print(at, payload, stored_bytes);
        }
    }

    fn print(&mut self, at: Position, payload: &[u8], stored_bytes: Option<u32>) -> Result {
        if self.format.raw {
            return self.output.bytes(payload);
        }
        if self.format.json {
            let mut line = json!({
                "kind": "record",
                "lsn": at.lsn.to_string(),
                "bytes": at.payload_bytes,
                "payload": hex(payload),
            });
            if let Some(bytes) = stored_bytes {
                line["stored_bytes"] = bytes.into();
            }
            return self.output.line(line);
        }
        let shown = &payload[..payload.len().min(self.format.payload_bytes)];
        let more = if shown.len() < payload.len() { "..." } else { "" };
        let text = String::from_utf8_lossy(shown);
        let stored = stored_bytes.map_or(String::new(), |bytes| format!(" ({bytes} stored)"));
        let line = format!("{}\t{}{stored}\t{}{more}", at.lsn, at.payload_bytes, Name(&text));
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
