//! Reading ahead past the page cache: the next window of a file comes in while this one is
//! looked at.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SendError, Sender, channel};
use std::thread;

use haul_disk::{AlignedBuf, File, PAGE_BYTES, read_full};
use parking_lot::Mutex;

use crate::error::{Error, Result};

/// How much is read at a time.
pub(crate) const FEED_BYTES: usize = 2 << 20;

/// Room in front of what is read, for the beginning of a record that ends in the next window.
pub(crate) const HEADROOM_BYTES: usize = 512 << 10;

/// How many windows there are: one looked at, one ready, one on its way.
const WINDOWS: usize = 3;

/// How many unused ones are kept.
const WINDOWS_KEPT_MAX: usize = 16;

/// Some bytes of a file, in memory.
#[derive(Debug, Default)]
pub(crate) struct Window {
    memory: AlignedBuf,
    /// Where in the memory they begin.
    from: usize,
    /// Where in the file they begin.
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

    /// The bytes at `offset`, `bytes` of them unless the window ends before.
    pub(crate) fn get(&self, offset: u64, bytes: usize) -> &[u8] {
        let from = usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX);
        let from = from.min(self.bytes);
        let to = (from + bytes).min(self.bytes);
        &self.memory[self.from..][from..to]
    }

    /// Forgets what is at `end` of the file and behind.
    pub(crate) fn forget_from(&mut self, end: u64) {
        let known = usize::try_from(end.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.bytes = self.bytes.min(known);
    }

    /// Reads `bytes` at `start`, both whole pages, in the place of what it had.
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
        if self.memory.len() < headroom + bytes {
            self.memory = AlignedBuf::zeroed(headroom + bytes);
        }
        (self.from, self.start) = (headroom, start);
        self.bytes = read_pages(file, &mut self.memory[headroom..headroom + bytes], start)?;
        Ok(())
    }

    /// Puts the last `bytes` of the window before this one in front.
    fn put_in_front(&mut self, before: &Self, bytes: usize) {
        let carried = before.get(self.start - bytes as u64, bytes);
        self.memory[self.from - bytes..self.from].copy_from_slice(carried);
        self.from -= bytes;
        self.start -= bytes as u64;
        self.bytes += bytes;
    }
}

/// Reads until the buffer is full or the file ends, each time on from a whole page: past the page
/// cache anything else is refused.
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

/// Windows that are not in use, from one file to the next: fresh memory costs more than reading.
#[derive(Debug, Clone, Default)]
pub(crate) struct Windows(Arc<Mutex<Vec<Window>>>);

impl Windows {
    fn take(&self) -> Window {
        self.0.lock().pop().unwrap_or_default()
    }

    pub(crate) fn put(&self, window: Window) {
        let mut windows = self.0.lock();
        if windows.len() < WINDOWS_KEPT_MAX {
            windows.push(window);
        }
    }
}

/// A thread that reads the windows of a file in order. It ends with its file, or when nobody
/// wants them any more.
#[derive(Debug)]
pub(crate) struct Feeder {
    ready: Receiver<Result<Window>>,
    used: Sender<Window>,
    spare: Windows,
    /// Where the next window begins.
    next: u64,
    end: u64,
}

impl Feeder {
    /// Reads `file` from `start` to `end`, both whole pages. `None` where that is no more than a
    /// window, or no thread can be had.
    pub(crate) fn start(
        file: &Arc<dyn File>,
        start: u64,
        end: u64,
        spare: &Windows,
    ) -> Option<Self> {
        if end <= start + FEED_BYTES as u64 {
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
                let bytes = (end - at).min(FEED_BYTES as u64);
                let bytes = usize::try_from(bytes).unwrap_or(FEED_BYTES);
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

    /// Puts the window with the page at `start` in the place of `window`, if that is the next one,
    /// with what it needs of `window` in front. Whether it did.
    pub(crate) fn go_on(&mut self, window: &mut Window, start: u64) -> Result<bool> {
        while self.next < self.end {
            if start < self.next {
                let carried = usize::try_from(self.next - start).unwrap_or(usize::MAX);
                if carried > HEADROOM_BYTES || !window.has(start, carried) {
                    return Ok(false);
                }
            }
            let ended = || Error::Invalid("the thread that reads ahead ended early");
            let mut next = self.ready.recv().map_err(|_ended| ended())??;
            self.next += FEED_BYTES as u64;
            if start >= self.next {
                // Passed over: something longer than a window was read on its own.
                self.give_back(next);
                continue;
            }
            if start < next.start {
                let carried = usize::try_from(next.start - start).unwrap_or(usize::MAX);
                next.put_in_front(window, carried);
            }
            let done = std::mem::replace(window, next);
            self.give_back(done);
            return Ok(true);
        }
        Ok(false)
    }

    /// Takes a window back that is used no more.
    pub(crate) fn give_back(&self, window: Window) {
        // After its last window the thread is gone, and wants none back.
        if let Err(SendError(window)) = self.used.send(window) {
            self.spare.put(window);
        }
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.ready.try_iter().flatten().for_each(|window| self.spare.put(window));
    }
}

#[cfg(test)]
mod tests {
    use haul_disk::{Disk, Open, OsDisk, fill, write_full};

    use super::*;

    #[test]
    fn windows_come_in_order_with_what_they_need_of_the_one_before() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let disk = OsDisk::open(dir.path()).unwrap();
        let file = disk.create("file", Open::default()).unwrap();
        let end = 3 * FEED_BYTES as u64 + 8192;
        fill(&*file, end).unwrap();
        for page in 0..end / 4096 {
            write_full(&*file, &page.to_le_bytes(), page * 4096).unwrap();
        }
        let page_at = |window: &Window, start: u64| {
            assert!(window.has(start, 4096), "{start}");
            let bytes: [u8; 8] = window.get(start, 8).try_into().unwrap();
            u64::from_le_bytes(bytes) * 4096
        };
        let feed = FEED_BYTES as u64;
        let (mut feeder, mut window) =
            (Feeder::start(&file, 0, end, &Windows::default()).unwrap(), Window::default());
        for (start, has) in [
            (0, true),
            // A record over the edge, longer and shorter than the room in front.
            (feed - 2 * HEADROOM_BYTES as u64, false),
            (feed - 4096, true),
            // Over a whole window, as after a long record read on its own.
            (3 * feed, true),
            (3 * feed + 4096, false),
        ] {
            assert_eq!(feeder.go_on(&mut window, start).unwrap(), has, "{start}");
            assert_eq!(page_at(&window, start), start);
        }
        assert!(Feeder::start(&file, 0, feed, &Windows::default()).is_none());
    }
}
