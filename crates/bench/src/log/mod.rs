//! Compares the append log with durable writes to a plain file, a growing file and other logs.
//!
//! The logs are measured in interleaved rounds; the same loop, [`drive`], drives every log. The
//! other logs link native code, so a separate program runs this loop for them.

mod contender;
mod drive;
mod options;
mod ours;
mod raw;
pub(crate) mod rivals;
mod rounds;
mod sample;
mod scratch;
mod steady;

use haul_disk::probe;
use haul_measure::{Result, Watcher};

pub(crate) use contender::failed;
pub use contender::{Contender, Failure};
pub(crate) use drive::process_cpu;
pub use drive::{Load, drive};
pub use options::LogBench;
pub use rivals::RIVALS_PROGRAM;
pub use sample::Sample;
pub(crate) use scratch::Scratch;

use crate::benchmark::Benchmark;
use crate::contest::new_report;
use crate::report::Report;
use rivals::{NOT_BUILT, Rivals};
use rounds::Rounds;

impl Benchmark for LogBench {
    const NAME: &'static str = "log";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        let storage = probe(&self.dir)?;
        let scratch = Scratch::new(&self.dir, &format!("haul-bench-log.{}", std::process::id()))?;
        let rivals = self.rivals.as_deref().map(Rivals::query).transpose()?;
        let note = format!(
            "{} interleaved rounds, {} ms each; rows are medians of the rounds that count; raw and \
             growing-file have one writer; requests of the device include other programs",
            self.rounds,
            self.seconds.as_millis()
        );
        let mut report = new_report(Self::NAME, rounds::FIELDS, note);
        report.host = report.host.with_storage("", &storage);
        if rivals.is_none() {
            report.notes.push(format!("rivals are {NOT_BUILT}"));
        }
        let (bench, device) = (self, storage.device.as_ref());
        Rounds { bench, rivals, device, scratch: &scratch, watcher }.run(&mut report)?;
        watcher.step(0, 1, "requests of a commit");
        let below = Scratch::new(scratch.path(), "steady")?;
        let Some(device) = device else {
            report.notes.push("requests were not counted: the device is unknown".to_owned());
            return Ok(report);
        };
        let counts = steady::counts(device, below.path(), self.rounds, watcher);
        for samples in counts.map_err(failed("count the requests of the log"))? {
            report.amount(samples.name.clone(), Some(samples));
        }
        Ok(report)
    }
}
