//! Compares the append log with durable writes to a plain file, a growing file and other logs.
//!
//! The logs are measured in interleaved rounds; the same loop, [`drive`], drives every log. The
//! other logs link native code, so a separate program runs this loop for them.

mod competitor;
mod contender;
mod drive;
mod floor;
mod options;
mod ours;
mod raw;
mod recovery;
pub(crate) mod rivals;
mod rotation;
mod rounds;
mod sample;
mod scratch;
mod steady;

use haul_disk::{Storage, probe};
use haul_measure::{Latencies, Result, Spread, Watcher};

pub use contender::{Contender, Counts, Failure};
pub(crate) use drive::process_cpu;
pub use drive::{Load, drive};
pub use options::Options;
pub use rivals::RIVALS_PROGRAM;
pub use sample::Sample;
pub(crate) use scratch::Scratch;

use crate::contest::columns;
use crate::host::Host;
use crate::report::Report;
use rivals::Rivals;

/// Measures the logs under each load, then the requests per commit, the segment changes and the
/// recovery of the append log.
///
/// # Errors
/// Returns an error if the directory is unusable or the append log fails. The failure of a rival is
/// reported in its row.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let storage = probe(&options.dir)?;
    let scratch = Scratch::new(&options.dir, &format!("haul-bench-log.{}", std::process::id()))?;
    let rivals = options.rivals.as_deref().map(Rivals::query).transpose()?;
    let has_rivals = rivals.is_some();
    let host = Host::here().with_storage("", &storage);
    let mut report = Report::new("log", host, columns(competitor::FIELDS), competitor::BAR);
    let device = storage.device.as_ref();
    rounds::Plan::new(options, rivals, device, &scratch, watcher).run(&mut report)?;
    report.notes.extend(rounds::notes(options, has_rivals));
    steady(options, &storage, &scratch, watcher, &mut report)?;
    if options.rotations > 0 {
        rotation(options.rotations, &scratch, watcher, &mut report)?;
    }
    if options.recovery > 0 {
        recovery(options, &scratch, watcher, &mut report)?;
    }
    Ok(report)
}

fn steady(
    options: &Options,
    storage: &Storage,
    scratch: &Scratch,
    watcher: &dyn Watcher,
    report: &mut Report,
) -> Result<()> {
    watcher.step(0, 1, "requests of a commit");
    watcher.check()?;
    let scratch = Scratch::new(scratch.path(), "steady")?;
    let (counts, why) = steady::counts(storage, &scratch, options.rounds, watcher)?;
    for samples in counts {
        report.amount(samples.name.clone(), Some(samples));
    }
    report.notes.extend(why);
    Ok(())
}

fn rotation(
    changes: usize,
    scratch: &Scratch,
    watcher: &dyn Watcher,
    report: &mut Report,
) -> Result<()> {
    watcher.step(0, 1, "segment changes");
    let scratch = Scratch::new(scratch.path(), "rotation")?;
    let jitter = rotation::jitter(&scratch, changes, watcher)?;
    report.ratio("rotation_p999_vs_steady", jitter.p999_ratio());
    let text = |times: &Latencies| {
        let us = times.percentile_us(99.9).unwrap_or_default();
        format!("{us:.0} µs of {}", times.count())
    };
    report.notes.push(format!(
        "{} segment changes, p99.9 of the appends around them: {}; of the other appends: {}",
        jitter.changes,
        text(&jitter.around),
        text(&jitter.steady),
    ));
    Ok(())
}

fn recovery(
    options: &Options,
    scratch: &Scratch,
    watcher: &dyn Watcher,
    report: &mut Report,
) -> Result<()> {
    watcher.step(0, 1, "recovery of a log");
    let scratch = Scratch::new(scratch.path(), "recovery")?;
    let found = recovery::recovery(&scratch, options.recovery, options.rounds, watcher)?;
    report.ratio("recovery_vs_direct_read", found.ratio());
    let text = |seconds: &[f64]| {
        let Some(Spread { min, median, max }) = Spread::of(seconds) else { return String::new() };
        format!("{median:.2} s ({min:.2} to {max:.2})")
    };
    report.notes.push(format!(
        "a closed log of {} MiB opens with cold caches in {}; reading the same files with direct \
         I/O, 4 MiB at a time, takes {}",
        found.bytes >> 20,
        text(&found.open),
        text(&found.direct_read),
    ));
    Ok(())
}
