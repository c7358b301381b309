//! The thread that records the history of a server.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crate::history::{History, SAMPLE_TIME};
use crate::overview::Overview;

/// A thread that adds the values of a server to a [`History`] every ten seconds. Dropping a
/// `Sampler` ends the thread.
#[derive(Debug)]
pub struct Sampler {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Starts the thread. `start` is the time from which the history counts, and `read` returns the
    /// current values.
    ///
    /// # Errors
    /// Fails if the kernel cannot create a thread.
    pub fn start(
        history: Arc<History>,
        start: Instant,
        read: impl Fn() -> Overview + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let run = move || {
            while stopped.recv_timeout(SAMPLE_TIME) == Err(RecvTimeoutError::Timeout) {
                history.record(start.elapsed(), &read());
            }
        };
        let thread = thread::Builder::new().name("history".to_owned()).spawn(run)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // An error means that `read` panicked, which the panic hook has already reported.
            drop(thread.join());
        }
    }
}
