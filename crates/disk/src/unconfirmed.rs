//! What a socket still holds. It is here, among disks, since only here stand calls that no library
//! offers.

use std::io;
use std::os::fd::AsFd;

use crate::sys;

/// How many bytes were written to a socket and are not confirmed by its peer's kernel yet. Of a
/// unix socket: the memory of what its peer has not read.
///
/// # Errors
/// When it is no socket.
pub fn unconfirmed(socket: &impl AsFd) -> io::Result<u64> {
    sys::unconfirmed(socket.as_fd()).map(|bytes| u64::try_from(bytes).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn it_grows_with_what_a_peer_does_not_take_and_is_nothing_when_it_has_all() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut far = listener.accept().unwrap().0;
        assert_eq!(unconfirmed(&near).unwrap(), 0);
        near.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(bytes) = near.write(&[0; 1 << 16]) {
            written += bytes;
        }
        let full = unconfirmed(&near).unwrap();
        assert!(full > 0 && full <= written as u64, "{full} of {written}");
        far.read_exact(&mut vec![0; written]).unwrap();
        while unconfirmed(&near).unwrap() > 0 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn unix_sockets_tell_it_and_files_do_not() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        near.write_all(b"hello").unwrap();
        assert!(unconfirmed(&near).unwrap() >= 5);
        far.read_exact(&mut [0; 5]).unwrap();
        assert_eq!(unconfirmed(&near).unwrap(), 0);
        assert!(unconfirmed(&tempfile::tempfile().unwrap()).is_err());
    }
}
