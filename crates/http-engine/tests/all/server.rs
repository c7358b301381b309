//! A server for tests: its paths name what it does.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use haul_http_engine::{
    AccessLog, BoxError, ConnectionLimits, Connections, Engine, Handler, Inline, ListenerOptions,
    Origin, PreparedHead, PreparedResponse, RequestBody, RequestIdentity, ResponseFuture,
    ResponseHead, SentResponse,
};
use haul_http1::HeadLimits;
use haul_reactor::{Address, AdmissionLimit, Handle, Listener, ManualClock, Reactor, TcpOptions};
use haul_testing::{ClientStream, Endpoint, PATIENCE, Transport, eventually, server_certificate};
use haul_tls::{Acceptor, Alpn, CertificateFiles, Identities};
use http::{Request, Response};
use http_body_util::BodyExt;
use parking_lot::Mutex;

use crate::pieces::{Pieces, WINDOW, as_usize};

pub(crate) const HEAD_TIME: Duration = Duration::from_secs(10);
pub(crate) const IDLE_TIME: Duration = Duration::from_secs(60);
pub(crate) const STALL_TIME: Duration = Duration::from_secs(20);

/// The responses that have ended: status, bytes of the body, and `true` if it is complete.
pub(crate) type EndedResponses = Arc<Mutex<Vec<(u16, u64, bool)>>>;

pub(crate) struct Paths {
    ended: EndedResponses,
}

/// Returns the number of a path such as `/inline/5`.
fn number(path: &str, prefix: &str) -> Option<usize> {
    path.strip_prefix(prefix)?.parse().ok()
}

impl Handler for Paths {
    type Body = Pieces;
    type Peer = ();
    type Connection = ();

    fn respond_inline(
        &mut self,
        request: &haul_http1::Request<'_>,
        _origin: &Origin<'_, ()>,
        _connection: &mut (),
        head: &mut ResponseHead<'_>,
    ) -> Inline<Pieces> {
        let path = request.target.path();
        if let Some(bytes) = number(path, "/later/") {
            return Inline::Future(Box::pin(async move {
                pause().await;
                let fields = PreparedHead::new(|head| {
                    head.number("content-length", bytes as u64);
                });
                let body = Pieces::of([Bytes::from(vec![b'l'; bytes])]);
                Ok(PreparedResponse { status: 203, fields: fields?, body })
            }));
        }
        let (inline, body) = (number(path, "/inline/"), number(path, "/body/"));
        let (length, response) = match (inline, body) {
            (Some(bytes), _) => (bytes, Inline::Bytes(Bytes::from(vec![b'i'; bytes]), ())),
            (None, Some(bytes)) => {
                (bytes, Inline::Body(Pieces::of([Bytes::from(vec![b'b'; bytes])])))
            }
            (None, None) if path == "/inline/window" => {
                let body = Pieces::with_window(WINDOW.end);
                (as_usize(body.declared.unwrap()), Inline::Body(body))
            }
            (None, None) => return Inline::Deferred,
        };
        head.identify(RequestIdentity { id: *b"0123456789ABCDEF", user: None });
        let mut head = head.begin(200);
        head.number("content-length", length as u64);
        head.end().unwrap();
        response
    }

    fn respond_parsed(
        &mut self,
        request: &haul_http1::Request<'_>,
        body: RequestBody,
        _origin: &Origin<'_, ()>,
        _connection: &mut Self::Connection,
    ) -> Result<ResponseFuture<Pieces>, RequestBody> {
        match request.fields.first("x-parsed") {
            Some(value) => Ok(Box::pin(echoed(String::from_utf8_lossy(value).into(), body))),
            None => Err(body),
        }
    }

    fn on_response(&mut self, response: &SentResponse<()>) {
        let SentResponse { status, body_bytes, is_complete, .. } = *response;
        self.ended.lock().push((status, body_bytes, is_complete));
    }

