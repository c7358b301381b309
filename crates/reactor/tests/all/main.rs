//! Reactors against the kernel.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which may fail like them")]

use std::io::{IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use haul_reactor::{
    Accepted, Address, Connection, Event, Gate, Handle, Hub, Listener, Moved, Next, Reactor,
    Remote, Service, Side, Socket, TcpOptions,
};

mod accepting;
mod driving;
mod gone;
mod itself;
mod pushing;
mod stopping;

/// Whoever is told this tells it to itself again.
const FOR_EVER: u8 = 255;

/// Does what the first byte of each message says.
struct Obedient {
    remotes: Sender<Remote<u8>>,
    driven: Sender<(u8, Event<u8>)>,
}

struct Peer {
    socket: Socket,
    name: u8,
    turns_left: u32,
    deadline: Option<Instant>,
}

impl Connection for Peer {
    fn socket(&mut self, _side: Side) -> Option<&mut Socket> {
        Some(&mut self.socket)
    }
}

impl Service for Obedient {
    type Connection = Peer;
    type Message = u8;

    fn accepted(&mut self, socket: Socket, _: Accepted, hub: &mut Hub<'_, u8>) -> Option<Peer> {
        self.remotes.send(hub.remote()).unwrap();
        Some(Peer { socket, name: 0, turns_left: 0, deadline: None })
    }

    fn drive(&mut self, peer: &mut Peer, event: Event<u8>, hub: &mut Hub<'_, u8>) -> Next {
        let (is_again, is_drain) = (event == Event::Again, event == Event::Drain);
        if event == Event::Told(FOR_EVER) {
            hub.remote().tell(FOR_EVER);
        }
        if event == Event::Deadline {
            peer.deadline = None;
        }
        self.driven.send((peer.name, event)).unwrap();
        if is_drain {
            return Next::Close;
        }
        if is_again {
            peer.turns_left -= 1;
            if peer.turns_left > 0 {
                return Next::Again;
            }
        }
        let mut message = [0; 16];
        while peer.socket.is_readable() {
            match peer.socket.read(&mut message) {
                Ok(Moved::Bytes(0)) | Err(_) => return Next::Close,
                Ok(Moved::Bytes(_)) => {}
                Ok(Moved::WouldBlock) => continue,
            }
            peer.name = message[1];
            match message[0] {
                b'e' => drop(peer.socket.write(&[IoSlice::new(&message[1..2])], false).unwrap()),
                b'd' => peer.deadline = Some(hub.now() + Duration::from_millis(1)),
                b'a' => {
                    peer.turns_left = 50;
                    return Next::Again;
                }
                b'r' => return Next::Close,
                other => assert_eq!(other, b'n'),
            }
        }
        Next::Wait(peer.deadline)
    }
}

/// A reactor in a thread of its own.
struct Running {
    address: SocketAddr,
    handle: Handle,
    gate: Gate,
    remotes: Receiver<Remote<u8>>,
    driven: Receiver<(u8, Event<u8>)>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(connections_max: usize) -> Self {
        let any = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind(&any, TcpOptions::default(), 128).unwrap();
        let Address::Tcp(address) = *listener.address() else { unreachable!() };
        let ((to_remotes, remotes), (to_driven, driven)) = (channel(), channel());
        let service = Obedient { remotes: to_remotes, driven: to_driven };
        let gate = Gate::new(connections_max);
        let reactor = Reactor::new(service, vec![listener], gate.clone()).unwrap();
        let handle = reactor.handle();
        let thread = std::thread::spawn(|| drop(reactor.run().unwrap()));
        Self { address, handle, gate, remotes, driven, thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).unwrap()
    }

    fn join(&mut self) {
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Asks for an echo, and waits for it.
fn echo(stream: &mut TcpStream, byte: u8) {
    stream.write_all(&[b'e', byte]).unwrap();
    let mut answer = [0];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, [byte]);
}

/// Waits until the connection is known to be ready, which may cost a turn of its own.
fn settle(stream: &mut TcpStream) {
    echo(stream, 1);
    echo(stream, 2);
}

/// What is left to read, up to the end.
fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}
