//! Starts a relay for tests, and opens connections to its clients and targets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use haul_tcp_relay::{
    Acceptor, Address, Config, Error, Handle, Listener, Server, Stats, TcpOptions,
};
use haul_testing::{Endpoint, Transport, eventually, raise_descriptor_limit, server_certificate};
use haul_tls::{Alpn, CertificateFiles, Identities};
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

use crate::targets::is_child;

/// A running relay, which is stopped when this value is dropped.
pub(crate) struct Relay {
    pub(crate) handle: Handle,
    pub(crate) addresses: Vec<Address>,
    pub(crate) admin: Option<Address>,
    transport: Transport,
    thread: Option<JoinHandle<Result<Stats, Error>>>,
}

/// An address with any free port.
pub(crate) fn any_address() -> Address {
    "127.0.0.1:0".parse().unwrap()
}

/// A configuration with one thread, these targets, and defaults for everything else.
pub(crate) fn config(targets: impl IntoIterator<Item = Address>) -> Config {
    Config { threads: 1, ..Config::new(vec![any_address()], targets.into_iter().collect()) }
}

/// A socket that this process listens on before the relay exists.
fn inherited() -> Listener {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    Listener::inherit(socket.into(), TcpOptions::default()).unwrap()
}

fn acceptor() -> Acceptor {
    let dir = tempfile::tempdir().unwrap();
    let [chain, key] = server_certificate().write(dir.path(), "server");
    let identities = Identities::load(vec![CertificateFiles { chain, key }]).unwrap();
    Acceptor::new(identities, Alpn::None).unwrap()
}

/// A listener and its address.
pub(crate) fn listener() -> (TcpListener, Address) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    (listener, address)
}

/// An address that refuses connections: bound by this process, which never listens on it.
pub(crate) fn refusing_address() -> Address {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = SocketAddr::try_from(getsockname(&socket).unwrap()).unwrap();
    std::mem::forget(socket);
    Address::Tcp(address)
}

impl Relay {
    pub(crate) fn start(config: Config) -> Self {
        Self::over(Transport::Plain, config)
    }

    /// Starts a relay whose clients connect over this transport.
    pub(crate) fn over(transport: Transport, mut config: Config) -> Self {
        // Several tests at once have hundreds of connections.
        assert!(
            is_child() || raise_descriptor_limit(10_000),
            "this process may open too few files"
        );
        let server = match transport {
            Transport::Plain => Server::bind(config),
            Transport::Inherited => Server::with_listeners(config, vec![inherited()]),
            Transport::Tls => {
                config.tls = Some(acceptor());
                Server::bind(config)
            }
        };
        let server = server.unwrap();
        let (handle, addresses) = (server.handle(), server.addresses().clone());
        let thread = Some(std::thread::spawn(|| server.run()));
        Self { handle, addresses: addresses.listen, admin: addresses.admin, transport, thread }
    }

    pub(crate) fn tcp(&self) -> SocketAddr {
        let Address::Tcp(address) = self.addresses[0] else { panic!("not TCP") };
        address
    }

    /// The address for clients, and their transport.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint { address: self.tcp(), transport: self.transport }
    }

    pub(crate) fn admin(&self) -> SocketAddr {
        let Some(Address::Tcp(address)) = self.admin else { panic!("not TCP") };
        address
    }

    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(self.tcp()).unwrap()
    }

    pub(crate) fn stats(&self) -> Stats {
        self.handle.stats()
    }

    /// Waits until the statistics satisfy a condition.
    pub(crate) fn until(&self, is_met: impl Fn(&Stats) -> bool) -> Stats {
        let mut stats = self.stats();
        eventually("the statistics are as expected", || {
            stats = self.stats();
            is_met(&stats)
        });
        stats
    }

    /// Opens a connection whose target reads nothing. In splice mode, the connection leases a pipe
    /// until one of its ends is closed.
    pub(crate) fn stall(&self, target: &TcpListener) -> [TcpStream; 2] {
        let mut client = self.connect();
        let mut server = target.accept().unwrap().0;
        client.set_nonblocking(true).unwrap();
        let (mut polls, mut polls_without) = (0, 0);
        // Every burst leases a pipe for a moment, so the lease must last for thousands of polls.
        while polls < 5000 {
            let is_full = client.write(&[1; 65_536]).is_err();
            let is_leased = self.stats().pipes.leased == 1;
            polls = if is_full && is_leased { polls + 1 } else { 0 };
            polls_without = if is_full && !is_leased { polls_without + 1 } else { 0 };
            if polls_without == 5000 {
                // The target's buffers took the last burst completely, so no pipe is leased. Read
                // some bytes, so that the relay moves more bursts until one stays in the pipe.
                let read = server.read(&mut vec![0; 1 << 20]).unwrap();
                assert!(read > 0, "bytes are buffered everywhere");
                polls_without = 0;
            }
            std::thread::yield_now();
        }
        [client, server]
    }

    /// Drains the relay; returns its final statistics.
    pub(crate) fn drain(mut self) -> Stats {
        self.handle.drain();
        self.thread.take().unwrap().join().unwrap().unwrap()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.handle.stop();
            let ended = thread.join();
            assert!(std::thread::panicking() || matches!(ended, Ok(Ok(_))), "{ended:?}");
        }
    }
}
