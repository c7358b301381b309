//! What the log asks of the device in its steady state, over whole segments: whatever is done once
//! a segment is in it.

use std::collections::BTreeMap;
use std::io;

use haul_disk::{Device, DeviceCounters, Storage};

use crate::error::{Error, Result, chain};
use crate::log::contender::{Contender, Failure};
use crate::log::ours::Ours;
use crate::log::scratch::Scratch;
use crate::stats::Spread;
use crate::trace::{Journalling, Trace, Tracing, Traffic, Watched};

/// Short enough that whole segments fit the trace.
const SEGMENT_BYTES: u32 = 16 << 20;
/// So many are watched each time, with all that going from one to the next costs.
const SEGMENTS: u32 = 2;
const RECORD_BYTES: usize = 4096;

/// Counts for a commit of one writer, by the names of their ratios; and why any are missing. What
/// other programs ask of the device counts too.
pub(crate) fn counts(
    storage: &Storage,
    scratch: &Scratch,
    rounds: usize,
) -> Result<(BTreeMap<String, f64>, Option<String>)> {
    let missing = |why: &str| Ok((BTreeMap::new(), Some(why.to_owned())));
    let Some(device) = &storage.device else { return missing("the device below is not known") };
    let journalling = Journalling::of(storage);
    let (tracing, why) = match trace(storage, device, journalling) {
        Ok(tracing) => (Some(tracing), None),
        Err(error) => {
            let why = chain(&error);
            (None, Some(format!("the journal's writes were not counted: {why}")))
        }
    };
    let failed = |failure: Failure| Error::other("watch the log")(io::Error::other(failure));
    let (ours, _) = Ours::open(scratch.path(), SEGMENT_BYTES).map_err(failed)?;
    ours.warm_up().map_err(failed)?;
    let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for _ in 0..rounds {
        let round = round(&ours, device, tracing.as_ref(), journalling).map_err(failed)?;
        for (key, number) in round {
            all.entry(key).or_default().push(number);
        }
    }
    let median =
        |(key, numbers): (&str, Vec<f64>)| Some((key.to_owned(), Spread::of(&numbers)?.median));
    Ok((all.into_iter().filter_map(median).collect(), why))
}

fn trace(storage: &Storage, device: &Device, journalling: Journalling) -> Result<Tracing> {
    if journalling == Journalling::Unknown {
        let why = "the journal of this file system cannot be told from the rest";
        return Err(Error::Missing(why.to_owned()));
    }
    if storage.journal == Some(false) {
        return Err(Error::Missing("this file system has none".to_owned()));
    }
    let tracing = Tracing::new()?;
    tracing.watch(Watched::of(device)?)?;
    Ok(tracing)
}

/// From one change of segments to another.
fn round(
    ours: &Ours,
    device: &Device,
    tracing: Option<&Tracing>,
    journalling: Journalling,
) -> Result<Vec<(&'static str, f64)>, Failure> {
    until_change(ours, 1)?;
    rustix::fs::sync();
    let (before, asked) = (ours.counts().unwrap_or_default(), DeviceCounters::of(device)?);
    tracing.map(Tracing::start).transpose()?;
    until_change(ours, SEGMENTS)?;
    let trace = tracing.map(Tracing::stop).transpose()?;
    let asked = DeviceCounters::of(device)?.since(&asked);
    let counts = ours.counts().unwrap_or_default().since(&before);
    let commits = counts.commits.max(1) as f64;
    let mut round = vec![
        ("reads_per_commit", asked.reads as f64 / commits),
        (
            "device_bytes_per_padded_byte",
            asked.written_bytes as f64 / counts.padded_bytes.max(1) as f64,
        ),
    ];
    let whole = |trace: &Trace| trace.lost == 0;
    if let Some(trace) = trace.filter(whole) {
        let own = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
        let journal = Traffic::of(&trace, own, journalling).journal;
        round.push(("journal_writes_per_commit", journal.writes as f64 / commits));
    }
    Ok(round)
}

/// Appends until the log has gone on to another segment so many times.
fn until_change(ours: &Ours, changes: u32) -> Result<(), Failure> {
    let record = vec![7; RECORD_BYTES];
    let mut last = ours.append_where(&record)?;
    let mut left = changes;
    while left > 0 {
        let segment = ours.append_where(&record)?;
        if segment != last {
            ours.housekeep()?;
            (last, left) = (segment, left - 1);
        }
    }
    Ok(())
}
