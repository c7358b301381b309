//! Tests of HTTP with real sockets. The client and the targets use a simple parser, not the parser
//! of the relay.

mod access_log;
mod bodies;
mod chaos;
mod client_disconnect;
mod connection_close;
mod exchanges;
mod hostile;
mod idle_pool;
mod timeouts;
mod tunnels;
mod upgrades;

use std::io::Write;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use haul_tcp_relay::{Address, Config, HttpOptions, Stats};
pub(crate) use haul_testing::http::{Message, Peer};
pub(crate) use haul_testing::noise;
use haul_testing::{ClientStream, Transport};

use crate::support::{Relay, config, listener};

/// The requests a target received.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestLog(Arc<Mutex<Vec<Message>>>);

impl RequestLog {
    pub(crate) fn requests(&self) -> Vec<Message> {
        self.0.lock().unwrap().clone()
    }
}

thread_local! {
    /// The threads serving connections to the targets of this test.
    static SERVING: Arc<Mutex<Vec<JoinHandle<()>>>> = Arc::default();
}

/// Starts a target that calls `serve` in a new thread for each connection, with the number of the
/// connection.
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

/// Starts a target that responds with the result of `respond`, and logs the requests.
pub(crate) fn responding_target(
    respond: impl Fn(&Message) -> Vec<u8> + Send + Sync + 'static,
) -> (Address, RequestLog) {
    let log = RequestLog::default();
    let shared_log = log.clone();
    let address = target(move |number, mut peer| {
        while let Ok(Some(mut request)) = peer.request() {
            let response = respond(&request);
            request.fields.push(("connection-number".to_owned(), number.to_string()));
            shared_log.0.lock().unwrap().push(request);
            if peer.try_send(response).is_err() {
                break;
            }
        }
    });
    (address, log)
}

/// Returns a response with `Content-Length`.
pub(crate) fn ok(body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// An HTTP relay. Dropping it fails the test if a target thread panicked.
pub(crate) struct Http(Option<Relay>);

impl Deref for Http {
    type Target = Relay;

    fn deref(&self) -> &Relay {
        self.0.as_ref().unwrap()
    }
}

impl Http {
    /// Drains the relay; returns its final statistics.
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
            assert!(served.is_ok() || thread::panicking(), "a target thread panicked");
        }
    }
}

/// Starts an HTTP relay to these targets.
pub(crate) fn http(targets: impl IntoIterator<Item = Address>) -> Http {
    http_with(targets, HttpOptions::default(), |_| {})
}

pub(crate) fn http_with(
    targets: impl IntoIterator<Item = Address>,
    options: HttpOptions,
    change: impl FnOnce(&mut Config),
) -> Http {
    http_over(Transport::Plain, targets, options, change)
}

/// Starts an HTTP relay to these targets, whose clients connect over this transport.
pub(crate) fn http_over(
    transport: Transport,
    targets: impl IntoIterator<Item = Address>,
    options: HttpOptions,
    change: impl FnOnce(&mut Config),
) -> Http {
    let mut config = config(targets);
    config.http = Some(options);
    change(&mut config);
    Http(Some(Relay::over(transport, config)))
}

/// A client that connects over the transport of the relay.
pub(crate) fn client_over(relay: &Relay) -> Peer<ClientStream> {
    Peer::over(relay.endpoint().connect().unwrap())
}

pub(crate) fn client(relay: &Relay) -> Peer {
    Peer::new(relay.connect())
}

/// Returns a chunked body with chunks of these sizes, used cyclically.
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
