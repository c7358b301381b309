//! Reusable buffers for direct reads of big objects. The kernel has to zero and map each page of a
//! new buffer.

use std::sync::Arc;

use bytes::Bytes;
use haul_disk::{AlignedBuf, HUGE_PAGE_BYTES};
use haul_sync::Mutex;

/// The maximum number of unused buffers.
const KEPT_MAX: usize = 8;

/// The maximum length of a buffer that is not kept: allocating it is fast compared with the read.
const SHORT_BYTES_MAX: usize = 256 << 10;

/// Unused buffers with the size of a huge page each.
#[derive(Debug, Default)]
pub(crate) struct ReadBuffers {
    unused: Mutex<Vec<AlignedBuf>>,
}

/// A buffer in use.
#[derive(Debug)]
pub(crate) struct ReadBuffer {
    /// `None` only during the drop.
    memory: Option<AlignedBuf>,
    buffers: Arc<ReadBuffers>,
}

impl ReadBuffers {
    /// Returns a buffer of at least `bytes`, at most a huge page, with unspecified content.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize) -> ReadBuffer {
        let memory = match bytes {
            ..=SHORT_BYTES_MAX => AlignedBuf::zeroed(bytes),
            _ => {
                let unused = self.unused.lock().pop();
                unused.unwrap_or_else(|| AlignedBuf::huge(HUGE_PAGE_BYTES))
            }
        };
        ReadBuffer { memory: Some(memory), buffers: Arc::clone(self) }
    }
}

impl ReadBuffer {
    pub(crate) fn as_mut(&mut self) -> &mut [u8] {
        self.memory.as_deref_mut().unwrap_or_default()
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for ReadBuffer {
    fn as_ref(&self) -> &[u8] {
        self.memory.as_deref().unwrap_or_default()
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        let is_long = self.memory.as_ref().is_some_and(|memory| memory.len() == HUGE_PAGE_BYTES);
        let mut unused = self.buffers.unused.lock();
        if is_long && unused.len() < KEPT_MAX {
            unused.extend(self.memory.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_reused_up_to_a_limit() {
        let buffers = Arc::new(ReadBuffers::default());
        let mut used: Vec<_> = (0..KEPT_MAX + 2).map(|_| buffers.take(HUGE_PAGE_BYTES)).collect();
        used[0].as_mut()[7] = 7;
        let shared = used.remove(0).into_bytes().slice(7..8);
        drop(used);
        assert_eq!((&shared[..], buffers.unused.lock().len()), (&[7][..], KEPT_MAX));
        drop((shared, buffers.take(SHORT_BYTES_MAX)));
        assert_eq!(buffers.unused.lock().len(), KEPT_MAX);
    }
}
