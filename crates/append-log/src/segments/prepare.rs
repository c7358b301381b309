//! The next segment, made in the background before it is needed, and in step with the log.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use haul_disk::{FILL_STEP_BYTES, Op};
use parking_lot::MutexGuard;

use crate::append::batch::Tail;
use crate::append::commit::Shared;
use crate::append::state::{Next, State};
use crate::append::writer::Writer;
use crate::error::{Error, Result};
use crate::lsn::Lsn;
use crate::segments::Segment;
use crate::segments::pool::Pool;
use crate::ways::SyncMethod;

/// The thread that makes segments.
#[derive(Debug)]
pub(crate) struct Preparer {
    thread: Option<JoinHandle<()>>,
}

impl Preparer {
    pub(crate) fn start(
        shared: Arc<Shared>,
        pool: Arc<Pool>,
        method: SyncMethod,
    ) -> std::io::Result<Self> {
        let thread = thread::Builder::new()
            .name("log-prepare".to_owned())
            .spawn(move || Maker { shared, pool, method }.run())?;
        Ok(Self { thread: Some(thread) })
    }

    /// Waits for the end of the thread; the state says that the log is closing.
    pub(crate) fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

struct Maker {
    shared: Arc<Shared>,
    pool: Arc<Pool>,
    method: SyncMethod,
}

impl Maker {
    fn run(&self) {
        // Where a segment cannot be made, it is tried again when somebody needs it, and now and
        // then before.
        let mut failed_at = None;
        while let Some(is_asked) = self.wait_until_due(failed_at) {
            let made = self.make();
            let mut state = self.shared.state.lock();
            failed_at = None;
            match made {
                Ok(None) => return,
                Ok(Some(tail)) => state.next = Next::Ready(tail),
                // Which names survive a crash is known no more; asking again proves nothing.
                Err(Error::Disk(error)) if error.op == Op::SyncDir => {
                    return self.shared.latch(&mut state, error);
                }
                Err(error) => {
                    let segment = &state.filling.tail.segment;
                    failed_at = Some((segment.number, state.filling.offset()));
                    if is_asked || state.waiting_for_next > 0 {
                        state.next = Next::Failed(error);
                    }
                }
            }
            self.shared.tell_room(&mut state);
            drop(state);
            // A reserve that was used is replaced when there is space again.
            if let Err(Error::Disk(error)) = self.pool.keep_reserve()
                && error.op == Op::SyncDir
            {
                let mut state = self.shared.state.lock();
                return self.shared.latch(&mut state, error);
            }
        }
    }

    /// Waits until it is time to make the next segment, and says whether somebody waits for it;
    /// `None` when the log closes before.
    fn wait_until_due(&self, failed_at: Option<(u32, u32)>) -> Option<bool> {
        let mut state = self.shared.state.lock();
        loop {
            let segment = &state.filling.tail.segment;
            let (number, bytes) = (segment.number, segment.bytes);
            let retry_at = failed_at.filter(|at| at.0 == number).map(|at| at.1 + bytes / 16);
            let due = retry_at.unwrap_or(begin_at(bytes));
            let is_missing = matches!(state.next, Next::Missing);
            let is_asked = state.waiting_for_next > 0 || state.asked.is_some();
            if state.latched.is_some() {
                return None;
            }
            if is_missing && (is_asked || state.filling.offset() >= due) {
                state.prepare_at = u32::MAX;
                return Some(is_asked);
            }
            if state.is_closing {
                return None;
            }
            state.prepare_at = if is_missing { due } else { u32::MAX };
            self.shared.prepare.wait(&mut state);
        }
    }

    /// `None` when the log closed meanwhile.
    fn make(&self) -> Result<Option<Tail>> {
        let made = match self.pool.make(Lsn(0), &mut |done| self.may_fill(done)) {
            Err(full @ Error::Full { .. }) if self.reserve_would_help() => {
                self.pool.make_of_reserve(Lsn(0))?.ok_or(full).map(Some)
            }
            made => made,
        };
        self.shared.state.lock().asked = None;
        made?.map(|segment| self.tail(segment)).transpose()
    }

    /// A segment that cannot be opened for writing is taken out again: its number is used, and a
    /// log that went on behind it would have a hole.
    fn tail(&self, segment: Segment) -> Result<Tail> {
        let segment = Arc::new(segment);
        match Writer::open(&*self.shared.disk, &segment, self.method) {
            Ok(writer) => Ok(Tail { segment, writer }),
            Err(error) => {
                self.pool.retire(segment)?;
                Err(error)
            }
        }
    }

    fn reserve_would_help(&self) -> bool {
        let state = self.shared.state.lock();
        state.waiting_with_reserve > 0 || state.asked == Some(true)
    }

    /// Waits until the log has come so far that more of the next segment is due.
    fn may_fill(&self, done: u64) -> bool {
        let mut state = self.shared.state.lock();
        loop {
            let bytes = state.filling.tail.segment.bytes;
            if done < fill_due(state.filling.offset(), bytes) || is_needed(&state) {
                return true;
            }
            if state.is_closing || state.latched.is_some() {
                return false;
            }
            state.prepare_at = offset_for(done, bytes);
            self.shared.prepare.wait(&mut state);
        }
    }
}

fn is_needed(state: &MutexGuard<'_, State>) -> bool {
    state.waiting_for_next > 0 || state.asked.is_some()
}

/// The offset at which the next segment is begun with: a quarter of this one.
fn begin_at(segment_bytes: u32) -> u32 {
    segment_bytes / 4
}

/// How much of the next segment is to be filled when this one is written up to `offset`: two
/// bytes for each, so that it is done at three quarters, and no burst of zeros ever stands in
/// the way of a commit.
fn fill_due(offset: u32, segment_bytes: u32) -> u64 {
    match offset.checked_sub(begin_at(segment_bytes)) {
        Some(behind) => u64::from(behind) * 2 + FILL_STEP_BYTES as u64,
        None => 0,
    }
}

/// The offset at which more than `done` bytes are due.
fn offset_for(done: u64, segment_bytes: u32) -> u32 {
    let behind = done.saturating_sub(FILL_STEP_BYTES as u64) / 2 + 1;
    u32::try_from(u64::from(begin_at(segment_bytes)) + behind).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_segment_is_filled_between_a_quarter_and_three_quarters() {
        let bytes = 128 << 20;
        assert_eq!(fill_due(bytes / 4 - 1, bytes), 0);
        assert_eq!(fill_due(bytes / 4, bytes), FILL_STEP_BYTES as u64);
        assert!(fill_due(bytes / 4 * 3, bytes) > bytes.into());
        for done in (0..bytes).step_by(FILL_STEP_BYTES) {
            let at = offset_for(done.into(), bytes);
            assert!(fill_due(at, bytes) > done.into(), "{done} at {at}");
            assert!(done == 0 || fill_due(at - 1, bytes) <= done.into(), "{done} before {at}");
            assert!(at <= bytes / 4 * 3);
        }
    }
}
