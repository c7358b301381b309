//! A TLS session over a non-blocking socket.

use std::io::{self, IoSlice, Write};

use haul_reactor::{IoStatus, Socket};
use rustls::ServerConnection;

/// The maximum number of bytes received at once: a record of the maximum length with its overhead,
/// because the session accepts no more before its plaintext was read.
const RECEIVE_BYTES_MAX: usize = (16 << 10) + 512;
/// The maximum number of bytes received at once while only a handshake is expected.
const HANDSHAKE_BYTES: usize = 4 << 10;
/// The number of plaintext bytes in the session from which on it accepts no more records.
const PLAINTEXT_BYTES_MAX: usize = 16 << 10;
/// The maximum number of plaintext bytes encrypted before their records are sent: four records. It
/// bounds the memory of a connection whose client does not read.
const BATCH_BYTES: usize = 64 << 10;
/// The number of plaintext bytes after which a write returns although the socket accepts more.
const CALL_BYTES_MAX: usize = 1 << 20;
/// The maximum number of pieces in a batch.
const PIECES_MAX: usize = 8;

/// The response to a request without TLS, in place of an alert that no HTTP client understands.
const PLAIN_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n\
Content-Length: 55\r\nConnection: close\r\n\r\nThis address accepts only TLS: use https:// in the URL\n";

/// The server side of a TLS connection, with the readiness of a [`Socket`].
///
/// The handshake is performed by [`Self::read`].
#[derive(Debug)]
pub(crate) struct TlsSocket {
    socket: Socket,
    session: ServerConnection,
    /// Received bytes that the session has not accepted yet.
    received: Vec<u8>,
    /// Decrypted bytes in the session.
    plaintext_bytes: usize,
    /// Plaintext bytes that were encrypted but not yet reported as written, because some of their
    /// records are not sent.
    encrypted_bytes: usize,
    /// `true` if the peer has sent `close_notify`: the clean end of its stream.
    is_peer_closed: bool,
    end: End,
    /// `true` until the first bytes have been received from a client that should speak HTTP.
    may_be_plain_http: bool,
}

/// The state of the write side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    /// `close_notify` was queued; the socket is shut down once it is sent.
    Queued,
    /// The write side of the socket is shut down.
    Shutdown,
}

impl TlsSocket {
    pub(crate) fn new(socket: Socket, session: ServerConnection, is_http: bool) -> Self {
        Self {
            socket,
            session,
            received: Vec::new(),
            plaintext_bytes: 0,
            encrypted_bytes: 0,
            is_peer_closed: false,
            end: End::Open,
            may_be_plain_http: is_http,
        }
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(crate) fn socket_mut(&mut self) -> &mut Socket {
        &mut self.socket
    }

    pub(crate) fn into_socket(self) -> Socket {
        self.socket
    }

    /// Returns `true` until the handshake is complete; application data can be written afterwards.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    pub(crate) fn is_readable(&self) -> bool {
        self.plaintext_bytes > 0
            || !self.received.is_empty()
            || self.is_peer_closed
            || self.socket.is_readable()
    }

    pub(crate) fn is_writable(&self) -> bool {
        let has_unreported = self.encrypted_bytes > 0 && !self.session.wants_write();
        !self.session.is_handshaking() && (has_unreported || self.socket.is_writable())
    }

