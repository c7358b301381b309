//! Determines whether a change may be acknowledged: no sync has failed, and the store's copy
//! contains it.

use crate::error::{Error, Result};
use crate::inner::Inner;

/// Fails after a failed sync of the log. The index may then differ from the one after reopening:
/// the unsynced needles may be in the log, so that a key that does not exist now may exist then.
fn check_syncs(inner: &Inner) -> Result<()> {
    match inner.volumes.log.is_latched() {
        true => Err(Error::Stopped { what: "a sync of the log failed" }),
        false => Ok(()),
    }
}

/// Waits until all changes that are durable or visible now may be acknowledged. The caller holds no
/// lock.
///
/// # Errors
/// [`Error::Stopped`] after a failed sync, [`Error::NotReplicated`].
pub(crate) fn confirm(inner: &Inner) -> Result<()> {
    check_syncs(inner)?;
    let Some(replication) = &inner.options.replication else { return Ok(()) };
    replication.wait(inner.volumes.log.synced()).map_err(|what| Error::NotReplicated { what })
}

/// Waits like [`confirm`] if a call has changed the store or found nothing to change, and returns
/// its outcome.
pub(crate) fn acknowledge<T>(inner: &Inner, outcome: Result<T>) -> Result<T> {
    match outcome {
        Ok(changed) => confirm(inner).map(|()| changed),
        Err(error) if error.is_about_existence() => check_syncs(inner).and(Err(error)),
        Err(error) => Err(error),
    }
}

/// Waits once like [`confirm`] if any outcome in a batch is a success. If that fails, each of these
/// outcomes becomes an error.
pub(crate) fn acknowledge_batch<T>(inner: &Inner, outcomes: &mut [Result<T>]) {
    if !outcomes.iter().any(Result::is_ok) {
        return;
    }
    let Err(error) = confirm(inner) else { return };
    for outcome in outcomes.iter_mut().filter(|outcome| outcome.is_ok()) {
        *outcome = Err(match &error {
            Error::NotReplicated { what } => Error::NotReplicated { what: what.clone() },
            _ => Error::Stopped { what: "a sync of the log failed" },
        });
    }
}
