//! Lines to stdout from threads that must not wait for whoever reads it.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use haul_file_server::Lines;
use parking_lot::{Condvar, Mutex};

use crate::output::unwritten;
use crate::report::{Result, say_if_room};

/// Lines that wait; more are dropped, and counted.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// How long a line may wait for others to be written with.
const LATE: Duration = Duration::from_millis(100);

/// How long the end of the server may wait for whoever reads.
const CLOSE_TIME: Duration = Duration::from_secs(1);

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
    /// Lines that the thread writes at the moment.
    in_hand: u64,
    dropped: u64,
    is_over: bool,
    /// The thread writes nothing more.
    has_ended: bool,
}

impl StdoutLines {
    pub(super) fn start() -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let writer = Arc::clone(&shared);
        let thread = thread::Builder::new().name("access-log".into());
        let thread = thread.spawn(move || writer.write())?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Writes what waits, and tells what was lost. Where nobody reads, it does not wait for long,
    /// and leaves the thread to the end of the process.
    pub(super) fn close(&self) -> Result {
        let mut state = self.shared.state.lock();
        state.is_over = true;
        self.shared.changed.notify_all();
        let until = Instant::now() + CLOSE_TIME;
        while !state.has_ended && !self.shared.changed.wait_until(&mut state, until).timed_out() {}
        let has_ended = state.has_ended;
        if !has_ended {
            state.dropped += state.in_hand + lines(&state.waiting);
        }
        let dropped = state.dropped;
        drop(state);
        let thread = self.thread.lock().take().filter(|_| has_ended);
        let written = thread.and_then(|thread| thread.join().ok());
        if dropped > 0 {
            say_if_room(&format!("{dropped} lines of the access log were dropped"));
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

fn lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

impl Shared {
    fn write(&self) -> io::Result<()> {
        let written = self.write_on();
        let mut state = self.state.lock();
        if written.is_err() {
            // Nobody reads any more: the server goes on, and counts.
            state.is_over = true;
            state.dropped += state.in_hand + lines(&state.waiting);
            state.waiting.clear();
        }
        state.has_ended = true;
        self.changed.notify_all();
        written
    }

    fn write_on(&self) -> io::Result<()> {
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
            state.in_hand = lines(&taken);
            drop(state);
            let mut stdout = io::stdout().lock();
            stdout.write_all(&taken).and_then(|()| stdout.flush())?;
            if is_over {
                return Ok(());
            }
        }
    }
}
