//! Server access logging: a record of each request to a bucket with logging, delivered in batches
//! as objects in a target bucket.
//!
//! `target` reads a bucket's logging configuration, `logged` collects a record while a request is
//! processed, `format` is the only module that formats a record, and `names` builds the keys of log
//! objects. `batches` decides which batch a record joins and when it is due, `queue` shares the
//! batches between threads, `rights` decides whether a bucket accepts another bucket's records, and
//! `delivery` stores due batches.

mod batches;
pub(crate) mod delivery;
mod format;
pub(crate) mod logged;
pub(crate) mod names;
mod operation;
pub(crate) mod queue;
pub(crate) mod rights;
pub(crate) mod target;
