//! `haul patch`.

mod input;
mod outcome;
mod place;

use std::time::Instant;

use haul_sorted_write::{Error, FileId, Leftover, Options, Patch, Role, SortedWriter};

use crate::args::PatchArgs;
use crate::output::Output;
use crate::progress::{Amount, Progress};
use crate::report::{Exit, Failure, Result, say};
use crate::signals::Stop;
use crate::units::Count;
use input::{Input, Record};
use outcome::Outcome;
use place::Place;

/// Reads records and writes them into a file, sorted.
pub(crate) fn run(args: &PatchArgs) -> Result {
    let mut place = Place::open(&args.target)?;
    let completed = complete_earlier(args, &place)?;
    if args.resume {
        return match completed {
            Some(outcome) => print(args, &outcome),
            None => {
                say(&format!("there is no patch of {} to complete", args.target.display()));
                Ok(())
            }
        };
    }
    if let Some(outcome) = completed {
        say(&format!("completed an earlier patch of {}", Count(outcome.records, "record")));
        place.look_again()?;
    }
    let input = match &args.list {
        Some(list) => Input::list(list)?,
        None => Input::stdin(),
    };
    let stop = Stop::on_signals("what was read")?;
    let work = Work { args, place: &place, stop, begun: Instant::now() };
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

/// Completes or drops what an earlier run left.
fn complete_earlier<'a>(args: &'a PatchArgs, place: &Place) -> Result<Option<Outcome<'a>>> {
    let Some(log) = place.log()? else { return Ok(None) };
    let target = args.target.display();
    if args.dry_run {
        return Err(Failure::new(format!("an earlier patch of {target} was interrupted"))
            .advise(format!("complete it first: haul patch --resume {target}"))
            .exit(Exit::NotStarted));
    }
    let begun = Instant::now();
    let left = Patch::left_in(&log, &place.name, place.bytes)
        .map_err(|error| place.fail_log().because(error).exit(Exit::NotStarted))?;
    let mut outcome = None;
    match left {
        Leftover::Nothing | Leftover::Rest { is_applied: true } => {}
        Leftover::Rest { is_applied: false } => {
            say(&format!("dropped a patch that was never complete; {target} is as before it"));
        }
        Leftover::Committed(patch) => {
            outcome = Some(apply(args, place, *patch, begun)?);
        }
    }
    Patch::forget(&*log).map_err(|error| place.fail_log().because(error))?;
    drop(log);
    place.remove_log()?;
    Ok(outcome)
}

/// Brings a patch that is durable into the file.
fn apply<'a>(
    args: &'a PatchArgs,
    place: &Place,
    patch: Patch,
    begun: Instant,
) -> Result<Outcome<'a>> {
    let fail = |error: Error| {
        failed(args, error).advise("what is missing is kept beside it: haul patch --resume")
    };
    let (writer, file) = writer(args, place)?;
    let progress = Progress::new("record", Amount { things: patch.records(), bytes: 0 });
    let told = &mut |things, bytes| progress.set(Amount { things, bytes });
    patch.apply(&writer, file, told).map_err(fail)?;
    let stats = writer.stats();
    writer.close().map_err(fail)?;
    let Amount { things, bytes } = progress.finish().amount;
    Ok(Outcome {
        target: &args.target,
        records: things,
        bytes,
        stats,
        time: begun.elapsed(),
        is_rehearsal: false,
        is_atomic: true,
    })
}

fn writer(args: &PatchArgs, place: &Place) -> Result<(SortedWriter, FileId)> {
    let options = Options {
        generation_bytes: usize::try_from(args.memory / 2).unwrap_or(usize::MAX),
        is_rehearsal: args.dry_run,
        lanes: args.depth,
        ..Options::default()
    };
    let open = || {
        let writer = SortedWriter::start(options)?;
        let file = writer.open(&place.disk, &place.name, Role::Bulk)?;
        Ok((writer, file))
    };
    open().map_err(|error| failed(args, error).exit(Exit::NotStarted))
}

fn failed(args: &PatchArgs, error: Error) -> Failure {
    let full = error.is_full();
    let failure = Failure::new(format!("cannot patch {}", args.target.display())).because(error);
    if full { failure.advise("free space, and run it again") } else { failure }
}

/// One run.
struct Work<'a> {
    args: &'a PatchArgs,
    place: &'a Place,
    stop: Stop,
    begun: Instant,
}

