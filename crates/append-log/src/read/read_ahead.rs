//! Implements readahead for direct I/O, which has none from the kernel: a thread reads a file's
//! next window while another thread decodes the current one.

use std::sync::Arc;

use haul_disk::{AlignedBuf, File, PAGE_BYTES, read_full};
use haul_sync::mpsc::{Receiver, SendError, Sender, channel};
use haul_sync::{Mutex, thread};

use crate::error::{Error, Result};

/// The number of bytes per read request.
pub(crate) const READ_AHEAD_BYTES: usize = 2 << 20;

/// The number of free bytes before a window's data, for the beginning of a record that ends in this
/// window.
pub(crate) const HEADROOM_BYTES: usize = 512 << 10;

/// A window's memory, in bytes, unless it was read for a longer record.
const WINDOW_BYTES: usize = HEADROOM_BYTES + READ_AHEAD_BYTES;

/// The number of windows per reader: one is being decoded, one is ready, one is being read.
const WINDOWS: usize = 3;

/// The maximum number of unused windows in the pool.
const POOLED_WINDOWS_MAX: usize = 16;

/// A file range held in memory.
#[derive(Debug, Default)]
pub(crate) struct Window {
    memory: AlignedBuf,
    /// The range's offset in `memory`.
    from: usize,
    /// The range's offset in the file.
    start: u64,
    bytes: usize,
}

impl Window {
    pub(crate) fn end(&self) -> u64 {
        self.start + self.bytes as u64
    }

    pub(crate) fn has(&self, offset: u64, bytes: usize) -> bool {
        offset >= self.start && offset + bytes as u64 <= self.end()
    }

    /// Returns `bytes` bytes at file offset `offset`, or fewer if the window ends before.
    pub(crate) fn get(&self, offset: u64, bytes: usize) -> &[u8] {
        let from = usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX);
        let from = from.min(self.bytes);
        let to = (from + bytes).min(self.bytes);
        &self.memory[self.from..][from..to]
    }

    /// Discards the bytes at and after file offset `end`.
    pub(crate) fn truncate(&mut self, end: u64) {
        let known = usize::try_from(end.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.bytes = self.bytes.min(known);
    }

    /// Reads `bytes` bytes at file offset `start` into the window. Both numbers must be multiples
    /// of the page length.
    pub(crate) fn read(&mut self, file: &dyn File, start: u64, bytes: usize) -> Result<()> {
        self.read_behind(0, file, start, bytes)
    }

    fn read_behind(
        &mut self,
        headroom: usize,
        file: &dyn File,
        start: u64,
        bytes: usize,
    ) -> Result<()> {
        let needed = headroom + bytes;
        // Memory for a long record is not kept for later reads.
        let is_oversized = self.memory.len() > WINDOW_BYTES && needed <= WINDOW_BYTES;
        if self.memory.len() < needed || is_oversized {
            self.memory = AlignedBuf::zeroed(needed);
        }
        (self.from, self.start) = (headroom, start);
        self.bytes = read_pages(file, &mut self.memory[headroom..headroom + bytes], start)?;
        Ok(())
    }

    /// Prepends the last `bytes` bytes of the previous window.
    fn prepend(&mut self, before: &Self, bytes: usize) {
        let carried = before.get(self.start - bytes as u64, bytes);
        self.memory[self.from - bytes..self.from].copy_from_slice(carried);
        self.from -= bytes;
        self.start -= bytes as u64;
        self.bytes += bytes;
    }
}

/// Reads until the buffer is full or the file ends. Each read begins at a page boundary, as direct
/// I/O requires.
fn read_pages(file: &dyn File, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        let read = file.read_some(&mut buffer[done..], offset + done as u64)?;
        let end = done + read;
        if read == 0 || offset + end as u64 >= file.bytes()? {
            return Ok(end);
        }
        if read < PAGE_BYTES {
            return Ok(done + read_full(file, &mut buffer[done..], offset + done as u64)?);
        }
        done = end - end % PAGE_BYTES;
    }
    Ok(done)
}

/// A pool of unused windows that several files' readers share, because allocating the memory takes
/// longer than reading into it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Windows(Arc<Mutex<Vec<Window>>>);

impl Windows {
    fn take(&self) -> Window {
        self.0.lock().pop().unwrap_or_default()
    }

    pub(crate) fn put(&self, window: Window) {
        let mut windows = self.0.lock();
        if windows.len() < POOLED_WINDOWS_MAX && window.memory.len() <= WINDOW_BYTES {
            windows.push(window);
        }
    }
}

/// A handle to a thread that reads a file window by window. The thread ends at the end of the
/// range, or when this handle is dropped.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    ready: Receiver<Result<Window>>,
    used: Sender<Window>,
    spare: Windows,
    /// The next window's file offset.
    next: u64,
    end: u64,
}

