//! Creates the next segment in the background, step by step as the current one fills.

use std::sync::Arc;
use std::time::Duration;

use haul_disk::{FILL_STEP_BYTES, Op};
use haul_sync::now;
use haul_sync::thread::{self, JoinHandle};

use crate::append::batch::Tail;
use crate::append::commit::Shared;
use crate::append::state::{Needed, Next, Refused, State};
use crate::append::writer::Writer;
use crate::error::{Error, Result};
use crate::lsn::Lsn;
use crate::segments::Segment;
use crate::segments::new_file::Preparation;
use crate::segments::pool::Pool;
use crate::segments::reserve::SpacePriority;
use crate::strategy::{SyncMethod, SyncMethods};

/// The pause between two steps of filling a file that is reserved for a full disk, while no append
/// waits for a segment.
const RESERVE_STEP_PAUSE: Duration = Duration::from_millis(10);

/// A handle to the preparing thread, which creates segments. The thread calls no wakers, but leaves
/// them to the commit thread: a waker may append, and the append could wait for a segment from this
/// thread.
#[derive(Debug)]
pub(crate) struct Preparer {
    thread: Option<JoinHandle<()>>,
}

impl Preparer {
    pub(crate) fn start(
        shared: Arc<Shared>,
        pool: Arc<Pool>,
        methods: SyncMethods,
    ) -> std::io::Result<Self> {
        let thread = thread::Builder::new()
            .name("log-prepare".to_owned())
            .spawn(move || PrepareThread { shared, pool, methods }.run())?;
        Ok(Self { thread: Some(thread) })
    }

    /// Waits until the thread ends. The caller must have set `is_closing` in the state.
    pub(crate) fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// The next segment that must be created.
#[derive(Debug)]
enum Due {
    /// The segment after the current one. `is_requested` is `true` if an append waits for it.
    Next { is_requested: bool },
    /// A segment that is long enough for the records that wait for it, in place of a shorter one.
    /// If the shorter one was ready, it was taken from the state, so that no record is appended to
    /// it: the longer one's header declares the current segment as its predecessor.
    Longer { needed: Needed, shorter: Option<Tail> },
}

struct PrepareThread {
    shared: Arc<Shared>,
    pool: Arc<Pool>,
    methods: SyncMethods,
}

impl PrepareThread {
    fn run(&self) {
        // Where creating a segment failed last: the current segment's number and the offset in it.
        // The creation is retried when an append needs the segment, or when another sixteenth of
        // the current segment was written.
        let mut failed_at = None;
        if !self.fill_reserve() {
            return;
        }
        while let Some(mut due) = self.wait_until_due(failed_at) {
            let removals = self.pool.removals();
            let (made, priority) = match &mut due {
                Due::Next { .. } => self.allocate(Needed::default()),
                Due::Longer { needed, shorter } => self.replace(shorter.take(), *needed),
            };
            // When the reserve is complete again, ordinary records may use the rest of a reserve
            // segment, so the appends that wait are not rejected yet.
            let is_refilled = matches!(made, Err(Error::Full { .. })) && self.refill_reserve();
            let mut state = self.shared.state.lock_deferring_wakers();
            if let Due::Next { .. } = due {
                failed_at = None;
            }
            match (made, due) {
                (Ok(None) | Err(Error::Latched { .. }), _) => return,
                (Ok(Some(tail)), _) => {
                    debug_assert!(!matches!(state.next, Next::Ready(_)), "one next segment");
                    debug_assert!(tail.segment.number > state.filling.tail.segment.number);
                    state.creation_succeeded();
                    state.next = Next::Ready(tail);
                }
                // After a failed directory sync it is unknown which names are durable, and a second
                // sync could succeed without making them durable.
                (Err(Error::Disk(error)), _) if error.op == Op::SyncDir => {
                    return self.shared.latch(&mut state, error);
                }
                // The appends that wait try again once, and are rejected then.
                (Err(Error::Disk(error)), due) => {
                    state.creation_failed(error);
                    if let Due::Next { .. } = due {
                        let segment = &state.filling.tail.segment;
                        failed_at = Some((segment.number, state.filling.offset()));
                    }
                }
                // A segment removed meanwhile may be the space for this one, and an append that
                // began after its removal must not be rejected.
                (Err(Error::Full { .. }), _) if self.pool.removals() != removals => {}
                (Err(error), Due::Longer { needed, .. }) => {
                    let bytes = needed.bytes();
                    state.refused = (!is_refilled).then_some(Refused { error, bytes, priority });
                }
                (Err(error), Due::Next { is_requested }) => {
                    let segment = &state.filling.tail.segment;
                    failed_at = Some((segment.number, state.filling.offset()));
                    if !is_refilled && (is_requested || state.waiting_for_next > 0) {
                        state.next = Next::Failed(error, priority);
                    }
                }
            }
            // Records that still wait are added again.
            state.needed = Needed::default();
            self.shared.room.notify_all();
            drop(state);
            if !self.fill_reserve() {
                return;
            }
        }
    }

