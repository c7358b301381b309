//! Defines the trait that receives the bytes of a run, that is, of one call of `read`.

use std::ops::ControlFlow;

use super::request::{FileStatus, ReadSummary};
use crate::error::Error;

/// A receiver of the bytes read. Several threads call it, but the calls of one request are
/// sequential: `begin`, then `piece` for its bytes in order, then `end`. A request whose file
/// cannot be opened has only `end`. `end` is called exactly once for every request.
pub trait Consumer: Sync {
    /// The state of one request, for example a hasher.
    type State: Send;

    /// Starts a request after its file was opened.
    fn begin(&self, request: usize, file: &FileStatus) -> Self::State;

    /// Receives the next bytes of the request. Returning `Break` ends the request as successful.
    fn piece(&self, state: &mut Self::State, request: usize, bytes: &[u8]) -> ControlFlow<()>;

    /// Receives the next `bytes` bytes of the request, all of which are zeros of a hole that were
    /// not read. The result is as for [`Consumer::piece`]. A consumer that has no faster method for
    /// zeros than for other bytes returns `None`; it then receives them by calls of `piece`.
    fn zeros(
        &self,
        _state: &mut Self::State,
        _request: usize,
        _bytes: u64,
    ) -> Option<ControlFlow<()>> {
        None
    }

    /// Ends a request; `state` is `None` if its file could not be opened.
    fn end(&self, state: Option<Self::State>, request: usize, outcome: Result<ReadSummary, Error>);

    /// Reports the number of requests ended and of bytes read so far. Called periodically.
    fn progress(&self, _requests: u64, _bytes: u64) {}
}
