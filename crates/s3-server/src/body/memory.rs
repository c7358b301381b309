//! Memory for the bodies of requests and responses, shared out so that no client holds all of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use s3s::{S3ErrorCode, S3Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::errors::refuse;

/// The unit in which memory is shared out, so that the count of units stays small.
const UNIT_BYTES: u64 = 4096;

/// The share of the memory that the bodies of all requests of one peer may hold together.
#[derive(Debug, Clone)]
pub(crate) struct PeerMemory(Arc<Semaphore>);

impl PeerMemory {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self(Arc::new(Semaphore::new(units(bytes_max) as usize)))
    }
}

/// The memory for all bodies.
pub(crate) struct BodyMemory {
    all: Arc<Semaphore>,
    wait_time_max: Duration,
}

/// Memory for one body, free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    _of_all: OwnedSemaphorePermit,
    _of_peer: Option<OwnedSemaphorePermit>,
}

impl BodyMemory {
    pub(crate) fn new(bytes_max: u64, wait_time_max: Duration) -> Self {
        Self { all: Arc::new(Semaphore::new(units(bytes_max) as usize)), wait_time_max }
    }

    /// Waits for memory to hold `bytes`. A peer waits for its own share first, so that its requests
    /// do not stand in the queue of all others.
    ///
    /// # Errors
    /// `SlowDown` if that takes too long.
    pub(crate) async fn reserve(
        &self,
        peer: Option<&PeerMemory>,
        bytes: u64,
    ) -> S3Result<Reserved> {
        let units = units(bytes);
        let reserved = async {
            let of_peer = match peer {
                Some(PeerMemory(share)) => Some(Arc::clone(share).acquire_many_owned(units).await?),
                None => None,
            };
            let of_all = Arc::clone(&self.all).acquire_many_owned(units).await?;
            Ok::<_, tokio::sync::AcquireError>(Reserved { _of_all: of_all, _of_peer: of_peer })
        };
        match tokio::time::timeout(self.wait_time_max, reserved).await {
            Ok(Ok(reserved)) => Ok(reserved),
            _ => Err(refuse(S3ErrorCode::SlowDown, "Too many bodies are on their way; try later")),
        }
    }
}

/// The longest content that is sent without a reservation: the buffer of a socket takes it whole,
/// unless the client reads nothing.
const UNRESERVED_BYTES_MAX: usize = 16 << 10;

/// Bytes in memory that is reserved for them.
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
        let units = units(bytes.len() as u64);
        let of_peer = Arc::clone(&peer.0).try_acquire_many_owned(units).ok()?;
        let of_all = Arc::clone(&self.all).try_acquire_many_owned(units).ok()?;
        let memory = Reserved { _of_all: of_all, _of_peer: Some(of_peer) };
        Some(Bytes::from_owner(Guarded { bytes, _memory: memory }))
    }
}

/// Units of memory for `bytes`. More than a `u32` of them is refused with the limits.
fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}