    /// Returns `true` if records, or the end of the stream, are not sent yet.
    pub(crate) fn has_unsent(&self) -> bool {
        self.session.wants_write() || self.end == End::Queued
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<IoStatus> {
        loop {
            if self.plaintext_bytes > 0 {
                let bytes = io::Read::read(&mut self.session.reader(), buffer)?;
                self.plaintext_bytes = self.plaintext_bytes.saturating_sub(bytes);
                return Ok(IoStatus::Bytes(bytes));
            }
            if self.is_peer_closed {
                return Ok(IoStatus::Bytes(0));
            }
            // The buffer holds the ciphertext until it is decrypted.
            if !self.receive(buffer)? {
                return Ok(IoStatus::WouldBlock);
            }
        }
    }

    /// Performs the handshake; returns `true` once it is complete.
    pub(crate) fn handshake(&mut self) -> io::Result<bool> {
        let mut buffer = [0; HANDSHAKE_BYTES];
        while self.session.is_handshaking() {
            if !self.receive(&mut buffer)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds bytes that were read from the socket without decrypting them.
    pub(crate) fn add_received(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }

    /// Receives bytes once through `buffer`, and decrypts them; returns `false` if none can be
    /// received now.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        if !self.received.is_empty() {
            let received = std::mem::take(&mut self.received);
            self.decrypt(&received)?;
            return Ok(true);
        }
        if !self.socket.is_readable() {
            return Ok(false);
        }
        let bytes_max = buffer.len().min(RECEIVE_BYTES_MAX);
        match self.socket.read(&mut buffer[..bytes_max])? {
            IoStatus::WouldBlock => return Ok(false),
            IoStatus::Bytes(0) => return Err(truncated()),
            IoStatus::Bytes(bytes) => self.decrypt(&buffer[..bytes])?,
        }
        Ok(true)
    }

    /// Decrypts received bytes, and sends the records of the handshake that answer them.
    fn decrypt(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if std::mem::take(&mut self.may_be_plain_http) && is_http_request(bytes) {
            // An error is ignored: the connection ends anyway.
            self.socket.write(&[IoSlice::new(PLAIN_HTTP)], false).unwrap_or(IoStatus::WouldBlock);
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a request without TLS"));
        }
        while !bytes.is_empty() && !self.is_peer_closed {
            if self.plaintext_bytes > PLAINTEXT_BYTES_MAX {
                self.received = bytes.to_vec();
                break;
            }
            self.session.read_tls(&mut bytes)?;
            let state = match self.session.process_new_packets() {
                Ok(state) => state,
                Err(error) => {
                    // The alert that names the error is sent if the socket accepts it at once.
                    self.flush().unwrap_or_default();
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            };
            self.plaintext_bytes = state.plaintext_bytes_to_read();
            self.is_peer_closed = state.peer_has_closed();
        }
        // Received bytes are valid even if the peer reads no more: the next write fails.
        self.flush().unwrap_or_default();
        Ok(())
    }

    /// Sends queued records; returns `true` if none are left.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        self.send_records(false)
    }

    fn send_records(&mut self, more: bool) -> io::Result<bool> {
        while self.session.wants_write() {
            if !self.socket.is_writable() {
                return Ok(false);
            }
            match self.session.write_tls(&mut RecordWriter { socket: &mut self.socket, more }) {
                Ok(_bytes) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        if self.end == End::Queued {
            self.end = End::Shutdown;
            self.socket.shutdown_write()?;
        }
        Ok(true)
    }

    pub(crate) fn write(&mut self, pieces: &[IoSlice<'_>], more: bool) -> io::Result<IoStatus> {
        let offered_bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut written = 0;
        while self.send_records(more || written + self.encrypted_bytes < offered_bytes)? {
            written += std::mem::take(&mut self.encrypted_bytes);
            if written >= offered_bytes.min(CALL_BYTES_MAX) || self.session.is_handshaking() {
                break;
            }
            self.encrypted_bytes = self.encrypt(pieces, written)?;
        }
        // A caller that offers fewer bytes than before gets the others reported later.
        self.encrypted_bytes += written.saturating_sub(offered_bytes);
        match written.min(offered_bytes) {
            0 if offered_bytes > 0 => Ok(IoStatus::WouldBlock),
            written => Ok(IoStatus::Bytes(written)),
        }
    }

    /// Encrypts a batch of the pieces without their first `skip` bytes; returns its length.
    fn encrypt(&mut self, pieces: &[IoSlice<'_>], mut skip: usize) -> io::Result<usize> {
        let mut batch = [IoSlice::new(&[]); PIECES_MAX];
        let (mut count, mut left) = (0, BATCH_BYTES);
        for piece in pieces {
            let rest = piece.get(skip..).unwrap_or_default();
            skip = skip.saturating_sub(piece.len());
            if rest.is_empty() {
                continue;
            }
            if left == 0 || count == PIECES_MAX {
                break;
            }
            batch[count] = IoSlice::new(&rest[..rest.len().min(left)]);
            left -= batch[count].len();
            count += 1;
        }
        self.session.writer().write_vectored(&batch[..count])
    }

    pub(crate) fn shutdown_write(&mut self) -> io::Result<()> {
        if self.end == End::Open {
            self.session.send_close_notify();
            self.end = End::Queued;
        }
        self.flush().map(drop)
    }
}

/// Writes records to the socket without copying them.
struct RecordWriter<'a> {
    socket: &'a mut Socket,
    more: bool,
}

impl Write for RecordWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, records: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.socket.write(records, self.more)? {
            IoStatus::Bytes(bytes) => Ok(bytes),
            IoStatus::WouldBlock => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns `true` if a client's first bytes are those of an HTTP request. A TLS record begins with a
/// byte below 32.
fn is_http_request(bytes: &[u8]) -> bool {
    let method_bytes = bytes.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    (3..=16).contains(&method_bytes) && bytes.get(method_bytes) == Some(&b' ')
}

fn truncated() -> io::Error {
    let reason = "the peer closed the connection without close_notify: its data may be truncated";
    io::Error::new(io::ErrorKind::UnexpectedEof, reason)
}
