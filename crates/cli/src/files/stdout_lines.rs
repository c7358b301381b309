//! Lines to stdout from threads that must not wait for whoever reads it.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use haul_file_server::Lines;
use parking_lot::{Condvar, Mutex};

use crate::output::unwritten;
use crate::report::{Result, say};

/// Lines that wait; more are dropped, and counted.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// How long a line may wait for others to be written with.
const LATE: Duration = Duration::from_millis(100);

/// A buffer, and a thread that writes it.
pub(super) struct StdoutLines {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<io::Result<()>>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    dropped: u64,
    is_over: bool,
}

impl StdoutLines {
    pub(super) fn start() -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let writer = Arc::clone(&shared);
        let thread = thread::Builder::new().name("access-log".into());
        let thread = thread.spawn(move || writer.write())?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Writes what waits, and tells what was lost.
    pub(super) fn close(&self) -> Result {
        self.shared.state.lock().is_over = true;
        self.shared.changed.notify_all();
        let written = self.thread.lock().take().and_then(|thread| thread.join().ok());
        let dropped = self.shared.state.lock().dropped;
        if dropped > 0 {
            say(&format!("{dropped} lines of the access log were dropped"));
        }
        written.unwrap_or(Ok(())).map_err(unwritten)
    }
}

impl Lines for StdoutLines {
    fn append(&self, line: &[u8]) {
        let mut state = self.shared.state.lock();
        if state.is_over || state.waiting.len() + line.len() > WAITING_BYTES_MAX {
            state.dropped += 1;
            return;
        }
        let was_empty = state.waiting.is_empty();
        state.waiting.extend_from_slice(line);
        drop(state);
        if was_empty {
            self.shared.changed.notify_all();
        }
    }
}

impl Shared {
    fn write(&self) -> io::Result<()> {
        let mut taken = Vec::new();
        loop {
            let mut state = self.state.lock();
            while state.waiting.is_empty() && !state.is_over {
                self.changed.wait(&mut state);
            }
            if !state.is_over {
                // Others come soon, and are written with it.
                self.changed.wait_for(&mut state, LATE);
            }
            let is_over = state.is_over;
            taken.clear();
            std::mem::swap(&mut state.waiting, &mut taken);
            drop(state);
            let mut stdout = io::stdout().lock();
            if let Err(error) = stdout.write_all(&taken).and_then(|()| stdout.flush()) {
                // Nobody reads any more: the server goes on, and counts.
                self.state.lock().is_over = true;
                return Err(error);
            }
            if is_over {
                return Ok(());
            }
        }
    }
}
