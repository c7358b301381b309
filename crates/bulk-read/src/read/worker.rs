//! One thread that reads.

use std::os::fd::OwnedFd;

use haul_disk::{AlignedBuf, Op};
use rustix::io::{Errno, pread};

use super::open::Opener;
use super::plan::Item;
use super::team::{Queue, Run};
use super::{Consumer, Finished, Opened};
use crate::error::Error;
use crate::tree::FileId;

/// As much as stays in the processor's cache while it is hashed.
const PIECE_BYTES: usize = 256 << 10;

pub(super) struct Worker<'a, C: Consumer> {
    run: &'a Run<'a, C>,
    queue: &'a Queue,
    opener: Opener<'a>,
    buffer: AlignedBuf,
}

impl<'a, C: Consumer> Worker<'a, C> {
    pub(super) fn new(run: &'a Run<'a, C>, queue: &'a Queue) -> Self {
        let buffer = AlignedBuf::zeroed(PIECE_BYTES);
        Self { run, queue, opener: Opener::new(run.tree), buffer }
    }

    pub(super) fn run(mut self) {
        while let Some(portion) = self.queue.take() {
            let (mut good, mut failed, mut bytes) = (0, 0, 0);
            for item in portion {
                match self.read(item) {
                    Some(read) => (good, bytes) = (good + 1, bytes + read),
                    None => failed += 1,
                }
            }
            self.run.count(good, failed, bytes);
        }
    }

    /// Reads one want, and tells its end; how much it read, unless it failed.
    fn read(&mut self, item: &Item) -> Option<u64> {
        let (file, want) = (FileId(item.file), item.want as usize);
        if self.run.is_stopped() {
            let path = self.run.tree.path(file);
            self.run.consumer.end(None, want, Err(Error::Stopped { path }));
            return None;
        }
        match self.opener.open(file) {
            Err(error) => {
                self.run.consumer.end(None, want, Err(error));
                None
            }
            Ok((fd, opened)) => {
                let mut state = self.run.consumer.begin(want, &opened);
                let outcome = self.pieces(&fd, &opened, item, &mut state);
                let read = outcome.as_ref().ok().map(|finished| finished.bytes);
                self.run.consumer.end(Some(state), want, outcome);
                read
            }
        }
    }

    fn pieces(
        &mut self,
        fd: &OwnedFd,
        opened: &Opened,
        item: &Item,
        state: &mut C::State,
    ) -> Result<Finished, Error> {
        let (file, want) = (FileId(item.file), item.want as usize);
        let start = item.offset.min(opened.bytes);
        let asked = self.run.wants[want].bytes;
        let end = start.saturating_add(asked).min(opened.bytes);
        let mut at = start;
        let mut grew = false;
        while at < end {
            if self.run.is_stopped() {
                return Err(Error::Stopped { path: self.run.tree.path(file) });
            }
            let read = match pread(fd, &mut self.buffer[..], at) {
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(self.opener.failed(file, Op::Read, errno)),
                Ok(0) => {
                    let path = self.run.tree.path(file);
                    return Err(Error::Shrunk { path, opened_bytes: opened.bytes, end_bytes: at });
                }
                Ok(read) => read,
            };
            let room = usize::try_from(end - at).unwrap_or(usize::MAX);
            grew |= end == opened.bytes && read > room;
            let piece = &self.buffer[..read.min(room)];
            at += piece.len() as u64;
            if self.run.consumer.piece(state, want, piece).is_break() {
                break;
            }
        }
        Ok(Finished { bytes: at - start, grew })
    }
}
