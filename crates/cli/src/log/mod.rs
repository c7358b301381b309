//! `haul log`: writes stdin to rotated log files, and prints their lines.

mod input;
mod show;
mod signals;

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use haul_line_log::{Clock, Environment, Error, Event, LineLog, Stamper, Stats, SystemClock};
use serde_json::{Value, json};

use crate::args::{LogArgs, LogCommand, LogWriteArgs, WhenFullPolicy};
use crate::output::{Name, print_line};
use crate::report::{Exit, Failure, OrFail, Result, chain, print_message};
use crate::units::{Bytes, Count};
use input::{Input, Stop};
use signals::Caught;
pub(crate) use signals::catch_early;

/// Runs the subcommand, or writes stdin to the log.
pub(crate) fn run(args: &LogArgs) -> Result {
    match (&args.command, &args.write) {
        (Some(LogCommand::Show(args)), _) => show::run(args),
        (None, Some(args)) => write(args),
        // The parser requires a directory if there is no subcommand.
        (None, None) => Err(Failure::new("the directory is missing").exit(Exit::Usage)),
    }
}

/// Writes stdin to the log until the input ends or a signal requests a stop.
fn write(args: &LogWriteArgs) -> Result {
    let Caught { log: opened, stop } = signals::catch()?;
    let log = Arc::new(open(args)?);
    opened.get_or_init(|| Arc::clone(&log));
    let begun = Instant::now();
    let mut counts = InputCounts::default();
    let read = copy_input(args, &log, Input::new(stop.clone()), &mut counts);
    let rejected = *read.as_ref().unwrap_or(&Rejected::default());
    let written = finish(args, &log, &stop, rejected);
    let mut done = read.map(drop).and(written);
    if counts.is_tee_broken {
        done = done.and(Err(Failure::reported()));
    }
    if !args.json {
        return done;
    }
    let printed = print_line(json(&log.stats(), counts, rejected, begun.elapsed()));
    done.and(printed)
}

/// The amount of input that was read, and what became of it.
#[derive(Debug, Clone, Copy, Default)]
struct InputCounts {
    line_ends: u64,
    bytes: u64,
    /// `true` if the last line has no end.
    is_open: bool,
    /// `true` if a part of it could not be written to stdout for `--tee`.
    is_tee_broken: bool,
}

impl InputCounts {
    fn add(&mut self, bytes: &[u8]) {
        self.line_ends += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.bytes += bytes.len() as u64;
        self.is_open = !bytes.ends_with(b"\n");
    }
}

/// Returns the counts of a run as JSON.
fn json(stats: &Stats, counts: InputCounts, rejected: Rejected, time: Duration) -> Value {
    json!({
        "lines": counts.line_ends + u64::from(counts.is_open),
        "bytes": counts.bytes,
        "written_bytes": stats.written_bytes,
        "closed_files": stats.rotations,
        "removed_files": stats.removed,
        "compressed_files": stats.compressed,
        "dropped_lines": stats.dropped_lines,
        "lost_lines": stats.unwritten_lines + rejected.lines,
        "write_failures": stats.write_failures,
        "sync_failures": stats.sync_failures,
        "seconds": time.as_secs_f64(),
    })
}

/// Checks the options that limit each other.
fn check(args: &LogWriteArgs) -> Result {
    let Some(keep_bytes) = args.keep_bytes else { return Ok(()) };
    let max_size = args.max_size.0.unwrap_or(0);
    let (least, reason) = match args.compress {
        None => (max_size, "--keep-bytes must be at least --max-size: it includes current"),
        Some(_) => (
            max_size.saturating_mul(2),
            "with --compress, --keep-bytes must be at least twice --max-size: it includes current, \
             and a file that is being compressed",
        ),
    };
    if keep_bytes < least {
        let failure = Failure::new(reason).exit(Exit::Usage);
        return Err(failure.advise(format!("that is {} or more", Bytes(least))));
    }
    Ok(())
}

fn open(args: &LogWriteArgs) -> Result<LineLog> {
    check(args)?;
    let options = args.options(&format!("haul log, process {}", std::process::id()));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let environment = Environment { clock, on_event: Box::new(print_event) };
    LineLog::open(&args.dir, options, environment).map_err(|error| {
        let failure = Failure::new(format!("cannot log to {}", args.dir.display()));
        match error {
            Error::Invalid(_) => failure.exit(Exit::Usage),
            Error::InUse { .. } => failure
                .exit(Exit::NotStarted)
                .advise("only one process can log to a directory; use another one"),
            _ => failure.exit(Exit::NotStarted),
        }
        .because(error)
    })
}

