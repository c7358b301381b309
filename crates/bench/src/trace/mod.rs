//! What a block device was asked to do, and by whom: the kernel's trace of its requests.
//!
//! This is what `blktrace` shows, read through the tracing file system, in an instance of our own:
//! nobody else's tracing is disturbed, nor ours by them.
//!
//! # Sources
//! \[Ftrace\]; the fields in `events/block/*/format` there.

mod instance;
mod parse;
mod traffic;

pub(crate) use instance::{Tracing, Watched};
pub(crate) use parse::Trace;
pub(crate) use traffic::{Journalling, Traffic};
