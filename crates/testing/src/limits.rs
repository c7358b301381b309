//! Limits of the process that some tests exceed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};

use crate::skip;

/// Raises the number of files that this process may open to `wanted`, or as far as its hard limit
/// allows; root raises that as well. Returns `true` if the limit is high enough.
#[must_use]
pub fn raise_descriptor_limit(wanted: u64) -> bool {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let higher = maximum.map(|maximum| maximum.max(wanted));
    let set = |maximum| setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    set(higher) || set(maximum) && maximum.is_none_or(|maximum| maximum >= wanted)
}

/// Allows a test to lock up to `bytes` of memory while it holds the returned guard: the limit is one
/// of all threads together. `None`: the test is skipped, because the limit is lower.
#[must_use]
pub fn memory_lock(bytes: u64) -> Option<MutexGuard<'static, ()>> {
    static IN_USE: Mutex<()> = Mutex::new(());
    let limit = getrlimit(Resource::Memlock).current.filter(|_| !geteuid().is_root());
    if let Some(limit) = limit.filter(|limit| *limit < bytes) {
        skip(&format!("the test locks {bytes} B of memory, and this user may lock {limit} B"));
        return None;
    }
    // A test that failed does not prevent the others.
    Some(IN_USE.lock().unwrap_or_else(PoisonError::into_inner))
}
