//! A server for tests: its paths name what it does.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use haul_http_engine::{
    BoxError, ConnectionLimits, Connections, Engine, Handler, ListenerOptions, Origin, RequestBody,
    ResponseFuture, ResponseHead,
};
use haul_http1::HeadLimits;
use haul_reactor::{Address, AdmissionLimit, Handle, Listener, Reactor, TcpOptions};
use haul_tls::Acceptor;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const HEAD_TIME: Duration = Duration::from_millis(300);

/// A body of frames, of a known length or not, that may end with an error.
pub(crate) struct Frames {
    frames: Vec<Bytes>,
    declared: Option<u64>,
    fails: bool,
}

impl Frames {
    fn of(frames: impl IntoIterator<Item = Bytes>) -> Self {
        let mut frames: Vec<Bytes> = frames.into_iter().collect();
        frames.reverse();
        let declared = Some(frames.iter().map(|frame| frame.len() as u64).sum());
        Self { frames, declared, fails: false }
    }
}

impl Body for Frames {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.frames.pop() {
            Some(frame) => Poll::Ready(Some(Ok(Frame::data(frame)))),
            None if self.fails => Poll::Ready(Some(Err("as tested".into()))),
            None => Poll::Ready(None),
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.declared.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

pub(crate) struct Paths;

impl Handler for Paths {
    type Body = Frames;
    type Peer = ();

    fn respond_inline(
        &mut self,
        request: &haul_http1::Request<'_>,
        _origin: &Origin<'_, ()>,
        head: &mut ResponseHead<'_>,
    ) -> Option<Bytes> {
        let bytes: usize = request.target.path().strip_prefix("/inline/")?.parse().ok()?;
        let mut head = head.begin(200);
        head.number("content-length", bytes as u64);
        head.end().ok()?;
        Some(Bytes::from(vec![b'i'; bytes]))
    }

    fn respond(
        &mut self,
        request: Request<RequestBody>,
        _origin: &Origin<'_, ()>,
    ) -> ResponseFuture<Frames> {
        Box::pin(respond(request))
    }
}

async fn respond(request: Request<RequestBody>) -> Result<Response<Frames>, BoxError> {
    let path = request.uri().path().to_owned();
    let text = |text: String| Response::new(Frames::of([Bytes::from(text)]));
    Ok(match path.as_str() {
        "/echo" => match request.into_body().collect().await {
            Ok(body) => Response::new(Frames::of([body.to_bytes()])),
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
            *response.status_mut() = http::StatusCode::FORBIDDEN;
            response
        }
        "/chunked" => {
            let frames = Frames::of(["one", "two", "three"].map(Bytes::from));
            Response::new(Frames { declared: None, ..frames })
        }
        "/frames" => Response::new(Frames::of((0..100).map(|n| Bytes::from(vec![n; 100_000])))),
        "/short" => {
            let frames = Frames::of([Bytes::from("abc")]);
            Response::new(Frames { declared: Some(5), ..frames })
        }
        "/fails" => {
            let frames = Frames::of([Bytes::from("abc")]);
            Response::new(Frames { declared: Some(5), fails: true, ..frames })
        }
        "/breaks" => {
            let frames = Frames::of([Bytes::from("abc")]);
            Response::new(Frames { declared: None, fails: true, ..frames })
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
    let mut thread = None;
    std::future::poll_fn(|context| {
        let waker = context.waker().clone();
        let thread: &mut JoinHandle<()> = thread.get_or_insert_with(|| {
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(2));
                waker.wake();
            })
        });
        if thread.is_finished() { Poll::Ready(()) } else { waits(context) }
    })
    .await;
}

/// The thread has woken the future, and is about to end.
fn waits(context: &Context<'_>) -> Poll<()> {
    context.waker().wake_by_ref();
    Poll::Pending
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<Connections<()>>,
    pub(crate) handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::with_limits(100, 100)
    }

    pub(crate) fn with_limits(connections_max: usize, peer_connections_max: usize) -> Self {
        Self::with_options(connections_max, peer_connections_max, None, PATIENCE)
    }

    pub(crate) fn with_tls(tls: Acceptor) -> Self {
        Self::with_options(100, 100, Some(tls), PATIENCE)
    }

    pub(crate) fn with_stall_time(stall_time: Duration) -> Self {
        Self::with_options(100, 100, None, stall_time)
    }

    fn with_options(
        connections_max: usize,
        peer_connections_max: usize,
        tls: Option<Acceptor>,
        stall_time: Duration,
    ) -> Self {
        let listener =
            Listener::bind(&"127.0.0.1:0".parse().unwrap(), TcpOptions::default(), 128).unwrap();
        let Address::Tcp(address) = *listener.address() else { panic!("no TCP") };
        let connections = Connections::new(connections_max, peer_connections_max, || ());
        let limits = ConnectionLimits {
            head: HeadLimits::default(),
            head_time: HEAD_TIME,
            idle_time: Duration::from_secs(20),
            stall_time,
            linger_time: Duration::from_secs(5),
            linger_bytes_max: 64 << 20,
            too_many: b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n",
        };
        let options = ListenerOptions { connections: Arc::clone(&connections), tls };
        let engine = Engine::new(Paths, vec![options], limits);
        let all = AdmissionLimit::new(usize::MAX);
        let reactor = Reactor::new(engine, vec![listener], all).unwrap();
        let handle = reactor.handle();
        let thread = Some(thread::spawn(|| drop(reactor.run().unwrap())));
        Self { address, connections, handle, thread }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends bytes, and returns everything that is received until the server closes.
    pub(crate) fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(bytes).unwrap();
        rest(&mut stream)
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

/// Returns everything until the end of a stream.
pub(crate) fn rest(stream: &mut TcpStream) -> String {
    let mut received = Vec::new();
    stream.read_to_end(&mut received).ok();
    String::from_utf8_lossy(&received).into_owned()
}

/// Reads until the received bytes end with `end`.
pub(crate) fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut received = Vec::new();
    let mut byte = [0];
    while !received.ends_with(end.as_bytes()) {
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&received));
        received.push(byte[0]);
    }
    String::from_utf8(received).unwrap()
}
