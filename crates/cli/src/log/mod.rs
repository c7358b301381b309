//! `haul log`.

mod input;
mod signals;
mod stamp;

use std::io::{self, Write};
use std::sync::Arc;
use std::time::SystemTime;

use haul_line_log::{Clock, Error, Event, LineLog, Outside, SystemClock};

use crate::args::LogArgs;
use crate::output::Name;
use crate::report::{Exit, Failure, OrFail, Result, chain, say};
use crate::units::{Bytes, Count};
use input::{Input, Stop};
use stamp::Stamper;

/// Writes stdin into the log until it ends or a signal asks to stop.
pub(crate) fn run(args: &LogArgs) -> Result {
    let stop = Stop::new().or_fail(|| "cannot wait for signals".to_owned())?;
    let log = Arc::new(open(args)?);
    signals::catch(Arc::clone(&log), stop.clone())?;
    let read = pass_on(args, &log, Input::new(stop.clone()));
    let written = finish(&log, &stop, *read.as_ref().unwrap_or(&0));
    read.and(written)
}

fn open(args: &LogArgs) -> Result<LineLog> {
    let options = args.options(&format!("haul log, process {}", std::process::id()));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let outside = Outside { clock, watch: Box::new(tell) };
    LineLog::open(&args.dir, options, outside).map_err(|error| {
        let failure = Failure::new(format!("cannot log to {}", args.dir.display()));
        match error {
            Error::Invalid(_) => failure
                .exit(Exit::Usage)
                .advise("see --max-size, --keep-bytes, --rotate-every and --sync"),
            Error::InUse { .. } => failure
                .exit(Exit::NotStarted)
                .advise("one process logs to a directory; name another one"),
            _ => failure.exit(Exit::NotStarted),
        }
        .because(error)
    })
}

/// Reads and logs until the end, and gives how many bytes were read in vain.
fn pass_on(args: &LogArgs, log: &LineLog, mut input: Input) -> Result<usize> {
    let mut stamper = args.timestamps.map(Stamper::new);
    let mut tee = args.tee.then(io::stdout);
    loop {
        let bytes = input.next().or_fail(|| "cannot read stdin".to_owned())?;
        if bytes.is_empty() {
            return Ok(0);
        }
        let lines = match &mut stamper {
            Some(stamper) => stamper.stamp(bytes, SystemTime::now()),
            None => bytes,
        };
        // It is closed under way when a signal ends it while the disk is full.
        if log.append(lines).is_err() {
            return Ok(bytes.len());
        }
        if let Some(stdout) = &mut tee
            && let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush())
        {
            say(&chain("cannot write to stdout, only to the log from now on", Some(&error)));
            tee = None;
        }
    }
}

/// Waits until all is written: also for a full disk, until a signal ends that.
fn finish(log: &LineLog, stop: &Stop, refused: usize) -> Result {
    while log.write_out().is_err() && !stop.is_asked() {
        stop.wait(1);
    }
    let closed = log.close();
    let stats = log.stats();
    if stats.dropped_lines > 0 {
        let (lines, bytes) = (Count(stats.dropped_lines, "line"), Bytes(stats.dropped_bytes));
        let what = format!("{lines} ({bytes}) were dropped; the log says where");
        say(&what);
    }
    match closed {
        // It was told when it happened.
        Err(Error::Unsynced { .. }) => Err(Failure::told()),
        Err(Error::Stuck { bytes, source }) => {
            let lost = Bytes(bytes + refused as u64);
            Err(Failure::new(format!("{lost} of the input are lost")).because(Error::Disk(source)))
        }
        Err(error) => Err(Failure::new("the log is not complete").because(error)),
        Ok(()) if stats.sync_failures + stats.dropped_lines > 0 => Err(Failure::told()),
        Ok(()) => Ok(()),
    }
}

/// Says what an operator must know.
fn tell(event: &Event) {
    let text = match event {
        Event::Stuck(error) => chain("lines wait in memory, and it is tried again", Some(&**error)),
        Event::Unstuck => "the lines that waited are written".to_owned(),
        Event::Unsynced(error) => {
            chain("a power cut may take lines that were written", Some(&**error))
        }
        Event::NotRemoved(error) => chain("an old file stays", Some(&**error)),
        _ => return,
    };
    say(&Name(&text).to_string());
}
