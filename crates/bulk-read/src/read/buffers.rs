//! Allocates and reuses the buffers of reads in flight, and limits their total length.

use haul_disk::{AlignedBuf, HUGE_PAGE_BYTES, PAGE_BYTES};

/// The number of size classes. The class sizes are the powers of two from a page to 2 MiB.
const SIZES: usize = 10;

/// The length of the largest buffer in bytes, and thus of the largest read.
pub(super) const BUFFER_BYTES_MAX: usize = PAGE_BYTES << (SIZES - 1);

/// The buffers of one worker, a thread that reads.
#[derive(Debug)]
pub(super) struct Buffers {
    free: [Vec<AlignedBuf>; SIZES],
    /// The total length of all buffers, both in use and free, in bytes.
    bytes: usize,
    bytes_max: usize,
    in_use: usize,
}

impl Buffers {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { free: [const { Vec::new() }; SIZES], bytes: 0, bytes_max, in_use: 0 }
    }

    /// Takes a buffer for `bytes`, which is at most [`BUFFER_BYTES_MAX`]. Returns `None` if the
    /// limit is reached; the caller may retry after it has released a buffer.
    pub(super) fn take(&mut self, bytes: usize) -> Option<AlignedBuf> {
        let size = size_class(bytes);
        let buffer = match self.free[size].pop() {
            Some(buffer) => buffer,
            None => self.allocate(PAGE_BYTES << size)?,
        };
        self.in_use += 1;
        Some(buffer)
    }

    /// Takes a buffer even beyond the limit. The caller does this only when no read is in flight,
    /// because then no completion would release a buffer.
    pub(super) fn take_unlimited(&mut self, bytes: usize) -> AlignedBuf {
        self.take(bytes).unwrap_or_else(|| {
            let buffer = aligned(PAGE_BYTES << size_class(bytes));
            (self.bytes, self.in_use) = (self.bytes + buffer.len(), self.in_use + 1);
            buffer
        })
    }

    fn allocate(&mut self, bytes: usize) -> Option<AlignedBuf> {
        // Discard free buffers of other sizes to make room, the largest first.
        for free in self.free.iter_mut().rev() {
            while self.bytes + bytes > self.bytes_max {
                let Some(other) = free.pop() else { break };
                self.bytes -= other.len();
            }
        }
        // If no buffer is in use, grant a buffer beyond the limit, so that a worker can always
        // read.
        if self.bytes + bytes > self.bytes_max && self.in_use > 0 {
            return None;
        }
        self.bytes += bytes;
        Some(aligned(bytes))
    }

    /// Returns a buffer to the pool.
    pub(super) fn release(&mut self, buffer: AlignedBuf) {
        self.in_use = self.in_use.saturating_sub(1);
        self.free[size_class(buffer.len())].push(buffer);
    }
}

/// Allocates a buffer. The largest ones are huge pages, into which a direct read transfers at once.
fn aligned(bytes: usize) -> AlignedBuf {
    if bytes >= HUGE_PAGE_BYTES { AlignedBuf::huge(bytes) } else { AlignedBuf::zeroed(bytes) }
}

/// Returns the index of the smallest size class that holds `bytes`.
fn size_class(bytes: usize) -> usize {
    let pages = bytes.div_ceil(PAGE_BYTES).max(1).next_power_of_two();
    (pages.trailing_zeros() as usize).min(SIZES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_sufficient_size_class_is_used() {
        let sizes = [0, 1, 4096, 4097, 9000, 512 << 10, BUFFER_BYTES_MAX].map(size_class);
        assert_eq!(sizes, [0, 0, 0, 1, 2, 7, SIZES - 1]);
        let mut buffers = Buffers::new(4 << 20);
        assert_eq!(buffers.take(5000).unwrap().len(), 8192);
        assert_eq!(buffers.take(BUFFER_BYTES_MAX).unwrap().len(), BUFFER_BYTES_MAX);
    }

    #[test]
    fn limit_holds_and_released_buffers_are_reused() {
        let mut buffers = Buffers::new(64 << 10);
        let mut taken: Vec<_> = (0..16).map(|_| buffers.take(4096).unwrap()).collect();
        assert!(buffers.take(1).is_none());
        buffers.release(taken.pop().unwrap());
        assert!(buffers.take(8192).is_none(), "only a page is free");
        taken.drain(..).for_each(|buffer| buffers.release(buffer));
        let large = buffers.take(64 << 10).unwrap();
        assert_eq!((large.len(), buffers.bytes), (64 << 10, 64 << 10), "the pages made room");
        assert!(buffers.take(1).is_none());
    }

    #[test]
    fn one_buffer_is_granted_below_the_limit() {
        let mut buffers = Buffers::new(0);
        let one = buffers.take(100_000).unwrap();
        assert!(buffers.take(1).is_none());
        buffers.release(one);
        assert!(buffers.take(1).is_some());
    }
}
