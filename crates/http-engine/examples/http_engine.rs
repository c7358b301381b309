//! A server that responds to each request with its path.

use std::convert::Infallible;
use std::io::{Read, Write};

use haul_http_engine::{
    ConnectionLimits, Connections, Engine, Handler, Inline, ListenerOptions, Origin, ResponseHead,
};
use haul_reactor::{Address, AdmissionLimit, Listener, Reactor, TcpOptions};

struct Echo;
impl Handler for Echo {
    type Body = Infallible; // all bodies are bytes in memory
    type Peer = ();
    type Connection = ();
    fn respond_inline(
        &mut self,
        request: &haul_http1::Request<'_>,
        _origin: &Origin<'_, ()>,
        _connection: &mut (),
        head: &mut ResponseHead<'_>,
    ) -> Inline<Infallible> {
        let body = request.target.path().to_owned().into_bytes();
        let mut head = head.begin(200);
        head.number("content-length", body.len() as u64);
        head.end().map_or(Inline::Deferred, |()| Inline::Bytes(body.into(), ()))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = Listener::bind(&"127.0.0.1:0".parse()?, TcpOptions::default(), 128)?;
    let Address::Tcp(address) = *listener.address() else { return Err("no TCP".into()) };
    let connections = Connections::new(1000, 100, || ());
    let options = ListenerOptions { connections, peer_rate: None, tls: None, access_log: None };
    let engine = Engine::new(Echo, vec![options], ConnectionLimits::default());
    let reactor = Reactor::new(engine, vec![listener], AdmissionLimit::new(1000))?;
    let handle = reactor.handle();
    let thread = std::thread::spawn(|| reactor.run().map(drop));

    let mut client = std::net::TcpStream::connect(address)?;
    client.write_all(b"GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
    let mut response = String::new();
    client.read_to_string(&mut response)?;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("\r\n\r\n/hello"));
    handle.stop();
    Ok(thread.join().map_err(|_panic| "the server failed")??)
}
