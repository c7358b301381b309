//! Tests of the states that a half-closed, closed or reset peer causes.

use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use haul_reactor::{
    AcceptInfo, Address, AdmissionLimit, Connection, Context, Event, Handle, Listener, Next,
    Reactor, Service, Socket, SocketKind, TcpOptions,
};
use haul_testing::PATIENCE;
use rustix::net::sockopt::set_socket_linger;

/// A service that reports `(is at end of stream, is_write_closed)` each time a peer is driven.
struct StateReporter(Sender<(bool, bool)>);
struct Peer(Socket);

impl Connection for Peer {
    fn socket(&mut self, _side: SocketKind) -> Option<&mut Socket> {
        Some(&mut self.0)
    }
}

impl Service for StateReporter {
    type Connection = Peer;
    type Message = ();

    fn on_accept(
        &mut self,
        socket: Socket,
        _: AcceptInfo,
        _: &mut Context<'_, ()>,
    ) -> Option<Peer> {
        Some(Peer(socket))
    }

    fn drive(&mut self, peer: &mut Peer, _: Event<()>, _: &mut Context<'_, ()>) -> Next {
        let is_at_end = matches!(peer.0.peek(), Ok(haul_reactor::IoStatus::Bytes(0)));
        self.0.send((is_at_end, peer.0.is_write_closed())).unwrap();
        Next::Wait(None)
    }
}

fn start(address: &str) -> (Address, Handle, Receiver<(bool, bool)>) {
    let listener = Listener::bind(&address.parse().unwrap(), TcpOptions::default(), 16).unwrap();
    let address = listener.address().clone();
    let (sender, states) = channel();
    let reactor =
        Reactor::new(StateReporter(sender), vec![listener], AdmissionLimit::new(10)).unwrap();
    let handle = reactor.handle();
    std::thread::spawn(move || reactor.run().map(drop).unwrap());
    (address, handle, states)
}

/// Waits for a reported state; `false` if it does not arrive.
fn reaches(states: &Receiver<(bool, bool)>, expected: (bool, bool)) -> bool {
    std::iter::from_fn(|| states.recv_timeout(PATIENCE).ok()).any(|state| state == expected)
}

#[test]
fn half_close_leaves_write_side_open_and_reset_closes_it() {
    let (address, handle, states) = start("127.0.0.1:0");
    let Address::Tcp(address) = address else { unreachable!() };
    let peer = TcpStream::connect(address).unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    assert!(reaches(&states, (true, false)));
    set_socket_linger(&peer, Some(Duration::ZERO)).unwrap();
    drop(peer);
    assert!(states.iter().any(|(_, is_write_closed)| is_write_closed));
    handle.stop();
}

#[test]
fn closed_unix_peer_closes_write_side() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let (_, handle, states) = start(&format!("unix:{}", path.display()));
    let peer = UnixStream::connect(&path).unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    assert!(reaches(&states, (true, false)));
    drop(peer);
    assert!(reaches(&states, (true, true)));
    handle.stop();
}
