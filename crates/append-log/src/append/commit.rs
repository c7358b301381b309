//! Group commit: while one buffer is being written and synced, the next one fills.
//!
//! Many threads put records into the filling buffer. Who waits for its record while nobody
//! commits takes the buffer whole, hands it to the kernel with one write, syncs once, and wakes
//! everybody whose record was in it: a writer alone does all of it in its own thread. A thread of
//! the log's own steps in where nobody waits in a call, for futures and for tickets let go.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::thread;
use std::time::Instant;

use haul_disk::{AlignedBuf, Disk};
use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};

use crate::append::batch::{Batch, Tail};
use crate::append::state::{Next, State};
use crate::error::Result;
use crate::names;
use crate::segments::Segment;
use crate::stats::Counters;

/// What the threads of a log share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) state: Mutex<State>,
    /// The commit thread is wanted, or the log is closing.
    pub(crate) work: Condvar,
    /// The preparing thread is wanted, or the log is closing.
    pub(crate) prepare: Condvar,
    /// A buffer or a segment became free, or never will.
    pub(crate) room: Condvar,
    /// A batch of even or odd number is on the medium, or can be carried out, or never will be.
    done: [Condvar; 2],
    /// More is on the medium, or the log is closing: for readers.
    pub(crate) more: Condvar,
    /// All segments begun, for readers.
    pub(crate) segments: RwLock<BTreeMap<u32, Arc<Segment>>>,
    pub(crate) counters: Counters,
}

fn parity(generation: u64) -> usize {
    usize::from(!generation.is_multiple_of(2))
}