impl<'a> Work<'a> {
    /// Records go straight to the writer. Where the input ends badly, those before are written.
    fn plain(&self, mut input: Input) -> Result<Outcome<'a>> {
        let (writer, file) = writer(self.args, self.place)?;
        let progress = Progress::new("record", amount_of(&input));
        let read = self.read_all(&mut input, &progress, &mut |offset, bytes| {
            writer.write(file, offset, bytes).map_err(|error| failed(self.args, error))
        });
        writer.barrier().map_err(|error| failed(self.args, error))?;
        let Amount { things, bytes } = progress.finish().amount;
        if let Err(failure) = read {
            let before = Count(things, "record");
            return Err(match self.args.dry_run {
                true => failure,
                false => failure.advise(format!("the {before} before are in the file, and synced")),
            });
        }
        let outcome = self.outcome(things, bytes, &writer, false);
        writer.close().map_err(|error| failed(self.args, error))?;
        Ok(outcome)
    }

    /// Records go to a directory beside the file first. Where the input ends badly, the file is as
    /// it was.
    fn atomic(&self, mut input: Input) -> Result<Outcome<'a>> {
        let log = self.place.make_log()?;
        let gathered = self.gather(&mut input, &log);
        let outcome = match gathered {
            Ok(patch) => apply(self.args, self.place, patch, self.begun),
            Err(failure) => {
                Err(failure.advise(format!("{} is as it was", self.args.target.display())))
            }
        };
        // One that is durable and could not be applied stays.
        if outcome.is_ok() || !self.is_durable(&log) {
            Patch::forget(&*log).map_err(|error| self.place.fail_log().because(error))?;
            drop(log);
            self.place.remove_log()?;
        }
        outcome
    }

    fn is_durable(&self, log: &std::sync::Arc<dyn haul_disk::Disk>) -> bool {
        let left = Patch::left_in(log, &self.place.name, self.place.bytes);
        !matches!(left, Ok(Leftover::Nothing | Leftover::Rest { is_applied: false }))
    }

    fn gather(
        &self,
        input: &mut Input,
        log: &std::sync::Arc<dyn haul_disk::Disk>,
    ) -> Result<Patch> {
        let fail = |error: Error| {
            let full = error.is_full();
            let failure = self.place.fail_log().because(error);
            if full { failure.advise("free space, or patch without --atomic") } else { failure }
        };
        let expected = input.bytes().unwrap_or(u64::MAX);
        let (name, bytes) = (&self.place.name, self.place.bytes);
        let mut patch = Patch::begin(log, name, bytes, expected).map_err(fail)?;
        let progress = Progress::new("record", amount_of(input));
        self.read_all(input, &progress, &mut |offset, bytes| {
            patch.add(offset, bytes).map_err(fail)
        })?;
        patch.commit().map_err(fail)?;
        progress.finish();
        Ok(patch)
    }

    /// Reads records and hands them on, until the input ends or a signal asks to stop.
    fn read_all(
        &self,
        input: &mut Input,
        progress: &Progress,
        each: &mut dyn FnMut(u64, &[u8]) -> Result,
    ) -> Result {
        for number in 1.. {
            if let Some(exit) = self.stop.asked() {
                return Err(Failure::new("stopped before the end of the input").exit(exit));
            }
            let Some(record) = input.next(number)? else { break };
            self.check(&record)?;
            input.each_part(&record, each)?;
            progress.add(record.bytes);
        }
        Ok(())
    }

    /// Refuses a record behind the end of the file.
    fn check(&self, record: &Record) -> Result {
        let (number, file_bytes) = (record.number, self.place.bytes);
        let end = record.offset.checked_add(record.bytes);
        let is_within = end.is_some_and(|end| end <= file_bytes);
        if is_within || (self.args.extend && end.is_some_and(|end| i64::try_from(end).is_ok())) {
            return Ok(());
        }
        let (bytes, offset) = (record.bytes, record.offset);
        let place = format!("record {number} ({bytes} bytes at offset {offset})");
        let failure =
            Failure::new(format!("{place} ends behind the end of the file, at {file_bytes}"));
        Err(if self.args.extend { failure } else { failure.advise("--extend lets the file grow") })
    }

    fn outcome(
        &self,
        records: u64,
        bytes: u64,
        writer: &SortedWriter,
        is_atomic: bool,
    ) -> Outcome<'a> {
        Outcome {
            target: &self.args.target,
            records,
            bytes,
            stats: writer.stats(),
            time: self.begun.elapsed(),
            is_rehearsal: self.args.dry_run,
            is_atomic,
        }
    }
}

/// All there is to do, where that is known.
fn amount_of(input: &Input) -> Amount {
    Amount { things: input.records().unwrap_or(0), bytes: input.bytes().unwrap_or(0) }
}
