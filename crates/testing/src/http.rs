//! Sends and receives HTTP/1.1 messages on a blocking socket, as a client, or as a server that
//! follows a script. The parser shares no code with the program under test, and is stricter where
//! that program must be correct.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::transport::ClientStream;
use crate::wait::PATIENCE;

/// A request or response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// The start line; empty at EOF.
    pub line: String,
    /// The status of a response; 0 for a request.
    pub status: u16,
    /// The header fields, as received.
    pub fields: Vec<(String, String)>,
    /// The body, without the framing of chunks.
    pub body: Vec<u8>,
}

impl Message {
    fn with_line(line: String) -> Self {
        let code = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        Self { line, status: code.unwrap_or(0), ..Self::default() }
    }

    /// Returns the values of all fields with this name.
    #[must_use]
    pub fn all(&self, name: &str) -> Vec<&str> {
        let named = self.fields.iter().filter(|field| field.0.eq_ignore_ascii_case(name));
        named.map(|field| field.1.as_str()).collect()
    }

    /// Returns the value of the field with this name; returns `None` if there is no such field.
    ///
    /// # Panics
    /// Panics if several fields have this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let values = self.all(name);
        assert!(values.len() <= 1, "{name} is repeated: {:?}", self.fields);
        values.first().copied()
    }

    /// Returns the body as text.
    ///
    /// # Panics
    /// Panics if the body is not UTF-8.
    #[must_use]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// One end of an HTTP/1.1 connection.
///
/// The methods that read return the error of the socket, or `UnexpectedEof` if the message is
/// truncated. They panic if a head or a chunk is malformed.
#[derive(Debug)]
pub struct Peer<S = TcpStream> {
    reader: BufReader<S>,
}

impl Peer {
    /// Wraps a connected socket and sets its timeouts.
    ///
    /// # Panics
    /// Panics if the socket rejects the options.
    #[must_use]
    pub fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { reader: BufReader::new(stream) }
    }

    /// Connects to a server.
    ///
    /// # Errors
    /// Fails with the error of the socket.
    pub fn connect(address: impl ToSocketAddrs) -> io::Result<Self> {
        TcpStream::connect(address).map(Self::new)
    }

    /// Returns the socket.
    #[must_use]
    pub fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    /// Closes the connection with a reset.
    ///
    /// # Panics
    /// Panics if the socket rejects the option.
    pub fn reset(self) {
        rustix::net::sockopt::set_socket_linger(self.stream(), Some(Duration::ZERO)).unwrap();
    }

    /// Sends EOF (FIN); the connection stays open for reading.
    ///
    /// # Panics
    /// Panics if the connection is already closed.
    pub fn shut(&self) {
        self.stream().shutdown(Shutdown::Write).unwrap();
    }
}

impl Peer<ClientStream> {
    /// Returns the socket below the stream.
    #[must_use]
    pub fn stream(&self) -> &TcpStream {
        self.reader.get_ref().tcp()
    }

    /// Closes the connection with a reset.
    ///
    /// # Panics
    /// Panics if the socket rejects the option.
    pub fn reset(self) {
        self.reader.into_inner().reset();
    }
}

impl<S: Read + Write> Peer<S> {
    /// Wraps another stream than a socket, such as a TLS session.
    pub fn over(stream: S) -> Self {
        Self { reader: BufReader::new(stream) }
    }

    /// Returns the reader. Its buffer may contain received bytes that no method has returned yet.
    pub fn reader(&mut self) -> &mut BufReader<S> {
        &mut self.reader
    }

