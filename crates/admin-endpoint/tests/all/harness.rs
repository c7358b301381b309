//! Starts an endpoint with a fixed status source, and connects clients to it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use haul_admin_endpoint::Unit::Count;
use haul_admin_endpoint::{Address, Admin, LatencyStats, Overview, Series, StatusSource};

/// A status source that counts calls and returns metrics of a given length.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fixed {
    pub(crate) calls: Arc<AtomicUsize>,
    pub(crate) metrics_bytes: usize,
    pub(crate) has_console: bool,
}

const SERIES: &[Series] = &[Series::counter("Calls", "calls", Count)];

impl StatusSource for Fixed {
    fn metrics(&self) -> String {
        self.calls.fetch_add(1, Relaxed);
        format!("a {}\n", "1".repeat(self.metrics_bytes.saturating_sub(3)))
    }

    fn unready_reason(&self) -> Option<&'static str> {
        None
    }

    fn overview(&self) -> Option<Overview> {
        let values = vec![self.calls.load(Relaxed) as u64];
        let latencies = vec![("Latency", LatencyStats::default())];
        let overview = Overview { title: "fixed".to_owned(), series: SERIES, values, latencies };
        self.has_console.then_some(overview)
    }
}

pub(crate) fn start(source: Fixed) -> (Admin, SocketAddr) {
    let admin = Admin::bind(&"127.0.0.1:0".parse().unwrap(), source).unwrap();
    let Address::Tcp(address) = *admin.address() else { unreachable!() };
    (admin, address)
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    client
}

pub(crate) fn send(client: &mut impl Write, text: &str) {
    client.write_all(text.as_bytes()).unwrap();
}

/// Reads until the server closes the connection.
pub(crate) fn read_to_end(client: &mut impl Read) -> String {
    let mut response = String::new();
    client.read_to_string(&mut response).unwrap();
    response
}

/// Reads until the bytes read end with `end`.
pub(crate) fn read_until(client: &mut impl Read, end: &[u8]) -> String {
    let (mut response, mut byte) = (Vec::new(), [0]);
    while !response.ends_with(end) {
        client.read_exact(&mut byte).unwrap();
        response.extend(byte);
    }
    String::from_utf8(response).unwrap()
}

pub(crate) const HEALTH: &str = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";
pub(crate) const OK: &[u8] = b"\r\n\r\nok\n";
