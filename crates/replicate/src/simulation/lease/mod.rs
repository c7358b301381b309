//! Simulates processes that own or watch a copy, with their own clocks, over a remote store that
//! fails, responds late and executes requests late.
//!
//! One process runs at a time. At each request another one may continue, before the request has its
//! effect and before its response.

mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use haul_testing::Random;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore, PutOptions, PutPayload};
use parking_lot::{Condvar, Mutex};

use crate::error::Result;
use crate::lease::{Clock, Lease, Watch};
use crate::manifest::object::ManifestObject;
use crate::manifest::{HEADER_BYTES, Manifest, SegmentCopy};
use crate::remote::Remote;
use world::{Connection, PROCESSES, SkewedClock, State, World};

const LEASE: Duration = Duration::from_secs(3);

/// A process that owns the copy or watches it.
struct Process {
    number: usize,
    world: Arc<World>,
    remote: Remote,
    clock: Arc<dyn Clock>,
    /// `true` if the owner acknowledges only records that are in the copy, otherwise all.
    waits_for_copy: bool,
}

impl Process {
    fn run(&self) {
        {
            let mut state = self.world.state.lock();
            self.world.await_turn(self.number, &mut state);
        }
        while !self.world.is_over.load(Ordering::SeqCst) {
            if let Ok(Some((object, lease))) = self.stand_by() {
                self.world.state.lock().takeovers += 1;
                // An error means that another process owns the copy.
                drop(self.own(object, &lease));
            }
        }
    }

    /// Watches until the copy can be taken over. A remote store error restarts the watch.
    fn stand_by(&self) -> Result<Option<(ManifestObject, Arc<Lease>)>> {
        let mut watch = Watch::default();
        let Some(mut object) = ManifestObject::load(&self.remote)? else { return Ok(None) };
        loop {
            watch.observe(object.current().version(), self.clock.now());
            let is_due = watch.until_expiry(self.clock.now()) == Some(Duration::ZERO);
            if self.world.is_over.load(Ordering::SeqCst) {
                return Ok(None);
            }
            if is_due {
                let lease = Arc::new(Lease::new(LEASE, Arc::clone(&self.clock)));
                let mut next = object.current().clone();
                next.epoch += 1;
                next.session = u128::from(self.world.number(u64::MAX)) + 1;
                next.written_ms = self.world.number(u64::MAX >> 1);
                let mut owned = object.with_lease(Some(Arc::clone(&lease)));
                owned.replace(next)?;
                return Ok(Some((owned, lease)));
            }
            self.world.pass(self.number);
            drop(object.reload());
        }
    }

    /// Appends records and acknowledges them, until the process crashes or is fenced.
    fn own(&self, mut object: ManifestObject, lease: &Lease) -> Result<()> {
        let mut draft = object.current().clone();
        let epoch = draft.epoch;
        let mut unconfirmed: Vec<u32> = Vec::new();
        loop {
            if self.world.is_over.load(Ordering::SeqCst) || self.world.chance(60) {
                return Ok(());
            }
            if self.world.chance(2) {
                let record = {
                    let mut state = self.world.state.lock();
                    state.next_record += 1;
                    state.next_record
                };
                draft.tail.extend_from_slice(&record.to_le_bytes());
                unconfirmed.push(record);
                if !self.waits_for_copy && lease.check().is_ok() {
                    self.world.state.lock().acknowledged.push((epoch, None));
                }
            }
            // The wall clock is wrong, and steps.
            draft.written_ms = self.world.number(u64::MAX >> 1);
            match object.replace(draft.clone()) {
                Ok(()) => {
                    let confirmed = std::mem::take(&mut unconfirmed);
                    if self.waits_for_copy && lease.check().is_ok() {
                        let mut state = self.world.state.lock();
                        let records = confirmed.into_iter().map(|record| (epoch, Some(record)));
                        state.acknowledged.extend(records);
                    }
                }
                Err(error) if error.is_final() => return Err(error),
                Err(_) => {}
            }
            for _ in 0..self.world.number(8) {
                self.world.pass(self.number);
            }
        }
    }
}

