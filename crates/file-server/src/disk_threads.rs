//! Threads that may wait for a disk, so that the one that serves everybody never does.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Result};

type Job = Box<dyn FnOnce() + Send>;

/// A few threads with two queues: look-ups and small reads first, so that somebody who waits for a
/// page does not wait for everybody's downloads.
#[derive(Debug)]
pub(crate) struct DiskThreads {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    queues: Mutex<Queues>,
    work: Condvar,
}

#[derive(Default)]
struct Queues {
    small: VecDeque<Job>,
    big: VecDeque<Job>,
    is_over: bool,
}

impl std::fmt::Debug for Queues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} small, {} big", self.small.len(), self.big.len())
    }
}

/// Which queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Small,
    Big,
}

impl DiskThreads {
    pub(crate) fn start(count: usize) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let mut started = Self { shared, threads: Vec::new() };
        for _ in 0..count.max(1) {
            let shared = Arc::clone(&started.shared);
            let thread = thread::Builder::new().name("files-disk".to_owned());
            // Those that run already end when `started` is dropped.
            started.threads.push(thread.spawn(move || shared.work()).map_err(Error::Thread)?);
        }
        Ok(started)
    }

    /// Has `job` done, soon.
    pub(crate) fn hand(&self, size: Size, job: impl FnOnce() + Send + 'static) {
        let mut queues = self.shared.queues.lock();
        match size {
            Size::Small => queues.small.push_back(Box::new(job)),
            Size::Big => queues.big.push_back(Box::new(job)),
        }
        drop(queues);
        self.shared.work.notify_one();
    }
}

impl Shared {
    fn work(&self) {
        let mut queues = self.queues.lock();
        loop {
            if queues.is_over {
                return;
            }
            match queues.small.pop_front().or_else(|| queues.big.pop_front()) {
                Some(job) => {
                    drop(queues);
                    job();
                    queues = self.queues.lock();
                }
                None => self.work.wait(&mut queues),
            }
        }
    }
}

impl Drop for DiskThreads {
    /// Waits for what is under way; what was not begun is dropped.
    fn drop(&mut self) {
        self.shared.queues.lock().is_over = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // Had a job panicked, its connection has waited in vain, and is closed with the rest.
            drop(thread.join());
        }
        let mut queues = self.shared.queues.lock();
        queues.small.clear();
        queues.big.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn small_jobs_go_before_big_ones() {
        let threads = DiskThreads::start(1).unwrap();
        let (release, wait) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        threads.hand(Size::Big, move || wait.recv().unwrap());
        for (size, name) in [(Size::Big, "big"), (Size::Small, "small")] {
            let tell = tell.clone();
            threads.hand(size, move || tell.send(name).unwrap());
        }
        release.send(()).unwrap();
        assert_eq!([told.recv().unwrap(), told.recv().unwrap()], ["small", "big"]);
    }
}
