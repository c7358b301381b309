//! Traces the write requests to a block device, and attributes each to the task that caused it.
//!
//! `blktrace` shows the same events. This module reads them through the tracing file system, in a
//! tracing instance of this process, so tracing by other programs does not interfere.
//!
//! # Sources
//! \[Ftrace\]; the event fields in `events/block/*/format` of the tracing file system.

mod instance;
mod parse;
mod traffic;

pub(crate) use instance::{ALL_STEPS, REQUESTS, Tracing};
pub(crate) use traffic::{Journalling, Traffic};
