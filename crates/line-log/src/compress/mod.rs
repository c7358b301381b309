//! Compresses closed files on a background thread of low priority.
//!
//! A file is compressed in numbered steps, so that a crash after any step leaves the file readable:
//! 1. The thread syncs the file, writes the compressed bytes to a temporary file and syncs it.
//! 2. The thread reads the temporary file back, and compares the bytes with those of the file.
//! 3. The thread renames the temporary file to its final name and syncs the directory.
//! 4. The thread that writes the log removes the file.
//!
//! After a crash before step 3, a temporary file may remain; after one before step 4, the file and
//! the compressed one. Opening the log removes both leftovers, and the file is compressed again.

mod file;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use haul_disk::Disk;
use parking_lot::{Condvar, Mutex};

use crate::names::Stamp;
use crate::options::Compression;
pub(crate) use file::Outcome;

/// The lowest priority of a thread. Unless set otherwise, the kernel derives the priority of I/O
/// from it.
const NICE: i32 = 19;

/// The thread that compresses files, and its queue.
#[derive(Debug)]
pub(crate) struct Compressor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// `true` if the active file is to be given up.
    is_cancelled: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Stamp>,
    active: Option<Stamp>,
    outcomes: Vec<(Stamp, Outcome)>,
    is_closing: bool,
}

/// A guard that notifies waiting threads when the compressing thread ends, also if it panics.
struct TerminationGuard(Arc<Shared>);

impl Drop for TerminationGuard {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.active = None;
        state.waiting.clear();
        state.is_closing = true;
        self.0.changed.notify_all();
    }
}

impl Compressor {
    /// Starts the thread. It calls `on_outcome` after each file, without holding a lock.
    pub(crate) fn start(
        disk: Arc<dyn Disk>,
        compression: Compression,
        on_outcome: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let guard = TerminationGuard(Arc::clone(&shared));
        let thread = thread::Builder::new().name("line-log-zstd".to_owned()).spawn(move || {
            // A failure is ignored: the priority then stays that of the process.
            rustix::process::setpriority_process(None, NICE).ok();
            guard.0.run(&*disk, compression, &on_outcome);
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Appends a file to the queue.
    pub(crate) fn add(&self, stamp: Stamp) {
        let mut state = self.shared.state.lock();
        if !state.is_closing {
            state.waiting.push_back(stamp);
            self.shared.changed.notify_all();
        }
    }

    /// Stops the compression of a file, and waits until the thread has closed the file.
    pub(crate) fn cancel(&self, stamp: Stamp) {
        let mut state = self.shared.state.lock();
        state.waiting.retain(|waiting| *waiting != stamp);
        while state.active == Some(stamp) {
            self.shared.is_cancelled.store(true, Ordering::Release);
            self.shared.changed.wait(&mut state);
        }
    }

    /// Returns the files that are done since the last call, with the outcome of each.
    pub(crate) fn take_outcomes(&self) -> Vec<(Stamp, Outcome)> {
        std::mem::take(&mut self.shared.state.lock().outcomes)
    }

    /// `true` if a file waits, is being compressed, or has an outcome that was not taken.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.shared.state.lock();
        !state.waiting.is_empty() || state.active.is_some() || !state.outcomes.is_empty()
    }

    /// Stops the compression of the active file, and waits until the thread has ended.
    pub(crate) fn stop(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_closing = true;
        state.waiting.clear();
        self.shared.is_cancelled.store(true, Ordering::Release);
        self.shared.changed.notify_all();
        drop(state);
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, its file stays as it is.
            drop(thread.join());
        }
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn run(&self, disk: &dyn Disk, compression: Compression, on_outcome: &dyn Fn()) {
        let is_cancelled = || self.is_cancelled.load(Ordering::Acquire);
        while let Some(stamp) = self.next() {
            let outcome = file::compress(disk, stamp, compression, &is_cancelled);
            let mut state = self.state.lock();
            state.active = None;
            state.outcomes.push((stamp, outcome));
            self.changed.notify_all();
            drop(state);
            on_outcome();
        }
    }

    /// Waits for a file, and makes it the active one. Returns `None` if the log is closing.
    fn next(&self) -> Option<Stamp> {
        let mut state = self.state.lock();
        loop {
            if state.is_closing {
                return None;
            }
            if let Some(stamp) = state.waiting.pop_front() {
                self.is_cancelled.store(false, Ordering::Release);
                state.active = Some(stamp);
                return Some(stamp);
            }
            self.changed.wait(&mut state);
        }
    }
}
