//! Decides when a read or a sync of a rotational disk may start.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_sync::thread::{self, ThreadId};
use haul_sync::{Condvar, Mutex, now};

/// The number of reads in flight while the disk is also synced. A sync waits for all of them, because
/// a drive executes no flush request before the reads that it has accepted. With fewer of them, the
/// drive cannot choose the read whose sector the head reaches first.
const READS_WITH_SYNCS: usize = 8;

/// The number of reads that start between two turns while further reads and a sync wait.
const READS_BETWEEN_SYNCS: usize = 16;

/// The number of reads after a sync during which another one is expected: those of about a second.
const READS_EXPECTING_SYNC: usize = 128;

/// The time after the start of a turn in which further syncs may join it although reads wait.
const JOIN_MAX: Duration = Duration::from_millis(60);

/// Schedules the reads and syncs of a rotational disk, which is slowed down by syncs between random
/// reads: before each sync, the drive completes all reads that it has accepted, and then moves the
/// arm to the synced blocks and back.
///
/// Without syncs, all reads start at once, and the drive orders them. While there are syncs, few
/// reads are in flight, in ascending order of their addresses on the device, so that the drive has
/// short seeks and a sync waits for few reads. Syncs then take turns with reads: a turn begins when
/// no read is in flight, and some of the waiting reads start before the next one.
///
/// A waiting sync delays at most 16 further reads, and each turn ends with its last sync, so no
/// request waits forever while the disk completes requests.
#[derive(Debug, Default)]
pub struct SeekScheduler {
    state: Mutex<State>,
    /// Notifies waiting syncs that a read or a turn has ended.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    reads_in_flight: usize,
    /// The waiting reads by their address and their number. A read that may start is removed and
    /// notified.
    waiting: BTreeMap<(u64, u64), Arc<Condvar>>,
    next_number: u64,
    /// The address of the last read that has started.
    address: u64,
    /// The threads of the current turn's syncs.
    syncing: Vec<ThreadId>,
    /// The start of the last turn.
    turn_began: Option<Instant>,
    /// The number of reads that have started since the last turn.
    reads_since: usize,
    waiting_syncs: usize,
    /// `true` if no read starts before the next turn.
    is_closed: bool,
}

/// A sync's turn, during which no scheduled read starts. Other syncs may join it. Dropping the value
/// ends the turn, also after a failed sync.
#[derive(Debug)]
pub struct SyncTurn<'a> {
    scheduler: &'a SeekScheduler,
    thread: ThreadId,
}

impl SeekScheduler {
    /// Executes a read at an address on the device, when it may start. The read of a thread that
    /// holds a turn does not wait.
    pub fn read<T>(&self, address: u64, read: impl FnOnce() -> T) -> T {
        self.start_read(address);
        // The read ends even if the callback panics.
        let _reading = Reading(self);
        read()
    }

    /// Waits for a turn. A thread that already holds one does not wait. A caller must hold no lock
    /// that another thread needs to complete a read or a sync.
    #[must_use]
    pub fn sync_turn(&self) -> SyncTurn<'_> {
        let thread = thread::current().id();
        let mut state = self.state.lock();
        if !state.syncing.contains(&thread) {
            state.waiting_syncs += 1;
            while !state.may_sync() {
                self.changed.wait(&mut state);
            }
            state.waiting_syncs -= 1;
        }
        if state.syncing.is_empty() {
            state.turn_began = Some(now());
            state.is_closed = false;
        }
        state.syncing.push(thread);
        SyncTurn { scheduler: self, thread }
    }

    /// Returns `true` if reads wait for other reads or for a sync.
    #[must_use]
    pub fn has_waiting_reads(&self) -> bool {
        !self.state.lock().waiting.is_empty()
    }

    fn start_read(&self, address: u64) {
        let mut state = self.state.lock();
        // The thread that syncs must not wait for itself.
        if state.syncing.contains(&thread::current().id()) {
            state.count_read();
            return;
        }
        let key = (address, state.next_number);
        state.next_number += 1;
        let may_start = Arc::<Condvar>::default();
        state.waiting.insert(key, Arc::clone(&may_start));
        state.start_reads();
        while state.waiting.contains_key(&key) {
            may_start.wait(&mut state);
        }
    }
}

impl State {
    /// `true` if one more read may be in flight.
    fn may_read(&self) -> bool {
        let is_recent = self.turn_began.is_some() && self.reads_since < READS_EXPECTING_SYNC;
        let expects_syncs = is_recent || self.waiting_syncs > 0;
        let is_full = expects_syncs && self.reads_in_flight >= READS_WITH_SYNCS;
        self.syncing.is_empty() && !self.is_closed && !self.is_turn_due() && !is_full
    }

    /// `true` if a sync waits, and reads have had their time.
    fn is_turn_due(&self) -> bool {
        self.waiting_syncs > 0 && self.reads_since >= READS_BETWEEN_SYNCS
    }

    /// `true` if a waiting sync may join the current turn or begin one. Closes the disk to reads if
    /// the next turn is due.
    fn may_sync(&mut self) -> bool {
        let no_read_waits = self.waiting.is_empty();
        if !self.syncing.is_empty() {
            let may_join = |began| now().saturating_duration_since(began) < JOIN_MAX;
            return no_read_waits || self.turn_began.is_some_and(may_join);
        }
        self.is_closed |= no_read_waits || self.is_turn_due();
        self.is_closed && self.reads_in_flight == 0
    }

    fn count_read(&mut self) {
        self.reads_in_flight += 1;
        self.reads_since = self.reads_since.saturating_add(1);
    }

