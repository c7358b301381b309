//! Tests the wake-ups of event loops under many thread schedules: every message is delivered, in
//! order, and a reactor that is stopped or drained ends, also if it waits.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "test helpers may panic and print")]

#[path = "../../../append-log/tests/schedules/explore.rs"]
#[expect(dead_code, reason = "the tests of other crates use the other functions")]
mod explore;
mod messages;
mod peers;
mod shutdown;

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};

use haul_reactor::{
    AcceptInfo, AdmissionLimit, Connection, Context, Event, Handle, Listener, MessageSender, Next,
    Reactor, Service, Socket, SocketKind, TcpOptions,
};
use haul_sync::mpsc::{Receiver, Sender, channel};
use haul_sync::thread::{self, JoinHandle};

/// A message: its sender and its number.
pub(crate) type Message = (u8, u8);

/// The number of senders of messages to a connection.
const SENDERS: u8 = 2;

/// A service that reports its senders of messages and the messages of its connection.
struct Reporter {
    senders: Sender<MessageSender<Message>>,
    delivered: Sender<Message>,
}

struct Peer(Socket);

impl Connection for Peer {
    fn socket(&mut self, _: SocketKind) -> Option<&mut Socket> {
        Some(&mut self.0)
    }
}

impl Service for Reporter {
    type Connection = Peer;
    type Message = Message;

    fn on_accept(
        &mut self,
        socket: Socket,
        _: AcceptInfo,
        context: &mut Context<'_, Message>,
    ) -> Option<Peer> {
        for _ in 0..SENDERS {
            self.senders.send(context.message_sender()).ok()?;
        }
        Some(Peer(socket))
    }

    fn drive(&mut self, _: &mut Peer, event: Event<Message>, _: &mut Context<'_, Message>) -> Next {
        match event {
            Event::Message(message) => {
                // A test that ends early does not take all messages.
                self.delivered.send(message).ok();
                Next::Wait(None)
            }
            Event::Drain => Next::Close,
            _ => Next::Wait(None),
        }
    }
}

/// A reactor on a thread of the model, with a connection that was opened before it started.
struct Fixture {
    /// The number of its listener.
    number: usize,
    handle: Handle,
    thread: JoinHandle<io::Result<()>>,
    senders: Receiver<MessageSender<Message>>,
    delivered: Receiver<Message>,
    _client: UnixStream,
}

/// A listening socket in a directory of its own.
struct Bound {
    socket: UnixListener,
    _dir: tempfile::TempDir,
}

thread_local! {
    /// The listeners of a test, one for each reactor of a schedule: all threads of the model run on
    /// the thread of the test. A schedule accepts each connection that it opens, so the next one
    /// finds the listeners as they were.
    static LISTENERS: [Bound; 2] = [bind(), bind()];
}

fn bind() -> Bound {
    let dir = tempfile::tempdir().unwrap();
    let socket = UnixListener::bind(dir.path().join("socket")).unwrap();
    socket.set_nonblocking(true).unwrap();
    Bound { socket, _dir: dir }
}

/// Returns a copy of the descriptor of a listener.
fn listener(number: usize) -> UnixListener {
    LISTENERS.with(|all| all[number].socket.try_clone().unwrap())
}

impl Fixture {
    fn new() -> Self {
        Self::on(0)
    }

    /// Starts a reactor on the listener with this number.
    fn on(number: usize) -> Self {
        let socket = listener(number);
        let client = UnixStream::connect_addr(&socket.local_addr().unwrap()).unwrap();
        let inherited = Listener::inherit(socket.into(), TcpOptions::default()).unwrap();
        let (senders, new_senders) = channel();
        let (delivered, messages) = channel();
        let limit = AdmissionLimit::new(10);
        let service = Reporter { senders, delivered };
        let reactor = Reactor::new(service, vec![inherited], limit).unwrap();
        let handle = reactor.handle();
        let thread = thread::spawn(move || reactor.run().map(drop));
        Self { number, handle, thread, senders: new_senders, delivered: messages, _client: client }
    }

    /// Waits for the end of the reactor. Accepts the connection if the reactor ended before.
    fn join(self) {
        self.thread.join().unwrap().unwrap();
        while listener(self.number).accept().is_ok() {}
    }
}
