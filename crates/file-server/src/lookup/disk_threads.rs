//! Threads that may wait for a disk, so that the serving threads never do.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread;

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Result};

/// The number of small jobs that are run before a big one that waits.
const SMALL_IN_ROW: u32 = 16;

/// The number of big jobs from which on those of closed connections are removed.
const SWEEP_MIN: usize = 256;

/// A few threads with two queues: lookups and small reads precede the reads of downloads, so that a
/// request for a small file does not wait for all downloads; but downloads make progress, too.
///
/// Jobs of closed connections are not run. The queue of small jobs is limited: a request beyond the
/// limit is refused at once, because its client would give up before the job ran. Big jobs belong to
/// responses that have begun, and each connection has at most one.
#[derive(Debug)]
pub(crate) struct DiskThreads {
    shared: Arc<Shared>,
    small_max: usize,
}

/// The error of a job for which the queue has no room.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QueueFull;

/// Counters of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DiskStats {
    pub(crate) queued: usize,
    /// Jobs for which the queue had no room.
    pub(crate) refused: u64,
    /// Jobs whose connections were closed.
    pub(crate) dropped: u64,
}

struct Job {
    /// Dropped when no connection waits for the job any more; `None`: the job is always run.
    interest: Option<Weak<()>>,
    work: Box<dyn FnOnce() + Send>,
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
    /// The number of small jobs since the last big one.
    small_in_row: u32,
    /// The number of big jobs at which those of closed connections are removed next.
    sweep_at: usize,
    refused: u64,
    dropped: u64,
    is_stopped: bool,
}

impl std::fmt::Debug for Queues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} small, {} big", self.small.len(), self.big.len())
    }
}

impl Job {
    fn is_needed(&self) -> bool {
        self.interest.as_ref().is_none_or(|interest| interest.strong_count() > 0)
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

    /// Adds a big job; returns those of closed connections, if they may be many.
    fn push_big(&mut self, job: Job) -> VecDeque<Job> {
        let mut left = VecDeque::new();
        if self.big.len() >= self.sweep_at.max(SWEEP_MIN) {
            let all = std::mem::take(&mut self.big);
            (self.big, left) = all.into_iter().partition(Job::is_needed);
            self.dropped += left.len() as u64;
            self.sweep_at = self.big.len() * 2;
        }
        self.big.push_back(job);
        left
    }
}

impl DiskThreads {
    /// Starts `count` threads, with a queue of `small_max` small jobs.
    pub(crate) fn start(count: usize, small_max: usize) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let started = Self { shared, small_max };
        for _ in 0..count.max(1) {
            let shared = Arc::clone(&started.shared);
            let thread = thread::Builder::new().name("files-disk".to_owned());
            // If this fails, the other threads end when `started` is dropped.
            thread.spawn(move || shared.work()).map_err(Error::Thread)?;
        }
        Ok(started)
    }

    /// Queues a lookup or a small read, which is not run if `interest` is dropped before.
    ///
    /// # Errors
    /// If the queue is full; the job is dropped.
    pub(crate) fn submit_small(
        &self,
        interest: Option<Weak<()>>,
        job: impl FnOnce() + Send + 'static,
    ) -> Result<(), QueueFull> {
        let job = Job { interest, work: Box::new(job) };
        let mut queues = self.shared.queues.lock();
        if queues.small.len() >= self.small_max {
            queues.refused += 1;
            // Dropping it may notify other connections: not under the lock.
            drop(queues);
            drop(job);
            return Err(QueueFull);
        }
        queues.small.push_back(job);
        drop(queues);
        self.shared.work.notify_one();
        Ok(())
    }

    /// Queues a read for a response, which is not run if `interest` is dropped before.
    pub(crate) fn submit_big(&self, interest: Weak<()>, job: impl FnOnce() + Send + 'static) {
        let job = Job { interest: Some(interest), work: Box::new(job) };
        let mut queues = self.shared.queues.lock();
        let left = queues.push_big(job);
        drop(queues);
        self.shared.work.notify_one();
        // Without the lock: files are closed, which can take a while.
        drop(left);
    }

    pub(crate) fn stats(&self) -> DiskStats {
        let queues = self.shared.queues.lock();
        let queued = queues.small.len() + queues.big.len();
        DiskStats { queued, refused: queues.refused, dropped: queues.dropped }
    }
}

impl Shared {
    fn work(&self) {
        let mut queues = self.queues.lock();
        loop {
            if queues.is_stopped {
                return;
            }
            match queues.next() {
                Some(job) => {
                    let is_needed = job.is_needed();
                    queues.dropped += u64::from(!is_needed);
                    drop(queues);
                    if is_needed {
                        // A panic drops the job, which notifies its waiters; other jobs still need
                        // this thread.
                        drop(catch_unwind(AssertUnwindSafe(job.work)));
                    } else {
                        drop(job);
                    }
                    queues = self.queues.lock();
                }
                None => self.work.wait(&mut queues),
            }
        }
    }
}

