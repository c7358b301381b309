//! The next segment, made in the background before it is needed.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use haul_disk::{Disk, Op};

use crate::commit::{Next, Shared};
use crate::error::Error;
use crate::options::Options;
use crate::segment::Segment;

/// The thread that makes segments.
#[derive(Debug)]
pub(crate) struct Preparer {
    requests: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Preparer {
    pub(crate) fn start(
        disk: Arc<dyn Disk>,
        shared: Arc<Shared>,
        options: Options,
    ) -> std::io::Result<Self> {
        let (requests, received) = channel();
        let thread = thread::Builder::new()
            .name("log-prepare".to_owned())
            .spawn(move || run(&*disk, &shared, &options, &received))?;
        Ok(Self { requests: Some(requests), thread: Some(thread) })
    }

    /// Asks for a segment; the state says [`Next::Preparing`] already.
    pub(crate) fn request(&self) {
        if let Some(requests) = &self.requests {
            requests.send(()).expect("the thread ends only when this sender is dropped");
        }
    }

    /// Waits until the segment being made is done, and ends the thread.
    pub(crate) fn stop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn run(disk: &dyn Disk, shared: &Shared, options: &Options, requests: &Receiver<()>) {
    for () in requests {
        let made = Segment::create_next(disk, options);
        let mut state = shared.state.lock();
        state.next = match made {
            Ok(segment) => Next::Ready(Arc::new(segment)),
            // Which names survive a crash is known no more, and asking again proves nothing.
            Err(Error::Disk(error)) if error.op == Op::SyncDir => {
                state.latched = Some(Arc::new(error));
                Next::Unasked
            }
            Err(error) if state.waiting_for_next > 0 => Next::Failed(error),
            // Asked for in time, but not needed yet: whoever needs it asks again.
            Err(_) => Next::Unasked,
        };
        drop(state);
        shared.room.notify_all();
        shared.done.notify_all();
    }
}
