//! Hashing what is read, and putting the digests where they belong.

use std::ops::ControlFlow;

use haul_bulk_read::digest::{Digest, HashKind, Hasher};
use haul_bulk_read::{Consumer, Error as ReadError, Finished, Opened, Tree, Want};
use parking_lot::Mutex;

use super::Events;
use super::keys::Keys;
use crate::error::Error;

/// One round of reading.
pub(super) struct Reading<'a> {
    pub(super) tree: &'a Tree,
    pub(super) wants: &'a [Want],
    /// Where the digest of each want belongs.
    pub(super) places: &'a [usize],
    /// Which want goes on with a hasher, and leaves one; empty where none does.
    pub(super) carried: &'a [Mutex<Option<Hasher>>],
    pub(super) keys: &'a Keys,
    pub(super) hash: HashKind,
    pub(super) events: &'a dyn Events,
}

/// A want under way.
pub(super) enum State {
    /// Nothing came yet; so many bytes are awaited.
    Fresh(u64),
    Hashing(Hasher),
    /// It came in one piece.
    Known(Digest),
    /// It is not the file that was found.
    Changed,
}

impl Reading<'_> {
    fn is_changed(&self, want: &Want, opened: &Opened) -> bool {
        let meta = self.tree.meta(want.file);
        (opened.device, opened.inode, opened.bytes, opened.modified_ns)
            != (meta.device, meta.inode, meta.bytes, meta.modified_ns)
    }
}

impl Consumer for Reading<'_> {
    type State = State;

    fn begin(&self, want: usize, opened: &Opened) -> State {
        let wanted = &self.wants[want];
        if self.is_changed(wanted, opened) {
            return State::Changed;
        }
        match self.carried.get(want) {
            Some(carried) => {
                State::Hashing(carried.lock().take().unwrap_or_else(|| self.hash.hasher()))
            }
            None => State::Fresh(wanted.bytes.min(opened.bytes - wanted.offset)),
        }
    }

    fn piece(&self, state: &mut State, _want: usize, bytes: &[u8]) -> ControlFlow<()> {
        match state {
            // A hasher costs more than the bytes of a small file.
            State::Fresh(awaited) if *awaited == bytes.len() as u64 => {
                *state = State::Known(self.hash.of(bytes));
            }
            State::Fresh(_) => {
                let mut hasher = self.hash.hasher();
                hasher.update(bytes);
                *state = State::Hashing(hasher);
            }
            State::Hashing(hasher) => hasher.update(bytes),
            State::Known(_) | State::Changed => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    fn end(&self, state: Option<State>, want: usize, outcome: Result<Finished, ReadError>) {
        let changed = || Error::Changed { path: self.tree.path(self.wants[want].file) };
        let finished = match outcome {
            Ok(finished) => finished,
            Err(error) => return self.events.failed(error.into()),
        };
        let digest = match state {
            _ if finished.grew => return self.events.failed(changed()),
            None | Some(State::Changed) => return self.events.failed(changed()),
            Some(State::Known(digest)) => digest,
            // Of an empty piece nothing comes.
            Some(State::Fresh(_)) => self.hash.of(&[]),
            Some(State::Hashing(hasher)) => match self.carried.get(want) {
                Some(carried) => {
                    let digest = hasher.clone().finish();
                    *carried.lock() = Some(hasher);
                    digest
                }
                None => hasher.finish(),
            },
        };
        self.keys.set(self.places[want], &digest);
    }

    fn progress(&self, wants: u64, bytes: u64) {
        self.events.progress(wants, bytes);
    }
}
