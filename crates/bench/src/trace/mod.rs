//! What a block device was asked to do, and by whom: the kernel's trace of its requests.
//!
//! This is what `blktrace` shows, read through the tracing file system, in an instance of our own:
//! nobody else's tracing is disturbed, nor ours by them.
//!
//! # Sources
//! `Documentation/trace/ftrace.rst` and `Documentation/trace/events.rst` of the kernel; the fields
//! in `events/block/*/format`.

mod instance;
mod parse;
mod traffic;

pub(crate) use instance::{Tracing, Watched};
pub(crate) use traffic::{Journalling, Traffic};
