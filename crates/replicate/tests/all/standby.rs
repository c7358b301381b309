//! Tests that a standby follows a copy, and takes it over when its owner is gone.

use std::collections::HashSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haul_disk::Disk;
use haul_disk_sim::{MemoryDisk, Survival};
use haul_file_store::Replication;
use haul_replicate::{
    Error, Options, Progress, Remote, Replica, Standby, StandbyControl, Takeover,
};
use haul_testing::eventually;

use crate::faulty::FaultyStore;
use crate::{TestLog, options, record, records};

/// The interval of polling.
const POLL: Duration = Duration::from_millis(5);

/// With a lease of less than a few seconds, a busy machine may lose it before the next step.
fn leased(lease_ms: u64) -> Options {
    Options { lease: Some(Duration::from_millis(lease_ms)), ..options() }
}

/// A log that waits for its copy, which has a lease.
struct Owner {
    log: TestLog,
    /// The connection of its machine.
    store: FaultyStore,
    progress: Arc<Progress>,
    replica: Replica,
}

impl Owner {
    fn new(store: &FaultyStore, options: Options) -> Self {
        Self::with(store, options, Progress::new(haul_testing::PATIENCE))
    }

    fn with(store: &FaultyStore, options: Options, progress: Progress) -> Self {
        let (log, store, progress) = (TestLog::new(), store.connect(), Arc::new(progress));
        let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
        let replica =
            Replica::follow_with(log.source(), &remote, options, Arc::clone(&progress)).unwrap();
        Self { log, store, progress, replica }
    }

    /// Appends a record. Returns `true` if it is acknowledged.
    fn put(&self, payload: &[u8]) -> bool {
        self.log.put(payload);
        self.progress.wait(self.log.log.synced()).is_ok()
    }
}

/// A thread with a standby.
struct Running {
    control: Arc<StandbyControl>,
    store: FaultyStore,
    disk: MemoryDisk,
    thread: thread::JoinHandle<haul_replicate::Result<Option<Takeover>>>,
    progress: Arc<Progress>,
    options: Options,
}

impl Running {
    fn start(store: &FaultyStore, disk: &MemoryDisk, options: Options) -> Self {
        let store = store.connect();
        let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
        let on: Arc<dyn Disk> = Arc::new(disk.clone());
        let standby = Standby::open(&remote, &on, POLL).unwrap().unwrap();
        let control = standby.control();
        let progress = Arc::new(Progress::new(haul_testing::PATIENCE));
        let (shared, run_options) = (Arc::clone(&progress), options.clone());
        let thread = thread::spawn(move || standby.run(&shared, &run_options));
        Self { control, store, disk: disk.clone(), thread, progress, options }
    }

    /// Waits until the state of the standby contains a text.
    fn wait_for(&self, text: &str) {
        eventually(text, || self.control.state().contains(text));
    }

    /// Waits until the standby has the log of an owner.
    fn wait_for_end(&self, owner: &Owner) {
        owner.replica.wait().unwrap();
        self.wait_for(&format!("ends at position {} of", owner.log.log.synced()));
    }

    fn stop(self) {
        self.control.stop();
        assert!(self.thread.join().unwrap().unwrap().is_none());
    }

    /// Waits for the takeover, and returns the new owner.
    fn join(self) -> Owner {
        let takeover = self.thread.join().unwrap().unwrap().unwrap();
        let log = TestLog::open(self.disk);
        let replica =
            takeover.follow(log.source(), self.options, Arc::clone(&self.progress)).unwrap();
        Owner { log, store: self.store, progress: self.progress, replica }
    }
}

#[test]
fn standby_fetches_each_byte_once_and_continues_after_a_restart() {
    let store = FaultyStore::new();
    let owner = Owner::new(&store, leased(20_000));
    let disk = MemoryDisk::default();
    let mut reads = Vec::new();
    for round in 0..4 {
        let standby = Running::start(&store, &disk, options());
        for step in 0..6 {
            owner.log.put_numbers(100 * round + 10 * step..100 * round + 10 * step + 7, 30_000);
            standby.wait_for_end(&owner);
        }
        reads.extend(standby.store.reads().into_iter().filter(|name| name.contains("/log/")));
        standby.stop();
    }
    let distinct: HashSet<_> = reads.iter().collect();
    assert_eq!(distinct.len(), reads.len(), "{reads:?}");
    // Chunks of segments that were merged before they were fetched are not read.
    assert!(reads.len() > 20, "{}", reads.len());
    let standby = Running::start(&store, &disk, options());
    standby.wait_for_end(&owner);
    standby.control.take_over();
    owner.store.set_down(true);
    let expected: Vec<_> = (0..4)
        .flat_map(|round| (0..6).map(move |step| 100 * round + 10 * step))
        .flat_map(|first| first..first + 7)
        .map(|number| record(number, 30_000))
        .collect();
    eventually("the standby takes over", || standby.thread.is_finished());
    let taken = standby.thread.join().unwrap();
    assert!(taken.unwrap().is_some());
    assert!(records(&disk) == expected);
}

