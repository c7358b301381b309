//! Starts and stops the thread of the endpoint.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use haul_reactor::{Address, AdmissionLimit, Handle, Listener, Reactor, TcpOptions};

use crate::StatusSource;
use crate::client::AdminService;
use crate::history::History;
use crate::response::Pages;
use crate::sampler::Sampler;

/// The maximum number of open connections; further connections wait in the kernel's accept queue.
pub const CONNECTIONS_MAX: usize = 256;

/// The maximum number of connections in the accept queue.
const BACKLOG: i32 = 1024;

/// A metrics and health endpoint and its threads. Dropping an `Admin` closes the endpoint.
#[derive(Debug)]
pub struct Admin {
    address: Address,
    reactor: Handle,
    thread: Option<JoinHandle<()>>,
    /// Ends its thread when it is dropped.
    sampler: Option<Sampler>,
}

impl Admin {
    /// Listens at an address and starts the thread.
    ///
    /// # Errors
    /// Fails if the address is in use or invalid, or the kernel cannot create a thread.
    pub fn bind(address: &Address, source: impl StatusSource) -> io::Result<Self> {
        let listener = Listener::bind(address, TcpOptions::default(), BACKLOG)?;
        let address = listener.address().clone();
        let limit = AdmissionLimit::new(CONNECTIONS_MAX);
        let (source, start) = (Arc::new(source), Instant::now());
        let first = source.overview();
        let history = first.as_ref().map(|overview| Arc::new(History::new(overview)));
        let pages = Pages { source: Arc::clone(&source), history: history.clone(), start };
        let service = AdminService::new(pages, limit.clone(), CONNECTIONS_MAX);
        let reactor = Reactor::new(service, vec![listener], limit)?;
        let handle = reactor.handle();
        // An error is dropped: if `epoll_wait` fails, the endpoint closes, and health checks then
        // fail.
        let run = move || drop(reactor.run());
        let thread = thread::Builder::new().name("admin".to_owned()).spawn(run)?;
        let mut admin = Self { address, reactor: handle, thread: Some(thread), sampler: None };
        if let (Some(history), Some(first)) = (history, first) {
            let read = move || source.overview().unwrap_or_else(|| first.clone());
            admin.sampler = Some(Sampler::start(history, start, read)?);
        }
        Ok(admin)
    }

    /// Returns the address at which the endpoint listens. If it was bound to port 0, the address
    /// contains the port that the kernel chose.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.sampler = None;
        self.reactor.stop();
        if let Some(thread) = self.thread.take() {
            // An error means that the status source panicked. It is ignored, because the panic hook
            // has already reported it.
            drop(thread.join());
        }
    }
}
