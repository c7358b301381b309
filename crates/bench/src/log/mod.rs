//! Compares the append log with durable writes to a plain file, a growing file and other logs.
//!
//! The logs are measured in interleaved rounds; the same loop, [`drive`], drives every log. The
//! other logs link native code, so a separate program runs this loop for them.

mod contender;
mod drive;
mod ours;
mod raw;
pub(crate) mod rivals;
mod rounds;
mod sample;
mod scratch;
mod steady;

use std::path::PathBuf;
use std::time::Duration;

use haul_disk::probe;
use haul_measure::{Result, Watcher};
use haul_units::parse_time;

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
use crate::report::Report;
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
        Ok(report)
    }
}
