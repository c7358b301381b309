//! A pool of chunk buffers. Memory that is used for the first time costs a page fault for each
//! page, which takes longer than to copy a page into it.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

/// The maximum number of unused buffers in the pool.
const UNUSED_MAX: usize = 6;

/// The space for the end of the record that makes a chunk complete, in bytes.
const RECORD_BYTES: usize = 256 << 10;

/// A pool of buffers. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Buffers {
    chunk_bytes: usize,
    unused: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// A buffer that returns to its pool when it is dropped.
struct Pooled {
    bytes: Vec<u8>,
    pool: Buffers,
}

impl Buffers {
    /// Returns a pool of buffers for chunks of `chunk_bytes` bytes.
    pub(crate) fn new(chunk_bytes: usize) -> Self {
        Self { chunk_bytes, unused: Arc::default() }
    }

    /// Returns an empty buffer.
    pub(crate) fn take(&self) -> Vec<u8> {
        let unused = self.unused.lock().pop();
        unused.unwrap_or_else(|| Vec::with_capacity(self.chunk_bytes + RECORD_BYTES))
    }

    /// Returns a buffer to the pool. A buffer that grew for a long record is freed.
    pub(crate) fn put(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let kept_bytes = self.chunk_bytes..=2 * (self.chunk_bytes + RECORD_BYTES);
        let mut unused = self.unused.lock();
        if unused.len() < UNUSED_MAX && kept_bytes.contains(&buffer.capacity()) {
            unused.push(buffer);
        }
    }

    /// Returns a buffer's bytes. The buffer returns to the pool once they are dropped.
    pub(crate) fn freeze(&self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(Pooled { bytes, pool: self.clone() })
    }

    /// Frees all unused buffers but one.
    pub(crate) fn shrink(&self) {
        self.unused.lock().truncate(1);
    }
}

impl AsRef<[u8]> for Pooled {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        self.pool.put(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_returns_when_its_last_bytes_are_dropped() {
        let pool = Buffers::new(1 << 20);
        let mut buffer = pool.take();
        buffer.extend_from_slice(b"chunk");
        let memory = buffer.as_ptr();
        let bytes = pool.freeze(buffer);
        let part = bytes.slice(1..3);
        drop(bytes);
        assert_eq!((&part[..], pool.unused.lock().len()), (&b"hu"[..], 0));
        drop(part);
        let again = pool.take();
        assert_eq!((again.as_ptr(), again.len()), (memory, 0));
        pool.put(again);
        pool.put(Vec::with_capacity(10));
        pool.put(Vec::with_capacity(4 << 20));
        for _ in 0..UNUSED_MAX {
            pool.put(Vec::with_capacity(1 << 20));
        }
        assert_eq!(pool.unused.lock().len(), UNUSED_MAX);
        pool.shrink();
        assert_eq!(pool.unused.lock().len(), 1);
    }
}
