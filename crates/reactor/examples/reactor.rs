//! A server on one thread that echoes its input in upper case.

use std::io::{IoSlice, Read, Write};

use haul_reactor::{
    AcceptInfo, Address, AdmissionLimit, Connection, Context, Event, IoStatus, Listener, Next,
    Reactor, Service, Socket, SocketKind, TcpOptions,
};

struct Peer(Socket);
impl Connection for Peer {
    fn socket(&mut self, _side: SocketKind) -> Option<&mut Socket> {
        Some(&mut self.0)
    }
}

struct Echo;
impl Service for Echo {
    type Connection = Peer;
    type Message = ();
    fn on_accept(&mut self, peer: Socket, _: AcceptInfo, _: &mut Context<'_, ()>) -> Option<Peer> {
        Some(Peer(peer))
    }
    fn drive(&mut self, peer: &mut Peer, _: Event<()>, _: &mut Context<'_, ()>) -> Next {
        let mut text = [0; 512];
        while peer.0.is_readable() {
            let bytes = match peer.0.read(&mut text) {
                Ok(IoStatus::WouldBlock) => break,
                Ok(IoStatus::Bytes(bytes @ 1..)) => bytes,
                Ok(IoStatus::Bytes(_)) | Err(_) => return Next::Close,
            };
            text[..bytes].make_ascii_uppercase();
            let answer = [IoSlice::new(&text[..bytes])];
            let Ok(_) = peer.0.write(&answer, false) else { return Next::Close };
        }
        Next::Wait(None) // for the next event, without a deadline
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = Listener::bind(&"127.0.0.1:0".parse()?, TcpOptions::default(), 128)?;
    let Address::Tcp(address) = *listener.address() else { return Err("no TCP".into()) };
    let reactor = Reactor::new(Echo, vec![listener], AdmissionLimit::new(100))?;
    let handle = reactor.handle();
    let thread = std::thread::spawn(|| reactor.run().map(drop));

    let mut client = std::net::TcpStream::connect(address)?;
    client.write_all(b"hello")?;
    client.read_exact(&mut [0; 5])?; // HELLO
    handle.stop();
    Ok(thread.join().map_err(|_panic| "the reactor failed")??)
}