    /// Sends bytes.
    ///
    /// # Panics
    /// Panics if the bytes cannot be sent.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).unwrap();
    }

    /// Sends bytes, which the other side may reject by closing the connection.
    ///
    /// # Errors
    /// Fails with the error of the socket.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.reader.get_mut().write_all(bytes.as_ref())
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        let whole = line.strip_suffix("\r\n");
        whole.map(str::to_owned).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Reads the head of a message; at EOF, the start line of the result is empty.
    ///
    /// # Errors
    /// See [`Peer`].
    pub fn head(&mut self) -> io::Result<Message> {
        // Unlike the other calls of the standard library, this one does not repeat an interrupted read.
        let is_at_end = loop {
            match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                filled => break filled?.is_empty(),
            }
        };
        if is_at_end {
            return Ok(Message::default());
        }
        let mut message = Message::with_line(self.line()?);
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else {
                assert_eq!(line, "", "a field is `name: value`");
                return Ok(message);
            };
            message.fields.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Reads `bytes` bytes.
    ///
    /// # Errors
    /// See [`Peer`].
    pub fn body(&mut self, bytes: usize) -> io::Result<Vec<u8>> {
        let mut body = vec![0; bytes];
        self.reader.read_exact(&mut body)?;
        Ok(body)
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(&self.line()?, 16).unwrap();
            body.extend(self.body(size)?);
            assert_eq!(self.line()?, "", "behind a chunk");
            if size == 0 {
                return Ok(body);
            }
        }
    }

    /// Reads a request with its body; returns `None` at EOF.
    ///
    /// # Errors
    /// See [`Peer`].
    pub fn request(&mut self) -> io::Result<Option<Message>> {
        let mut message = self.head()?;
        if message.line.is_empty() {
            return Ok(None);
        }
        self.framed_body(&mut message)?;
        Ok(Some(message))
    }

    /// Reads a body that is chunked or delimited by `Content-Length`; returns `false` if only EOF
    /// delimits the body.
    fn framed_body(&mut self, message: &mut Message) -> io::Result<bool> {
        let length = message.field("content-length").map(|length| length.parse().unwrap());
        let is_chunked = !message.all("transfer-encoding").is_empty();
        assert!(length.is_none() || !is_chunked, "both Content-Length and Transfer-Encoding");
        message.body = match length {
            Some(length) => self.body(length)?,
            None if is_chunked => self.chunks()?,
            None => return Ok(false),
        };
        Ok(true)
    }

    /// Reads a response with its body. The request must not have been HEAD. EOF may delimit the
    /// body.
    ///
    /// # Errors
    /// See [`Peer`].
    pub fn response(&mut self) -> io::Result<Message> {
        let mut message = self.response_head()?;
        if has_body(&message) && !self.framed_body(&mut message)? {
            self.reader.read_to_end(&mut message.body)?;
        }
        Ok(message)
    }

    /// Reads the response to a request with this method. EOF must not delimit the body.
    ///
    /// # Errors
    /// See [`Peer`]. Also fails with `InvalidData` if the response has a body that only EOF
    /// delimits.
    pub fn response_to(&mut self, method: &str) -> io::Result<Message> {
        let mut message = self.response_head()?;
        if method != "HEAD" && has_body(&message) && !self.framed_body(&mut message)? {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(message)
    }

    fn response_head(&mut self) -> io::Result<Message> {
        let message = self.head()?;
        if message.line.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        assert_ne!(message.status, 0, "not a response: {:?}", message.line);
        Ok(message)
    }

    /// Sends a request and reads the response.
    ///
    /// # Panics
    /// Panics if the request cannot be sent or no complete response is received.
    #[track_caller]
    pub fn exchange(&mut self, request: impl AsRef<[u8]>) -> Message {
        self.send(request);
        self.response().unwrap()
    }

    /// Reads all bytes up to EOF.
    ///
    /// # Errors
    /// Fails with the error of the socket, for example after a reset.
    pub fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut rest = Vec::new();
        self.reader.read_to_end(&mut rest)?;
        Ok(rest)
    }
}

fn has_body(response: &Message) -> bool {
    !matches!(response.status, 100..=199 | 204 | 304)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Returns a client whose server sends these bytes and then closes the connection.
    fn client_of(bytes: &'static [u8]) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = Peer::connect(address).unwrap();
        Peer::new(listener.accept().unwrap().0).send(bytes);
        client
    }

    #[test]
    fn responses_are_read_in_every_framing() {
        let mut client = client_of(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab\
              HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n\
              HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n\
              HTTP/1.1 304 Not Modified\r\nA: 1\r\na: 2\r\n\r\n\
              HTTP/1.1 404 Not Found\r\n\r\nto the end",
        );
        assert_eq!(client.response().unwrap().text(), "ab");
        assert_eq!(client.response().unwrap().body, b"abc");
        assert_eq!(client.response_to("HEAD").unwrap().field("Content-Length"), Some("9"));
        let unchanged = client.response().unwrap();
        assert_eq!((unchanged.status, unchanged.all("A")), (304, vec!["1", "2"]));
        assert_eq!(client.response().unwrap().text(), "to the end");
        let unframed = client_of(b"HTTP/1.1 200 OK\r\n\r\na").response_to("GET");
        assert_eq!(unframed.unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(client.response().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn truncated_messages_are_errors() {
        for bytes in [
            &b"HTTP/1.1 200"[..],
            b"HTTP/1.1 200 OK\r\nA: 1\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        ] {
            let error = client_of(bytes).response().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{bytes:?}");
        }
    }
}
