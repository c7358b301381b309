//! The thread, and how it ends.

use std::io;
use std::thread::{self, JoinHandle};

use haul_reactor::{Address, Gate, Handle, Listener, Reactor, TcpOptions};

use crate::Told;
use crate::client::Telling;

/// How many may be connected at once; further ones wait in the kernel's queue.
pub const CONNECTIONS_MAX: usize = 256;

/// How many connections the kernel keeps until they are accepted.
const BACKLOG: i32 = 1024;

/// The address of metrics and health, and the thread behind it. Dropped, it ends.
#[derive(Debug)]
pub struct Admin {
    address: Address,
    reactor: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Admin {
    /// Listens, and answers from now on.
    ///
    /// # Errors
    /// When the address is taken or cannot be used, or the kernel gives no thread for it.
    pub fn bind(address: &Address, told: impl Told) -> io::Result<Self> {
        let listener = Listener::bind(address, TcpOptions::default(), BACKLOG)?;
        let address = listener.address().clone();
        let gate = Gate::new(CONNECTIONS_MAX);
        let reactor = Reactor::new(Telling::new(told, gate.clone()), vec![listener], gate)?;
        let handle = reactor.handle();
        // It fails when the kernel does not say any more what is ready. Then nobody is answered,
        // which whoever asks for health takes for what it is.
        let run = move || drop(reactor.run());
        let thread = thread::Builder::new().name("admin".to_owned()).spawn(run)?;
        Ok(Self { address, reactor: handle, thread: Some(thread) })
    }

    /// Where it listens: a port of 0 has become a free one.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.reactor.stop();
        if let Some(thread) = self.thread.take() {
            // Had the server panicked while it told of itself, others have told why.
            drop(thread.join());
        }
    }
}