impl Shared {
    /// A log that goes on at `end` of `tail`.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        segments: BTreeMap<u32, Arc<Segment>>,
        tail: Tail,
        end: u32,
        next: Option<Tail>,
        buffer_bytes: usize,
    ) -> haul_disk::Result<Self> {
        let filling = Batch::resume(tail, end, buffer_bytes)?;
        Ok(Self {
            disk,
            state: Mutex::new(State::new(filling, next, AlignedBuf::zeroed(buffer_bytes))),
            work: Condvar::new(),
            prepare: Condvar::new(),
            room: Condvar::new(),
            done: [Condvar::new(), Condvar::new()],
            more: Condvar::new(),
            segments: RwLock::new(segments),
            counters: Counters::default(),
        })
    }

    /// Waits until the batch of this number is on the medium, carrying it out where nobody does.
    pub(crate) fn wait_for(&self, generation: u64) -> Result<()> {
        let mut state = self.state.lock();
        let parity = parity(generation);
        while !state.is_committed(generation) {
            state.check_latch()?;
            if state.is_committing {
                state.waiting[parity] += 1;
                self.done[parity].wait(&mut state);
                state.waiting[parity] -= 1;
            } else {
                self.commit(&mut state);
            }
        }
        Ok(())
    }

    /// Waits until everything appended is on the medium.
    pub(crate) fn wait_for_all(&self) -> Result<()> {
        let state = self.state.lock();
        state.check_latch()?;
        let behind = if state.filling.has_new() { state.generation + 1 } else { state.generation };
        drop(state);
        behind.checked_sub(1).map_or(Ok(()), |last| self.wait_for(last))
    }

    /// Lets the commit thread carry out the filling batch.
    pub(crate) fn want_commit(&self, state: &mut State) {
        state.is_wanted = true;
        if !state.is_committing {
            self.work.notify_one();
        }
    }

    /// The commit thread.
    pub(crate) fn commit_until_closed(&self) {
        let mut state = self.state.lock();
        while state.latched.is_none() {
            if state.is_wanted && state.filling.has_new() && !state.is_committing {
                self.commit(&mut state);
            } else if state.is_closing {
                return;
            } else {
                self.work.wait(&mut state);
            }
        }
    }

    /// Carries out the filling batch; nobody else may be at it. The state is unlocked meanwhile.
    ///
    /// 1. Those who just left may come back for a moment.
    /// 2. The other buffer takes the place of the filling one.
    /// 3. One write, one sync: see [`Batch::carry_out`]. After a crash before it returns, nobody
    ///    was told anything.
    /// 4. Everybody in it is told.
    fn commit(&self, state: &mut MutexGuard<'_, State>) {
        state.is_committing = true;
        self.gather(state);
        let mut batch = self.take_batch(state);
        let outcome = MutexGuard::unlocked(state, || batch.carry_out(&self.counters));
        state.is_committing = false;
        match outcome {
            Ok(took) => {
                let pending = state.filling.records;
                state.gather.batch_done(Instant::now(), took, batch.records, pending);
                state.synced = batch.end();
                state.committed += 1;
                if batch.sealed {
                    batch.tail.segment.end_at(batch.offset());
                }
                state.spare = Some(batch.into_buffer());
                self.tell(state);
            }
            Err(error) => self.latch(state, error),
        }
    }

    /// Unlocks the state again and again until the writers expected are there, or time is up.
    fn gather(&self, state: &mut MutexGuard<'_, State>) {
        let (mut now, from) = (Instant::now(), state.filling.records);
        let Some(wait) = state.gather.wait_for(now, from) else { return };
        let (mut records, mut last) = (from, now);
        while wait.goes_on(now, records, last) && !state.filling.sealed {
            MutexGuard::unlocked_fair(state, thread::yield_now);
            now = Instant::now();
            if state.filling.records > records {
                (records, last) = (state.filling.records, now);
            }
        }
        state.gather.waited(from, records);
    }

    /// Puts the other buffer in the place of the filling one.
    fn take_batch(&self, state: &mut State) -> Batch {
        let buffer = state.spare.take().expect("only one thread at a time takes the other buffer");
        let following = if state.filling.sealed {
            let Next::Ready(tail) = std::mem::replace(&mut state.next, Next::Missing) else {
                unreachable!("a batch is sealed only when the next segment is ready");
            };
            self.segments.write().insert(tail.segment.number, Arc::clone(&tail.segment));
            self.prepare.notify_one();
            Batch::begin(tail, buffer)
        } else {
            state.filling.followed_in(buffer)
        };
        state.generation += 1;
        state.is_wanted = false;
        self.tell_room(state);
        std::mem::replace(&mut state.filling, following)
    }

    /// Puts another batch in the place of the filling one, in which there is nothing new.
    pub(crate) fn go_on_with(&self, state: &mut State, batch: impl FnOnce(AlignedBuf) -> Batch) {
        let buffer = state.spare.take().expect("nothing is being committed");
        let batch = batch(buffer);
        state.spare = Some(std::mem::replace(&mut state.filling, batch).into_buffer());
        self.prepare.notify_one();
    }

    /// Wakes those whose batch is on the medium, and one who can carry out the next.
    fn tell(&self, state: &mut State) {
        let committed = state.committed;
        self.done[parity(committed - 1)].notify_all();
        state.wakers.retain(|(generation, waker)| {
            let is_pending = *generation >= committed;
            if !is_pending {
                waker.wake_by_ref();
            }
            is_pending
        });
        self.tell_more(state);
        self.tell_room(state);
        if state.waiting[parity(committed)] > 0 {
            self.done[parity(committed)].notify_one();
        } else if state.is_wanted {
            self.work.notify_one();
        }
    }

    pub(crate) fn tell_room(&self, state: &mut State) {
        self.room.notify_all();
        state.room_wakers.drain(..).for_each(Waker::wake);
    }

    pub(crate) fn tell_more(&self, state: &mut State) {
        self.more.notify_all();
        state.more_wakers.drain(..).for_each(Waker::wake);
    }

    /// Stops the log for good and tells everybody.
    pub(crate) fn latch(&self, state: &mut MutexGuard<'_, State>, error: haul_disk::Error) {
        state.latched = Some(Arc::new(error));
        state.wakers.drain(..).for_each(|(_, waker)| waker.wake());
        self.tell_room(state);
        self.tell_more(state);
        self.done.iter().for_each(|done| {
            done.notify_all();
        });
        self.work.notify_all();
        self.prepare.notify_all();
        // The next opening shall not write to a file whose sync failed. Where the mark cannot be
        // left either, it still cuts whatever was never acknowledged.
        MutexGuard::unlocked(state, || {
            if self.disk.create(names::LATCHED, haul_disk::Open::default()).is_ok() {
                drop(self.disk.sync_dir(""));
            }
        });
    }
}
