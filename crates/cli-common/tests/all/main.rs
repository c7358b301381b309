//! Tests of the parts that need a process of their own: its output and its signals.
#![expect(clippy::unwrap_used, reason = "test helpers")]

mod output;
mod signals;