impl ReadAhead {
    /// Starts a thread that reads `file` from `start` to `end`, both multiples of the page length.
    /// Returns `None` if the range fits into one window or no thread can be created.
    pub(crate) fn start(
        file: &Arc<dyn File>,
        start: u64,
        end: u64,
        spare: &Windows,
    ) -> Option<Self> {
        if end <= start + READ_AHEAD_BYTES as u64 {
            return None;
        }
        let (ready_sender, ready) = channel();
        let (used, empty) = channel();
        for _ in 0..WINDOWS - 1 {
            used.send(spare.take()).ok()?;
        }
        let (file, unused) = (Arc::clone(file), spare.clone());
        let read_all = move || {
            let mut at = start;
            for mut window in &empty {
                let bytes = (end - at).min(READ_AHEAD_BYTES as u64);
                let bytes = usize::try_from(bytes).unwrap_or(READ_AHEAD_BYTES);
                let read = window.read_behind(HEADROOM_BYTES, &*file, at, bytes);
                at += bytes as u64;
                if ready_sender.send(read.map(|()| window)).is_err() || at >= end {
                    break;
                }
            }
            empty.try_iter().for_each(|window| unused.put(window));
        };
        thread::Builder::new().name("log-read-ahead".to_owned()).spawn(read_all).ok()?;
        Some(Self { ready, used, spare: spare.clone(), next: start, end })
    }

    /// Replaces `window` by the window that contains the page at `start`. If `start` lies in the
    /// old window, replaces it by the next window, with the old bytes at and after `start`
    /// prepended: a record may begin in the old window and end in the next one. Returns `false` if
    /// these bytes are not all in the old window or are longer than the headroom, or if the thread
    /// has read all windows.
    pub(crate) fn advance(&mut self, window: &mut Window, start: u64) -> Result<bool> {
        while self.next < self.end {
            if start < self.next {
                let carried = usize::try_from(self.next - start).unwrap_or(usize::MAX);
                if carried > HEADROOM_BYTES || !window.has(start, carried) {
                    return Ok(false);
                }
            }
            let ended = || Error::Invalid("the readahead thread ended early");
            let mut next = self.ready.recv().map_err(|_ended| ended())??;
            self.next += READ_AHEAD_BYTES as u64;
            if start >= self.next {
                // The window is skipped: it lies in a record longer than a window, which was read
                // separately.
                self.release(next);
                continue;
            }
            if start < next.start {
                let carried = usize::try_from(next.start - start).unwrap_or(usize::MAX);
                next.prepend(window, carried);
            }
            let done = std::mem::replace(window, next);
            self.release(done);
            return Ok(true);
        }
        Ok(false)
    }

    /// Returns a window to the readahead thread or, if that thread has ended, to the pool of unused
    /// windows.
    pub(crate) fn release(&self, window: Window) {
        // Sending fails after the last window, because the thread has ended.
        if let Err(SendError(window)) = self.used.send(window) {
            self.spare.put(window);
        }
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.ready.try_iter().flatten().for_each(|window| self.spare.put(window));
    }
}

#[cfg(test)]
mod tests {
    use haul_disk::{Disk, Open, OsDisk, fill, write_full};

    use super::*;

    #[test]
    fn windows_arrive_in_order_with_prepended_bytes() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let disk = OsDisk::open(dir.path()).unwrap();
        let file = disk.create("file", Open::default()).unwrap();
        let end = 3 * READ_AHEAD_BYTES as u64 + 8192;
        fill(&*file, end).unwrap();
        for page in 0..end / 4096 {
            write_full(&*file, &page.to_le_bytes(), page * 4096).unwrap();
        }
        let page_at = |window: &Window, start: u64| {
            assert!(window.has(start, 4096), "{start}");
            let bytes: [u8; 8] = window.get(start, 8).try_into().unwrap();
            u64::from_le_bytes(bytes) * 4096
        };
        let feed = READ_AHEAD_BYTES as u64;
        let (mut read_ahead, mut window) =
            (ReadAhead::start(&file, 0, end, &Windows::default()).unwrap(), Window::default());
        for (start, has) in [
            (0, true),
            // A record extends over two windows. In the first case, its part in the first window is
            // longer than the headroom, in the second case shorter.
            (feed - 2 * HEADROOM_BYTES as u64, false),
            (feed - 4096, true),
            // A window is skipped, as after a long record that was read separately.
            (3 * feed, true),
            (3 * feed + 4096, false),
        ] {
            assert_eq!(read_ahead.advance(&mut window, start).unwrap(), has, "{start}");
            assert_eq!(page_at(&window, start), start);
        }
        assert!(ReadAhead::start(&file, 0, feed, &Windows::default()).is_none());
    }
}
