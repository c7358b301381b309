//! Tests of reactors with real sockets.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which may fail like them")]

use std::io::{IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use haul_reactor::{
    AcceptInfo, Address, AdmissionLimit, Clock, Connection, Context, Event, Handle, IoStatus,
    Listener, ManualClock, MessageSender, Next, Reactor, Service, Socket, SocketKind, TcpOptions,
    wake_once,
};
use haul_testing::{PATIENCE, eventually};

mod accept;
mod drive;
mod half_close;
mod lingering_close;
mod peers;
mod push;
mod self_connect;
mod shutdown;

/// A connection that receives this message sends it to itself again.
const ENDLESS: u8 = 255;
/// A connection with this name may be evicted.
const WAITING: u8 = b'w';

/// A service that executes the command in the first byte of each read from a client's socket.
struct CommandService {
    senders: Sender<MessageSender<u8>>,
    driven: Sender<(u8, Event<u8>)>,
}

struct Peer {
    socket: Socket,
    name: u8,
    yields_left: u32,
    deadline: Option<Instant>,
}

impl Connection for Peer {
    fn socket(&mut self, _side: SocketKind) -> Option<&mut Socket> {
        Some(&mut self.socket)
    }
}

impl Service for CommandService {
    type Connection = Peer;
    type Message = u8;

    fn on_accept(
        &mut self,
        socket: Socket,
        _: AcceptInfo,
        context: &mut Context<'_, u8>,
    ) -> Option<Peer> {
        self.senders.send(context.message_sender()).unwrap();
        Some(Peer { socket, name: 0, yields_left: 0, deadline: None })
    }

    fn drive(&mut self, peer: &mut Peer, event: Event<u8>, context: &mut Context<'_, u8>) -> Next {
        let (is_resumed, is_drain) = (event == Event::Resume, event == Event::Drain);
        if event == Event::Message(ENDLESS) {
            context.message_sender().send(ENDLESS);
        }
        if event == Event::Deadline {
            peer.deadline = None;
        }
        self.driven.send((peer.name, event)).unwrap();
        if is_drain {
            return Next::Close;
        }
        if is_resumed {
            peer.yields_left -= 1;
            if peer.yields_left > 0 {
                return Next::Yield;
            }
        }
        let mut message = [0; 16];
        while peer.socket.is_readable() {
            match peer.socket.read(&mut message) {
                Ok(IoStatus::Bytes(0)) | Err(_) => return Next::Close,
                Ok(IoStatus::Bytes(_)) => {}
                Ok(IoStatus::WouldBlock) => continue,
            }
            peer.name = message[1];
            match message[0] {
                b'e' => drop(peer.socket.write(&[IoSlice::new(&message[1..2])], false).unwrap()),
                b'd' => peer.deadline = Some(context.now() + Duration::from_millis(1)),
                b'a' => {
                    peer.yields_left = 50;
                    return Next::Yield;
                }
                b'r' => return Next::Close,
                other => assert_eq!(other, b'n'),
            }
        }
        Next::Wait(peer.deadline)
    }

    fn is_waiting(&self, peer: &Peer) -> bool {
        peer.name == WAITING
    }

    fn on_evict(&mut self, peer: &mut Peer) {
        peer.socket.write(&[IoSlice::new(b"evicted")], false).unwrap();
    }

    fn on_refuse(&mut self, mut socket: Socket, _: AcceptInfo) {
        socket.write(&[IoSlice::new(b"refused")], false).unwrap();
    }
}

/// A reactor server on its own thread.
struct TestServer {
    address: SocketAddr,
    handle: Handle,
    limit: AdmissionLimit,
    senders: Receiver<MessageSender<u8>>,
    driven: Receiver<(u8, Event<u8>)>,
    /// The folder of the thread in `/proc`.
    task: PathBuf,
    thread: Option<JoinHandle<()>>,
}

impl TestServer {
    fn start(connections_max: usize) -> Self {
        Self::start_with(AdmissionLimit::new(connections_max))
    }

    fn start_with(limit: AdmissionLimit) -> Self {
        Self::start_at(limit, Clock::System)
    }

    fn start_at(limit: AdmissionLimit, clock: Clock) -> Self {
        let any = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind(&any, TcpOptions::default(), 128).unwrap();
        let Address::Tcp(address) = *listener.address() else { unreachable!() };
        let ((to_senders, senders), (to_driven, driven)) = (channel(), channel());
        let service = CommandService { senders: to_senders, driven: to_driven };
        let reactor = Reactor::new(service, vec![listener], limit.clone()).unwrap();
        let reactor = reactor.with_clock(clock);
        let handle = reactor.handle();
        let (to_task, task) = channel();
        let thread = thread::spawn(move || {
            to_task.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
            drop(reactor.run().unwrap());
        });
        let task = Path::new("/proc").join(task.recv().unwrap());
        Self { address, handle, limit, senders, driven, task, thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    /// Waits until the thread sleeps. It sleeps long only in `epoll_wait`, and shortly where it needs
    /// the lock of an allocator.
    fn until_asleep(&self) {
        let mut polls = 0;
        eventually("the thread sleeps", || {
            let stat = std::fs::read_to_string(self.task.join("stat")).unwrap();
            let is_asleep = stat.rsplit_once(") ").unwrap().1.starts_with('S');
            polls = if is_asleep { polls + 1 } else { 0 };
            polls > 150
        });
    }

    fn join(&mut self) {
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Requests an echo and waits for it.
fn echo(stream: &mut TcpStream, byte: u8) {
    stream.write_all(&[b'e', byte]).unwrap();
    let mut answer = [0];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, [byte]);
}

/// Waits until the kernel has reported the initial readiness of the accepted socket, which may take
/// an additional iteration of the loop.
fn settle(stream: &mut TcpStream) {
    echo(stream, 1);
    echo(stream, 2);
}

/// Reads up to the end of the stream.
fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}
