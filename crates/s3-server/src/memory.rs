//! Limits the memory for request and response bodies: for all peers together, and for each peer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::errors::{S3ErrorCode, S3Result, refuse};

/// The unit in which memory is reserved, in bytes, so that the number of units stays small.
const UNIT_BYTES: u64 = 4096;

/// The memory for one peer's bodies.
#[derive(Debug, Clone)]
pub(crate) struct PeerMemory(Arc<Semaphore>);

impl PeerMemory {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self(Arc::new(Semaphore::new(units(bytes_max) as usize)))
    }
}

pub(crate) struct BodyMemory {
    all: Arc<Semaphore>,
    bytes_max: u64,
    /// The bytes that may be reserved before [`Self::wait_until_beyond`] returns.
    expected_bytes: AtomicU64,
    beyond: Notify,
    wait_time_max: Duration,
}

/// The memory reserved for one body. Dropping it releases the memory.
#[derive(Debug)]
pub(crate) struct Reserved {
    global_permit: OwnedSemaphorePermit,
    peer_permit: Option<OwnedSemaphorePermit>,
}

impl Reserved {
    /// Releases the memory beyond `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: u64) {
        let needed = units(bytes) as usize;
        for permit in
            [Some(&mut self.global_permit), self.peer_permit.as_mut()].into_iter().flatten()
        {
            let surplus = permit.num_permits().saturating_sub(needed);
            drop(permit.split(surplus));
        }
    }

    /// Returns bytes that keep this memory reserved as long as they exist.
    pub(crate) fn guard(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Guarded { bytes, _memory: self })
    }
}

impl BodyMemory {
    pub(crate) fn new(bytes_max: u64, wait_time_max: Duration) -> Self {
        let all = Arc::new(Semaphore::new(units(bytes_max) as usize));
        let (expected_bytes, beyond) = (AtomicU64::new(u64::MAX), Notify::new());
        Self { all, bytes_max, expected_bytes, beyond, wait_time_max }
    }

    /// Returns the currently reserved memory, in bytes.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        let free = self.all.available_permits() as u64 * UNIT_BYTES;
        self.bytes_max.saturating_sub(free)
    }

    /// Waits until more than `bytes` are reserved. One thread at a time may wait.
    pub(crate) async fn wait_until_beyond(&self, bytes: u64) {
        self.expected_bytes.store(bytes, Relaxed);
        while self.reserved_bytes() <= bytes {
            self.beyond.notified().await;
        }
    }

    fn reserved(
        &self,
        global_permit: OwnedSemaphorePermit,
        peer_permit: Option<OwnedSemaphorePermit>,
    ) -> Reserved {
        if self.reserved_bytes() > self.expected_bytes.load(Relaxed) {
            self.beyond.notify_one();
        }
        Reserved { global_permit, peer_permit }
    }

    /// Waits for memory for `bytes`. First waits for the peer's share, so that its requests do not
    /// occupy the queue that all peers share.
    ///
    /// # Errors
    /// `SlowDown` if that takes too long.
    pub(crate) async fn reserve(
        &self,
        peer: Option<&PeerMemory>,
        bytes: u64,
    ) -> S3Result<Reserved> {
        if let Some(reserved) = self.try_reserve(peer, bytes) {
            return Ok(reserved);
        }
        let units = units(bytes);
        let reserved = async {
            let peer = match peer {
                Some(PeerMemory(share)) => Some(Arc::clone(share).acquire_many_owned(units).await?),
                None => None,
            };
            let all = Arc::clone(&self.all).acquire_many_owned(units).await?;
            Ok::<_, tokio::sync::AcquireError>(self.reserved(all, peer))
        };
        match tokio::time::timeout(self.wait_time_max, reserved).await {
            Ok(Ok(reserved)) => Ok(reserved),
            _ => Err(refuse(S3ErrorCode::SlowDown, "Too many bodies are in flight; try later")),
        }
    }

    /// Reserves memory for `bytes`; `None` if that would have to wait.
    pub(crate) fn try_reserve(&self, peer: Option<&PeerMemory>, bytes: u64) -> Option<Reserved> {
        let units = units(bytes);
        let reserve = |all: &Arc<Semaphore>| Arc::clone(all).try_acquire_many_owned(units).ok();
        let peer = match peer {
            Some(PeerMemory(share)) => Some(reserve(share)?),
            None => None,
        };
        Some(self.reserved(reserve(&self.all)?, peer))
    }
}

/// The maximum length of content that is sent without a reservation, in bytes: a socket buffer
/// takes it whole, unless the client reads nothing.
const UNRESERVED_BYTES_MAX: usize = 16 << 10;

/// Bytes, and the memory that is reserved for them.
struct Guarded {
    bytes: Bytes,
    _memory: Reserved,
}

impl AsRef<[u8]> for Guarded {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl BodyMemory {
    /// Reserves memory for content that is about to be sent, as long as it exists; `None` if that
    /// would have to wait.
    pub(crate) fn guard(&self, peer: &PeerMemory, bytes: Bytes) -> Option<Bytes> {
        if bytes.len() <= UNRESERVED_BYTES_MAX {
            return Some(bytes);
        }
        let memory = self.try_reserve(Some(peer), bytes.len() as u64)?;
        Some(memory.guard(bytes))
    }
}

/// Returns the number of units for `bytes`. The limits permit no more units than a `u32` can count.
fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn wait_ends_when_more_than_expected_is_reserved() {
        let memory = BodyMemory::new(10 * UNIT_BYTES, SECOND);
        let first = memory.try_reserve(None, 4 * UNIT_BYTES).unwrap();
        let wait = memory.wait_until_beyond(4 * UNIT_BYTES);
        let mut wait = std::pin::pin!(wait);
        assert!(tokio::time::timeout(Duration::from_millis(10), &mut wait).await.is_err());
        let second = memory.try_reserve(None, 1).unwrap();
        tokio::time::timeout(10 * SECOND, wait).await.unwrap();
        memory.wait_until_beyond(4 * UNIT_BYTES).await;
        drop((first, second));
    }

    #[test]
    fn memory_stays_reserved_as_long_as_the_bytes_exist() {
        let memory = BodyMemory::new(10 * UNIT_BYTES, SECOND);
        let peer = PeerMemory::new(8 * UNIT_BYTES);
        let free = || (memory.all.available_permits(), peer.0.available_permits());
        let mut reserved = memory.try_reserve(Some(&peer), 6 * UNIT_BYTES).unwrap();
        assert_eq!(free(), (4, 2));
        assert!(memory.try_reserve(Some(&peer), 3 * UNIT_BYTES).is_none());
        reserved.shrink_to(UNIT_BYTES + 1);
        assert_eq!((free(), memory.reserved_bytes()), ((8, 6), 2 * UNIT_BYTES));
        // A reservation does not grow.
        reserved.shrink_to(5 * UNIT_BYTES);
        assert_eq!(free(), (8, 6));
        let bytes = reserved.guard(Bytes::from_static(b"hello"));
        let rest = bytes.slice(1..);
        drop(bytes);
        assert_eq!((&rest[..], free()), (&b"ello"[..], (8, 6)));
        drop(rest);
        assert_eq!(free(), (10, 8));
    }
}
