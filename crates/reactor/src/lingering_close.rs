//! Closes a socket only after its peer had time to read the last bytes (lingering close).

use std::io;
use std::time::Instant;

use crate::service::Next;
use crate::socket::{IoStatus, Socket};

/// The number of bytes after which [`LingeringClose::drive`] yields to other connections.
const BUDGET_BYTES: usize = 64 << 10;

/// The lingering close of a socket: its write side is shut down, and received bytes are discarded
/// until the peer's EOF (RFC 9112, section 9.6).
///
/// If a socket is closed with unread bytes, the kernel resets the connection, and the peer may lose
/// the last bytes that were sent to it.
#[derive(Debug)]
pub struct LingeringClose {
    left_bytes: usize,
    deadline: Instant,
}

impl LingeringClose {
    /// Shuts down the write side. [`Self::drive`] reports that the socket can be closed when the
    /// peer has sent EOF, when more than `bytes_max` received bytes would have to be discarded, or
    /// when `deadline` has passed.
    ///
    /// # Errors
    /// If the connection is already closed.
    pub fn begin(socket: &mut Socket, bytes_max: usize, deadline: Instant) -> io::Result<Self> {
        socket.shutdown_write()?;
        Ok(Self::after_shutdown(bytes_max, deadline))
    }

    /// As [`Self::begin`], after the caller has shut down the write side, as a protocol above the
    /// socket may require.
    pub fn after_shutdown(bytes_max: usize, deadline: Instant) -> Self {
        Self { left_bytes: bytes_max, deadline }
    }

    /// Discards received bytes; returns [`Next::Close`] once the socket can be closed.
    pub fn drive(&mut self, socket: &mut Socket, now: Instant) -> Next {
        let mut buffer = [0; 8 << 10];
        let mut budget_bytes = BUDGET_BYTES;
        while socket.is_readable() && budget_bytes > 0 {
            match socket.read(&mut buffer) {
                Ok(IoStatus::Bytes(0)) | Err(_) => return Next::Close,
                Ok(IoStatus::Bytes(bytes)) if bytes > self.left_bytes => return Next::Close,
                Ok(IoStatus::Bytes(bytes)) => {
                    self.left_bytes -= bytes;
                    budget_bytes = budget_bytes.saturating_sub(bytes);
                }
                Ok(IoStatus::WouldBlock) => {}
            }
        }
        match budget_bytes {
            _ if now >= self.deadline => Next::Close,
            0 => Next::Yield,
            _ => Next::Wait(Some(self.deadline)),
        }
    }
}
