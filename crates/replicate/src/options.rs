//! A replica's options.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::lease::{LEASE_MAX, LEASE_MIN};

/// The maximum number of kept states.
const STATES_MAX: u32 = 10_000;

/// Options for a replica. The defaults suit an object store that bills requests.
#[derive(Debug, Clone)]
pub struct Options {
    /// Behaviour: the longest time for which a durable record waits to be shipped while the remote
    /// store responds. If the machine is lost, the records acknowledged in about this time are
    /// lost, unless the caller waits for the copy. Default: 1 s.
    pub interval: Duration,
    /// Performance: the length in bytes at which a chunk is complete. 64 KiB to 256 MiB. Default: 8
    /// MiB.
    pub chunk_bytes: usize,
    /// Performance: the maximum number of bytes that the manifest itself holds. As long as the
    /// newest records fit into it, shipping them takes one request instead of two. They also become
    /// a chunk once earlier manifests together have sent this many bytes of them, which is worth
    /// one more request. At most `chunk_bytes`. Default: 512 KiB.
    pub tail_bytes_max: usize,
    /// Performance: the shortest time between two shipped index checkpoints, unless a checkpoint
    /// becomes unusable. A checkpoint makes a restored store open faster. Default: 60 s.
    pub checkpoint_every: Duration,
    /// Behaviour: the time for which the copy's states are kept, so that it can be restored as it
    /// was at any of these times. Zero keeps the newest state only. Objects that only kept states
    /// need are deleted later, so the copy takes more space. Default: zero.
    pub keep: Duration,
    /// Behaviour: the shortest time between two kept states. `keep` may be at most 10,000 times as
    /// long, because the manifest lists all of them. Default: 5 minutes.
    pub keep_every: Duration,
    /// Behaviour: the time after which an object that neither the newest state nor a kept state
    /// needs is deleted. It must be longer than a reader takes to notice the newest state. After a
    /// restart it begins again. Default: 1 minute.
    pub delete_after: Duration,
    /// Behaviour: the time within which this process promises to replace the manifest again, so
    /// that a standby may take over when it does not. When the lease has run out, the store
    /// acknowledges no change until it is renewed. It is renewed three times within the lease,
    /// which costs one request each, also for an idle log. 100 ms to an hour. Default: none.
    pub lease: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            chunk_bytes: 8 << 20,
            tail_bytes_max: 512 << 10,
            checkpoint_every: Duration::from_secs(60),
            keep: Duration::ZERO,
            keep_every: Duration::from_secs(300),
            delete_after: Duration::from_secs(60),
            lease: None,
        }
    }
}

impl Options {
    /// Checks the options as [`crate::Replica::follow`] does.
    ///
    /// # Errors
    /// [`Error::Invalid`] if an option is out of range.
    pub fn check(&self) -> Result<()> {
        let complain = |what: &str| Err(Error::Invalid(what.to_owned()));
        if !(64 << 10..=256 << 20).contains(&self.chunk_bytes) {
            return complain("chunk_bytes must be between 64 KiB and 256 MiB");
        }
        if self.tail_bytes_max > self.chunk_bytes {
            return complain("tail_bytes_max must be at most chunk_bytes");
        }
        if self.lease.is_some_and(|lease| !(LEASE_MIN..=LEASE_MAX).contains(&lease)) {
            return complain("the lease must be between 100 ms and 1 h");
        }
        if self.keep > self.keep_every.saturating_mul(STATES_MAX) {
            return complain("keep must be at most 10,000 times keep_every");
        }
        Ok(())
    }
}
