//! Threads that may wait for a disk, so that the one that serves everybody never does.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread;

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Result};

/// So many small jobs go before a big one that waits.
const SMALL_IN_ROW: u32 = 16;

/// Among fewer big jobs nobody looks for those whose clients are gone.
const SWEEP_MIN: usize = 256;

/// A few threads with two queues: look-ups and small reads first, so that somebody who waits for a
/// page does not wait for everybody's downloads; but downloads go on, too.
///
/// What nobody waits for any more is not done. Of the small ones only so many may wait: a request
/// beyond that had better be answered now, in the negative, than when its client has given up. Big
/// ones belong to answers that have begun, and there is one at most for each connection.
#[derive(Debug)]
pub(crate) struct DiskThreads {
    shared: Arc<Shared>,
    small_max: usize,
}

/// There are enough jobs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// What waits, and what was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DiskStats {
    pub(crate) waiting: usize,
    /// For want of room.
    pub(crate) refused: u64,
    /// Since nobody waited for them any more.
    pub(crate) dropped: u64,
}

struct Job {
    /// Gone when nobody waits for it any more; without one it is done in any case.
    asker: Option<Weak<()>>,
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
    /// How many small jobs were taken since the last big one.
    small_in_row: u32,
    /// How many big ones there are when those that nobody waits for are thrown out next.
    sweep_at: usize,
    refused: u64,
    dropped: u64,
    is_over: bool,
}

impl std::fmt::Debug for Queues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} small, {} big", self.small.len(), self.big.len())
    }
}

impl Job {
    fn is_wanted(&self) -> bool {
        self.asker.as_ref().is_none_or(|asker| asker.strong_count() > 0)
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

    /// Adds a big job, and gives those that nobody waits for when they may have become many.
    fn push_big(&mut self, job: Job) -> VecDeque<Job> {
        let mut left = VecDeque::new();
        if self.big.len() >= self.sweep_at.max(SWEEP_MIN) {
            let all = std::mem::take(&mut self.big);
            (self.big, left) = all.into_iter().partition(Job::is_wanted);
            self.dropped += left.len() as u64;
            self.sweep_at = self.big.len() * 2;
        }
        self.big.push_back(job);
        left
    }
}

impl DiskThreads {
    /// So many threads, for which so many small jobs may wait.
    pub(crate) fn start(count: usize, small_max: usize) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let started = Self { shared, small_max };
        for _ in 0..count.max(1) {
            let shared = Arc::clone(&started.shared);
            let thread = thread::Builder::new().name("files-disk".to_owned());
            // Those that run already end when `started` is dropped.
            thread.spawn(move || shared.work()).map_err(Error::Thread)?;
        }
        Ok(started)
    }

    /// Has a look-up or a small read done, soon, unless `asker` is gone by then.
    ///
    /// # Errors
    /// When too many wait already; the job is dropped.
    pub(crate) fn hand_small(
        &self,
        asker: Option<Weak<()>>,
        job: impl FnOnce() + Send + 'static,
    ) -> Result<(), Full> {
        let job = Job { asker, work: Box::new(job) };
        let mut queues = self.shared.queues.lock();
        if queues.small.len() >= self.small_max {
            queues.refused += 1;
            // It may tell others: not under the lock.
            drop(queues);
            drop(job);
            return Err(Full);
        }
        queues.small.push_back(job);
        drop(queues);
        self.shared.work.notify_one();
        Ok(())
    }

    /// Has the next bytes of an answer read, unless `asker` is gone by then.
    pub(crate) fn hand_big(&self, asker: Weak<()>, job: impl FnOnce() + Send + 'static) {
        let job = Job { asker: Some(asker), work: Box::new(job) };
        let mut queues = self.shared.queues.lock();
        let left = queues.push_big(job);
        drop(queues);
        self.shared.work.notify_one();
        // Files are closed here, which can take a while.
        drop(left);
    }

