//! `haul patch`: writes records to a file in the order of their offsets.

mod input;
mod outcome;
mod target;

use std::time::Instant;

use haul_disk::DeviceKind;
use haul_sorted_write::records::Record;
use haul_sorted_write::{Error, FileId, Options, Patch, PatchState, SortedWriter, Stats};

use crate::args::PatchArgs;
use crate::output::Output;
use crate::progress::{Amount, Progress};
use crate::report::{Exit, Failure, Result, print_message};
use crate::signals::Stop;
use crate::units::Count;
use input::Input;
use outcome::Outcome;
use target::PatchTarget;

/// Completes an interrupted patch, then reads records and writes them to the file.
pub(crate) fn run(args: &PatchArgs) -> Result {
    let mut target = PatchTarget::open(&args.target)?;
    let completed = complete_interrupted(args, &target)?;
    if args.resume {
        return match completed {
            Some(outcome) => print(args, &outcome),
            None => {
                let target = args.target.display();
                print_message(&format!("no interrupted patch of {target} to complete"));
                Ok(())
            }
        };
    }
    if let Some(outcome) = completed {
        let records = Count(outcome.records, "record");
        print_message(&format!("completed an interrupted patch of {records}"));
        target.refresh_length()?;
    }
    let input = match &args.list {
        Some(list) => Input::list(list)?,
        None => Input::stdin(),
    };
    let stop = Stop::on_signals("the records read so far")?;
    let work = Work { args, target: &target, stop, begun: Instant::now() };
    let outcome = if args.atomic { work.atomic(input)? } else { work.plain(input)? };
    print(args, &outcome)
}

fn print(args: &PatchArgs, outcome: &Outcome<'_>) -> Result {
    let mut output = Output::new();
    if args.json {
        output.line(outcome.json())?;
    } else {
        outcome.lines().iter().try_for_each(|line| output.line(line))?;
    }
    output.finish()
}

/// Completes the patch of an interrupted run if the patch is durable in the journal, otherwise
/// discards the patch. Fails in a dry run, which must not write.
fn complete_interrupted<'a>(
    args: &'a PatchArgs,
    target: &PatchTarget,
) -> Result<Option<Outcome<'a>>> {
    let Some(log) = target.log()? else { return Ok(None) };
    let path = args.target.display();
    if args.dry_run {
        return Err(Failure::new(format!("an earlier patch of {path} was interrupted"))
            .advise(format!("complete it first: haul patch --resume {path}"))
            .exit(Exit::NotStarted));
    }
    let begun = Instant::now();
    let left = Patch::recover(&log, &target.name, target.bytes)
        .map_err(|error| target.fail_log().because(error).exit(Exit::NotStarted))?;
    let mut outcome = None;
    match left {
        PatchState::Absent | PatchState::Obsolete { is_applied: true } => {}
        PatchState::Obsolete { is_applied: false } => {
            print_message(&format!("discarded an incomplete patch; {path} is unchanged"));
        }
        PatchState::Committed(patch) => {
            outcome = Some(apply(args, target, *patch, begun)?);
        }
    }
    Patch::remove_log(&*log).map_err(|error| target.fail_log().because(error))?;
    drop(log);
    target.remove_log()?;
    Ok(outcome)
}

/// Writes the records of a patch to the file. The patch must be durable in the journal.
fn apply<'a>(
    args: &'a PatchArgs,
    target: &PatchTarget,
    patch: Patch,
    begun: Instant,
) -> Result<Outcome<'a>> {
    let fail =
        |error: Error| failed(args, error).advise("\"haul patch --resume\" completes the patch");
    let (writer, file) = writer(args, target)?;
    let all = Amount { things: patch.records(), bytes: 0 };
    let progress = Progress::new(args.progress.show, "record", all);
    let report = &mut |things, bytes| progress.set(Amount { things, bytes });
    patch.apply(&writer, file, report).map_err(fail)?;
    let (stats, device) = (writer.stats(), writer.device_kind(file));
    writer.close().map_err(fail)?;
    let Amount { things, bytes } = progress.finish().amount;
    Ok(Outcome {
        target: &args.target,
        records: things,
        bytes,
        stats,
        device,
        time: begun.elapsed(),
        is_rehearsal: false,
        is_atomic: true,
    })
}

fn writer(args: &PatchArgs, target: &PatchTarget) -> Result<(SortedWriter, FileId)> {
    let options = Options {
        generation_bytes: args.memory.map(|bytes| usize::try_from(bytes / 2).unwrap_or(usize::MAX)),
        is_dry_run: args.dry_run,
        queue_depth: args.depth,
        ..Options::default()
    };
    let open = || {
        let writer = SortedWriter::start(options)?;
        let file = writer.open(&target.disk, &target.name)?;
        Ok((writer, file))
    };
    open().map_err(|error| failed(args, error).exit(Exit::NotStarted))
}

