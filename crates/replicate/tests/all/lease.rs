//! Tests that the owner of a copy acknowledges nothing after its lease ran out.

use std::sync::Arc;
use std::time::Duration;

use haul_append_log::Lsn;
use haul_file_store::Replication;
use haul_replicate::{Error, Options, Progress, Remote, Replica};
use haul_testing::{PATIENCE, eventually};

use crate::faulty::{Fault, FaultyStore};
use crate::{TestLog, options, records, restore};

fn leased(lease: Duration) -> Options {
    Options { lease: Some(lease), ..options() }
}

/// A log whose copy has a lease, with or without waiting for the copy.
struct Owner {
    log: TestLog,
    store: FaultyStore,
    progress: Arc<Progress>,
    replica: Replica,
}

impl Owner {
    fn new(store: &FaultyStore, lease: Duration, progress: Progress) -> Self {
        let (log, store, progress) = (TestLog::new(), store.connect(), Arc::new(progress));
        let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
        let follow = Replica::follow_with;
        let replica = follow(log.source(), &remote, leased(lease), Arc::clone(&progress)).unwrap();
        Self { log, store, progress, replica }
    }

    /// Appends a record, and returns the end of the log.
    fn put(&self, payload: &[u8]) -> Lsn {
        self.log.put(payload);
        self.log.log.synced()
    }

    fn is_held(&self) -> bool {
        !self.replica.status().lease.unwrap().is_zero()
    }
}

#[test]
fn idle_owner_renews_its_lease_and_one_without_a_lease_makes_no_request() {
    let store = FaultyStore::new();
    let owner = Owner::new(&store, Duration::from_millis(300), Progress::without_waiting());
    let before = owner.store.changes();
    eventually("the lease is renewed", || owner.store.changes() > before + 3);
    eventually("the lease is held", || owner.is_held());
    let idle = FaultyStore::new();
    let log = TestLog::new();
    let remote = Remote::new(Arc::new(idle.clone()), "copy").unwrap();
    let replica = log.follow(&remote).unwrap();
    replica.wait().unwrap();
    let before = idle.changes();
    let renewed = owner.store.changes();
    eventually("the lease is renewed", || owner.store.changes() > renewed + 3);
    assert_eq!(idle.changes(), before);
    assert_eq!(replica.status().lease, None);
}

#[test]
fn owner_whose_lease_ran_out_refuses_changes_until_it_is_renewed() {
    let store = FaultyStore::new();
    let owner = Owner::new(&store, Duration::from_secs(3), Progress::without_waiting());
    let end = owner.put(b"one");
    assert_eq!(owner.progress.wait(end), Ok(()));
    assert!(!owner.progress.may_wait());
    owner.store.set_plan(|_| Fault::Refused);
    eventually("the lease runs out", || !owner.is_held());
    assert!(owner.progress.may_wait());
    let refused = owner.progress.wait(end).unwrap_err();
    assert!(refused.contains("lease of 3 s ran out"), "{refused}");
    assert_eq!(owner.progress.check_now(), Err(refused));
    assert!(owner.replica.status().last_error.unwrap().contains("503"));
    owner.store.set_plan(|_| Fault::None);
    eventually("the lease is renewed", || owner.is_held());
    assert_eq!(owner.progress.wait(end), Ok(()));
}

#[test]
fn lost_answers_do_not_end_the_lease() {
    let store = FaultyStore::new();
    let lease = Duration::from_secs(20);
    let owner = Owner::new(&store, lease, Progress::new(PATIENCE));
    owner.store.set_plan(|change| if change % 2 == 0 { Fault::AnswerLost } else { Fault::None });
    let before = owner.store.changes();
    for number in 0_u8..20 {
        let end = owner.put(&[number]);
        assert_eq!(owner.progress.wait(end), Ok(()));
    }
    assert!(owner.store.changes() > before + 20);
    assert_eq!(records(&restore(Arc::new(store))).len(), 20);
}

#[test]
fn restored_log_waits_until_the_lease_of_the_previous_owner_ran_out() {
    let store = FaultyStore::new();
    let lease = Duration::from_millis(400);
    let owner = Owner::new(&store, lease, Progress::without_waiting());
    let end = owner.put(b"one");
    owner.replica.wait().unwrap();
    owner.store.set_plan(|_| Fault::Refused);
    let remote = Remote::new(Arc::new(store.connect()), "copy").unwrap();
    let restored = TestLog::open(restore(Arc::new(store.clone())));
    let replica = restored.follow(&remote).unwrap();
    // The owner cannot know of the other one, and its lease has run out.
    assert!(owner.progress.wait(end).is_err());
    owner.store.set_plan(|_| Fault::None);
    eventually("the owner is fenced", || owner.replica.status().stopped.is_some());
    assert!(owner.progress.wait(end).unwrap_err().contains("took over"));
    restored.put(b"two");
    replica.wait().unwrap();
    // A later claim of the same directory does not wait: this process is known to have ended.
    replica.stop().unwrap();
    assert_eq!(records(&restore(Arc::new(store))), [b"one", b"two"]);
}

#[test]
fn restored_log_waits_for_the_lease_after_a_failed_claim_too() {
    let store = FaultyStore::new();
    let lease = Duration::from_millis(400);
    let owner = Owner::new(&store, lease, Progress::without_waiting());
    let end = owner.put(b"one");
    owner.replica.wait().unwrap();
    let machine = store.connect();
    let remote = Remote::new(Arc::new(machine.clone()), "copy").unwrap();
    let restored = TestLog::open(restore(Arc::new(store.clone())));
    let claim = || {
        let progress = Arc::new(Progress::without_waiting());
        Replica::follow_with(restored.source(), &remote, leased(lease), progress)
    };
    owner.store.set_plan(|_| Fault::Refused);
    machine.set_plan(|_| Fault::Refused);
    assert!(restored.follow(&remote).is_err());
    machine.set_plan(|_| Fault::AnswerLost);
    // Without waiting for the copy, the claim is repeated.
    drop(claim().unwrap());
    machine.set_plan(|_| Fault::None);
    let _replica = claim().unwrap();
    assert!(owner.progress.wait(end).is_err());
}

#[test]
fn lease_out_of_range_is_refused() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store), "copy").unwrap();
    for lease in [Duration::ZERO, Duration::from_millis(99), Duration::from_secs(3601)] {
        let refused = Replica::follow(TestLog::new().source(), &remote, leased(lease));
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
}
