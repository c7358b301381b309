//! Reads the length of a socket's send queue. [`send_queue_bytes`] is in this crate because it
//! needs a raw system call, which requires unsafe code.

use std::io;
use std::os::fd::AsFd;

use crate::sys;

/// Returns the number of bytes written to a TCP socket that the peer's kernel has not acknowledged.
/// For a Unix socket, returns the kernel memory, in bytes, taken by data that the peer has not
/// read.
///
/// # Errors
/// Fails if the descriptor is not a socket.
pub fn send_queue_bytes(socket: &impl AsFd) -> io::Result<u64> {
    sys::send_queue_bytes(socket.as_fd()).map(|bytes| u64::try_from(bytes).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn queue_of_a_tcp_socket_counts_unread_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut far = listener.accept().unwrap().0;
        assert_eq!(send_queue_bytes(&near).unwrap(), 0);
        near.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(bytes) = near.write(&[0; 1 << 16]) {
            written += bytes;
        }
        let full = send_queue_bytes(&near).unwrap();
        assert!(full > 0 && full <= written as u64, "{full} of {written}");
        far.read_exact(&mut vec![0; written]).unwrap();
        haul_testing::eventually("the queue is empty", || send_queue_bytes(&near).unwrap() == 0);
    }

    #[test]
    fn unix_sockets_have_a_queue_and_files_do_not() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        near.write_all(b"hello").unwrap();
        assert!(send_queue_bytes(&near).unwrap() >= 5);
        far.read_exact(&mut [0; 5]).unwrap();
        assert_eq!(send_queue_bytes(&near).unwrap(), 0);
        assert!(send_queue_bytes(&tempfile::tempfile().unwrap()).is_err());
    }
}