    /// Creates a next segment that is long enough for the waiting records, in place of a shorter
    /// one that was taken from the state.
    ///
    /// 1. Creates the longer segment. If this fails, for example because the disk is full, puts
    ///    back the shorter one, which other records may use.
    /// 2. Removes the shorter one, which has no records. The removal is durable before the longer
    ///    one is used, because recovery reports an empty segment before another one as damage.
    ///    After a crash in between, recovery finds two unused segments. If the removal fails,
    ///    neither of them can be used, and the log stops.
    fn replace(
        &self,
        shorter: Option<Tail>,
        needed: Needed,
    ) -> (Result<Option<Tail>>, SpacePriority) {
        let (made, priority) = self.allocate(needed);
        let Some(shorter) = shorter else { return (made, priority) };
        let Ok(Some(longer)) = made else {
            self.shared.state.lock_deferring_wakers().next = Next::Ready(shorter);
            return (made, priority);
        };
        let removed = match self.pool.retire(shorter.segment) {
            Err(Error::Disk(error)) => {
                let mut state = self.shared.state.lock_deferring_wakers();
                self.shared.latch(&mut state, error);
                state.check_latch()
            }
            removed => removed,
        };
        (removed.map(|()| Some(longer)), priority)
    }

    /// Creates the reserve's missing files, as far as the disk has space. The thread calls this
    /// after each new segment, because the reserve grows with the log. Returns `false` if the log
    /// has stopped.
    fn fill_reserve(&self) -> bool {
        let filled = self
            .fit_reserve()
            .and_then(|()| self.pool.fill_short_reserve())
            .and_then(|()| self.pool.fill_whole_reserve(&mut |_| self.may_fill_reserve()));
        match filled {
            // After a failed directory sync it is unknown which names are durable.
            Err(Error::Disk(error)) if error.op == Op::SyncDir => {
                let mut state = self.shared.state.lock_deferring_wakers();
                self.shared.latch(&mut state, error);
                false
            }
            _ => true,
        }
    }

    /// Fills the reserve after it was incomplete: removing a segment may have freed the space for
    /// it. Returns `true` if it is complete now.
    fn refill_reserve(&self) -> bool {
        !self.pool.has_whole_reserve() && self.fill_reserve() && self.pool.has_whole_reserve()
    }

    fn fit_reserve(&self) -> Result<()> {
        let segments = self.shared.segments.read();
        let bytes: u64 = segments.values().map(|segment| u64::from(segment.bytes)).sum();
        let sealed = segments.len().saturating_sub(1);
        drop(segments);
        let next_bytes = match &self.shared.state.lock().next {
            Next::Ready(next) => u64::from(next.segment.bytes),
            Next::Missing | Next::Failed(..) => 0,
        };
        self.pool.fit_reserve(sealed, bytes + next_bytes)
    }

