//! Concurrent threads that hash their messages together.

use std::collections::VecDeque;
use std::sync::LazyLock;
use std::thread;

use parking_lot::{Mutex, MutexGuard};

use crate::pending::{Outcome, Pending, submit};
use crate::schedule::digest;
use crate::{Digest, Lanes};

/// Shorter messages are hashed by their own thread, because waking a thread costs more.
const SHARED_BYTES: usize = 8 << 10;

/// Number of messages hashed alone after which the queue expects no other callers, until a batch is
/// half full again.
const SOLITARY: u32 = 8;

/// A queue in which the messages of concurrent threads share the lanes of vector registers.
///
/// A thread that finds no other thread hashing is a *leader*: it hashes its message, together with
/// the messages that wait (flat combining, \[FlatCombining\]). Other threads wait. When a leader has
/// finished, it makes the first waiting thread a leader, which takes the next batch. A further thread
/// becomes a leader at the same time only if the waiting messages fill all lanes.
///
/// No thread waits for a batch to fill. But threads that are ready to call and have no processor
/// would find each other only by chance: therefore a leader yields the processor if its batch is not
/// full and a recent batch was at least half full, and again as long as this brings messages. A few
/// callers never yield.
#[derive(Debug)]
pub struct Md5Queue {
    lanes: Lanes,
    max_leaders: usize,
    state: Mutex<State>,
}

/// The waiting messages, and the number of threads that hash.
///
/// Messages wait only while there is a leader.
#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Pending>,
    leaders: usize,
    /// Number of further messages that may be hashed alone before the queue expects no others.
    expects_others: u32,
}

impl Default for Md5Queue {
    fn default() -> Self {
        Self::new(Lanes::detect())
    }
}

impl Md5Queue {
    /// Returns an empty queue that hashes in a number of lanes.
    #[must_use]
    pub fn new(lanes: Lanes) -> Self {
        // Determined once, because it reads the files of the control group.
        static CORES: LazyLock<usize> =
            LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));
        Self { lanes, max_leaders: *CORES, state: Mutex::default() }
    }

    /// Returns the MD5 digest of a message; may wait for other threads that hash.
    #[must_use]
    pub fn digest(&self, message: &[u8]) -> Digest {
        if message.len() < SHARED_BYTES || self.lanes.count() == 1 {
            return digest(message);
        }
        let mut state = self.state.lock();
        let fills_lanes = state.waiting.len() + 1 >= self.lanes.count();
        if state.leaders == 0 || fills_lanes && state.leaders < self.max_leaders {
            state.leaders += 1;
            return self.lead(state, message);
        }
        let (ticket, pending) = submit(message);
        state.waiting.push_back(pending);
        drop(state);
        match ticket.wait() {
            Outcome::Digest(digest) => digest,
            Outcome::Unfinished => digest(message),
            Outcome::Lead => self.lead(self.state.lock(), message),
        }
    }

    /// Hashes a message together with waiting messages. The caller is counted as a leader.
    fn lead(&self, mut state: MutexGuard<'_, State>, message: &[u8]) -> Digest {
        let _leadership = Leadership(&self.state);
        while state.expects_others > 0 && state.waiting.len() + 1 < self.lanes.count() {
            let before = state.waiting.len();
            MutexGuard::unlocked(&mut state, thread::yield_now);
            if state.waiting.len() <= before {
                break;
            }
        }
        if state.waiting.is_empty() {
            state.expects_others = state.expects_others.saturating_sub(1);
            drop(state);
            return digest(message);
        }
        if state.waiting.len() + 1 >= self.lanes.count() / 2 {
            state.expects_others = SOLITARY;
        }
        let shared = state.waiting.len().min(self.lanes.count() - 1);
        let others = state.waiting.drain(..shared).map(Member::Other);
        let batch: Vec<_> = others.chain([Member::Own(message)]).collect();
        drop(state);
        let mut own = [0; 16];
        self.lanes.digest_each(batch, |member, digest| match member {
            Member::Own(_) => own = digest,
            Member::Other(pending) => pending.finish(Outcome::Digest(digest)),
        });
        own
    }
}

/// The right of one thread to hash. Dropping it passes the right to the first waiting thread.
struct Leadership<'a>(&'a Mutex<State>);

impl Drop for Leadership<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let next = state.waiting.pop_front();
        if next.is_none() {
            state.leaders -= 1;
        }
        drop(state);
        if let Some(next) = next {
            next.finish(Outcome::Lead);
        }
    }
}

/// A message of a batch.
enum Member<'a> {
    Own(&'a [u8]),
    Other(Pending),
}

impl AsRef<[u8]> for Member<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Other(pending) => pending.as_ref(),
        }
    }
}
