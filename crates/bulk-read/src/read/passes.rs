//! Reads the requests of each device with several threads, in one pass or two. A device that may be
//! rotational needs two: the first pass reads the cached files, the second pass the others.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use haul_disk::{DeviceKind, KindSource};

use super::consumer::Consumer;
use super::defer::Deferral;
use super::device::{Device, DeviceStats, Group, groups, known_kind};
use super::options::ReadOptions;
use super::plan::{self, Item, Order, Position};
use super::request::ReadRequest;
use super::run::{Pass, ReadStats, Run};
use super::worker::Worker;
use crate::tree::Tree;

/// The minimum buffer memory of a worker, in bytes.
const MEMORY_BYTES_MIN: usize = 2 << 20;

/// Reads all `requests`, each exactly once, and passes the bytes to `consumer`.
///
/// Returns when every request has ended. An error of one request is passed to [`Consumer::end`] and
/// does not affect other requests. Opening a file never blocks: if a pipe or a device replaced the
/// listed file, the request fails.
pub fn read<C: Consumer>(
    tree: &Tree,
    requests: &[ReadRequest],
    options: &ReadOptions<'_>,
    consumer: &C,
) -> ReadStats {
    let run = Run::new(tree, requests, options, consumer);
    let mut groups = groups(tree, requests);
    let per_thread = options.memory_bytes_max / (groups.len() * run.threads()).max(1);
    let memory_bytes = per_thread.max(MEMORY_BYTES_MIN);
    let last = groups.pop();
    let mut devices = Vec::new();
    thread::scope(|scope| {
        let run = &run;
        let others: Vec<_> = groups
            .into_iter()
            .map(|group| scope.spawn(move || read_device(run, group, memory_bytes)))
            .collect();
        let last = last.map(|group| read_device(run, group, memory_bytes));
        let join = |other: thread::ScopedJoinHandle<'_, DeviceStats>| {
            other.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
        };
        devices.extend(others.into_iter().map(join).chain(last));
    });
    run.into_stats(devices)
}

/// Reads all requests of one device.
fn read_device<C: Consumer>(run: &Run<'_, C>, group: Group, memory_bytes: usize) -> DeviceStats {
    let Group { device, mut items } = group;
    let kind = known_kind(run.options, &device);
    if run.options.order != Order::AsGiven {
        plan::by_inode(&mut items, run.requests);
    }
    let is_deferring = match run.options.order {
        Order::Auto => kind.is_none_or(|(kind, _)| kind == DeviceKind::Rotational),
        Order::Physical => true,
        Order::AsGiven | Order::Inode => false,
    };
    if is_deferring {
        return read_in_two_passes(run, &device, kind, items, memory_bytes);
    }
    let known = kind.unwrap_or((DeviceKind::Rotational, KindSource::Unmeasured));
    let pass = Pass::new(run.options, &device, known.0, memory_bytes);
    let threads = run.threads_on(known.0);
    run_workers(run, threads, &pass, &Queue::new(items));
    stats(&device, known.0, known.1, threads, pass.cold())
}

/// Reads in two passes. The first pass reads the cached files and defers the uncached files, which
/// the second pass reads.
fn read_in_two_passes<C: Consumer>(
    run: &Run<'_, C>,
    device: &Device,
    kind: Option<(DeviceKind, KindSource)>,
    items: Vec<Item>,
    memory_bytes: usize,
) -> DeviceStats {
    let by_position = run.options.order == Order::Physical;
    let threads = run.threads();
    let first = Pass::new(run.options, device, DeviceKind::SolidState, memory_bytes)
        .deferring(Deferral::new(kind, by_position));
    run_workers(run, threads, &first, &Queue::new(items));
    let cold = first.cold();
    let Some(deferral) = first.deferral else {
        return stats(device, DeviceKind::SolidState, KindSource::KernelFlag, 0, cold);
    };
    let (deferred, known) = deferral.into_deferred(run.tree, run.requests);
    if deferred.is_empty() {
        return stats(device, known.0, known.1, threads, cold);
    }
    let items = if by_position || known.0 == DeviceKind::Rotational {
        plan::by_position(deferred, run.requests)
    } else {
        sort_by_inode(deferred, run.requests)
    };
    let threads = run.threads_on(known.0);
    let second = Pass::new(run.options, device, known.0, memory_bytes).over_uncached();
    run_workers(run, threads, &second, &Queue::new(items));
    stats(device, known.0, known.1, threads, cold + second.cold())
}

fn stats(
    device: &Device,
    kind: DeviceKind,
    kind_source: KindSource,
    threads: usize,
    cold: u64,
) -> DeviceStats {
    DeviceStats { name: device.name.clone(), kind, kind_source, threads, cold }
}

/// Reads a queue with `threads` threads, one of which is the calling thread.
fn run_workers<C: Consumer>(run: &Run<'_, C>, threads: usize, pass: &Pass, queue: &Queue) {
    let work = || Worker::new(run, pass).run(|| queue.next_batch());
    thread::scope(|scope| {
        for _ in 1..threads {
            // A failed spawn is harmless: the calling thread reads, too.
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
}

fn sort_by_inode(deferred: Vec<(Position, Item)>, requests: &[ReadRequest]) -> Vec<Item> {
    let mut items = plan::without_positions(deferred);
    plan::by_inode(&mut items, requests);
    items
}

/// The requests of a device, sorted and divided into batches.
struct Queue {
    items: Vec<Item>,
    batches: Vec<Range<u32>>,
    next: AtomicUsize,
}

impl Queue {
    fn new(items: Vec<Item>) -> Self {
        let batches = plan::batches(&items);
        Self { items, batches, next: AtomicUsize::new(0) }
    }

    /// Returns the next batch; returns `None` if none is left.
    fn next_batch(&self) -> Option<&[Item]> {
        let batch = self.batches.get(self.next.fetch_add(1, Ordering::Relaxed))?;
        self.items.get(batch.start as usize..batch.end as usize)
    }
}
