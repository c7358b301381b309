//! A thread that writes one buffer of a big object while the caller fills the other one.

use std::sync::Arc;

use haul_disk::{AlignedBuf, File, write_full};
use haul_sync::mpsc::{Receiver, SyncSender, sync_channel};
use haul_sync::thread::{self, JoinHandle};

use crate::error::{Error, Result};

/// The length of each of the two buffers.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;

/// The thread. Dropping this value waits for the write in progress.
#[derive(Debug)]
pub(crate) struct WriterThread {
    to_write: Option<SyncSender<(AlignedBuf, u64, usize)>>,
    written: Receiver<haul_disk::Result<AlignedBuf>>,
    thread: Option<JoinHandle<()>>,
}

impl WriterThread {
    pub(crate) fn start(file: Arc<dyn File>) -> Result<Self> {
        let (to_write, incoming) = sync_channel::<(AlignedBuf, u64, usize)>(1);
        let (done, written) = sync_channel(2);
        // The second buffer is in the channel from the start.
        let second = done.send(Ok(AlignedBuf::zeroed(BUFFER_BYTES)));
        second.expect("the receiver is alive");
        let carry = move || {
            for (buffer, offset, bytes) in incoming {
                let outcome = write_full(&*file, &buffer[..bytes], offset).map(|()| buffer);
                let failed = outcome.is_err();
                if done.send(outcome).is_err() || failed {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("store-big-write".to_owned()).spawn(carry);
        let thread = thread.map_err(|source| {
            Error::Disk(haul_disk::Error::new(haul_disk::Op::Write, "(a thread)", source))
        })?;
        Ok(Self { to_write: Some(to_write), written, thread: Some(thread) })
    }

    /// Passes a full buffer to the thread and waits for an empty one. After an error, every call
    /// fails.
    pub(crate) fn exchange(
        &self,
        buffer: AlignedBuf,
        offset: u64,
        bytes: usize,
    ) -> Result<AlignedBuf> {
        let empty = self.next_written()?;
        let sent = self.to_write.as_ref().map(|to_write| to_write.send((buffer, offset, bytes)));
        match sent {
            Some(Ok(())) => Ok(empty),
            // The thread has ended. Its last message is the error.
            _ => self.next_written(),
        }
    }

    fn next_written(&self) -> Result<AlignedBuf> {
        match self.written.recv() {
            Ok(outcome) => Ok(outcome?),
            Err(_ended) => Err(failed_before()),
        }
    }

    /// Waits until all buffers are written.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.stop();
        let outcomes: haul_disk::Result<Vec<_>> = self.written.iter().collect();
        outcomes?;
        Ok(())
    }

    fn stop(&mut self) {
        self.to_write = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) fn failed_before() -> Error {
    Error::Invalid { what: "an earlier write of this object failed".to_owned() }
}