    /// Waits before the next step of filling a reserve file. Does not wait if the next segment is
    /// needed, because this thread creates it only after this file. Returns `false` if the log is
    /// closing or has stopped.
    fn may_fill_reserve(&self) -> bool {
        let mut state = self.shared.state.lock_deferring_wakers();
        let is_due = state.filling.offset() >= fill_start(state.filling.tail.segment.bytes);
        let is_missing = matches!(state.next, Next::Missing);
        let is_urgent = is_missing && (is_due || is_needed(&state)) || is_longer_needed(&state);
        if !is_urgent && !state.is_closing && state.latched.is_none() {
            state.wait_until(&self.shared.prepare, now() + RESERVE_STEP_PAUSE);
        }
        !state.is_closing && state.latched.is_none()
    }

    /// Waits until the next segment must be created. Returns `None` if the log is closing or has
    /// stopped.
    fn wait_until_due(&self, failed_at: Option<(u32, u32)>) -> Option<Due> {
        let mut state = self.shared.state.lock_deferring_wakers();
        loop {
            let segment = &state.filling.tail.segment;
            let (number, bytes) = (segment.number, segment.bytes);
            let retry_at = failed_at.filter(|at| at.0 == number).map(|at| at.1 + bytes / 16);
            let due = retry_at.unwrap_or(fill_start(bytes));
            let is_missing = matches!(state.next, Next::Missing);
            let is_requested = state.waiting_for_next > 0 || state.requested_next.is_some();
            if state.latched.is_some() {
                return None;
            }
            // Waiting appends are rejected during a pause, as soon as they run.
            let may_try = state.check_pause().is_ok();
            if may_try && is_longer_needed(&state) {
                state.prepare_at = u32::MAX;
                let (needed, shorter) = (state.needed, state.take_ready_next());
                return Some(Due::Longer { needed, shorter });
            }
            if may_try && is_missing && (is_requested || state.filling.offset() >= due) {
                state.prepare_at = u32::MAX;
                return Some(Due::Next { is_requested });
            }
            if state.is_closing {
                return None;
            }
            state.prepare_at = if is_missing { due } else { u32::MAX };
            state.wait(&self.shared.prepare);
        }
    }

    /// Creates the next segment, at least as long as needed. Returns the segment, or `None` if the
    /// log was closed meanwhile, and the [`SpacePriority`] for which the creation was tried.
    fn allocate(&self, needed: Needed) -> (Result<Option<Tail>>, SpacePriority) {
        // An error for a reason other than space affects every record.
        let mut priority = SpacePriority::Compaction;
        let state = self.shared.state.lock_deferring_wakers();
        let are_large = state.batch_sizes.are_large();
        self.pool.set_previous(state.filling.tail.segment.number);
        drop(state);
        let (preparation, method) = if are_large {
            (Preparation::Reserved, self.methods.large_batches)
        } else {
            (Preparation::Zeroed, self.methods.small_batches)
        };
        let mut pace = |done| self.may_fill(done);
        let made = match self.pool.allocate(needed.bytes(), preparation, Lsn(0), &mut pace) {
            Err(full @ Error::Full { .. }) => {
                let (needed_priority, bytes) = needed.reserve_demand();
                priority = match needed.bytes() {
                    0 => self.shared.state.lock_deferring_wakers().requested_priority(),
                    _ => needed_priority,
                };
                let drawn = self.pool.allocate_from_reserve(priority, bytes, Lsn(0));
                drawn.and_then(|drawn| drawn.ok_or(full).map(Some))
            }
            made => made,
        };
        if needed.bytes() == 0 || made.is_ok() {
            self.shared.state.lock_deferring_wakers().requested_next = None;
        }
        (made.and_then(|made| made.map(|segment| self.tail(segment, method)).transpose()), priority)
    }

