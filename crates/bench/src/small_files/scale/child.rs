//! The child processes: they fill, open and list the store, and report their figures as lines.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use haul_file_store::{ListPage, ListRequest, Options as StoreOptions, Store};
use haul_measure::Latencies;
use haul_testing::{Random, noise};

use super::lines::{Phase, Step};
use super::options::{Options, Role};
use crate::log::{Failure, process_cpu};
use crate::small_files::fill::fill;
use crate::small_files::objects::{Numbered, user_key};

const BUCKET: &str = "scale";
/// The length of an object in bytes.
pub(super) const OBJECT_BYTES: u64 = 100;
/// The number of keys of a page of the listing.
pub(super) const PAGE_KEYS: usize = 1000;
/// The time after a step in which the threads of the store finish their deferred work, before the
/// memory is measured.
const SETTLE: Duration = Duration::from_millis(1500);

/// Performs the task of a child process, with the store in the directory of `options`, and writes
/// the figures to `out`. Afterwards it waits, with the store open, until `parent` is closed.
///
/// # Errors
/// Returns the first error of the store or of `out`.
pub fn run(
    options: &Options,
    role: Role,
    out: &mut dyn Write,
    parent: &mut dyn Read,
) -> Result<(), Failure> {
    let start = Start::now();
    let (store, _recovered) = Store::open(&options.dir, StoreOptions::default())?;
    if role == Role::Fill {
        store.create_bucket(BUCKET)?;
        fill_in_steps(&store, options, out)?;
    } else {
        let count = store.stats().objects;
        writeln!(out, "{}", start.step(Phase::Open, count)?)?;
    }
    if role == Role::List {
        writeln!(out, "{}", list_all(&store)?)?;
        writeln!(out, "{}", list_pages(&store, options.pages)?)?;
    }
    out.flush()?;
    parent.read_to_end(&mut Vec::new())?;
    Ok(())
}

fn fill_in_steps(store: &Store, options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let content = noise(1, usize::try_from(OBJECT_BYTES)?);
    let objects = Numbered { key: user_key, content: &content };
    let mut from = 0;
    for to in options.counts() {
        let start = Start::now();
        fill(store, BUCKET, objects, from..to, options.loaders())?;
        let step = start.step(Phase::Fill, to)?;
        thread::sleep(SETTLE);
        writeln!(out, "{}", Step { memory_bytes: memory_bytes()?, ..step })?;
        out.flush()?;
        from = to;
    }
    Ok(())
}

/// Lists the whole bucket, page by page.
fn list_all(store: &Store) -> Result<Step, Failure> {
    let (start, mut count) = (Start::now(), 0);
    let mut after: Option<String> = None;
    loop {
        let page = page(store, after.as_deref())?;
        count += page.entries.len() as u64;
        after = page.entries.last().map(|line| line.name().to_owned());
        if !page.more {
            break;
        }
    }
    let step = start.step(Phase::List, count)?;
    let objects = store.stats().objects;
    if count == objects {
        return Ok(step);
    }
    Err(format!("{count} of {objects} objects are in the listing").into())
}

/// Lists pages that begin after random keys.
fn list_pages(store: &Store, pages: usize) -> Result<Step, Failure> {
    let (mut random, mut latencies) = (Random(1), Latencies::default());
    let start = Start::now();
    for _ in 0..pages {
        let after = user_key(random.number());
        let began = Instant::now();
        page(store, Some(&after))?;
        latencies.record(began.elapsed());
    }
    let percentile = |percent| latencies.percentile_us(percent).unwrap_or_default();
    let step = start.step(Phase::Pages, pages as u64)?;
    Ok(Step { p50_us: percentile(50.0), p99_us: percentile(99.0), ..step })
}

fn page(store: &Store, after: Option<&str>) -> Result<ListPage, Failure> {
    let request = ListRequest { after, limit: PAGE_KEYS, ..ListRequest::default() };
    Ok(store.list(BUCKET, &request)?)
}

/// The clocks at the start of a step.
struct Start {
    at: Instant,
    cpu: Duration,
}

impl Start {
    fn now() -> Self {
        Self { at: Instant::now(), cpu: process_cpu() }
    }

    fn step(&self, phase: Phase, count: u64) -> Result<Step, Failure> {
        Ok(Step {
            phase,
            count,
            time: self.at.elapsed(),
            cpu: process_cpu().saturating_sub(self.cpu),
            memory_bytes: memory_bytes()?,
            p50_us: 0.0,
            p99_us: 0.0,
        })
    }
}

/// Returns the resident memory of this process.
fn memory_bytes() -> Result<u64, Failure> {
    let status = fs::read_to_string(Path::new("/proc/self/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")).ok_or("VmRSS is missing")?;
    Ok(kib.trim().parse::<u64>()? * 1024)
}
