//! Sends requests on one connection of the load generator, and checks the responses.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ClientConfig;

use super::response::parse_head;
use super::site::Site;
use super::transport::Transport;
use crate::net::socket::{self, invalid};
use haul_measure::{Error, Result};

/// The maximum length in bytes of a response head.
const HEAD_MAX: usize = 16 << 10;
/// The maximum number of bytes received at a time until the head is complete, if the body is not
/// compared. The number is small, because body bytes received with the head are copied, while the
/// kernel discards all later body bytes without a copy.
const HEAD_BUFFER_BYTES: usize = 4 << 10;

/// A connection and the response it receives.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(super) transport: Transport,
    address: SocketAddr,
    tls: Option<Arc<ClientConfig>>,
    /// `true` if the server is to close the connection after the response.
    closes: bool,
    pub(crate) page: usize,
    /// `true` if the body is compared; otherwise it is counted and discarded.
    compare: bool,
    head: Vec<u8>,
    /// The number of bytes of the response still to come; `None` while the response head, which
    /// declares the length, is incomplete.
    left: Option<u64>,
}

/// The result of one call of [`Connection::receive`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) bytes: u64,
    /// `true` if the response is complete.
    pub(crate) is_end: bool,
    /// The length of the whole response, if this receive completed its head.
    pub(crate) length: Option<u64>,
}

impl Connection {
    pub(crate) fn new(address: SocketAddr, tls: Option<&Arc<ClientConfig>>) -> Result<Self> {
        let transport = Transport::connect(address, tls)?;
        let tls = tls.cloned();
        let (closes, page, compare) = (false, 0, false);
        let (head, left) = (Vec::new(), Some(0));
        Ok(Self { transport, address, tls, closes, page, compare, head, left })
    }

    /// Replaces the connection by a new one, which is used for one request.
    pub(crate) fn reconnect(&mut self) -> Result<()> {
        self.transport = Transport::connect(self.address, self.tls.as_ref())?;
        self.closes = true;
        Ok(())
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.left == Some(0)
    }

    /// Requests a page. `length` is the length in bytes of the whole response, if known. The kernel
    /// then discards the response, head included, unless `compare` is `true`.
    pub(crate) fn request(
        &mut self,
        site: &Site,
        page: usize,
        length: Option<u64>,
        compare: bool,
    ) -> Result<()> {
        (self.page, self.compare, self.left) = (page, compare, length);
        self.head.clear();
        // The request is short and the only one in flight, so the socket buffer has room for it.
        let request = &site.pages[page].request;
        let sent = match request.strip_suffix(b"\r\n") {
            Some(fields) if self.closes => {
                self.transport.send(&[fields, b"Connection: close\r\n\r\n"].concat())
            }
            _ => self.transport.send(request),
        };
        sent.map_err(|why| self.invalid(site, format!("the request was not sent: {why}")))
    }

