//! The threads that read from one device, and the teams of all devices.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use super::device::{Device, Group, groups};
use super::kind::{Decided, DeviceRead, Kind};
use super::plan::{self, Item, Place};
use super::sift::Sift;
use super::worker::{Count, Worker};
use super::{Consumer, Order, ReadOptions, ReadStats, Want};
use crate::tree::Tree;

/// The least a worker can do with.
const MEMORY_BYTES_MIN: usize = 1 << 20;

/// How many reads are under way on a device without an arm, for each thread.
const DEPTH_SOLID: usize = 32;

/// And on one with an arm: enough for it to be never without, and for neighbours to be asked for
/// together.
const DEPTH_ROTATING: usize = 128;

/// What all threads of a run share.
pub(super) struct Run<'a, C> {
    pub(super) tree: &'a Tree,
    pub(super) wants: &'a [Want],
    pub(super) options: &'a ReadOptions<'a>,
    pub(super) consumer: &'a C,
    wants_done: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
}

/// How the threads of one device read.
#[derive(Debug)]
pub(super) struct Manner {
    pub(super) depth: usize,
    pub(super) memory_bytes: usize,
    /// One file after the other: nothing else is begun before all of one is asked for.
    pub(super) in_sweep: bool,
    /// All of it was found not to be in memory.
    pub(super) is_cold: bool,
    pub(super) in_memory: bool,
    pub(super) no_length: bool,
    pub(super) sift: Option<Sift>,
    cold: AtomicU64,
}

