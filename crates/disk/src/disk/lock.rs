//! The exclusive lock that [`crate::Disk::lock`] returns, and the description of its holder.

use std::fmt;

/// The name of the file in which a directory lock's holder describes itself.
pub const LOCK_NAME: &str = "LOCK";

/// An exclusive lock on a directory or a file, released when the value is dropped or the process
/// ends, even if the process is killed.
#[derive(Debug)]
pub struct Lock {
    _guard: Box<dyn Guard>,
}

/// Any value whose drop releases a lock.
trait Guard: fmt::Debug + Send + Sync {}

impl<T: fmt::Debug + Send + Sync> Guard for T {}

impl Lock {
    /// Returns a lock that is released when `guard` is dropped. Implementations of [`crate::Disk`]
    /// use this.
    pub fn new(guard: impl fmt::Debug + Send + Sync + 'static) -> Self {
        Self { _guard: Box::new(guard) }
    }
}

/// The outcome of [`crate::Disk::lock`].
#[derive(Debug)]
pub enum Locked {
    /// The caller holds the lock.
    Acquired(Lock),
    /// Another caller, in this process or another one, holds the lock. The string describes the
    /// holder, with its process id if known.
    HeldBy(String),
}

/// Returns a description of this process for [`crate::Disk::lock`]: its name and its process id.
#[must_use]
pub fn this_process() -> String {
    let id = std::process::id();
    match std::fs::read_to_string("/proc/self/comm") {
        Ok(name) => format!("{} (process {id})", name.trim_end()),
        Err(_) => format!("process {id}"),
    }
}
