//! Stores received bytes until they are parsed.

use std::io;

use haul_reactor::IoStatus;

use crate::flow::Stream;

/// The maximum number of bytes read at once where a head or chunk framing is expected. The number
/// is small, because only body bytes that stay in the socket can be spliced.
pub(crate) const READ_BYTES: usize = 16 << 10;

/// The received, unparsed bytes of one direction. An empty buffer has no memory allocated.
#[derive(Debug, Default)]
pub(crate) struct ReceiveBuffer {
    bytes: Vec<u8>,
    consumed: usize,
}

impl ReceiveBuffer {
    /// Appends bytes, and frees the space of consumed ones.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.consumed);
        self.consumed = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Reads once from the socket through `scratch`, and appends the bytes read.
    ///
    /// # Errors
    /// Returns an error if the read fails.
    pub(crate) fn receive(
        &mut self,
        from: &mut dyn Stream,
        scratch: &mut [u8],
    ) -> io::Result<IoStatus> {
        let most = scratch.len().min(READ_BYTES);
        let buffer = &mut scratch[..most];
        let moved = from.read(buffer)?;
        if let IoStatus::Bytes(bytes) = moved {
            self.append(&buffer[..bytes]);
        }
        Ok(moved)
    }

    /// Returns the bytes that are not consumed yet.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.consumed..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Moves the first `bytes_max` bytes, or all if there are fewer, to `out`; returns the number
    /// of bytes moved.
    pub(crate) fn take_into(&mut self, out: &mut Vec<u8>, bytes_max: u64) -> u64 {
        let all = self.bytes();
        let bytes = usize::try_from(bytes_max).map_or(all.len(), |most| most.min(all.len()));
        out.extend_from_slice(&all[..bytes]);
        self.consume(bytes);
        bytes as u64
    }

    /// Marks the first `bytes` bytes as consumed.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.consumed = self.bytes.len().min(self.consumed + bytes);
        if self.consumed == self.bytes.len() {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumed_bytes_are_freed_with_a_partial_message_pending() {
        let mut received = ReceiveBuffer::default();
        received.append(b"<");
        for _ in 0..1000 {
            received.append(&[b'x'; 99]);
            received.append(b"><");
            assert_eq!((received.bytes()[0], received.bytes().len()), (b'<', 102));
            received.consume(101);
            assert_eq!(received.bytes(), b"<");
        }
        assert!(received.bytes.capacity() < 1000, "{}", received.bytes.capacity());
        received.consume(1);
        assert_eq!(received.bytes.capacity(), 0);
    }
}
