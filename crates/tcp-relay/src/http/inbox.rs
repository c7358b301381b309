//! Received bytes that were not understood yet.

use std::io;

use haul_reactor::{Moved, Socket};

/// The most that is read at once where a head or the frame of a chunk may be: a body behind it is
/// better left in the socket, from where it can be spliced.
pub(crate) const READ_BYTES: usize = 16 << 10;

/// Bytes of one direction, in their order. Empty, it has no memory.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    taken: usize,
}

impl Inbox {
    /// Puts bytes behind those it has, in the place of those that were taken.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Reads what has come.
    ///
    /// # Errors
    /// The socket's.
    pub(crate) fn receive(&mut self, from: &mut Socket, scratch: &mut [u8]) -> io::Result<Moved> {
        let most = scratch.len().min(READ_BYTES);
        let buffer = &mut scratch[..most];
        let moved = from.read(buffer)?;
        if let Moved::Bytes(bytes) = moved {
            self.push(&buffer[..bytes]);
        }
        Ok(moved)
    }

    /// What it has.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Takes the first bytes, so many or all, into `out`. How many they were.
    pub(crate) fn move_to(&mut self, out: &mut Vec<u8>, bytes_max: u64) -> u64 {
        let all = self.bytes();
        let bytes = usize::try_from(bytes_max).map_or(all.len(), |most| most.min(all.len()));
        out.extend_from_slice(&all[..bytes]);
        self.skip(bytes);
        bytes as u64
    }

    /// Takes the first `bytes` bytes away: they were understood.
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.taken = self.bytes.len().min(self.taken + bytes);
        if self.taken == self.bytes.len() {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A piece of the next message is always there.
    #[test]
    fn what_was_taken_is_not_kept() {
        let mut inbox = Inbox::default();
        inbox.push(b"<");
        for _ in 0..1000 {
            inbox.push(&[b'x'; 99]);
            inbox.push(b"><");
            assert_eq!((inbox.bytes()[0], inbox.bytes().len()), (b'<', 102));
            inbox.skip(101);
            assert_eq!(inbox.bytes(), b"<");
        }
        assert!(inbox.bytes.capacity() < 1000, "{}", inbox.bytes.capacity());
        inbox.skip(1);
        assert_eq!(inbox.bytes.capacity(), 0);
    }
}
