//! Loads files: starts readahead of several pieces (parts of files), and waits for the oldest.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use haul_disk::{Error, Op, Residency, resident, warm};
use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, pread};

use crate::counts::page_bytes;
use crate::events::WarmEvents;
use crate::files::{FoundFile, open_quietly};

/// The number of bytes of a [`Piece`], the part of a file whose readahead is started at a time.
const STEP_BYTES: u64 = 1 << 20;
/// The maximum number of bytes in flight per reader. With small files, `AHEAD_PIECES`, the maximum
/// number of pieces in flight, is reached first.
const AHEAD_BYTES: u64 = 16 << 20;
const AHEAD_PIECES: usize = 64;
/// The length in bytes of the readahead requests into which [`warm`] splits a piece. A reader waits
/// for each request by reading its last byte.
const WAIT_BYTES: u64 = 128 << 10;

/// A reader that keeps readahead requests of one or several files in flight.
pub(crate) struct Reader<'a> {
    events: &'a dyn WarmEvents,
    in_flight: VecDeque<Piece>,
    ahead_bytes: u64,
}

/// A part of a file whose readahead has been started.
struct Piece {
    file: Rc<(FoundFile, OwnedFd)>,
    offset: u64,
    bytes: u64,
    /// The number of bytes planned for the file, if this is the last piece of the file.
    ends: Option<u64>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(events: &'a dyn WarmEvents) -> Self {
        Self { events, in_flight: VecDeque::new(), ahead_bytes: 0 }
    }

    /// Starts the readahead of the first `bytes` bytes of a file. If too many pieces are in flight,
    /// waits for the oldest ones before.
    pub(crate) fn start(&mut self, found: FoundFile, bytes: u64) {
        if let Err(error) = self.read_ahead(found, bytes) {
            self.events.failed(&error);
        }
    }

    fn read_ahead(&mut self, found: FoundFile, end: u64) -> haul_disk::Result<()> {
        let fd = open_quietly(&found)?;
        // The reads that wait for a piece must not trigger additional readahead.
        fadvise(&fd, 0, None, Advice::Random)
            .map_err(|errno| Error::new(Op::Cache, &found.path, errno))?;
        let file = Rc::new((found, fd));
        let mut offset = 0;
        while offset < end {
            let bytes = STEP_BYTES.min(end - offset);
            while self.ahead_bytes + bytes > AHEAD_BYTES || self.in_flight.len() >= AHEAD_PIECES {
                self.wait_for_one();
            }
            warm(&file.1, offset, bytes)?;
            let ends = (offset + bytes == end).then_some(end);
            self.in_flight.push_back(Piece { file: Rc::clone(&file), offset, bytes, ends });
            self.ahead_bytes += bytes;
            offset += bytes;
        }
        Ok(())
    }

    /// Waits until all pieces are in the page cache.
    pub(crate) fn finish(&mut self) {
        while !self.in_flight.is_empty() {
            self.wait_for_one();
        }
    }

    fn wait_for_one(&mut self) {
        let Some(piece) = self.in_flight.pop_front() else { return };
        self.ahead_bytes -= piece.bytes;
        if let Err(error) = piece.wait() {
            self.events.failed(&error);
        } else if let Some(bytes) = piece.ends {
            self.events.file_read(bytes);
        }
    }
}

impl Piece {
    /// Waits until the piece is in the page cache, by reading the last byte of each readahead
    /// request.
    fn wait(&self) -> haul_disk::Result<()> {
        self.read_each(WAIT_BYTES)?;
        // If the kernel finds no free page at once, it leaves out the rest of a readahead.
        let is_missing = |found: Residency| found.resident_bytes < self.bytes;
        if resident(&self.file.1, self.offset, self.bytes).is_ok_and(is_missing) {
            self.read_each(page_bytes())?;
        }
        Ok(())
    }

    /// Reads the last byte of each part of this length.
    fn read_each(&self, part_bytes: u64) -> haul_disk::Result<()> {
        let mut at = self.offset;
        while at < self.offset + self.bytes {
            let end = (at + part_bytes).min(self.offset + self.bytes);
            match pread(&self.file.1, &mut [0], end - 1) {
                Ok(_) => at = end,
                Err(Errno::INTR) => {}
                Err(errno) => {
                    return Err(Error::new(Op::Read, &self.file.0.path, errno).at(end - 1, 1));
                }
            }
        }
        Ok(())
    }
}