#[test]
fn standby_takes_over_when_the_lease_ran_out_and_nothing_acknowledged_is_lost() {
    for is_local in [false, true] {
        let store = FaultyStore::new();
        let progress = match is_local {
            true => Progress::without_waiting(),
            false => Progress::new(haul_testing::PATIENCE),
        };
        let owner = Owner::with(&store, leased(3000), progress);
        let standby = Running::start(&store, &MemoryDisk::default(), leased(3000));
        for number in 0_u8..10 {
            assert!(owner.put(&[number]));
        }
        owner.replica.wait().unwrap();
        standby.wait_for("lease of 3 s");
        owner.store.set_down(true);
        let taken = standby.join();
        // The owner cannot know of it, and its lease has run out.
        assert!(owner.progress.check_now().is_err());
        assert!(taken.put(b"new"));
        owner.store.set_down(false);
        eventually("the owner is fenced", || owner.replica.status().stopped.is_some());
        assert!(!owner.put(b"lost"));
        taken.replica.stop().unwrap();
        let copied = records(&crate::restore(Arc::new(store)));
        let expected: Vec<_> =
            (0_u8..10).map(|number| vec![number]).chain([b"new".to_vec()]).collect();
        assert_eq!(copied, expected);
    }
}

/// The simulation of leases has thousands of such races.
#[test]
fn one_of_many_standbys_wins_each_time() {
    let store = FaultyStore::new();
    let owner = Owner::new(&store, leased(3000));
    assert!(owner.put(b"one"));
    let mut standbys: Vec<_> =
        (0..4).map(|_| Running::start(&store, &MemoryDisk::default(), leased(3000))).collect();
    standbys.iter().for_each(|standby| standby.wait_for("lease of 3 s"));
    owner.store.set_down(true);
    let mut owners = vec![owner];
    while standbys.len() > 1 {
        let has_won = |standby: &Running| standby.thread.is_finished();
        eventually("one takes over", || standbys.iter().any(has_won));
        let winner = standbys.iter().position(has_won).unwrap();
        let taken = standbys.remove(winner).join();
        assert!(taken.put(format!("after {} owners", owners.len()).as_bytes()));
        assert!(!standbys.iter().any(has_won));
        taken.store.set_down(true);
        owners.push(taken);
    }
    let last = standbys.pop().unwrap().join();
    last.replica.stop().unwrap();
    let expected = ["one", "after 1 owners", "after 2 owners", "after 3 owners"];
    assert_eq!(records(&crate::restore(Arc::new(store))), expected.map(str::as_bytes));
}

#[test]
fn owner_without_a_lease_is_taken_over_on_request_only() {
    let store = FaultyStore::new();
    let owner = Owner::new(&store, options());
    assert!(owner.put(b"one"));
    owner.store.set_down(true);
    let standby = Running::start(&store, &MemoryDisk::default(), leased(100));
    standby.wait_for("no lease");
    let polls = standby.store.reads().len();
    eventually("the standby polls", || standby.store.reads().len() > polls + 50);
    assert!(!standby.thread.is_finished());
    standby.control.take_over();
    let taken = standby.join();
    eventually("a record is acknowledged", || taken.put(b"two"));
    owner.store.set_down(false);
    assert!(!owner.put(b"lost"));
}

/// With a lease, a takeover on request waits until the owner acknowledges nothing any more.
#[test]
fn takeover_on_request_waits_for_the_lease_of_the_owner() {
    let store = FaultyStore::new();
    let owner = Owner::with(&store, leased(3000), Progress::without_waiting());
    assert!(owner.put(b"one"));
    owner.replica.wait().unwrap();
    let standby = Running::start(&store, &MemoryDisk::default(), leased(3000));
    standby.wait_for("lease of 3 s");
    owner.store.set_down(true);
    standby.control.take_over();
    let taken = standby.join();
    assert!(owner.progress.check_now().is_err());
    assert!(taken.put(b"two"));
}

