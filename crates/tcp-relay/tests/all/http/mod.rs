//! HTTP between real sockets: a client and targets that read it with code of their own.

mod bodies;
mod chaos;
mod endings;
mod exchanges;
mod hostile;
mod late;
mod leaving;
mod sharing;
mod tunnels;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use haul_tcp_relay::{Address, Config, HttpOptions, Stats};

use crate::endpoint::{mix, reset_on_close};
use crate::world::{Relay, config, listener};

/// A message as a simple reader understands it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Message {
    /// The first line.
    pub(crate) line: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// The values of all fields of this name, given in small letters.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let named = self.fields.iter().filter(|field| field.0.eq_ignore_ascii_case(name));
        named.map(|field| field.1.as_str()).collect()
    }

    pub(crate) fn status(&self) -> u16 {
        self.line.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

/// One end of a connection.
pub(crate) struct Peer {
    reader: BufReader<TcpStream>,
}

impl Peer {
    pub(crate) fn new(stream: TcpStream) -> Self {
        // Longer than anything takes: a test that hangs fails.
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { reader: BufReader::new(stream) }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream().write_all(bytes.as_ref()).unwrap();
    }

    /// Sends what the other side may not take to its end.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream().write_all(bytes.as_ref())
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        let whole = line.strip_suffix("\r\n");
        whole.map(str::to_owned).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// The head of a message; its line is empty where the stream ends.
    pub(crate) fn head(&mut self) -> io::Result<Message> {
        if self.reader.fill_buf()?.is_empty() {
            return Ok(Message::default());
        }
        let mut message = Message { line: self.line()?, ..Message::default() };
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else {
                assert_eq!(line, "", "a field is a name, a colon, a blank and a value");
                return Ok(message);
            };
            message.fields.push((name.to_owned(), value.to_owned()));
        }
    }

    pub(crate) fn body(&mut self, bytes: usize) -> io::Result<Vec<u8>> {
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

    /// A request; `None` where the stream ends.
    pub(crate) fn request(&mut self) -> io::Result<Option<Message>> {
        let mut message = self.head()?;
        if message.line.is_empty() {
            return Ok(None);
        }
        self.framed_body(&mut message)?;
        Ok(Some(message))
    }

    /// Whether the frame said how long it is.
    fn framed_body(&mut self, message: &mut Message) -> io::Result<bool> {
        let length = message.all("content-length").first().map(|length| length.parse().unwrap());
        let is_chunked = !message.all("transfer-encoding").is_empty();
        assert!(length.is_none() || !is_chunked, "two ways to say the length");
        message.body = match length {
            Some(length) => self.body(length)?,
            None if is_chunked => self.chunks()?,
            None => return Ok(false),
        };
        Ok(true)
    }

    /// A response to anything but HEAD, with its body.
    pub(crate) fn response(&mut self) -> io::Result<Message> {
        let mut message = self.head()?;
        if message.line.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let has_body = !matches!(message.status(), 100..=199 | 204 | 304);
        if has_body && !self.framed_body(&mut message)? {
            self.reader.read_to_end(&mut message.body)?;
        }
        Ok(message)
    }

    pub(crate) fn ask(&mut self, request: impl AsRef<[u8]>) -> Message {
        self.send(request);
        self.response().unwrap()
    }

    /// What comes up to the end of the stream, which must be clean.
    pub(crate) fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut rest = Vec::new();
        self.reader.read_to_end(&mut rest)?;
        Ok(rest)
    }

    pub(crate) fn reset(self) {
        reset_on_close(self.stream());
    }

    pub(crate) fn shut(&self) {
        self.stream().shutdown(Shutdown::Write).unwrap();
    }
}

/// What a target saw.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<Message>>>);

impl Seen {
    pub(crate) fn requests(&self) -> Vec<Message> {
        self.0.lock().unwrap().clone()
    }
}

thread_local! {
    /// The threads that serve the connections to this test's targets.
    static SERVING: Arc<Mutex<Vec<JoinHandle<()>>>> = Arc::default();
}

/// A target that serves each connection in a thread of its own, by `serve`, which gets the number
/// of the connection.
pub(crate) fn target(serve: impl Fn(usize, Peer) + Send + Sync + 'static) -> Address {
    let (listener, address) = listener();
    let (serve, serving) = (Arc::new(serve), SERVING.with(Arc::clone));
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (serve, peer) = (Arc::clone(&serve), Peer::new(stream.unwrap()));
            serving.lock().unwrap().push(thread::spawn(move || serve(number, peer)));
        }
    });
    address
}

/// A target that answers each request with what `answer` makes of it, and notes what it saw.
pub(crate) fn answering(
    answer: impl Fn(&Message) -> Vec<u8> + Send + Sync + 'static,
) -> (Address, Seen) {
    let seen = Seen::default();
    let noted = seen.clone();
    let address = target(move |number, mut peer| {
        while let Ok(Some(mut request)) = peer.request() {
            let answer = answer(&request);
            request.fields.push(("connection-number".to_owned(), number.to_string()));
            noted.0.lock().unwrap().push(request);
            if peer.try_send(answer).is_err() {
                break;
            }
        }
    });
    (address, seen)
}

/// A response with a body of a known length.
pub(crate) fn ok(body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A relay of HTTP. When it is dropped, what its targets found wrong fails the test.
pub(crate) struct Http(Option<Relay>);

impl Deref for Http {
    type Target = Relay;

    fn deref(&self) -> &Relay {
        self.0.as_ref().unwrap()
    }
}

impl Http {
    /// Lets connections end, and tells what was done.
    pub(crate) fn drain(mut self) -> Stats {
        self.0.take().unwrap().drain()
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        drop(self.0.take());
        let serving = SERVING.with(Arc::clone);
        while let Some(thread) = serving.lock().unwrap().pop() {
            let served = thread.join();
            assert!(served.is_ok() || thread::panicking(), "a target found something wrong");
        }
    }
}

/// A relay of HTTP to these targets.
pub(crate) fn http(targets: impl IntoIterator<Item = Address>) -> Http {
    http_with(targets, HttpOptions::default(), |_| {})
}

pub(crate) fn http_with(
    targets: impl IntoIterator<Item = Address>,
    options: HttpOptions,
    change: impl FnOnce(&mut Config),
) -> Http {
    let mut config = config(targets);
    config.http = Some(options);
    change(&mut config);
    Http(Some(Relay::start(config)))
}

pub(crate) fn client(relay: &Relay) -> Peer {
    Peer::new(relay.connect())
}

/// Bytes that no other seed has.
pub(crate) fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    (0..bytes.div_ceil(8) as u64)
        .flat_map(|at| mix(mix(seed) ^ at).to_le_bytes())
        .take(bytes)
        .collect()
}

/// A body in chunks of these sizes, taken in turn.
pub(crate) fn chunked(body: &[u8], sizes: &[usize]) -> Vec<u8> {
    let (mut out, mut left) = (Vec::new(), body);
    for size in sizes.iter().cycle() {
        if left.is_empty() {
            break;
        }
        let (chunk, rest) = left.split_at(left.len().min(*size));
        write!(out, "{:x}\r\n", chunk.len()).unwrap();
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
        left = rest;
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}
