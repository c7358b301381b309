//! Jobs one after the other, or some at a time.
//!
//! By threads, not by io_uring: until Linux 7.0 a direct write that changes the time of its file goes
//! to a kernel thread anyway (`docs/decisions/0007-sorted-writes.md` has the figures).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;

use crate::error::Result;

/// Does all jobs, in their order, at most `lanes` at a time, and gives what they gave in the same
/// order. After a failure no further one is begun.
pub(crate) fn each<J: Sync, T: Send>(
    jobs: &[J],
    lanes: u32,
    work: impl Fn(&J) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let lanes = (lanes as usize).min(jobs.len());
    if lanes <= 1 {
        return jobs.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(jobs.len()));
    let failed = Mutex::new(None);
    thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(number) else { return };
                    match work(job) {
                        Ok(outcome) => done.lock().push((number, outcome)),
                        Err(error) => {
                            next.store(jobs.len(), Ordering::Relaxed);
                            failed.lock().get_or_insert(error);
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = failed.into_inner() {
        return Err(error);
    }
    let mut done = done.into_inner();
    done.sort_unstable_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, outcome)| outcome).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn outcomes_come_in_the_order_of_the_jobs_and_a_failure_ends_all() {
        let jobs: Vec<u32> = (0..1000).collect();
        for lanes in [1, 4] {
            assert_eq!(each(&jobs, lanes, |job| Ok(job * 2)).unwrap()[999], 1998);
            let begun = AtomicUsize::new(0);
            let outcome = each(&jobs, lanes, |job| {
                begun.fetch_add(1, Ordering::Relaxed);
                if *job == 10 { Err(Error::Invalid("no")) } else { Ok(()) }
            });
            assert!(outcome.is_err());
            assert!(begun.into_inner() < 1000, "none is begun after the failure");
        }
        assert!(each(&[], 4, |(): &()| Ok(())).unwrap().is_empty());
    }
}