#[test]
fn takeover_continues_after_a_crash_at_each_step() {
    let store = FaultyStore::new();
    let owner = Owner::new(&store, leased(100));
    let disk = MemoryDisk::default();
    let standby = Running::start(&store, &disk, leased(100));
    owner.log.put_numbers(0..30, 30_000);
    standby.wait_for_end(&owner);
    let (medium, steps) = (disk.medium(), disk.steps().len());
    eventually("a record is acknowledged", || owner.put(b"acknowledged"));
    let expected = records_of(&owner);
    owner.store.set_down(true);
    assert!(standby.thread.join().unwrap().unwrap().is_some());
    let mut medium = medium;
    let all = disk.steps();
    let later = &all[steps..];
    assert!(later.len() > 10, "{}", later.len());
    for (number, step) in later.iter().enumerate() {
        medium.apply_step(step);
        for survival in
            [Survival::Nothing, Survival::Everything, Survival::Half { seed: number as u64 }]
        {
            let left = MemoryDisk::on(&medium.cut(survival));
            let copy = FaultyStore::of(store.fork());
            let remote = Remote::new(Arc::new(copy.clone()), "copy").unwrap();
            let on: Arc<dyn Disk> = Arc::new(left.clone());
            let is_standby = Standby::open(&remote, &on, POLL).unwrap().is_some();
            let taken = if is_standby {
                Running::start(&copy, &left, leased(100)).join()
            } else {
                let log = TestLog::open(left.clone());
                let replica = log.follow(&remote).unwrap();
                let progress = Arc::new(Progress::without_waiting());
                Owner { log, store: copy.clone(), progress, replica }
            };
            assert!(records_of(&taken) == expected, "step {number}: {step:?}, {survival:?}");
            taken.log.put(b"more");
            taken.replica.wait().unwrap();
        }
    }
}

#[test]
fn takeover_that_was_stopped_after_its_claim_is_continued_at_once() {
    let store = FaultyStore::new();
    let owner = Owner::new(&store, leased(60_000));
    owner.log.put_numbers(0..30, 30_000);
    assert!(owner.put(b"acknowledged"));
    let disk = MemoryDisk::default();
    let standby = Running::start(&store, &disk, options());
    standby.control.take_over();
    // It waits for the lease of the owner, and is stopped before it can be opened.
    standby.wait_for("taking over");
    eventually("the owner is fenced", || {
        owner.log.put(b"not acknowledged");
        owner.progress.wait(owner.log.log.synced()).is_err()
    });
    standby.control.stop();
    assert!(standby.thread.join().unwrap().is_err());
    let again = Running::start(&store, &disk, leased(100)).join();
    eventually("a record is acknowledged", || again.put(b"two"));
    let found = records_of(&again);
    assert!(found.contains(&b"acknowledged".to_vec()) && found.contains(&b"two".to_vec()));
}

#[test]
fn directory_with_another_or_a_newer_log_is_refused() {
    let store = FaultyStore::new();
    let owner = Owner::new(&store, options());
    assert!(owner.put(b"one"));
    let older = store.fork();
    assert!(owner.put(b"two"));
    let disk = MemoryDisk::default();
    let standby = Running::start(&store, &disk, options());
    standby.wait_for_end(&owner);
    standby.stop();
    let refused = |store: FaultyStore, what: &str| {
        let left = MemoryDisk::on(&disk.medium());
        let refused = Running::start(&store, &left, options()).thread.join().unwrap();
        let Err(Error::NotThisLog { what: found }) = refused else { panic!("{refused:?}") };
        assert!(found.contains(what), "{found}");
    };
    refused(FaultyStore::of(older), "has records after");
    let other = FaultyStore::new();
    let another = Owner::new(&other, options());
    assert!(another.put(b"one") && another.put(b"two") && another.put(b"three"));
    refused(other, "another nonce");
    let remote = Remote::new(Arc::new(store), "copy").unwrap();
    let used: Arc<dyn Disk> = Arc::new(MemoryDisk::default());
    used.create("file", haul_disk::Open::default()).unwrap();
    let refused = Standby::open(&remote, &used, POLL).unwrap_err();
    assert!(refused.to_string().contains("neither empty nor a standby"), "{refused}");
}

/// Returns the payloads of the log of an owner.
fn records_of(owner: &Owner) -> Vec<Vec<u8>> {
    let mut reader = owner.log.log.reader(haul_append_log::Lsn::default());
    let mut all = Vec::new();
    while let Some((_, payload)) = reader.read_next().unwrap() {
        all.push(payload.to_vec());
    }
    all
}
