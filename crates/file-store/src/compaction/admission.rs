//! Delaying writers while compaction is behind, and letting them wait for it on a full disk.
//!
//! No writer holds a lock while it waits: admission comes before the key, and a writer that finds
//! the disk full lets go of everything before it waits.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::compaction::pacer::Pacer;
use crate::compaction::plan::{Candidate, Marks};
use crate::signal::Signal;

/// How long a writer is delayed at most before it is let through to what space there is.
const DELAY_MAX: Duration = Duration::from_secs(1);

/// The background thread looks again for dead bytes whenever so large a part of a volume was
/// stored.
const LOOK_AGAIN_PART: u64 = 64;

/// Who may store how much.
#[derive(Debug)]
pub(crate) struct Admission {
    volume_bytes: u64,
    /// Free bytes for ordinary needles: measured now and then, with what compaction has earned of
    /// the volume it moves, less what was admitted since.
    free_bytes: AtomicI64,
    slow_bytes: AtomicU64,
    /// There is nothing dead to free: writers are not delayed, since waiting would not help.
    is_exhausted: AtomicBool,
    /// Bytes admitted since the background thread was last woken.
    unseen_bytes: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
    /// Wakes the background thread.
    pub(crate) background: Signal,
}

#[derive(Debug, Default)]
struct State {
    marks: Option<Marks>,
    pacer: Pacer,
    /// The volume that is being moved, and how many of its bytes were.
    moving: Option<(Candidate, u64)>,
    /// Volumes freed.
    freed: u64,
    /// Passes of the background thread that were asked for, and the last one that found nothing.
    asked: u64,
    answered: u64,
}

/// The outcome of waiting for space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// Compaction freed a volume.
    Freed,
    /// Nothing dead is left to free.
    Exhausted,
    /// The time is over, and compaction still at work.
    TimedOut,
}

impl Admission {
    pub(crate) fn new(volume_bytes: u64) -> Self {
        Self {
            volume_bytes,
            free_bytes: AtomicI64::new(i64::MAX / 2),
            slow_bytes: AtomicU64::new(0),
            is_exhausted: AtomicBool::new(false),
            unseen_bytes: AtomicU64::new(0),
            state: Mutex::default(),
            changed: Condvar::new(),
            background: Signal::default(),
        }
    }

