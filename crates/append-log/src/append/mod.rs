//! Appends records with group commit: many threads append records to a buffer, which one thread
//! writes and syncs for all of them.

mod acknowledged;
pub(crate) mod appender;
pub(crate) mod batch;
mod buffers;
pub(crate) mod commit;
mod draft;
mod idle;
pub(crate) mod lock;
mod notify;
mod policy;
pub(crate) mod prepare;
pub(crate) mod seal;
pub(crate) mod state;
pub(crate) mod ticket;
mod wakers;
pub(crate) mod writer;
