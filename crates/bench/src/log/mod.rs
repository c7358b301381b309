//! Compares the append log with durable writes to a plain file, a growing file and other logs.
//!
//! The logs are measured in interleaved rounds; the same loop, [`drive`], drives every log. The
//! other logs link native code, so a separate program runs this loop for them.

mod contender;
mod drive;
mod ours;
mod raw;
mod recovery;
pub(crate) mod rivals;
mod rotation;
mod rounds;
mod sample;
mod scratch;
mod steady;

use std::path::PathBuf;
use std::time::Duration;

use haul_disk::probe;
use haul_measure::{Latencies, Result, Spread, Watcher};
use haul_units::{parse_bytes, parse_time};

pub(crate) use contender::failed;
pub use contender::{Contender, Counts, Failure};
pub(crate) use drive::process_cpu;
pub use drive::{Load, drive};
pub use rivals::RIVALS_PROGRAM;
pub use sample::Sample;
pub(crate) use scratch::Scratch;

use crate::benchmark::Benchmark;
use crate::host::Host;
use crate::options::{count, rounds as round_count, size};
use crate::report::{Ratio, Report, Samples};
use rivals::{NOT_BUILT, Rivals};
use rounds::Rounds;

/// The benchmark `log`, and its options.
#[derive(Debug, Clone, clap::Parser)]
pub struct LogBench {
    /// Directory for the test files, which needs some GiB
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Numbers of threads that append; each number is measured separately
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,16")]
    #[arg(value_parser = count(1..=1024))]
    pub writers: Vec<usize>,
    /// Record lengths, 1 B to 1MiB; each length is measured separately
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "4KiB")]
    #[arg(value_parser = record_size)]
    pub sizes: Vec<usize>,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = round_count())]
    pub rounds: usize,
    /// Duration of one measurement, such as 500ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    pub seconds: Duration,
    /// Path of haul-bench-compare, the program that drives the rivals
    ///
    /// By default it is searched for beside haul-bench and in PATH; without it the rivals are
    /// listed as missing. See docs/log-bench.md for how to build it.
    #[arg(long, value_name = "PROGRAM")]
    pub rivals: Option<PathBuf>,
    /// Measure all configurations of each rival, not only its fastest configuration
    #[arg(long)]
    pub all_forms: bool,
    /// Number of changes to a new log segment that are timed; 0 skips this part
    #[arg(long, value_name = "N", default_value = "200", value_parser = count(0..=1_000_000))]
    pub rotations: usize,
    /// Size of the log whose recovery is timed; 0 skips this part
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = parse_bytes)]
    pub recovery: u64,
}

fn record_size(text: &str) -> Result<usize, String> {
    let bytes = size(text, 1..=1 << 20, "1 B to 1MiB")?;
    usize::try_from(bytes).map_err(|error| error.to_string())
}

impl Benchmark for LogBench {
    const NAME: &'static str = "log";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        let storage = probe(&self.dir)?;
        let scratch = Scratch::new(&self.dir, &format!("haul-bench-log.{}", std::process::id()))?;
        let rivals = self.rivals.as_deref().map(Rivals::query).transpose()?;
        let host = Host::here().with_storage("", &storage);
        let mut report = Report::new(Self::NAME, host, rounds::columns(), rounds::BAR);
        report.notes.push(format!(
            "{} interleaved rounds, {} ms each; rows are medians of the rounds that count; raw and \
             growing-file have one writer; requests of the device include other programs",
            self.rounds,
            self.seconds.as_millis()
        ));
        if rivals.is_none() {
            report.notes.push(format!("rivals are {NOT_BUILT}"));
        }
        let (bench, device) = (self, storage.device.as_ref());
        Rounds { bench, rivals, device, scratch: &scratch, watcher }.run(&mut report)?;
        watcher.step(0, 1, "requests of a commit");
        let below = Scratch::new(scratch.path(), "steady")?;
        let counts = steady::counts(&storage, below.path(), self.rounds, watcher);
        let (counts, why) = counts.map_err(failed("watch the log"))?;
        for samples in counts {
            report.amount(samples.name.clone(), Some(samples));
        }
        report.notes.extend(why);
        drop(below);
        if self.rotations > 0 {
            self.rotation(&scratch, watcher, &mut report)?;
        }
        if self.recovery > 0 {
            self.recovery(&scratch, watcher, &mut report)?;
        }
        Ok(report)
    }
}

impl LogBench {
    /// Measures the appends around segment changes.
    fn rotation(
        &self,
        scratch: &Scratch,
        watcher: &dyn Watcher,
        report: &mut Report,
    ) -> Result<()> {
        watcher.step(0, 1, "segment changes");
        let scratch = Scratch::new(scratch.path(), "rotation")?;
        let jitter = rotation::jitter(scratch.path(), self.rotations, watcher);
        let jitter = jitter.map_err(failed("measure segment changes"))?;
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

    /// Measures the opening of a log beside direct reads of its files.
    fn recovery(
        &self,
        scratch: &Scratch,
        watcher: &dyn Watcher,
        report: &mut Report,
    ) -> Result<()> {
        watcher.step(0, 1, "recovery of a log");
        let scratch = Scratch::new(scratch.path(), "recovery")?;
        let seconds = recovery::recovery(scratch.path(), self.recovery, self.rounds, watcher);
        let [open, read] = seconds.map_err(failed("measure the recovery of a log"))?;
        let text = |seconds: &Samples| {
            let seconds: Vec<_> = seconds.rounds.values().copied().collect();
            let spread = Spread::of(&seconds);
            let text =
                spread.map(|it| format!("{:.2} s ({:.2} to {:.2})", it.median, it.min, it.max));
            text.unwrap_or_default()
        };
        report.notes.push(format!(
            "a closed log of {} MiB opens with cold caches in {}; reading the same files with \
             direct I/O, 4 MiB at a time, takes {}",
            self.recovery >> 20,
            text(&open),
            text(&read),
        ));
        report.ratio("recovery_vs_direct_read", Ratio::of(read, open));
        Ok(())
    }
}