    /// Free bytes for ordinary needles.
    pub(crate) fn free_bytes(&self) -> u64 {
        u64::try_from(self.free_bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Returns `true` while writers are delayed.
    pub(crate) fn is_slow(&self) -> bool {
        self.free_bytes() < self.slow_bytes.load(Ordering::Relaxed)
    }

    /// Takes what was measured; `None` for a disk without a limit.
    pub(crate) fn measured(&self, free_and_capacity: Option<(u64, u64)>) -> Marks {
        let (free, capacity) = free_and_capacity.unwrap_or((u64::MAX / 4, 0));
        let marks = Marks::new(self.volume_bytes, capacity);
        let mut state = self.state.lock();
        let earned = state.moving.map_or(0, |(volume, moved)| volume.earned(volume.bytes, moved));
        let free = free.saturating_add(earned);
        self.free_bytes.store(i64::try_from(free).unwrap_or(i64::MAX / 2), Ordering::Relaxed);
        self.slow_bytes.store(marks.slow, Ordering::Relaxed);
        state.marks = Some(marks);
        if free >= marks.slow {
            self.changed.notify_all();
        }
        marks
    }

    /// Delays a writer of so many bytes until compaction has made up for it, if it is behind.
    pub(crate) fn admit(&self, bytes: u64) {
        self.admit_now(bytes);
        if !self.must_wait() {
            return;
        }
        let mut state = self.state.lock();
        self.background.set();
        let now = Instant::now();
        let share = state.marks.map_or(1.0, |marks| marks.share(self.free_bytes()));
        let until = state.pacer.start(bytes, share, now, DELAY_MAX);
        while self.must_wait() && !self.changed.wait_until(&mut state, until).timed_out() {}
    }

    /// Counts the bytes of a writer that is not delayed.
    pub(crate) fn admit_now(&self, bytes: u64) {
        let bytes_signed = i64::try_from(bytes).unwrap_or(i64::MAX / 4);
        self.free_bytes.fetch_sub(bytes_signed, Ordering::Relaxed);
        let part = self.volume_bytes / LOOK_AGAIN_PART;
        if self.unseen_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes >= part {
            self.unseen_bytes.store(0, Ordering::Relaxed);
            self.background.set();
        }
    }

    /// Returns `true` if [`Self::admit`] would delay a writer.
    pub(crate) fn must_wait(&self) -> bool {
        self.is_slow() && !self.is_exhausted.load(Ordering::Relaxed)
    }

    /// Compaction begins to move a volume.
    pub(crate) fn begin_volume(&self, volume: Candidate) {
        let mut state = self.state.lock();
        state.moving = Some((volume, 0));
        state.pacer.resume(Instant::now());
    }

    /// Compaction moved so many bytes of the volume, and earned a part of what removing it frees.
    pub(crate) fn moved(&self, bytes: u64) {
        let mut state = self.state.lock();
        let Some((volume, moved)) = &mut state.moving else { return };
        *moved += bytes;
        let earned = volume.earned(volume.dead_bytes, bytes);
        state.pacer.freed(earned as f64, Instant::now());
    }

    /// The volume was removed.
    pub(crate) fn freed(&self) {
        let mut state = self.state.lock();
        state.freed += 1;
        if let Some((volume, 0)) = state.moving.take() {
            state.pacer.freed(volume.dead_bytes as f64, Instant::now());
        }
        drop(state);
        self.is_exhausted.store(false, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Waits until compaction frees a volume, after the log had no space for a needle.
    pub(crate) fn wait_for_space(&self, until: Instant) -> Waited {
        let mut state = self.state.lock();
        state.asked += 1;
        let (asked, freed) = (state.asked, state.freed);
        self.background.set();
        loop {
            if state.freed != freed {
                return Waited::Freed;
            }
            if state.answered >= asked {
                return Waited::Exhausted;
            }
            if self.changed.wait_until(&mut state, until).timed_out() {
                return Waited::TimedOut;
            }
        }
    }

    /// The background thread begins to look for volumes to compact.
    pub(crate) fn begin_pass(&self) -> u64 {
        self.state.lock().asked
    }

    /// It found nothing more to compact, or cannot; `pass` is what [`Self::begin_pass`] returned.
    pub(crate) fn end_pass(&self, pass: u64) {
        let mut state = self.state.lock();
        state.answered = pass;
        state.moving = None;
        state.pacer.rest();
        drop(state);
        self.is_exhausted.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// There are dead bytes to free: writers wait for them where little is free.
    pub(crate) fn found(&self) {
        self.is_exhausted.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const VOLUME: u64 = 1 << 20;
    const HALF_DEAD: Candidate =
        Candidate { number: 1, bytes: VOLUME, dead_bytes: VOLUME / 2, move_bytes: VOLUME / 2 };

    fn admission(free: u64) -> Admission {
        let admission = Admission::new(VOLUME);
        admission.measured(Some((free, 100 * VOLUME)));
        admission
    }

    fn in_an_hour() -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }

    #[test]
    fn writers_are_delayed_below_the_mark_until_compaction_moves() {
        let admission = admission(VOLUME);
        assert!(admission.is_slow());
        let admit = |bytes| {
            let began = Instant::now();
            admission.admit(bytes);
            began.elapsed()
        };
        assert!(admit(VOLUME / 4) < DELAY_MAX, "nothing is known of compaction yet");
        admission.begin_volume(HALF_DEAD);
        thread::sleep(Duration::from_millis(20));
        // A quarter of a volume in at least 20 ms, and writers get a share of that.
        admission.moved(VOLUME / 4);
        admit(VOLUME / 4);
        assert!(admit(1) >= Duration::from_millis(18), "the one before used up 20 ms and more");
        admission.end_pass(0);
        assert!(admit(VOLUME) < DELAY_MAX);
        assert!(admit(1) < DELAY_MAX, "there is nothing to wait for");
    }

    #[test]
    fn what_is_earned_of_a_volume_counts_as_free() {
        let admission = admission(VOLUME / 2);
        let free_bytes = || {
            admission.measured(Some((VOLUME / 2, 100 * VOLUME)));
            admission.free_bytes()
        };
        admission.begin_volume(HALF_DEAD);
        assert_eq!(free_bytes(), VOLUME / 2);
        admission.moved(VOLUME / 8);
        assert_eq!(free_bytes(), VOLUME / 2 + VOLUME / 4);
        admission.freed();
        assert_eq!(free_bytes(), VOLUME / 2, "measured now");
    }

    #[test]
    fn with_space_or_without_dead_bytes_no_writer_is_delayed() {
        let (free, exhausted, short) = (admission(50 * VOLUME), admission(0), admission(0));
        exhausted.end_pass(0);
        let is_delayed = |admission: &Admission| {
            admission.begin_volume(HALF_DEAD);
            thread::sleep(Duration::from_millis(1));
            admission.moved(1);
            let began = Instant::now();
            admission.admit(1000);
            admission.admit(1000);
            began.elapsed() >= DELAY_MAX
        };
        assert_eq!([&free, &exhausted, &short].map(is_delayed), [false, false, true]);
    }

    #[test]
    fn a_writer_on_a_full_disk_learns_how_its_wait_ended() {
        let admission = admission(0);
        assert_eq!(admission.wait_for_space(Instant::now()), Waited::TimedOut);
        thread::scope(|scope| {
            let writer = scope.spawn(|| admission.wait_for_space(in_an_hour()));
            while !writer.is_finished() {
                admission.freed();
                thread::yield_now();
            }
            assert_eq!(writer.join().unwrap(), Waited::Freed);
            let writer = scope.spawn(|| admission.wait_for_space(in_an_hour()));
            while !writer.is_finished() {
                admission.end_pass(admission.begin_pass());
                thread::yield_now();
            }
            assert_eq!(writer.join().unwrap(), Waited::Exhausted);
        });
    }
}