    /// Opens a new segment for writing. If this fails, removes the segment. Otherwise the log would
    /// continue in a later segment, and recovery would report this empty one as damaged, because it
    /// has no seal.
    fn tail(&self, segment: Segment, method: SyncMethod) -> Result<Tail> {
        let segment = Arc::new(segment);
        match Writer::open(&*self.shared.disk, &segment, method) {
            Ok(writer) => Ok(Tail { segment, writer }),
            Err(error) => {
                self.pool.retire(segment)?;
                Err(error)
            }
        }
    }

    /// Waits until the next step of filling the next segment is due. Returns `false` if the log is
    /// closing or has stopped.
    fn may_fill(&self, done: u64) -> bool {
        let next_bytes = self.pool.creating_bytes();
        let mut state = self.shared.state.lock_deferring_wakers();
        loop {
            let bytes = state.filling.tail.segment.bytes;
            if done < fill_due(state.filling.offset(), bytes, next_bytes) || is_needed(&state) {
                return true;
            }
            if state.is_closing || state.latched.is_some() {
                return false;
            }
            state.prepare_at = offset_for(done, bytes, next_bytes);
            state.wait(&self.shared.prepare);
        }
    }
}

/// `true` if records wait for the next segment.
fn is_needed(state: &State) -> bool {
    state.waiting_for_next > 0 || state.requested_next.is_some() || state.needed.bytes() > 0
}

/// `true` if the next segment is missing, or too short for a record that waits for it. After a seal
/// the next segment becomes the current one, so that it cannot be replaced.
fn is_longer_needed(state: &State) -> bool {
    let needed = state.needed.bytes();
    needed > 0
        && !state.filling.sealed
        && !matches!(&state.next, Next::Ready(next) if next.segment.bytes >= needed)
}

/// Returns the offset in the current segment at which filling the next one begins: after a quarter.
fn fill_start(segment_bytes: u32) -> u32 {
    segment_bytes / 4
}

/// Returns how many bytes of the next segment should be filled when the current one is written up
/// to `offset`. Filling begins after the first quarter and ends after the third, in proportion to
/// the bytes written in between: two bytes for each byte written if both segments have the same
/// length. Commits then never compete with a burst of zeros.
fn fill_due(offset: u32, segment_bytes: u32, next_bytes: u64) -> u64 {
    match offset.checked_sub(fill_start(segment_bytes)) {
        Some(behind) => {
            let due = u64::from(behind) * 2 * next_bytes / u64::from(segment_bytes);
            due + FILL_STEP_BYTES as u64
        }
        None => 0,
    }
}

/// Returns the offset in the current segment at which more than `done` bytes of the next one should
/// be filled.
fn offset_for(done: u64, segment_bytes: u32, next_bytes: u64) -> u32 {
    let due = done.saturating_sub(FILL_STEP_BYTES as u64) + 1;
    let behind = (due * u64::from(segment_bytes)).div_ceil(2 * next_bytes.max(1));
    u32::try_from(u64::from(fill_start(segment_bytes)) + behind).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_segment_is_filled_between_one_and_three_quarters() {
        let bytes = 128 << 20;
        for next_bytes in [bytes, 2 * bytes, bytes / 2, 2 * bytes - 4096].map(u64::from) {
            let fill_due = |offset| fill_due(offset, bytes, next_bytes);
            assert_eq!(fill_due(bytes / 4 - 1), 0);
            assert_eq!(fill_due(bytes / 4), FILL_STEP_BYTES as u64);
            assert!(fill_due(bytes / 4 * 3) > next_bytes);
            for done in (0..next_bytes).step_by(FILL_STEP_BYTES) {
                let at = offset_for(done, bytes, next_bytes);
                assert!(fill_due(at) > done, "{done} at {at}");
                assert!(done == 0 || fill_due(at - 1) <= done, "{done} before {at}");
                assert!(at <= bytes / 4 * 3);
            }
        }
    }
}