    /// Starts waiting reads in ascending order, and then again from the lowest address.
    fn start_reads(&mut self) {
        while self.may_read() {
            let above = self.waiting.range((self.address, 0)..).next();
            let Some((key, _)) = above.or_else(|| self.waiting.first_key_value()) else { return };
            let key = *key;
            self.address = key.0;
            if let Some(may_start) = self.waiting.remove(&key) {
                self.count_read();
                may_start.notify_one();
            }
        }
    }
}

/// A read in flight.
struct Reading<'a>(&'a SeekScheduler);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.reads_in_flight -= 1;
        state.start_reads();
        self.0.changed.notify_all();
    }
}

impl Drop for SyncTurn<'_> {
    fn drop(&mut self) {
        let mut state = self.scheduler.state.lock();
        let own = state.syncing.iter().position(|thread| *thread == self.thread);
        own.map(|own| state.syncing.swap_remove(own));
        if state.syncing.is_empty() {
            state.reads_since = 0;
            state.start_reads();
        }
        self.scheduler.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;

    use super::*;

    fn waits_until(condition: impl Fn() -> bool) {
        let began = Instant::now();
        while !condition() {
            assert!(began.elapsed() < Duration::from_secs(60), "it waits too long");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Checks that nothing holds the scheduler.
    fn assert_idle(scheduler: &SeekScheduler) {
        let state = scheduler.state.lock();
        assert_eq!((state.waiting_syncs, state.reads_in_flight), (0, 0));
        assert!(state.syncing.is_empty() && state.waiting.is_empty() && !state.is_closed);
    }

    #[test]
    fn reads_start_in_ascending_order_after_a_sync() {
        let scheduler = SeekScheduler::default();
        let (started, order) = channel();
        let turn = scheduler.sync_turn();
        scheduler.state.lock().address = 50;
        thread::scope(|scope| {
            for address in [70, 10, 90, 30, 60] {
                let (scheduler, started) = (&scheduler, started.clone());
                scope.spawn(move || scheduler.read(address, || started.send(address)));
            }
            waits_until(|| scheduler.state.lock().waiting.len() == 5);
            // One read at a time, so that the order of the threads is that of the scheduler.
            scheduler.state.lock().reads_in_flight = READS_WITH_SYNCS - 1;
            assert!(order.try_recv().is_err(), "no read starts during a turn");
            drop(turn);
            let all: Vec<_> = order.iter().take(5).collect();
            assert_eq!(all, [60, 70, 90, 10, 30]);
        });
    }

    #[test]
    fn a_sync_waits_for_reads_in_flight_and_others_wait_for_the_sync() {
        let scheduler = SeekScheduler::default();
        let has_synced = AtomicBool::new(false);
        scheduler.start_read(1);
        let reading = Reading(&scheduler);
        thread::scope(|scope| {
            scope.spawn(|| {
                let _turn = scheduler.sync_turn();
                has_synced.store(true, Ordering::SeqCst);
            });
            waits_until(|| scheduler.state.lock().is_closed);
            let other = scope.spawn(|| scheduler.read(2, || has_synced.load(Ordering::SeqCst)));
            waits_until(|| scheduler.has_waiting_reads());
            assert!(scheduler.state.lock().syncing.is_empty());
            drop(reading);
            assert!(other.join().unwrap(), "the read comes after the sync");
        });
        assert_idle(&scheduler);
    }

    #[test]
    fn sixteen_reads_start_before_a_waiting_sync_while_more_wait() {
        let mut state = State { turn_began: Some(Instant::now()), ..State::default() };
        state.waiting_syncs = 1;
        let waits = |number: u64| ((number, number), Arc::<Condvar>::default());
        state.waiting = (0..100).map(waits).collect();
        let mut started = 0;
        while !state.may_sync() {
            state.start_reads();
            started += state.reads_in_flight;
            assert!((1..=READS_WITH_SYNCS).contains(&state.reads_in_flight));
            state.reads_in_flight = 0;
        }
        assert_eq!(started, READS_BETWEEN_SYNCS);
    }

    #[test]
    fn syncs_join_a_turn_and_after_a_time_only_while_no_read_waits() {
        let (syncing, turn_began) = (vec![thread::current().id()], Some(Instant::now()));
        let mut state = State { syncing, turn_began, ..State::default() };
        assert!(state.may_sync());
        state.waiting.insert((1, 1), Arc::default());
        // However late this thread runs.
        state.turn_began = Instant::now().checked_add(JOIN_MAX);
        assert!(state.may_sync());
        state.turn_began = Instant::now().checked_sub(JOIN_MAX);
        assert!(!state.may_sync());
        state.waiting.clear();
        assert!(state.may_sync());
    }

    #[test]
    fn a_thread_never_waits_for_itself() {
        let scheduler = SeekScheduler::default();
        let turn = scheduler.sync_turn();
        drop(scheduler.sync_turn());
        scheduler.read(1, || ());
        drop(turn);
        assert_idle(&scheduler);
    }

    #[test]
    fn reads_and_turns_end_when_their_thread_panics() {
        let scheduler = SeekScheduler::default();
        let panics = || -> () { panic!("test") };
        let reads = || scheduler.read(1, panics);
        assert!(catch_unwind(AssertUnwindSafe(reads)).is_err());
        let syncs = || {
            let _turn = scheduler.sync_turn();
            panics();
        };
        assert!(catch_unwind(AssertUnwindSafe(syncs)).is_err());
        assert_idle(&scheduler);
    }

    #[test]
    fn without_syncs_all_reads_start_at_once() {
        let scheduler = SeekScheduler::default();
        (0..100).for_each(|address| scheduler.start_read(address));
        assert_eq!(scheduler.state.lock().reads_in_flight, 100);
    }
}
