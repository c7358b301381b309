//! Hashes the bytes read in a round of a search, and stores the digests. Each round reads one more
//! piece of every file that may still equal another file.

use std::ops::ControlFlow;

use haul_bulk_read::digest::{Digest, HashKind};
use haul_bulk_read::{Consumer, Error as ReadError, FileStatus, ReadRequest, ReadSummary, Tree};
use parking_lot::Mutex;

use super::content_hash::ContentHasher;
use super::digests::DigestTable;
use super::events::Events;
use crate::error::Error;

/// The consumer of the reads of a round.
pub(super) struct HashConsumer<'a> {
    pub(super) tree: &'a Tree,
    pub(super) requests: &'a [ReadRequest],
    /// For each request, the slot of its digest.
    pub(super) slots: &'a [usize],
    /// For each request, the hasher that was fed the earlier parts of the file. The consumer takes
    /// the hasher out, feeds it the next part, and puts it back. Empty if this round of reads is of
    /// whole files or of samples.
    pub(super) hashers: &'a [Mutex<Option<ContentHasher>>],
    pub(super) digests: &'a DigestTable,
    pub(super) hash: HashKind,
    pub(super) events: &'a dyn Events,
}

/// The progress of a request.
pub(super) enum State {
    /// No bytes were received yet. Contains the number of bytes expected.
    Empty(u64),
    Hashing(ContentHasher),
    /// All bytes were received in one piece.
    Complete(Digest),
    /// The file was modified or replaced after the walk.
    Changed,
}

impl HashConsumer<'_> {
    fn hasher(&self, request: usize) -> ContentHasher {
        ContentHasher::new(self.hash, self.tree.meta(self.requests[request].file).bytes)
    }

    fn is_changed(&self, request: &ReadRequest, file: &FileStatus) -> bool {
        let meta = self.tree.meta(request.file);
        (file.device, file.inode, file.bytes, file.modified_ns)
            != (meta.device, meta.inode, meta.bytes, meta.modified_ns)
    }
}

impl Consumer for HashConsumer<'_> {
    type State = State;

    fn begin(&self, request: usize, file: &FileStatus) -> State {
        let range = &self.requests[request];
        if self.is_changed(range, file) {
            return State::Changed;
        }
        match self.hashers.get(request) {
            Some(hasher) => {
                State::Hashing(hasher.lock().take().unwrap_or_else(|| self.hasher(request)))
            }
            None => State::Empty(range.bytes.min(file.bytes - range.offset)),
        }
    }

    fn piece(&self, state: &mut State, request: usize, bytes: &[u8]) -> ControlFlow<()> {
        match state {
            // A one-shot hash is faster than an incremental one for a small file.
            State::Empty(expected) if *expected == bytes.len() as u64 => {
                *state = State::Complete(self.hash.of(bytes));
            }
            State::Empty(_) => {
                let mut hasher = self.hasher(request);
                hasher.update(bytes);
                *state = State::Hashing(hasher);
            }
            State::Hashing(hasher) => hasher.update(bytes),
            State::Complete(_) | State::Changed => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    fn zeros(&self, state: &mut State, request: usize, bytes: u64) -> Option<ControlFlow<()>> {
        if matches!(state, State::Empty(_)) {
            *state = State::Hashing(self.hasher(request));
        }
        Some(match state {
            State::Hashing(hasher) => {
                hasher.update_zeros(bytes);
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(()),
        })
    }

    fn end(&self, state: Option<State>, request: usize, outcome: Result<ReadSummary, ReadError>) {
        let changed = || Error::Changed { path: self.tree.path(self.requests[request].file) };
        let summary = match outcome {
            Ok(summary) => summary,
            Err(error) => return self.events.failed(error.into()),
        };
        let digest = match state {
            _ if summary.grew => return self.events.failed(changed()),
            None | Some(State::Changed) => return self.events.failed(changed()),
            Some(State::Complete(digest)) => digest,
            // A request for an empty range receives no pieces.
            Some(State::Empty(_)) => self.hash.of(&[]),
            Some(State::Hashing(hasher)) => match self.hashers.get(request) {
                Some(slot) => {
                    let digest = hasher.clone().finish();
                    *slot.lock() = Some(hasher);
                    digest
                }
                None => hasher.finish(),
            },
        };
        self.digests.set(self.slots[request], &digest);
    }

    fn progress(&self, requests: u64, bytes: u64) {
        self.events.progress(requests, bytes);
    }
}
