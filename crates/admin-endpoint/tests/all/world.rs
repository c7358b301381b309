//! A server that says of itself what it is told to, and clients of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use haul_admin_endpoint::{Address, Admin, Told};

/// How often it was asked, and how long what it tells is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fixed {
    pub(crate) asked: Arc<AtomicUsize>,
    pub(crate) metrics_bytes: usize,
}

impl Told for Fixed {
    fn metrics(&self) -> String {
        self.asked.fetch_add(1, Relaxed);
        format!("a {}\n", "1".repeat(self.metrics_bytes.saturating_sub(3)))
    }

    fn trouble(&self) -> Option<&'static str> {
        None
    }
}

pub(crate) fn start(told: Fixed) -> (Admin, SocketAddr) {
    let admin = Admin::bind(&"127.0.0.1:0".parse().unwrap(), told).unwrap();
    let Address::Tcp(address) = *admin.address() else { unreachable!() };
    (admin, address)
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    client
}

pub(crate) fn say(client: &mut impl Write, text: &str) {
    client.write_all(text.as_bytes()).unwrap();
}

/// All that comes until the server closes.
pub(crate) fn all(client: &mut impl Read) -> String {
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

/// An answer that ends with these bytes.
pub(crate) fn until(client: &mut impl Read, end: &[u8]) -> String {
    let (mut answer, mut byte) = (Vec::new(), [0]);
    while !answer.ends_with(end) {
        client.read_exact(&mut byte).unwrap();
        answer.extend(byte);
    }
    String::from_utf8(answer).unwrap()
}

pub(crate) const HEALTH: &str = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";
pub(crate) const OK: &[u8] = b"\r\n\r\nok\n";
