//! Keeps aligned buffers for reuse, so that a round needs no fresh memory for its requests.

use haul_disk::AlignedBuf;

/// The maximum number of bytes kept for reuse.
const KEPT_BYTES_MAX: usize = 32 << 20;

/// Unused buffers, ordered by size: entry `n` has buffers of `2^n` bytes.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    by_size: Vec<Vec<AlignedBuf>>,
    kept_bytes: usize,
}

impl Buffers {
    /// Returns a buffer of at least `bytes` bytes, whose content is arbitrary.
    pub(crate) fn take(&mut self, bytes: usize) -> AlignedBuf {
        let size = bytes.next_power_of_two();
        match self.by_size.get_mut(size.ilog2() as usize).and_then(Vec::pop) {
            Some(buffer) => {
                self.kept_bytes -= buffer.len();
                buffer
            }
            None => AlignedBuf::zeroed(size),
        }
    }

    /// Keeps a buffer for reuse, or frees it if enough bytes are kept.
    pub(crate) fn put_back(&mut self, buffer: AlignedBuf) {
        let class = buffer.len().ilog2() as usize;
        if self.kept_bytes + buffer.len() > KEPT_BYTES_MAX {
            return;
        }
        if self.by_size.len() <= class {
            self.by_size.resize_with(class + 1, Vec::new);
        }
        self.kept_bytes += buffer.len();
        self.by_size[class].push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_reused_by_size_up_to_a_limit() {
        let mut buffers = Buffers::default();
        let mut small = buffers.take(4096);
        small[0] = 7;
        let large = buffers.take(5000);
        assert_eq!((small.len(), large.len()), (4096, 8192));
        buffers.put_back(small);
        buffers.put_back(large);
        assert_eq!(buffers.take(4096)[0], 7, "the same buffer");
        assert_eq!(buffers.take(4096)[0], 0, "a new buffer");
        assert_eq!(buffers.kept_bytes, 8192);
        for _ in 0..2 {
            let (one, other) = (buffers.take(20 << 20), buffers.take(20 << 20));
            buffers.put_back(one);
            buffers.put_back(other);
        }
        assert!(buffers.kept_bytes <= KEPT_BYTES_MAX);
    }
}