struct Outcome {
    acknowledged: usize,
    takeovers: usize,
    /// `true` if an owner acknowledged after a later one had.
    overlaps: bool,
    /// The records that were acknowledged as copied, and are not in the copy.
    lost: usize,
}

fn simulate(seed: u64, waits_for_copy: bool, rates: [f64; PROCESSES]) -> Outcome {
    let world = Arc::new(World {
        state: Mutex::new(State {
            random: Random(seed),
            now: Duration::from_secs(1),
            turns: 0,
            running: 0,
            is_over: false,
            partitioned: [Duration::ZERO; PROCESSES],
            late: Vec::new(),
            acknowledged: Vec::new(),
            takeovers: 0,
            next_record: 0,
        }),
        turn: Condvar::new(),
        objects: InMemory::new(),
        is_over: AtomicBool::new(false),
    });
    // A copy whose first owner is gone.
    let segment = SegmentCopy {
        number: 1,
        nonce: 1,
        header: [0; HEADER_BYTES],
        is_complete: false,
        chunks: Vec::new(),
    };
    let first = Manifest { segments: vec![segment], lease_ms: 3000, ..Manifest::default() };
    let payload = PutPayload::from(crate::manifest::encode(&first));
    let name = Path::from("copy/manifest");
    let put = world.objects.put_opts(&name, payload, PutOptions::default());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(put).unwrap();
    let processes: Vec<_> = (0..PROCESSES)
        .map(|number| {
            let store = Connection { world: Arc::clone(&world), process: number };
            let clock = SkewedClock {
                world: Arc::clone(&world),
                offset: Duration::from_secs(1000 * world.number(1000)),
                rate: rates[number],
            };
            Process {
                number,
                world: Arc::clone(&world),
                remote: Remote::new(Arc::new(store), "copy").unwrap(),
                clock: Arc::new(clock),
                waits_for_copy,
            }
        })
        .collect();
    thread::scope(|scope| {
        for process in &processes {
            scope.spawn(|| process.run());
        }
    });
    let found = runtime.block_on(async {
        world.objects.get_opts(&name, GetOptions::default()).await.unwrap().bytes().await.unwrap()
    });
    let manifest = crate::manifest::decode(&found).unwrap();
    let copied: Vec<u32> =
        manifest.tail.chunks(4).map(|id| u32::from_le_bytes(id.try_into().unwrap())).collect();
    let state = world.state.lock();
    let records = state.acknowledged.iter().filter_map(|(_, record)| *record);
    Outcome {
        acknowledged: state.acknowledged.len(),
        takeovers: state.takeovers,
        overlaps: !state.acknowledged.is_sorted_by_key(|(epoch, _)| *epoch),
        lost: records.filter(|record| !copied.contains(record)).count(),
    }
}

/// The clocks' rates: they differ by up to 4 %.
const RATES: [f64; PROCESSES] = [0.98, 1.02, 1.0, 1.01];

#[test]
fn no_two_owners_acknowledge_and_no_copied_record_is_lost() {
    let (mut acknowledged, mut takeovers) = (0, 0);
    let first = haul_testing::seed();
    for seed in first..first + 150 {
        for waits_for_copy in [false, true] {
            let outcome = simulate(seed, waits_for_copy, RATES);
            assert!(!outcome.overlaps, "seed {seed}, {waits_for_copy}: two owners acknowledge");
            assert_eq!(outcome.lost, 0, "seed {seed}, {waits_for_copy}: records are lost");
            acknowledged += outcome.acknowledged;
            takeovers += outcome.takeovers;
        }
    }
    assert!(acknowledged > 3000 && takeovers > 600, "{acknowledged}, {takeovers}");
}

/// Clocks whose rates differ by more than the margin break the promise for acknowledgements by the
/// local log. The simulation must notice this.
#[test]
fn simulation_notices_clocks_that_differ_by_more_than_the_margin() {
    let overlaps = (0..150).any(|seed| simulate(seed, false, [0.5, 2.0, 0.5, 2.0]).overlaps);
    assert!(overlaps);
    assert!((0..20).all(|seed| simulate(seed, true, [0.5, 2.0, 0.5, 2.0]).lost == 0));
}
