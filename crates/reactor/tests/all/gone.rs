//! Peers that are gone, and those that only have said everything.

use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use haul_reactor::{
    Accepted, Address, Connection, Event, Gate, Handle, Hub, Listener, Next, Reactor, Service,
    Side, Socket, TcpOptions,
};
use rustix::net::sockopt::set_socket_linger;

/// Tells at each turn of a peer whether it has ended its side, and whether it is gone.
struct Watching(Sender<(bool, bool)>);
struct Peer(Socket);

impl Connection for Peer {
    fn socket(&mut self, _side: Side) -> Option<&mut Socket> {
        Some(&mut self.0)
    }
}

impl Service for Watching {
    type Connection = Peer;
    type Message = ();

    fn accepted(&mut self, socket: Socket, _: Accepted, _: &mut Hub<'_, ()>) -> Option<Peer> {
        Some(Peer(socket))
    }

    fn drive(&mut self, peer: &mut Peer, _: Event<()>, _: &mut Hub<'_, ()>) -> Next {
        let has_end = matches!(peer.0.peek(), Ok(haul_reactor::Moved::Bytes(0)));
        self.0.send((has_end, peer.0.is_gone())).unwrap();
        Next::Wait(None)
    }
}

fn start(address: &str) -> (Address, Handle, Receiver<(bool, bool)>) {
    let listener = Listener::bind(&address.parse().unwrap(), TcpOptions::default(), 16).unwrap();
    let address = listener.address().clone();
    let (tell, told) = channel();
    let reactor = Reactor::new(Watching(tell), vec![listener], Gate::new(10)).unwrap();
    let handle = reactor.handle();
    std::thread::spawn(move || reactor.run().map(drop).unwrap());
    (address, handle, told)
}

/// What is told once it is the last one of these.
fn until(told: &Receiver<(bool, bool)>, last: (bool, bool)) -> bool {
    let wait = Duration::from_secs(20);
    std::iter::from_fn(|| told.recv_timeout(wait).ok()).any(|now| now == last)
}

#[test]
fn who_ended_its_side_may_still_listen_and_who_reset_is_gone() {
    let (address, handle, told) = start("127.0.0.1:0");
    let Address::Tcp(address) = address else { unreachable!() };
    let peer = TcpStream::connect(address).unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    assert!(until(&told, (true, false)));
    set_socket_linger(&peer, Some(Duration::ZERO)).unwrap();
    drop(peer);
    assert!(told.iter().any(|(_, is_gone)| is_gone));
    handle.stop();
}

#[test]
fn a_unix_peer_that_closed_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let (_, handle, told) = start(&format!("unix:{}", path.display()));
    let peer = UnixStream::connect(&path).unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    assert!(until(&told, (true, false)));
    drop(peer);
    assert!(until(&told, (true, true)));
    handle.stop();
}