    /// Receives the available bytes, but at most `buffer.len()` bytes.
    pub(crate) fn receive(&mut self, site: &Site, buffer: &mut [u8]) -> Result<Received> {
        let discard = !self.compare && !self.is_idle() && self.left.is_some();
        let room = match self.left {
            _ if self.compare || self.is_idle() || self.transport.is_tls() => buffer.len(),
            Some(left) => usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len()),
            None => buffer.len().min(HEAD_BUFFER_BYTES),
        };
        let bytes = match self.transport.receive(&mut buffer[..room], discard)? {
            socket::Received::Bytes(bytes) => bytes,
            socket::Received::Pending => return Ok(Received::default()),
            socket::Received::Closed if self.closes && self.is_idle() => {
                return Ok(Received::default());
            }
            socket::Received::Closed => return Err(self.invalid(site, "the connection was closed")),
        };
        let mut received = Received { bytes: bytes as u64, ..Received::default() };
        match self.left {
            Some(0) => return Err(self.invalid(site, format!("{bytes} unexpected bytes"))),
            Some(_) if discard => self.accept(site, bytes as u64, &[])?,
            Some(_) => self.accept(site, bytes as u64, &buffer[..bytes])?,
            None => received.length = self.parse_head(site, &buffer[..bytes])?,
        }
        Ok(Received { is_end: self.is_idle(), ..received })
    }

    /// Adds `bytes` to the head. Returns the length of the whole response in bytes once the head is
    /// complete, and `None` before.
    fn parse_head(&mut self, site: &Site, bytes: &[u8]) -> Result<Option<u64>> {
        self.head.extend_from_slice(bytes);
        let Some(head) = parse_head(&self.head) else {
            let is_long = self.head.len() > HEAD_MAX;
            return if is_long {
                Err(self.invalid(site, "the head does not end"))
            } else {
                Ok(None)
            };
        };
        let head = head.map_err(|why| self.invalid(site, why))?;
        let expected = site.pages[self.page].bytes;
        if (head.status, head.body_bytes) != (200, expected) {
            let why = format!("status {}, {} bytes", head.status, head.body_bytes);
            return Err(self.invalid(site, why));
        }
        self.left = Some(expected);
        let body = self.head.split_off(head.head_bytes);
        self.accept(site, body.len() as u64, if self.compare { &body } else { &[] })?;
        Ok(Some(head.head_bytes as u64 + expected))
    }

    /// Counts `bytes` received bytes of the response. If `body` is not empty, compares these bytes
    /// of the body with the expected content.
    fn accept(&mut self, site: &Site, bytes: u64, body: &[u8]) -> Result<()> {
        let (page, left) = (&site.pages[self.page], self.left.unwrap_or_default());
        let after = left.checked_sub(bytes);
        let after = after.ok_or_else(|| self.invalid(site, "longer than its declared length"))?;
        if !body.is_empty() {
            let from = page.bytes - left;
            if let Some(at) = page.content.mismatch(from, body) {
                let why = format!("byte {} of the body is wrong", from + at as u64);
                return Err(self.invalid(site, why));
            }
        }
        self.left = Some(after);
        Ok(())
    }

    fn invalid(&self, site: &Site, why: impl Into<String>) -> Error {
        let request = String::from_utf8_lossy(&site.pages[self.page].request);
        let request = request.lines().next().unwrap_or_default();
        invalid(format!("response to {request:?}: {}", why.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::net::content::Content;
    use crate::net::cores::Cores;
    use haul_measure::Silent;

    /// Receives `responses` in pieces, and compares those marked `true`; returns their lengths.
    fn received(responses: &[(&[u8], bool)]) -> Result<Vec<u64>> {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut site = Site::new(dir.path(), Cores { server: 0, load: 0 });
        site.add("a", 1, 1000, &Silent).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = Connection::new(listener.local_addr().unwrap(), None).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let (mut length, mut buffer) = (None, vec![0; 64 << 10]);
        let mut all = Vec::new();
        for (response, compare) in responses {
            client.request(&site, 0, length.filter(|_| !compare), *compare)?;
            let mut request = vec![0; site.pages[0].request.len()];
            server.read_exact(&mut request).unwrap();
            assert_eq!(request, site.pages[0].request);
            let mut bytes = 0;
            for piece in response.chunks(100) {
                server.write_all(piece).unwrap();
                let (mut got, mut one) = (0, Received::default());
                while got < piece.len() as u64 {
                    one = client.receive(&site, &mut buffer)?;
                    got += one.bytes;
                    length = one.length.or(length);
                }
                bytes += got;
                assert_eq!(one.is_end, bytes == response.len() as u64);
            }
            assert!(client.is_idle());
            all.push(bytes);
        }
        Ok(all)
    }

    fn response(status: &str, body: &[u8]) -> Vec<u8> {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    }

    fn body() -> Vec<u8> {
        let mut body = vec![0; 1000];
        Content(0).fill(0, &mut body);
        body
    }

    #[test]
    fn correct_responses_are_accepted_compared_or_counted() {
        let right = response("200 OK", &body());
        let all = [(&right[..], true), (&right, false), (&right, false), (&right, true)];
        assert_eq!(received(&all).unwrap(), [right.len() as u64; 4]);
        assert_eq!(received(&all[1..]).unwrap(), [right.len() as u64; 3], "first is not compared");
    }

    #[test]
    fn wrong_responses_are_errors() {
        let mut changed = body();
        changed[700] ^= 1;
        for (response, compare, expected) in [
            (response("200 OK", &changed), true, "byte 700 of the body is wrong"),
            (response("404 Not Found", &body()), false, "status 404"),
            (response("200 OK", &body()[..999]), false, "999 bytes"),
            (b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), true, "invalid response head"),
        ] {
            let error = received(&[(&response, compare)]).unwrap_err();
            let text = haul_disk::error_chain(&error);
            assert!(text.contains("GET /a/000000") && text.contains(expected), "{text}");
        }
    }
}