impl<C: Consumer> Run<'_, C> {
    pub(super) fn is_stopped(&self) -> bool {
        self.options.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Counts what a worker did since last time.
    pub(super) fn count(&self, count: Count, manner: &Manner) {
        let wants = self.wants_done.fetch_add(count.wants, Ordering::Relaxed) + count.wants;
        let failed = self.failed.fetch_add(count.failed, Ordering::Relaxed) + count.failed;
        let bytes = self.bytes.fetch_add(count.bytes, Ordering::Relaxed) + count.bytes;
        manner.cold.fetch_add(count.cold, Ordering::Relaxed);
        self.consumer.progress(wants + failed, bytes);
    }

    /// Reads all wants of one device.
    fn device(&self, group: Group, memory_bytes: usize) -> DeviceRead {
        let Group { device, mut items } = group;
        let (kind, threads) = (self.known_kind(&device), self.threads());
        if self.options.order != Order::AsGiven {
            plan::by_inode(&mut items, self.wants);
        }
        let is_sifted = match self.options.order {
            Order::Auto => kind.is_none_or(|(kind, _)| kind == Kind::Rotating),
            Order::Physical => true,
            Order::AsGiven | Order::Inode => false,
        };
        let manner = |kind, sift| Manner {
            depth: self.options.depth.unwrap_or(match kind {
                Kind::Solid => DEPTH_SOLID,
                Kind::Rotating => DEPTH_ROTATING,
            }),
            memory_bytes,
            in_sweep: kind == Kind::Rotating,
            is_cold: false,
            in_memory: device.in_memory,
            no_length: device.no_length,
            sift,
            cold: AtomicU64::new(0),
        };
        let done = |(kind, decided), threads, cold| DeviceRead {
            name: device.name.clone(),
            kind,
            decided,
            threads,
            cold,
        };
        if !is_sifted {
            let known = kind.unwrap_or((Kind::Rotating, Decided::Unmeasured));
            let manner = manner(known.0, None);
            let threads = self.threads_on(known.0);
            self.crew(threads, &manner, &Queue::new(items));
            return done(known, threads, manner.cold.into_inner());
        }
        let by_place = self.options.order == Order::Physical;
        let sifting = manner(Kind::Solid, Some(Sift::new(kind, by_place)));
        self.crew(threads, &sifting, &Queue::new(items));
        let cold = sifting.cold.into_inner();
        let Some(sift) = sifting.sift else { return done((Kind::Solid, Decided::Flag), 0, cold) };
        let (aside, known) = sift.into_aside(self.tree, self.wants);
        if aside.is_empty() {
            return done(known, threads, cold);
        }
        let items = if by_place || known.0 == Kind::Rotating {
            plan::by_place(aside, self.wants)
        } else {
            back_by_inode(aside, self.wants)
        };
        let threads = self.threads_on(known.0);
        let manner = Manner { is_cold: true, ..manner(known.0, None) };
        self.crew(threads, &manner, &Queue::new(items));
        done(known, threads, cold + manner.cold.into_inner())
    }

    /// What is known of the device without reading.
    fn known_kind(&self, device: &Device) -> Option<(Kind, Decided)> {
        let by_number = |(number, _): &&(u64, Kind)| device.numbers.contains(number);
        let given = self.options.kinds.iter().find(by_number).map(|(_, kind)| *kind);
        match (given.or(self.options.kind), device.rotational) {
            (Some(kind), _) => Some((kind, Decided::Given)),
            (None, Some(true)) => None,
            (None, _) => Some((Kind::Solid, Decided::Flag)),
        }
    }

    fn threads(&self) -> usize {
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        self.options.threads.unwrap_or_else(cores).max(1)
    }

    fn threads_on(&self, kind: Kind) -> usize {
        match kind {
            Kind::Solid => self.threads(),
            // One arm, one thread.
            Kind::Rotating => self.options.threads.unwrap_or(1).max(1),
        }
    }

    /// Lets that many threads read all of a queue, this one among them.
    fn crew(&self, threads: usize, manner: &Manner, queue: &Queue) {
        let work = || Worker::new(self, manner).run(|| queue.take());
        thread::scope(|scope| {
            for _ in 1..threads {
                // One that cannot be started is not missed.
                if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work();
        });
    }
}

fn back_by_inode(aside: Vec<(Place, Item)>, wants: &[Want]) -> Vec<Item> {
    let mut items = plan::without_places(aside);
    plan::by_inode(&mut items, wants);
    items
}

/// The wants of one device, in order, handed out in portions.
struct Queue {
    items: Vec<Item>,
    portions: Vec<Range<u32>>,
    next: AtomicUsize,
}

impl Queue {
    fn new(items: Vec<Item>) -> Self {
        let portions = plan::portions(&items);
        Self { items, portions, next: AtomicUsize::new(0) }
    }

    /// The next portion; none when all are taken.
    fn take(&self) -> Option<&[Item]> {
        let portion = self.portions.get(self.next.fetch_add(1, Ordering::Relaxed))?;
        self.items.get(portion.start as usize..portion.end as usize)
    }
}

pub(super) fn read<C: Consumer>(
    tree: &Tree,
    wants: &[Want],
    options: &ReadOptions<'_>,
    consumer: &C,
) -> ReadStats {
    let run = Run {
        tree,
        wants,
        options,
        consumer,
        wants_done: AtomicU64::new(0),
        failed: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    };
    let mut groups = groups(tree, wants);
    let share = options.memory_bytes_max / (groups.len() * run.threads()).max(1);
    let memory_bytes = share.max(MEMORY_BYTES_MIN);
    let last = groups.pop();
    let mut devices = Vec::new();
    thread::scope(|scope| {
        let others: Vec<_> = groups
            .into_iter()
            .map(|group| scope.spawn(|| run.device(group, memory_bytes)))
            .collect();
        let last = last.map(|group| run.device(group, memory_bytes));
        let join = |other: thread::ScopedJoinHandle<'_, DeviceRead>| {
            other.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
        };
        devices.extend(others.into_iter().map(join).chain(last));
    });
    ReadStats {
        wants: run.wants_done.into_inner(),
        failed: run.failed.into_inner(),
        bytes: run.bytes.into_inner(),
        devices,
    }
}
