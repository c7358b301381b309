//! Executes jobs on one or several threads, where io_uring is missing or not permitted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;

use crate::error::Result;

/// Starts jobs in order, with at most `queue_depth` running at a time, and returns their results in
/// the same order. After a failure no further job is started.
pub(crate) fn map<J: Sync, T: Send>(
    jobs: &[J],
    queue_depth: u32,
    work: impl Fn(&J) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let queue_depth = (queue_depth as usize).min(jobs.len());
    if queue_depth <= 1 {
        return jobs.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(jobs.len()));
    let failed = Mutex::new(None);
    thread::scope(|scope| {
        for _ in 0..queue_depth {
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
    fn results_are_in_job_order_and_a_failure_stops() {
        let jobs: Vec<u32> = (0..1000).collect();
        for queue_depth in [1, 4] {
            assert_eq!(map(&jobs, queue_depth, |job| Ok(job * 2)).unwrap()[999], 1998);
            let started = AtomicUsize::new(0);
            let outcome = map(&jobs, queue_depth, |job| {
                started.fetch_add(1, Ordering::Relaxed);
                if *job == 10 { Err(Error::Invalid("no")) } else { Ok(()) }
            });
            assert!(outcome.is_err());
            assert!(started.into_inner() < 1000, "a job was started after the failure");
        }
        assert!(map(&[], 4, |(): &()| Ok(())).unwrap().is_empty());
    }
}
