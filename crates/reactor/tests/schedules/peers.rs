//! Tests a connection that gives way to another one of its peer, which the event loop of another
//! thread accepts.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use haul_reactor::{
    AcceptInfo, AdmissionLimit, AdmissionStats, Connection, Context, Event, Handle, Listener,
    MessageSender, Next, Reactor, Service, Socket, SocketKind, TcpOptions,
};
use haul_sync::mpsc::{Receiver, Sender, channel};
use haul_sync::thread::{self, JoinHandle};
use socket2::SockRef;

use crate::explore::explore_part;

/// A call of the service.
enum Call {
    Accept(MessageSender<()>),
    Refuse,
    Message,
    Evict,
    Close,
}

/// A service whose connections may give way at any time. It reports its calls.
struct Reporter(Sender<Call>);

struct Peer(Socket);

impl Connection for Peer {
    fn socket(&mut self, _: SocketKind) -> Option<&mut Socket> {
        Some(&mut self.0)
    }
}

impl Reporter {
    /// Reports a call. Calls after the end of a test are not received.
    fn report(&self, call: Call) {
        self.0.send(call).ok();
    }
}

impl Service for Reporter {
    type Connection = Peer;
    type Message = ();

    fn on_accept(
        &mut self,
        socket: Socket,
        _: AcceptInfo,
        context: &mut Context<'_, ()>,
    ) -> Option<Peer> {
        self.report(Call::Accept(context.message_sender()));
        Some(Peer(socket))
    }

    fn drive(&mut self, _: &mut Peer, event: Event<()>, _: &mut Context<'_, ()>) -> Next {
        if event == Event::Message(()) {
            self.report(Call::Message);
        }
        Next::Wait(None)
    }

    fn is_waiting(&self, _: &Peer) -> bool {
        true
    }

    fn on_evict(&mut self, _: &mut Peer) {
        self.report(Call::Evict);
    }

    fn on_refuse(&mut self, socket: Socket, _: AcceptInfo) {
        drop(socket);
        self.report(Call::Refuse);
    }

    fn on_close(&mut self, connection: Peer) {
        drop(connection);
        self.report(Call::Close);
    }
}

std::thread_local! {
    /// The listeners of the reactors of a schedule.
    static LISTENERS: [TcpListener; 2] = [bind(), bind()];
}

fn bind() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// A reactor on a thread of the model, and a client that connected before it started.
struct Fixture {
    handle: Handle,
    thread: JoinHandle<io::Result<()>>,
    calls: Receiver<Call>,
    client: TcpStream,
}

impl Fixture {
    fn on(number: usize, limit: &AdmissionLimit) -> Self {
        let socket = LISTENERS.with(|all| all[number].try_clone().unwrap());
        let client = TcpStream::connect(socket.local_addr().unwrap()).unwrap();
        // The kernel then remembers nothing of the closed connection.
        SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
        let listener = Listener::inherit(socket.into(), TcpOptions::default()).unwrap();
        let (reporter, calls) = channel();
        let reactor = Reactor::new(Reporter(reporter), vec![listener], limit.clone()).unwrap();
        let handle = reactor.handle();
        let thread = thread::spawn(move || reactor.run().map(drop));
        Self { handle, thread, calls, client }
    }

    fn stop(self) {
        drop(self.client);
        self.handle.stop();
        self.thread.join().unwrap().unwrap();
    }
}

#[test]
fn connection_that_gives_way_is_closed_by_its_own_thread() {
    explore_part("evictions", 1, || {
        let limit = AdmissionLimit::with_peer_limit(10, 1);
        let one = Fixture::on(0, &limit);
        let Ok(Call::Accept(messages)) = one.calls.recv() else { panic!("it is not accepted") };
        // From now on the connection has waited for long enough to give way, unless the message makes
        // it busy.
        haul_sync::advance(Duration::from_secs(1));
        let sending = thread::spawn(move || messages.send(()));
        let two = Fixture::on(1, &limit);
        let is_admitted = match two.calls.recv().unwrap() {
            Call::Accept(_) => true,
            Call::Refuse => false,
            _ => panic!("an unexpected call"),
        };
        sending.join().unwrap();
        let next = || one.calls.recv().unwrap();
        let first = next();
        if is_admitted {
            let evicted = if matches!(first, Call::Message) { next() } else { first };
            assert!(matches!(evicted, Call::Evict) && matches!(next(), Call::Close));
        } else {
            assert!(matches!(first, Call::Message), "it did not give way");
        }
        let (evicted, refused) = (u64::from(is_admitted), u64::from(!is_admitted));
        assert_eq!(limit.stats(), AdmissionStats { evicted, refused });
        one.stop();
        two.stop();
        assert_eq!(limit.open(), 0);
    });
}
