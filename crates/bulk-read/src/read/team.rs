//! The threads that read from one device, and the teams of all devices.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use super::plan::{self, Item};
use super::worker::Worker;
use super::{Consumer, DeviceRead, Kind, Order, ReadOptions, ReadStats, Want};
use crate::tree::Tree;

/// What all threads of a run share.
pub(super) struct Run<'a, C> {
    pub(super) tree: &'a Tree,
    pub(super) wants: &'a [Want],
    pub(super) options: &'a ReadOptions<'a>,
    pub(super) consumer: &'a C,
    pub(super) done: Done,
}

/// What was done so far.
#[derive(Debug, Default)]
pub(super) struct Done {
    wants: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
}

impl<C: Consumer> Run<'_, C> {
    pub(super) fn is_stopped(&self) -> bool {
        self.options.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Counts what a worker did since last time.
    pub(super) fn count(&self, wants: u64, failed: u64, bytes: u64) {
        let wants = self.done.wants.fetch_add(wants, Ordering::Relaxed) + wants;
        let failed = self.done.failed.fetch_add(failed, Ordering::Relaxed) + failed;
        let bytes = self.done.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.consumer.progress(wants + failed, bytes);
    }
}

/// The wants of one device, in order, handed out in portions.
pub(super) struct Queue {
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
    pub(super) fn take(&self) -> Option<&[Item]> {
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
    let run = Run { tree, wants, options, consumer, done: Done::default() };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut groups: BTreeMap<u64, Vec<Item>> = BTreeMap::new();
    for (index, want) in (0..).zip(wants) {
        let meta = tree.meta(want.file);
        groups.entry(meta.device).or_default().push(Item {
            want: index,
            file: want.file.0,
            dir: tree.dir(want.file).0,
            inode: meta.inode,
            offset: want.offset,
            bytes: want.bytes.min(meta.bytes.saturating_sub(want.offset)),
        });
    }
    let mut devices = Vec::new();
    let mut queues = Vec::new();
    for (device, mut items) in groups {
        let by_number = options.kinds.iter().find(|(number, _)| *number == device);
        let kind = by_number.map(|(_, kind)| *kind).or(options.kind).unwrap_or(Kind::Solid);
        if options.order != Order::AsGiven {
            plan::by_inode(&mut items);
        }
        let threads = options.threads.unwrap_or(cores).max(1);
        devices.push(DeviceRead { name: format!("{device:#x}"), kind, threads });
        queues.push((threads, Queue::new(items)));
    }
    thread::scope(|scope| {
        for (threads, queue) in &queues {
            for _ in 0..*threads {
                let work = || Worker::new(&run, queue).run();
                if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
        }
    });
    // Where no thread could be started, this one does what is left.
    for (_, queue) in &queues {
        Worker::new(&run, queue).run();
    }
    ReadStats {
        wants: run.done.wants.into_inner(),
        failed: run.done.failed.into_inner(),
        bytes: run.done.bytes.into_inner(),
        devices,
    }
}