/// The amount of input that was read, but rejected by the log because a signal had closed the log.
#[derive(Debug, Clone, Copy, Default)]
struct Rejected {
    lines: u64,
    bytes: u64,
}

impl Rejected {
    fn of(bytes: &[u8]) -> Self {
        let ends = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        let lines = ends + u64::from(!bytes.ends_with(b"\n"));
        Self { lines, bytes: bytes.len() as u64 }
    }
}

/// Writes the input to the log until the input ends or the log rejects a piece. Returns the amount
/// of rejected input.
fn copy_input(
    args: &LogWriteArgs,
    log: &LineLog,
    mut input: Input,
    counts: &mut InputCounts,
) -> Result<Rejected> {
    let mut stamper = args.timestamps.map(|format| Stamper::new(format.into()));
    let mut tee = args.tee.then(io::stdout);
    loop {
        let bytes = input.next().or_fail(|| "cannot read stdin".to_owned())?;
        if bytes.is_empty() {
            return Ok(Rejected::default());
        }
        if args.json {
            counts.add(bytes);
        }
        let lines = match &mut stamper {
            Some(stamper) => stamper.stamp(bytes, SystemTime::now()),
            None => bytes,
        };
        // The append fails only if a signal closed the log while the disk was full.
        if log.append(lines).is_err() {
            return Ok(Rejected::of(bytes));
        }
        if let Some(stdout) = &mut tee
            && let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush())
        {
            let message = "cannot write to stdout; continuing with the log only";
            print_message(&chain(message, Some(&error)));
            counts.is_tee_broken = true;
            tee = None;
        }
    }
}

/// Writes the buffered lines, waits until closed files are compressed, and closes the log. If the
/// write fails, as on a full disk, the function retries every second until a signal requests a
/// stop. With `--when-full drop` it does not retry, but closing the log tries a second time. Lines
/// that could not be written are reported as lost.
fn finish(args: &LogWriteArgs, log: &LineLog, stop: &Stop, rejected: Rejected) -> Result {
    let waits = args.when_full != WhenFullPolicy::Drop;
    let mut written = log.write_out();
    while written.is_err() && waits && !stop.is_requested() {
        stop.wait(1);
        written = log.write_out();
    }
    if written.is_ok() {
        // If a signal requests a stop now, the signal handler closes the log, which ends the wait.
        stop.begin_compression();
        if !stop.is_requested() {
            log.wait_for_compression();
        }
    }
    let closed = log.close();
    let stats = log.stats();
    if stats.dropped_lines > 0 {
        let (lines, bytes) = (Count(stats.dropped_lines, "line"), Bytes(stats.dropped_bytes));
        let hint = if closed.is_ok() { "; the log records where" } else { "" };
        print_message(&format!("dropped {lines} ({bytes}){hint}"));
    }
    match closed {
        // The error was already printed when the log reported it as an event.
        Err(Error::SyncFailed { .. }) => Err(Failure::reported()),
        Err(Error::WriteFailed { bytes, source }) => {
            let lines = Count(stats.unwritten_lines + rejected.lines, "line");
            let bytes = Bytes(bytes + rejected.bytes);
            let lost = format!("lost {lines} ({bytes}) of the input");
            Err(Failure::new(lost).because(Error::Disk(source)))
        }
        Err(error) => Err(Failure::new("the log is incomplete").because(error)),
        Ok(()) if stats.sync_failures + stats.dropped_lines > 0 => Err(Failure::reported()),
        Ok(()) => Ok(()),
    }
}

/// Prints the events that an operator must know.
fn print_event(event: &Event) {
    let text = match event {
        Event::WriteFailed(error) => chain("cannot write to the log, retrying", Some(&**error)),
        Event::WriteRecovered => "resumed writing; buffered lines are written".to_owned(),
        Event::SyncFailed(error) => {
            chain("written lines may be lost in a power failure", Some(&**error))
        }
        Event::RemovedForSpace { name, bytes } => {
            format!("the disk is full: removed {name} ({})", Bytes(*bytes))
        }
        Event::CompressFailed(error) => {
            chain("cannot compress a closed file, which stays as it is", Some(&**error))
        }
        Event::RemoveFailed(error) => chain("cannot remove an old log file", Some(&**error)),
        _ => return,
    };
    print_message(&Name(&text).to_string());
}
