//! Writes lines to a stream without blocking the threads that log them.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// The maximum number of buffered bytes. Lines beyond it are dropped and counted.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// The time that the first line in the buffer waits for further lines, to be written together with
/// them.
const BATCH_DELAY: Duration = Duration::from_millis(100);

/// The maximum time that [`LineQueue::close`] waits until the buffered lines are written.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// A buffer of lines and a thread that writes them to a stream, such as stdout.
///
/// Lines wait up to 100 ms in the buffer, to be written together. The buffer holds at most 8 MiB;
/// lines beyond this are dropped and counted.
#[derive(Debug)]
pub struct LineQueue {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<io::Result<()>>>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<u8>,
    /// The number of lines that the thread is writing.
    in_flight: u64,
    dropped: u64,
    is_closing: bool,
    /// `true` if the thread has ended, or is about to end, and writes no more lines.
    is_finished: bool,
}

impl LineQueue {
    /// Starts the writing thread with the name `name`.
    ///
    /// # Errors
    /// Returns the error of the system if the thread cannot be started.
    pub fn start(name: &str, output: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let writer = Arc::clone(&shared);
        let thread = thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || writer.run(output))?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Appends a line, with its newline, to the buffer. Drops the line if the buffer is full or the
    /// queue is closed.
    pub fn append(&self, line: &[u8]) {
        let mut state = self.shared.state.lock();
        if state.is_closing || state.waiting.len() + line.len() > WAITING_BYTES_MAX {
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

    /// Waits until the buffered lines are written. Returns the number of dropped lines and the
    /// result of writing. If the stream does not accept the lines within one second, the call
    /// counts them as dropped and returns; the thread then continues until the process ends.
    pub fn close(&self) -> (u64, io::Result<()>) {
        let mut state = self.shared.state.lock();
        state.is_closing = true;
        self.shared.changed.notify_all();
        let until = Instant::now() + CLOSE_TIME;
        while !state.is_finished && !self.shared.changed.wait_until(&mut state, until).timed_out() {
        }
        let is_finished = state.is_finished;
        if !is_finished {
            state.dropped += state.in_flight + lines(&state.waiting);
        }
        let dropped = state.dropped;
        drop(state);
        let thread = self.thread.lock().take().filter(|_| is_finished);
        let written = thread.and_then(|thread| thread.join().ok());
        (dropped, written.unwrap_or(Ok(())))
    }
}

fn lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

impl Shared {
    fn run(&self, output: impl Write) -> io::Result<()> {
        let written = self.write_batches(output);
        let mut state = self.state.lock();
        if written.is_err() {
            // The stream accepts no more lines. The program continues, and all further lines are
            // counted as dropped.
            state.is_closing = true;
            state.dropped += state.in_flight + lines(&state.waiting);
            state.waiting.clear();
        }
        state.is_finished = true;
        self.changed.notify_all();
        written
    }

    fn write_batches(&self, mut output: impl Write) -> io::Result<()> {
        let mut batch = Vec::new();
        loop {
            let mut state = self.state.lock();
            while state.waiting.is_empty() && !state.is_closing {
                self.changed.wait(&mut state);
            }
            if !state.is_closing {
                self.changed.wait_for(&mut state, BATCH_DELAY);
            }
            let is_closing = state.is_closing;
            batch.clear();
            std::mem::swap(&mut state.waiting, &mut batch);
            state.in_flight = lines(&batch);
            drop(state);
            output.write_all(&batch).and_then(|()| output.flush())?;
            if is_closing {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An output that appends to a shared buffer, or fails.
    struct Output(Option<Arc<Mutex<Vec<u8>>>>);

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let Some(written) = &self.0 else { return Err(io::ErrorKind::BrokenPipe.into()) };
            written.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_are_written_in_order_before_close_returns() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let queue = LineQueue::start("test", Output(Some(Arc::clone(&written)))).unwrap();
        let expected: Vec<u8> = (0..1000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        expected.split_inclusive(|byte| *byte == b'\n').for_each(|line| queue.append(line));
        let (dropped, result) = queue.close();
        assert!(result.is_ok() && dropped == 0, "{dropped} dropped: {result:?}");
        assert!(*written.lock() == expected);
    }

    #[test]
    fn lines_are_counted_as_dropped_if_the_output_fails() {
        let queue = LineQueue::start("test", Output(None)).unwrap();
        queue.append(b"a\nb\n");
        let (dropped, result) = queue.close();
        assert_eq!((dropped, result.is_err()), (2, true));
    }

    #[test]
    fn full_queue_drops_lines() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let queue = LineQueue::start("test", Output(Some(Arc::clone(&written)))).unwrap();
        let is_blocked = written.lock();
        queue.append(&vec![b'\n'; WAITING_BYTES_MAX + 1]);
        drop(is_blocked);
        assert_eq!(queue.close().0, 1);
    }
}
