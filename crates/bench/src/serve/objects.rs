//! Fills the stores of the servers, and stores objects without a server.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use haul_disk::error_chain;
use haul_file_store::{Attributes, NewObject, Options, Precondition, Store};

use crate::log::process_cpu;
use crate::net::cores::{Cores, Pinned};
use crate::net::http::site::{Page, Site};
use crate::net::sample::Sample;
use crate::net::usage::Used;
use haul_measure::{Error, Result, Watcher};

/// The bucket of all objects.
pub(super) const BUCKET: &str = "bench";

/// The maximum number of bytes of the objects that are stored at once.
const BATCH_BYTES: u64 = 64 << 20;

fn failed(error: &haul_file_store::Error) -> Error {
    Error::Missing(format!("cannot store the objects: {}", error_chain(error)))
}

/// Opens a store with a bucket.
pub(super) fn open(dir: &Path) -> Result<Store> {
    let (store, _recovered) = Store::open(dir, Options::default()).map_err(|why| failed(&why))?;
    store.create_bucket(BUCKET).map_err(|why| failed(&why))?;
    Ok(store)
}

/// Closes a store.
pub(super) fn close(store: Store) -> Result<()> {
    store.close().map_err(|why| failed(&why))
}

/// Creates a store with an object for each file of the site. The objects are durable when this
/// returns.
pub(super) fn create(dir: &Path, site: &Site, watcher: &dyn Watcher) -> Result<()> {
    let store = open(dir)?;
    let (attributes, precondition) = (Attributes::new(), Precondition::None);
    let mut rest = &site.pages[..];
    while !rest.is_empty() {
        watcher.check()?;
        let (batch, behind) = rest.split_at(batch(rest));
        rest = behind;
        let contents: Vec<_> = batch.iter().map(content).collect();
        let objects = batch.iter().zip(&contents).map(|(page, bytes)| NewObject {
            key: &page.name,
            bytes,
            attributes: &attributes,
            precondition: &precondition,
        });
        let stored = store.put_many(BUCKET, &objects.collect::<Vec<_>>());
        stored
            .into_iter()
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|why| failed(&why))?;
    }
    close(store)
}

/// Returns the number of the first pages that have at most [`BATCH_BYTES`] together, at least 1.
fn batch(pages: &[Page]) -> usize {
    let mut bytes = 0;
    let fits = |page: &&Page| {
        bytes += page.bytes;
        bytes <= BATCH_BYTES
    };
    pages.iter().take_while(fits).count().max(1)
}

fn content(page: &Page) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(page.bytes).unwrap_or(usize::MAX)];
    page.content.fill(0, &mut bytes);
    bytes
}

/// Stores `body` under each of the keys with `threads` threads on the core of the server, and
/// returns the CPU time of this process.
pub(super) fn put(
    store: &Store,
    keys: &[String],
    body: &[u8],
    (threads, cores): (usize, Cores),
) -> Result<Sample> {
    let next = AtomicUsize::new(0);
    let writer = || {
        let attributes = Attributes::new();
        while let Some(key) = keys.get(next.fetch_add(1, Ordering::Relaxed)) {
            let put = store.put(BUCKET, key, body, &attributes, &Precondition::None);
            put.map_err(|why| failed(&why))?;
        }
        Ok(())
    };
    let (start, before) = (Instant::now(), process_cpu());
    thread::scope(|scope| {
        let pinned = Pinned::to(cores.server)?;
        let writers: Vec<_> = (0..threads).map(|_| scope.spawn(writer)).collect();
        drop(pinned);
        let ended = |writer: thread::ScopedJoinHandle<'_, Result<()>>| {
            writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        writers.into_iter().try_for_each(ended)
    })?;
    let process = Some(process_cpu().saturating_sub(before));
    let used = Used { process, ..Used::default() };
    Ok(Sample { wall: start.elapsed(), requests: keys.len() as u64, used, ..Sample::default() })
}