    fn respond(
        &mut self,
        request: Request<RequestBody>,
        _origin: &Origin<'_, ()>,
    ) -> ResponseFuture<Pieces> {
        Box::pin(respond(request))
    }
}

/// Responds with a text and the body.
async fn echoed(text: String, body: RequestBody) -> Result<Response<Pieces>, BoxError> {
    let body = body.collect().await?.to_bytes();
    Ok(Response::new(Pieces::of([Bytes::from(text), body])))
}

async fn respond(request: Request<RequestBody>) -> Result<Response<Pieces>, BoxError> {
    let path = request.uri().path().to_owned();
    let text = |text: String| Response::new(Pieces::of([Bytes::from(text)]));
    Ok(match path.as_str() {
        "/echo" => match request.into_body().collect().await {
            Ok(body) => Response::new(Pieces::of([body.to_bytes()])),
            Err(incomplete) => {
                let mut response = text(incomplete.to_string());
                *response.status_mut() = http::StatusCode::BAD_REQUEST;
                response
            }
        },
        // Reads the body frame by frame, each after a pause, and returns its length.
        "/slow" => {
            let mut body = request.into_body();
            let mut bytes = 0;
            while let Some(frame) = body.frame().await {
                bytes += frame?.data_ref().map_or(0, Bytes::len);
                pause().await;
            }
            text(bytes.to_string())
        }
        "/refuse" => {
            let mut response = text("no".to_owned());
            let identity = RequestIdentity { id: *b"FEDCBA9876543210", user: Some("key".into()) };
            response.extensions_mut().insert(identity);
            *response.status_mut() = http::StatusCode::FORBIDDEN;
            response
        }
        "/chunked" => {
            let pieces = Pieces::of(["one", "two", "three"].map(Bytes::from));
            Response::new(Pieces { declared: None, ..pieces })
        }
        "/window" => Response::new(Pieces::with_window(WINDOW.end)),
        "/window-chunked" => {
            Response::new(Pieces { declared: None, ..Pieces::with_window(WINDOW.end) })
        }
        // The file ends within the window.
        "/window-short" => Response::new(Pieces::with_window(WINDOW.end - 1_000_000)),
        "/frames" => Response::new(Pieces::of((0..100).map(|n| Bytes::from(vec![n; 100_000])))),
        "/short" => {
            let pieces = Pieces::of([Bytes::from("abc")]);
            Response::new(Pieces { declared: Some(5), ..pieces })
        }
        "/fails" => {
            let pieces = Pieces::of([Bytes::from("abc")]);
            Response::new(Pieces { declared: Some(5), fails: true, ..pieces })
        }
        "/breaks" => {
            let pieces = Pieces::of([Bytes::from("abc")]);
            Response::new(Pieces { declared: None, fails: true, ..pieces })
        }
        "/error" => return Err("as tested".into()),
        "/panic" => std::panic::resume_unwind(Box::new("as tested")),
        "/pause" => {
            pause().await;
            text("paused".to_owned())
        }
        _ => text(format!("{} {path}", request.method())),
    })
}

/// Waits until another thread wakes the future.
async fn pause() {
    let mut is_begun = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut is_begun, true) {
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        thread::spawn(|| waker.wake());
        Poll::Pending
    })
    .await;
}