impl Drop for DiskThreads {
    /// Drops the queued jobs, and does not wait for running ones: no connection needs them any more,
    /// and a disk that hangs must not keep the server from ending.
    fn drop(&mut self) {
        let mut queues = self.shared.queues.lock();
        queues.is_stopped = true;
        let left = (std::mem::take(&mut queues.small), std::mem::take(&mut queues.big));
        drop(queues);
        self.shared.work.notify_all();
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn job(interest: Option<Weak<()>>, work: impl FnOnce() + Send + 'static) -> Job {
        Job { interest, work: Box::new(work) }
    }

    /// Returns one thread that is busy until the sender is used or dropped.
    fn busy(small_max: usize) -> (DiskThreads, mpsc::Sender<()>) {
        let threads = DiskThreads::start(1, small_max).unwrap();
        let (release, wait) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        let work = move || {
            begin.send(()).unwrap();
            wait.recv().ok();
        };
        threads.submit_small(None, work).unwrap();
        begun.recv().unwrap();
        (threads, release)
    }

    #[test]
    fn small_jobs_precede_big_ones() {
        let (threads, release) = busy(10);
        let (sender, results) = mpsc::channel();
        let interest = Arc::new(());
        let big = sender.clone();
        threads.submit_big(Arc::downgrade(&interest), move || big.send("big").unwrap());
        threads.submit_small(None, move || sender.send("small").unwrap()).unwrap();
        drop(release);
        assert_eq!([results.recv().unwrap(), results.recv().unwrap()], ["small", "big"]);
    }

    #[test]
    fn big_jobs_run_among_many_small_ones() {
        let mut queues = Queues::default();
        let (sender, results) = mpsc::channel();
        for name in ["small"; 40] {
            let sender = sender.clone();
            queues.small.push_back(job(None, move || sender.send(name).unwrap()));
        }
        queues.big.push_back(job(None, move || sender.send("big").unwrap()));
        std::iter::from_fn(|| queues.next()).for_each(|job| (job.work)());
        let order: Vec<_> = results.iter().collect();
        assert_eq!(order.iter().position(|name| *name == "big"), Some(16));
        assert_eq!(order.len(), 41);
    }

    #[test]
    fn jobs_of_closed_connections_are_not_run() {
        let (threads, release) = busy(10);
        let (sender, results) = mpsc::channel();
        let (stays, goes) = (Arc::new(()), Arc::new(()));
        for (interest, name) in [(Some(&goes), "gone"), (Some(&stays), "stays"), (None, "always")] {
            let sender = sender.clone();
            threads
                .submit_small(interest.map(Arc::downgrade), move || sender.send(name).unwrap())
                .unwrap();
        }
        threads.submit_big(Arc::downgrade(&goes), move || sender.send("gone and big").unwrap());
        drop(goes);
        drop(release);
        assert_eq!(results.iter().collect::<Vec<_>>(), ["stays", "always"]);
        assert_eq!(threads.stats(), DiskStats { dropped: 2, ..DiskStats::default() });
    }

    #[test]
    fn full_queue_refuses_small_jobs_until_it_has_room() {
        let (threads, release) = busy(2);
        let (sender, results) = mpsc::channel();
        let submit = || {
            let sender = sender.clone();
            threads.submit_small(None, move || sender.send(()).unwrap())
        };
        assert_eq!([submit(), submit(), submit()], [Ok(()), Ok(()), Err(QueueFull)]);
        assert_eq!(threads.stats(), DiskStats { queued: 2, refused: 1, dropped: 0 });
        drop(release);
        results.recv().unwrap();
        assert_eq!(submit(), Ok(()));
    }

    #[test]
    fn drop_waits_for_no_job_and_drops_queued_ones() {
        let (threads, release) = busy(10);
        let (sender, results) = mpsc::channel();
        threads.submit_small(None, move || sender.send(()).unwrap()).unwrap();
        drop(threads);
        assert_eq!(results.recv(), Err(mpsc::RecvError));
        // The job has run until now.
        release.send(()).unwrap();
    }

    #[test]
    fn panic_of_a_job_does_not_end_its_thread() {
        let threads = DiskThreads::start(1, 10).unwrap();
        let (sender, results) = mpsc::channel();
        threads.submit_small(None, || std::panic::resume_unwind(Box::new("as tested"))).unwrap();
        threads.submit_small(None, move || sender.send(()).unwrap()).unwrap();
        assert_eq!(results.recv(), Ok(()));
    }

    #[test]
    fn big_jobs_of_closed_connections_do_not_accumulate() {
        let mut queues = Queues::default();
        let stay: Vec<_> = (0..300).map(|_| Arc::new(())).collect();
        let mut longest = 0;
        for number in 0..10_000 {
            let interest = stay.get(number).map_or_else(Weak::new, Arc::downgrade);
            queues.push_big(job(Some(interest), || {}));
            longest = longest.max(queues.big.len());
        }
        assert!(longest <= 601, "{longest}");
        let wanted = queues.big.iter().filter(|job| job.is_needed()).count();
        assert_eq!(wanted, 300);
    }
}