    pub(crate) fn stats(&self) -> DiskStats {
        let queues = self.shared.queues.lock();
        let waiting = queues.small.len() + queues.big.len();
        DiskStats { waiting, refused: queues.refused, dropped: queues.dropped }
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
                    let is_wanted = job.is_wanted();
                    queues.dropped += u64::from(!is_wanted);
                    drop(queues);
                    if is_wanted {
                        // Those who wait for it are told by what it drops, if at all; the others
                        // still need this thread.
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
    /// Drops what was not begun, and leaves what is under way to itself: nobody waits for it any
    /// more, and a disk that hangs must not keep the server from ending.
    fn drop(&mut self) {
        let mut queues = self.shared.queues.lock();
        queues.is_over = true;
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

    fn job(asker: Option<Weak<()>>, work: impl FnOnce() + Send + 'static) -> Job {
        Job { asker, work: Box::new(work) }
    }

    /// One thread that is kept busy until the sender is used or gone.
    fn busy(small_max: usize) -> (DiskThreads, mpsc::Sender<()>) {
        let threads = DiskThreads::start(1, small_max).unwrap();
        let (release, wait) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        let work = move || {
            begin.send(()).unwrap();
            wait.recv().ok();
        };
        threads.hand_small(None, work).unwrap();
        begun.recv().unwrap();
        (threads, release)
    }

    #[test]
    fn small_jobs_go_before_big_ones() {
        let (threads, release) = busy(10);
        let (tell, told) = mpsc::channel();
        let asker = Arc::new(());
        let big = tell.clone();
        threads.hand_big(Arc::downgrade(&asker), move || big.send("big").unwrap());
        threads.hand_small(None, move || tell.send("small").unwrap()).unwrap();
        drop(release);
        assert_eq!([told.recv().unwrap(), told.recv().unwrap()], ["small", "big"]);
    }

    #[test]
    fn big_jobs_are_done_however_many_small_ones_come() {
        let mut queues = Queues::default();
        let (tell, told) = mpsc::channel();
        for name in ["small"; 40] {
            let tell = tell.clone();
            queues.small.push_back(job(None, move || tell.send(name).unwrap()));
        }
        queues.big.push_back(job(None, move || tell.send("big").unwrap()));
        std::iter::from_fn(|| queues.next()).for_each(|job| (job.work)());
        let order: Vec<_> = told.iter().collect();
        assert_eq!(order.iter().position(|name| *name == "big"), Some(16));
        assert_eq!(order.len(), 41);
    }

    #[test]
    fn what_nobody_waits_for_is_not_done() {
        let (threads, release) = busy(10);
        let (tell, told) = mpsc::channel();
        let (stays, goes) = (Arc::new(()), Arc::new(()));
        for (asker, name) in [(Some(&goes), "gone"), (Some(&stays), "stays"), (None, "nobody's")] {
            let tell = tell.clone();
            threads
                .hand_small(asker.map(Arc::downgrade), move || tell.send(name).unwrap())
                .unwrap();
        }
        threads.hand_big(Arc::downgrade(&goes), move || tell.send("gone, and big").unwrap());
        drop(goes);
        drop(release);
        assert_eq!(told.iter().collect::<Vec<_>>(), ["stays", "nobody's"]);
        assert_eq!(threads.stats(), DiskStats { dropped: 2, ..DiskStats::default() });
    }

    #[test]
    fn a_full_queue_refuses_small_jobs_until_there_is_room() {
        let (threads, release) = busy(2);
        let (tell, told) = mpsc::channel();
        let hand = || {
            let tell = tell.clone();
            threads.hand_small(None, move || tell.send(()).unwrap())
        };
        assert_eq!([hand(), hand(), hand()], [Ok(()), Ok(()), Err(Full)]);
        assert_eq!(threads.stats(), DiskStats { waiting: 2, refused: 1, dropped: 0 });
        drop(release);
        told.recv().unwrap();
        assert_eq!(hand(), Ok(()));
    }

    #[test]
    fn the_end_waits_for_no_job_and_drops_those_that_were_not_begun() {
        let (threads, release) = busy(10);
        let (tell, told) = mpsc::channel();
        threads.hand_small(None, move || tell.send(()).unwrap()).unwrap();
        drop(threads);
        assert_eq!(told.recv(), Err(mpsc::RecvError));
        // Until here it was under way.
        release.send(()).unwrap();
    }

    #[test]
    fn a_job_that_panics_takes_no_thread_with_it() {
        let threads = DiskThreads::start(1, 10).unwrap();
        let (tell, told) = mpsc::channel();
        threads.hand_small(None, || std::panic::resume_unwind(Box::new("as tested"))).unwrap();
        threads.hand_small(None, move || tell.send(()).unwrap()).unwrap();
        assert_eq!(told.recv(), Ok(()));
    }

    #[test]
    fn big_jobs_of_clients_who_are_gone_do_not_pile_up() {
        let mut queues = Queues::default();
        let stay: Vec<_> = (0..300).map(|_| Arc::new(())).collect();
        let mut longest = 0;
        for number in 0..10_000 {
            let asker = stay.get(number).map_or_else(Weak::new, Arc::downgrade);
            queues.push_big(job(Some(asker), || {}));
            longest = longest.max(queues.big.len());
        }
        assert!(longest <= 601, "{longest}");
        let wanted = queues.big.iter().filter(|job| job.is_wanted()).count();
        assert_eq!(wanted, 300);
    }
}
