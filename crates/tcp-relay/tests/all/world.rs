//! A relay, and what is at its ends.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use haul_tcp_relay::{Address, Config, Error, Handle, Server, Stats};
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

/// A relay that runs; it is stopped when this is dropped.
pub(crate) struct Relay {
    pub(crate) handle: Handle,
    pub(crate) addresses: Vec<Address>,
    pub(crate) admin: Option<SocketAddr>,
    thread: Option<JoinHandle<Result<Stats, Error>>>,
}

/// Any free address.
pub(crate) fn anywhere() -> Address {
    "127.0.0.1:0".parse().unwrap()
}

/// A relay from anywhere to these, on one thread, and nothing else set.
pub(crate) fn config(targets: impl IntoIterator<Item = Address>) -> Config {
    Config { threads: 1, ..Config::new(vec![anywhere()], targets.into_iter().collect()) }
}

/// A listener, and its address.
pub(crate) fn listener() -> (TcpListener, Address) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    (listener, address)
}

/// An address at which nobody listens, and nobody can while this process runs: it is taken.
pub(crate) fn nowhere() -> Address {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = SocketAddr::try_from(getsockname(&socket).unwrap()).unwrap();
    std::mem::forget(socket);
    Address::Tcp(address)
}

impl Relay {
    pub(crate) fn start(config: Config) -> Self {
        let server = Server::bind(config).unwrap();
        let (handle, addresses) = (server.handle(), server.addresses().clone());
        let thread = Some(std::thread::spawn(|| server.run()));
        Self { handle, addresses: addresses.listen, admin: addresses.admin, thread }
    }

    pub(crate) fn tcp(&self) -> SocketAddr {
        let Address::Tcp(address) = self.addresses[0] else { panic!("not TCP") };
        address
    }

    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(self.tcp()).unwrap()
    }

    pub(crate) fn stats(&self) -> Stats {
        self.handle.stats()
    }

    /// Waits until what was counted is so.
    pub(crate) fn until(&self, is_so: impl Fn(&Stats) -> bool) -> Stats {
        loop {
            let stats = self.stats();
            if is_so(&stats) {
                return stats;
            }
            std::thread::yield_now();
        }
    }

    /// A connection whose target reads nothing: where all is spliced, it holds a pipe for as long as
    /// both ends are there.
    pub(crate) fn stall(&self, target: &TcpListener) -> [TcpStream; 2] {
        let mut near = self.connect();
        let mut far = target.accept().unwrap().0;
        near.set_nonblocking(true).unwrap();
        let (mut looks, mut others) = (0, 0);
        // The pipe of a burst is not it: thousands of looks find it lent.
        while looks < 5000 {
            let is_stalled = near.write(&[1; 65_536]).is_err() && self.stats().pipes.leased == 1;
            looks = if is_stalled { looks + 1 } else { 0 };
            others += u32::from(!is_stalled);
            // It may have handed on all it had with the last room there was.
            if others == 20_000 {
                others = 0;
                far.read_exact(&mut [0; 65_536]).unwrap();
            }
            std::thread::yield_now();
        }
        [near, far]
    }

    /// Lets connections end, and tells what was done.
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
