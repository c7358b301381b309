//! Memory for reads under way: bounded, and used again.

use haul_disk::{AlignedBuf, PAGE_BYTES};

/// The sizes there are: a page, and its doubles up to 512 KiB.
const SIZES: usize = 8;

/// The largest buffer, and so the largest single read.
pub(super) const BUFFER_BYTES_MAX: usize = PAGE_BYTES << (SIZES - 1);

/// The buffers of one worker.
#[derive(Debug)]
pub(super) struct Buffers {
    free: [Vec<AlignedBuf>; SIZES],
    /// All there are, in use or free.
    bytes: usize,
    bytes_max: usize,
    in_use: usize,
}

impl Buffers {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { free: [const { Vec::new() }; SIZES], bytes: 0, bytes_max, in_use: 0 }
    }

    /// A buffer for `bytes`, at most [`BUFFER_BYTES_MAX`]; none when there is no memory for it
    /// until another one comes back.
    pub(super) fn take(&mut self, bytes: usize) -> Option<AlignedBuf> {
        let size = size(bytes);
        let buffer = match self.free[size].pop() {
            Some(buffer) => buffer,
            None => self.make(PAGE_BYTES << size)?,
        };
        self.in_use += 1;
        Some(buffer)
    }

    /// A buffer even if there is no memory for it: only when nothing else would go on.
    pub(super) fn take_anyway(&mut self, bytes: usize) -> AlignedBuf {
        self.take(bytes).unwrap_or_else(|| {
            let buffer = AlignedBuf::zeroed(PAGE_BYTES << size(bytes));
            (self.bytes, self.in_use) = (self.bytes + buffer.len(), self.in_use + 1);
            buffer
        })
    }

    fn make(&mut self, bytes: usize) -> Option<AlignedBuf> {
        // Those of other sizes make room, the largest first.
        for free in self.free.iter_mut().rev() {
            while self.bytes + bytes > self.bytes_max {
                let Some(other) = free.pop() else { break };
                self.bytes -= other.len();
            }
        }
        // One alone is always there: without it nothing would go on.
        if self.bytes + bytes > self.bytes_max && self.in_use > 0 {
            return None;
        }
        self.bytes += bytes;
        Some(AlignedBuf::zeroed(bytes))
    }

    /// Takes a buffer back.
    pub(super) fn give(&mut self, buffer: AlignedBuf) {
        self.in_use = self.in_use.saturating_sub(1);
        self.free[size(buffer.len())].push(buffer);
    }
}

/// Which size is the smallest that holds `bytes`.
fn size(bytes: usize) -> usize {
    let pages = bytes.div_ceil(PAGE_BYTES).max(1).next_power_of_two();
    (pages.trailing_zeros() as usize).min(SIZES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_that_fits_is_taken() {
        let sizes = [0, 1, 4096, 4097, 9000, 512 << 10].map(size);
        assert_eq!(sizes, [0, 0, 0, 1, 2, 7]);
        let mut buffers = Buffers::new(1 << 20);
        assert_eq!(buffers.take(5000).unwrap().len(), 8192);
        assert_eq!(buffers.take(BUFFER_BYTES_MAX).unwrap().len(), BUFFER_BYTES_MAX);
    }

    #[test]
    fn memory_ends_and_comes_back() {
        let mut buffers = Buffers::new(64 << 10);
        let mut taken: Vec<_> = (0..16).map(|_| buffers.take(4096).unwrap()).collect();
        assert!(buffers.take(1).is_none());
        buffers.give(taken.pop().unwrap());
        assert!(buffers.take(8192).is_none(), "only a page is free");
        taken.drain(..).for_each(|buffer| buffers.give(buffer));
        let large = buffers.take(64 << 10).unwrap();
        assert_eq!((large.len(), buffers.bytes), (64 << 10, 64 << 10), "the pages made room");
        assert!(buffers.take(1).is_none());
    }

    #[test]
    fn one_buffer_is_there_however_little_memory() {
        let mut buffers = Buffers::new(0);
        let one = buffers.take(100_000).unwrap();
        assert!(buffers.take(1).is_none());
        buffers.give(one);
        assert!(buffers.take(1).is_some());
    }
}
