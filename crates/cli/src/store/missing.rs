//! The directories of a store that are missing.

use haul_store_pool::Pool;

use crate::report::{Failure, OrFail, Result};

/// Returns the directories that are missing.
pub(super) fn dirs(store: &Pool) -> Vec<String> {
    let missing = store.members().iter().filter(|member| member.why_missing().is_some());
    missing.map(|member| member.dir().display().to_string()).collect()
}

/// Fails if a directory is missing, after the work on all others. `done` is what did not happen to
/// them, such as "verified".
pub(super) fn report(store: &Pool, done: &str) -> Result {
    match text(store, done) {
        Some(text) => Err(Failure::new(text)),
        None => Ok(()),
    }
}

/// Describes the missing directories; `None` if there are none.
pub(super) fn text(store: &Pool, done: &str) -> Option<String> {
    let dirs = dirs(store);
    let (count, all) = (dirs.len(), store.members().len());
    let are = if count == 1 { "is missing and was" } else { "are missing and were" };
    (count > 0)
        .then(|| format!("{count} of {all} directories {are} not {done}: {}", dirs.join(", ")))
}

/// Fails if a directory is missing, before numbers are printed that would lack its part.
pub(super) fn refuse(store: &Pool, cannot: impl Fn() -> String) -> Result {
    store.members().iter().try_for_each(|member| member.store().map(drop).or_fail(&cannot))
}
