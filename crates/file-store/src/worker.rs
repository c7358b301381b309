//! An open store's threads.

use std::fmt::Debug;
use std::path::Path;

use haul_sync::thread::{Builder, JoinHandle};

use crate::error::{Error, Result};

/// A thread that works in the background until it is stopped.
pub(crate) trait Worker: Debug + Send + Sync {
    /// Makes the thread end at its next step, and waits for that. Dropping the worker does this,
    /// too.
    fn stop(&mut self);
}

/// Starts a thread for the store in a directory.
pub(crate) fn spawn(
    dir: &Path,
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>> {
    let started = Builder::new().name(name.to_owned()).spawn(run);
    started.map_err(|source| Error::Disk(haul_disk::Error::new(haul_disk::Op::Open, dir, source)))
}
