//! Reusable buffers for long objects. Allocating a new buffer of a megabyte takes longer than
//! filling it from the page cache, because the kernel zeroes and maps each page.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use haul_sync::Mutex;

/// The maximum total size of the unused buffers.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// The minimum size of a buffer that is kept. The allocator itself caches shorter ones.
const KEPT_BYTES_MIN: usize = 128 << 10;

#[derive(Debug, Default)]
pub(crate) struct Buffers {
    unused: Mutex<Vec<Vec<u8>>>,
}

impl Buffers {
    /// Returns a buffer of any length and content.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.unused.lock().pop().unwrap_or_default()
    }

    /// Keeps a buffer for a later call of [`Self::take`], unless the limit is reached.
    pub(crate) fn give_back(&self, buffer: Vec<u8>) {
        let mut unused = self.unused.lock();
        let kept: usize = unused.iter().map(Vec::capacity).sum();
        if buffer.capacity() >= KEPT_BYTES_MIN && kept + buffer.capacity() <= KEPT_BYTES_MAX {
            unused.push(buffer);
        }
    }

    /// Returns a part of a buffer. The buffer is kept for reuse when the last clone of the part is
    /// dropped.
    pub(crate) fn share(self: &Arc<Self>, buffer: Vec<u8>, range: Range<usize>) -> Bytes {
        if buffer.capacity() < KEPT_BYTES_MIN {
            return Bytes::from(buffer).slice(range);
        }
        Bytes::from_owner(Shared { buffer, buffers: Arc::clone(self) }).slice(range)
    }
}

/// A buffer in use.
struct Shared {
    buffer: Vec<u8>,
    buffers: Arc<Buffers>,
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.buffers.give_back(std::mem::take(&mut self.buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_buffers_are_reused_up_to_a_limit() {
        let buffers = Arc::new(Buffers::default());
        let long = || vec![1; 1 << 20];
        let (first, second) = (buffers.share(long(), 0..10), buffers.share(long(), 5..1 << 20));
        drop(second.clone());
        assert!(buffers.take().is_empty(), "both are in use");
        assert_eq!((first.len(), second.len()), (10, (1 << 20) - 5));
        drop((first, second));
        assert_eq!((buffers.take().len(), buffers.take().len()), (1 << 20, 1 << 20));
        (0..20).for_each(|_| buffers.give_back(long()));
        buffers.give_back(vec![1; 1000]);
        assert_eq!((0..20).filter(|_| !buffers.take().is_empty()).count(), 16);
    }
}
