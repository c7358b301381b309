//! Keeps a log's unused append buffers, and allocates longer ones for long records.
//!
//! A log has two standard buffers: one is filled while the other is written. A record that fits
//! into neither of them is a *long record*. Its batch gets a longer buffer, which is freed as soon
//! as the batch is synced, so that the log does not keep the memory for its longest record.

use haul_disk::{AlignedBuf, HUGE_PAGE_BYTES, PAGE_BYTES};

use crate::format::{HEADER_BYTES, SEAL_BYTES};

/// The unused standard buffers.
#[derive(Debug)]
pub(crate) struct Buffers {
    standard_bytes: usize,
    unused: Vec<AlignedBuf>,
}

impl Buffers {
    /// Creates the second of the two standard buffers. The filling batch has the first one.
    pub(super) fn new(standard_bytes: usize) -> Self {
        let mut unused = Vec::with_capacity(2);
        unused.push(append_buffer(standard_bytes));
        Self { standard_bytes, unused }
    }

    /// `true` if a record may not fit into a standard buffer: the buffer's first page may begin
    /// with older records, and a seal must fit after the record.
    pub(super) fn is_long(&self, record_bytes: usize) -> bool {
        record_bytes + (HEADER_BYTES + SEAL_BYTES) as usize > self.standard_bytes
    }

    /// `true` if a buffer of this length is longer than a standard buffer.
    pub(super) fn is_longer(&self, buffer_bytes: usize) -> bool {
        buffer_bytes > self.standard_bytes
    }

    pub(super) fn take(&mut self) -> Option<AlignedBuf> {
        self.unused.pop()
    }

    /// Keeps a finished batch's buffer for a later batch. Returns a buffer that is not kept, which
    /// the caller frees without the state lock, because that may take long.
    pub(super) fn keep(&mut self, buffer: AlignedBuf) -> Option<AlignedBuf> {
        if self.is_longer(buffer.len()) {
            return Some(buffer);
        }
        debug_assert_eq!(buffer.len(), self.standard_bytes);
        debug_assert!(self.unused.len() < 2, "a log has two standard buffers");
        self.unused.push(buffer);
        None
    }

    /// Returns a buffer length that holds a long record after all other records that a standard
    /// buffer may contain.
    pub(super) fn bytes_for(&self, record_bytes: usize) -> usize {
        debug_assert!(self.is_long(record_bytes));
        let bytes = self.standard_bytes + record_bytes + SEAL_BYTES as usize;
        let unit = if bytes < HUGE_PAGE_BYTES { PAGE_BYTES } else { HUGE_PAGE_BYTES };
        bytes.next_multiple_of(unit)
    }
}

/// Allocates a buffer for batches. The kernel and the device process each page of a direct write,
/// so a buffer whose length is a multiple of a huge page (2 MiB) consists of huge pages: in a
/// measurement, a direct write of 2 MiB took half the time.
pub(super) fn append_buffer(bytes: usize) -> AlignedBuf {
    if bytes.is_multiple_of(HUGE_PAGE_BYTES) {
        AlignedBuf::huge(bytes)
    } else {
        AlignedBuf::zeroed(bytes)
    }
}

/// Allocates a buffer for a long record of this length. Its pages are written, so that the kernel
/// provides them now: the record is copied later, with the state locked.
pub(super) fn long_buffer(bytes: usize, record_bytes: usize) -> AlignedBuf {
    let mut buffer = append_buffer(bytes);
    let used = record_bytes.min(buffer.len());
    buffer[..used].iter_mut().step_by(PAGE_BYTES).for_each(|byte| *byte = 1);
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn append_buffer_has_the_requested_length_and_whole_huge_pages_if_possible() {
        for (bytes, alignment) in [
            (64 << 10, PAGE_BYTES),
            (HUGE_PAGE_BYTES + PAGE_BYTES, PAGE_BYTES),
            (HUGE_PAGE_BYTES, HUGE_PAGE_BYTES),
            (4 * HUGE_PAGE_BYTES, HUGE_PAGE_BYTES),
        ] {
            let buffer = append_buffer(bytes);
            assert_eq!(buffer.len(), bytes);
            assert_eq!(buffer.as_ptr().addr() % alignment, 0, "{bytes} bytes");
        }
    }

    #[test]
    fn only_standard_buffers_are_kept() {
        const STANDARD: usize = 64 << 10;
        let mut buffers = Buffers::new(STANDARD);
        let first = buffers.take().unwrap();
        assert!(buffers.take().is_none());
        let bytes = buffers.bytes_for(300_000);
        let long = buffers.keep(long_buffer(bytes, 300_000)).unwrap();
        assert_eq!(long.len(), bytes);
        assert!(buffers.take().is_none());
        assert!(buffers.keep(first).is_none());
        assert_eq!(buffers.take().unwrap().len(), STANDARD);
    }

    #[test]
    fn long_record_fits_after_all_records_of_a_standard_buffer() {
        for standard in [64 << 10, 8 << 20] {
            let buffers = Buffers::new(standard);
            let longest = standard - (HEADER_BYTES + SEAL_BYTES) as usize;
            assert!(!buffers.is_long(longest) && buffers.is_long(longest + 8));
            for record_bytes in [longest + 8, 2 * standard, 100 << 20] {
                let bytes = buffers.bytes_for(record_bytes);
                assert!(bytes.is_multiple_of(PAGE_BYTES) && buffers.is_longer(bytes));
                assert!(bytes >= standard + record_bytes + SEAL_BYTES as usize);
            }
        }
    }
}
