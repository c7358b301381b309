//! Connects, accepts and receives on the non-blocking sockets of a load generator.

use std::io::{Error as IoError, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use haul_measure::{Error, Result};

/// The result of one receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    Bytes(usize),
    /// No bytes are available now.
    Pending,
    /// The peer has closed or reset the connection.
    Closed,
}

/// Connects to a server, and makes the socket non-blocking.
pub(crate) fn connect(address: SocketAddr) -> Result<TcpStream> {
    let what = || format!("connect to {address}");
    let stream = TcpStream::connect(address).map_err(Error::other(what()))?;
    stream.set_nonblocking(true).map_err(Error::other(what()))?;
    Ok(stream)
}

/// Accepts a connection, if one is waiting.
pub(crate) fn accept(listener: &TcpListener) -> Result<Option<TcpStream>> {
    match listener.accept() {
        Ok((stream, _)) => {
            stream.set_nonblocking(true).map_err(Error::other("set up a connection"))?;
            Ok(Some(stream))
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(Error::other("accept a connection")(error)),
    }
}

/// Receives at most `buffer.len()` bytes. If `discard` is `true`, the kernel drops the bytes
/// (`MSG_TRUNC`), which costs almost no CPU time, and `buffer` does not change.
pub(crate) fn receive(stream: &TcpStream, buffer: &mut [u8], discard: bool) -> Result<Received> {
    let flags = if discard { RecvFlags::TRUNC } else { RecvFlags::empty() };
    match recv(stream, buffer, flags) {
        Ok((_, 0)) | Err(Errno::CONNRESET) => Ok(Received::Closed),
        Ok((_, bytes)) => Ok(Received::Bytes(bytes)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Received::Pending),
        Err(errno) => Err(invalid(format!("nothing can be received: {errno}"))),
    }
}

/// Returns the error that reports wrong or missing bytes of a server.
pub(crate) fn invalid(why: impl Into<String>) -> Error {
    Error::other("use what the server sent")(IoError::other(why.into()))
}
