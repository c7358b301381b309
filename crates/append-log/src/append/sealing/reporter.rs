//! Calls the caller's hook for each sealed segment, on a thread of its own.

use std::sync::Arc;

use haul_sync::thread::{self, JoinHandle};

use crate::append::commit::Shared;
use crate::append::wakers::contain_panic;
use crate::format::HEADER_BYTES;
use crate::lsn::Lsn;
use crate::seal_hook::{SealHook, SealedSegment};
use crate::segments::sealed::SealedQueue;
use crate::segments::{Segment, Segments};

/// The handle of the thread that calls the hook; empty if there is no hook.
#[derive(Debug, Default)]
pub(crate) struct SealReporter {
    thread: Option<JoinHandle<()>>,
}

impl SealReporter {
    /// Starts the thread if there is a hook. The thread first reports the segments of `recovered`
    /// before the one with the number `current`.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        hook: Option<SealHook>,
        recovered: &Segments,
        current: u32,
    ) -> std::io::Result<Self> {
        let Some(hook) = hook else { return Ok(Self::default()) };
        let queue = shared.sealed.open();
        recovered.range(..current).for_each(|(_, segment)| shared.sealed.push(segment));
        let shared = Arc::clone(shared);
        let report_all = move || {
            for segment in queue {
                if shared.has(&segment) {
                    contain_panic(|| hook.call(&sealed(&segment)));
                }
            }
        };
        let thread = thread::Builder::new().name("log-sealed".to_owned()).spawn(report_all)?;
        Ok(Self { thread: Some(thread) })
    }

    /// Waits until the hook was called for all segments in the queue, and ends the thread.
    pub(crate) fn finish(&mut self, queue: &SealedQueue) {
        queue.close();
        let Some(thread) = self.thread.take() else { return };
        // A hook that owns the log may drop it on this thread, which cannot join itself.
        if thread.thread().id() != thread::current().id() {
            drop(thread.join());
        }
    }
}

impl Shared {
    /// `true` if the segment was not removed.
    fn has(&self, segment: &Segment) -> bool {
        let segments = self.segments.read();
        segments.get(&segment.number).is_some_and(|other| other.salt == segment.salt)
    }
}

fn sealed(segment: &Segment) -> SealedSegment {
    SealedSegment {
        number: segment.number,
        file: segment.path.clone(),
        bytes: segment.bytes,
        first: Lsn::new(segment.number, HEADER_BYTES),
        end: Lsn::new(segment.number, segment.end()),
    }
}
