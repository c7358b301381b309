//! Completes a takeover: brings the directory to the state of the copy that this process owns.

use std::sync::Arc;
use std::time::Duration;

use haul_disk::Disk;
use haul_file_store::Store;

use super::Standby;
use super::directory::{complete, is_standby};
use crate::error::{Error, Result};
use crate::manifest::STORE;
use crate::options::Options;
use crate::owner::OwnedManifest;
use crate::progress::Progress;
use crate::remote::Remote;
use crate::ship::Replica;
use crate::source::Source;
use crate::store::fetch_big_files;

/// The pause after a failed attempt.
const PAUSE: Duration = Duration::from_millis(200);

/// A copy that a standby has taken over. Its lease is renewed while this exists.
#[derive(Debug)]
pub struct Takeover {
    pub(crate) owned: OwnedManifest,
    remote: Remote,
    fetched_bytes: u64,
}

impl Takeover {
    /// Returns the number of bytes that the standby fetched.
    #[must_use]
    pub fn fetched_bytes(&self) -> u64 {
        self.fetched_bytes
    }

    /// Continues the copy from the log that was opened in the standby's directory, with the
    /// progress and the options of [`Standby::run`].
    ///
    /// # Errors
    /// [`Error::NotThisLog`] if the log does not continue the copy; [`Error::Invalid`] if no thread
    /// can be started.
    ///
    /// # Durability
    /// Like [`Replica::follow`].
    pub fn follow(
        self,
        source: impl Source,
        options: Options,
        progress: Arc<Progress>,
    ) -> Result<Replica> {
        Replica::continue_owned(source, &self.remote, options, progress, self.owned)
    }
}

impl Standby {
    /// Brings the directory to the copy's state. This process owns the copy. Retries until this
    /// succeeds, or another process takes the copy over.
    pub(super) fn complete(
        mut self,
        owned: OwnedManifest,
        progress: &Arc<Progress>,
    ) -> Result<Takeover> {
        while let Err(error) = self.fetch_rest(&owned) {
            if let Some(reason) = progress.stopped() {
                return Err(Error::Fenced { what: reason });
            }
            if !matches!(error, Error::Remote { .. } | Error::Damaged { .. }) {
                return Err(error);
            }
            self.control.note_error(&error);
            if self.control.is_stopping() {
                return Err(error);
            }
            self.control.wait(PAUSE);
        }
        // The previous owner's manifest was observed before it was replaced.
        while let Some(left) = self.until_expiry()
            && !left.is_zero()
            && !self.control.is_stopping()
        {
            self.control.wait(left);
        }
        if self.control.is_stopping() {
            return Err(Error::Invalid("the takeover was stopped".to_owned()));
        }
        self.finish(owned)
    }

    /// Brings the directory to the copy's state, except for the small files.
    pub(crate) fn fetch_rest(&mut self, owned: &OwnedManifest) -> Result<()> {
        let manifest = owned.current().clone();
        self.follower.advance(&manifest, &mut || Ok(()))
    }

    /// Makes the directory ready to be opened.
    pub(crate) fn finish(self, owned: OwnedManifest) -> Result<Takeover> {
        let manifest = owned.current().clone();
        match &manifest.kind[..] {
            STORE => self.follower.finish(&manifest)?,
            _ => complete(&*self.disk)?,
        }
        drop(self.lock);
        Ok(Takeover { owned, remote: self.remote, fetched_bytes: self.follower.fetched_bytes() })
    }
}

/// Completes the takeover after the store was opened in a standby's directory: fetches the
/// big-object files that it lacks. Does nothing in other directories. Returns the number of bytes
/// fetched.
///
/// # Errors
/// [`Error::Damaged`] if a file does not exist; [`Error::Remote`], [`Error::Store`],
/// [`Error::Disk`]. A later call continues.
///
/// # Durability
/// Everything is durable when this returns.
pub fn finish_takeover(remote: &Remote, store: &Store, disk: &dyn Disk) -> Result<u64> {
    if !is_standby(disk)? {
        return Ok(0);
    }
    let fetched = fetch_big_files(remote, store, disk)?;
    complete(disk)?;
    Ok(fetched)
}
