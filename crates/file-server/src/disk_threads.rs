//! Threads that may wait for a disk, so that the one that serves everybody never does.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Result};

type Job = Box<dyn FnOnce() + Send>;

/// So many small jobs go before a big one that waits.
const SMALL_IN_ROW: u32 = 16;

/// A few threads with two queues: look-ups and small reads first, so that somebody who waits for a
/// page does not wait for everybody's downloads; but downloads go on, too.
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
    /// How many small jobs were taken since the last big one.
    small_in_row: u32,
    is_over: bool,
}

impl std::fmt::Debug for Queues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} small, {} big", self.small.len(), self.big.len())
    }
}

impl Queues {
    fn next(&mut self) -> Option<Job> {
        if (self.small_in_row < SMALL_IN_ROW || self.big.is_empty())
            && let Some(job) = self.small.pop_front()
        {
            self.small_in_row += 1;
            return Some(job);
        }
        self.small_in_row = 0;
        self.big.pop_front()
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
            match queues.next() {
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

    #[test]
    fn big_jobs_are_done_however_many_small_ones_come() {
        let mut queues = Queues::default();
        let (tell, told) = mpsc::channel();
        for name in ["small"; 40] {
            let tell = tell.clone();
            queues.small.push_back(Box::new(move || tell.send(name).unwrap()));
        }
        queues.big.push_back(Box::new(move || tell.send("big").unwrap()));
        std::iter::from_fn(|| queues.next()).for_each(|job| job());
        let order: Vec<_> = told.iter().collect();
        assert_eq!(order.iter().position(|name| *name == "big"), Some(16));
        assert_eq!(order.len(), 41);
    }
}