fn failed(args: &PatchArgs, error: Error) -> Failure {
    let full = error.is_full();
    let failure = Failure::new(format!("cannot patch {}", args.target.display())).because(error);
    if full { failure.advise("free disk space, then run it again") } else { failure }
}

/// The context of a run of `haul patch`.
struct Work<'a> {
    args: &'a PatchArgs,
    target: &'a PatchTarget,
    stop: Stop,
    begun: Instant,
}

impl<'a> Work<'a> {
    /// Writes records directly to the file. If the input fails, the records before the failure are
    /// written.
    fn plain(&self, mut input: Input) -> Result<Outcome<'a>> {
        let (writer, file) = writer(self.args, self.target)?;
        let progress = Progress::new(self.args.progress.show, "record", amount_of(&input));
        let read = self.read_all(&mut input, &progress, &mut |offset, bytes| {
            writer.write(file, offset, bytes).map_err(|error| failed(self.args, error))
        });
        writer.barrier().map_err(|error| failed(self.args, error))?;
        let Amount { things, bytes } = progress.finish().amount;
        if let Err(failure) = read {
            let before = Count(things, "record");
            return Err(match self.args.dry_run {
                true => failure,
                false => failure.advise(format!("the {before} before it are written and synced")),
            });
        }
        let device = writer.device_kind(file);
        let outcome = self.outcome(things, bytes, writer.stats(), device);
        writer.close().map_err(|error| failed(self.args, error))?;
        Ok(outcome)
    }

    /// Writes all records to a journal first, then to the file. If the input fails, the file
    /// remains unchanged.
    fn atomic(&self, mut input: Input) -> Result<Outcome<'a>> {
        let log = self.target.create_log()?;
        let gathered = self.gather(&mut input, &log);
        let outcome = match gathered {
            Ok(patch) => apply(self.args, self.target, patch, self.begun),
            Err(failure) => {
                Err(failure.advise(format!("{} is unchanged", self.args.target.display())))
            }
        };
        // Keep the journal of a durable patch that could not be applied, so that a later run can
        // complete the patch.
        if outcome.is_ok() || !self.is_durable(&log) {
            Patch::remove_log(&*log).map_err(|error| self.target.fail_log().because(error))?;
            drop(log);
            self.target.remove_log()?;
        }
        outcome
    }

    fn is_durable(&self, log: &std::sync::Arc<dyn haul_disk::Disk>) -> bool {
        let left = Patch::recover(log, &self.target.name, self.target.bytes);
        !matches!(left, Ok(PatchState::Absent | PatchState::Obsolete { is_applied: false }))
    }

    fn gather(
        &self,
        input: &mut Input,
        log: &std::sync::Arc<dyn haul_disk::Disk>,
    ) -> Result<Patch> {
        let fail = |error: Error| {
            let full = error.is_full();
            let failure = self.target.fail_log().because(error);
            if full {
                failure.advise("free disk space, or patch without --atomic")
            } else {
                failure
            }
        };
        let expected = input.bytes().unwrap_or(u64::MAX);
        let (name, bytes) = (&self.target.name, self.target.bytes);
        let mut patch = Patch::begin(log, name, bytes, expected).map_err(fail)?;
        let progress = Progress::new(self.args.progress.show, "record", amount_of(input));
        self.read_all(input, &progress, &mut |offset, bytes| {
            patch.add(offset, bytes).map_err(fail)
        })?;
        patch.commit().map_err(fail)?;
        progress.finish();
        Ok(patch)
    }

    /// Passes records to `each` until the input ends or a signal requests a stop.
    fn read_all(
        &self,
        input: &mut Input,
        progress: &Progress,
        each: &mut dyn FnMut(u64, &[u8]) -> Result,
    ) -> Result {
        for number in 1.. {
            if let Some(exit) = self.stop.requested() {
                return Err(Failure::new("stopped before the end of the input").exit(exit));
            }
            let Some(record) = input.next(number)? else { break };
            self.check(&record)?;
            input.each_part(&record, each)?;
            progress.add(record.bytes);
        }
        Ok(())
    }

    /// Fails if the record extends beyond the end of the file, unless `--extend` is given.
    fn check(&self, record: &Record) -> Result {
        record.check(self.target.bytes, self.args.extend).map_err(|error| match self.args.extend {
            true => input::failed(error),
            false => input::failed(error).advise("--extend lets the file grow"),
        })
    }

    fn outcome(
        &self,
        records: u64,
        bytes: u64,
        stats: Stats,
        device: Option<DeviceKind>,
    ) -> Outcome<'a> {
        Outcome {
            target: &self.args.target,
            records,
            bytes,
            stats,
            device,
            time: self.begun.elapsed(),
            is_rehearsal: self.args.dry_run,
            is_atomic: false,
        }
    }
}

/// Returns the number of the records and their total length in bytes, or zeros if they are unknown.
fn amount_of(input: &Input) -> Amount {
    Amount { things: input.records().unwrap_or(0), bytes: input.bytes().unwrap_or(0) }
}