/// A server whose time limits pass only if its clock is moved.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    transport: Transport,
    pub(crate) connections: Arc<Connections<()>>,
    pub(crate) ended: EndedResponses,
    pub(crate) handle: Handle,
    pub(crate) clock: ManualClock,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::over(Transport::Plain)
    }

    pub(crate) fn over(transport: Transport) -> Self {
        Self::with_limits(transport, 100, 100)
    }

    pub(crate) fn with_limits(
        transport: Transport,
        connections_max: usize,
        peer_connections_max: usize,
    ) -> Self {
        Self::with_options(transport, connections_max, peer_connections_max, None)
    }

    pub(crate) fn with_log(access_log: AccessLog) -> Self {
        Self::with_options(Transport::Plain, 100, 1, Some(access_log))
    }

    fn with_options(
        transport: Transport,
        connections_max: usize,
        peer_connections_max: usize,
        access_log: Option<AccessLog>,
    ) -> Self {
        let tcp = TcpOptions::default();
        let listener = match transport {
            Transport::Inherited => {
                Listener::inherit(TcpListener::bind("127.0.0.1:0").unwrap().into(), tcp)
            }
            Transport::Plain | Transport::Tls => {
                Listener::bind(&"127.0.0.1:0".parse().unwrap(), tcp, 128)
            }
        };
        let listener = listener.unwrap();
        let Address::Tcp(address) = *listener.address() else { panic!("no TCP") };
        let clock = ManualClock::new();
        let connections =
            Connections::with_clock(connections_max, peer_connections_max, (&clock).into(), || ());
        let limits = ConnectionLimits {
            head: HeadLimits::default(),
            head_time: HEAD_TIME,
            idle_time: IDLE_TIME,
            stall_time: STALL_TIME,
            send_rate_min: 1 << 10,
            requests_max: 1_000,
            discard_bytes_max: 16,
            linger_time: Duration::from_secs(5),
            linger_bytes_max: 64 << 20,
            too_many: b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n",
        };
        let tls = (transport == Transport::Tls).then(acceptor);
        let options = ListenerOptions {
            connections: Arc::clone(&connections),
            peer_rate: None,
            tls,
            access_log,
        };
        let ended = EndedResponses::default();
        let paths = Paths { ended: Arc::clone(&ended) };
        let engine = Engine::new(paths, vec![options], limits);
        let all = AdmissionLimit::new(usize::MAX);
        let reactor = Reactor::new(engine, vec![listener], all).unwrap();
        let reactor = reactor.with_clock((&clock).into());
        let handle = reactor.handle();
        let thread = Some(thread::spawn(|| drop(reactor.run().unwrap())));
        Self { address, transport, connections, ended, handle, clock, thread }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Connects over the transport of the server.
    pub(crate) fn client(&self) -> ClientStream {
        let server = Endpoint { address: self.address, transport: self.transport };
        server.connect().unwrap()
    }

    /// Sends bytes, and returns everything that is received until the server closes.
    pub(crate) fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.client();
        stream.write_all(bytes).unwrap();
        rest(&mut stream)
    }

    /// Waits until this number of connections is open.
    pub(crate) fn until_open(&self, connections: u64) {
        let is_met = || self.connections.stats().open == connections;
        eventually(&format!("{connections} connections are open"), is_met);
    }

    /// Waits until the event loop has handled all that has happened to open connections. It iterates
    /// every 100 ms while one of them has a deadline.
    pub(crate) fn settle(&self) {
        let iterations = || self.handle.stats().iterations;
        // The first one may have begun before, and the second one ends when the third one begins.
        let last = iterations() + 3;
        eventually("the event loop has iterated", || {
            iterations() >= last || self.connections.stats().open == 0
        });
    }

    pub(crate) fn join(&mut self) {
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn acceptor() -> Acceptor {
    let dir = tempfile::tempdir().unwrap();
    let [chain, key] = server_certificate().write(dir.path(), "server");
    let identities = Identities::load(vec![CertificateFiles { chain, key }]).unwrap();
    Acceptor::new(identities, Alpn::Http1).unwrap()
}

/// Returns everything until the end of a stream.
pub(crate) fn rest(stream: &mut impl Read) -> String {
    let mut received = Vec::new();
    stream.read_to_end(&mut received).ok();
    String::from_utf8_lossy(&received).into_owned()
}

/// Reads until the received bytes end with `end`.
pub(crate) fn read_until(stream: &mut impl Read, end: &str) -> String {
    let mut received = Vec::new();
    let mut byte = [0];
    while !received.ends_with(end.as_bytes()) {
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&received));
        received.push(byte[0]);
    }
    String::from_utf8(received).unwrap()
}
