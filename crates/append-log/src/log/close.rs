//! Closes a [`Log`], by a call or when it is dropped.

use haul_sync::thread;

use super::Log;
use crate::error::{Error, Result};

impl Log {
    /// Waits until all records are durable, appends a close record (the proof that the log was
    /// closed), and ends the log's threads. Dropping the log does the same and ignores errors.
    ///
    /// # Errors
    /// Returns [`Error::Latched`] if a write or sync failed, and [`Error::Disk`] if a segment for
    /// the close record cannot be created.
    pub fn close(mut self) -> Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> Result<()> {
        let Some(committer) = self.committer.take() else { return Ok(()) };
        let closed = self.mark_closed();
        let mut state = self.shared.state.lock();
        state.is_closing = true;
        self.shared.more.notify_all();
        self.shared.state.notify_commit_thread();
        self.shared.prepare.notify_all();
        drop(state);
        // A waker that owns the log may drop it on the commit thread, which cannot join itself.
        if committer.thread().id() != thread::current().id() {
            drop(committer.join());
        }
        self.preparer.join();
        // Locking and unlocking makes the deferred waker calls left by the preparing thread, which
        // creates segments and has ended.
        drop(self.shared.state.lock());
        closed
    }

    /// Syncs all records, then appends the close record in a batch of its own. The close record
    /// proves to recovery that all records before it were durable.
    fn mark_closed(&self) -> Result<()> {
        self.sync()?;
        match self.appender.push_close() {
            Ok(ticket) => ticket.wait().map(drop),
            // If the disk has no space for the close record, the log ends without it, and the next
            // opening treats the log as not closed.
            Err(Error::Full { .. }) => Ok(()),
            Err(other) => Err(other),
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        drop(self.finish());
    }
}
