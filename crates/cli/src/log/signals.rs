//! Installs the signal handlers of `haul log`.

use std::ffi::OsString;
use std::sync::{Arc, OnceLock};

use haul_line_log::LineLog;

use super::input::Stop;
use crate::report::{OrFail, Result, chain, try_print_message};
use crate::signals::{Signal, handle_signals};

const ALL: [Signal; 5] =
    [Signal::Interrupt, Signal::Terminate, Signal::Hangup, Signal::Alarm, Signal::User];

/// The handlers that [`catch_early`] installed.
static EARLY: OnceLock<Caught> = OnceLock::new();

/// What the handlers act on.
#[derive(Debug, Clone)]
pub(super) struct Caught {
    /// The log, once it is open.
    pub(super) log: Arc<OnceLock<Arc<LineLog>>>,
    pub(super) stop: Stop,
}

/// Installs the handlers before the command line is parsed, which takes two milliseconds, if it is
/// one of `haul log DIR`. A signal must not end a process that others believe to be running.
pub(crate) fn catch_early(arguments: &[OsString]) {
    let is_log = arguments.get(1).is_some_and(|word| word == "log");
    if is_log && arguments.iter().all(|word| word != "show") {
        // After an error, they are installed when the command runs, which reports it.
        if let Ok(caught) = install() {
            EARLY.get_or_init(|| caught);
        }
    }
}

/// Installs the handlers, if [`catch_early`] did not.
pub(super) fn catch() -> Result<Caught> {
    EARLY.get().cloned().map_or_else(install, Ok)
}

/// Installs the handlers. SIGHUP, SIGALRM and SIGUSR1 rotate the log. SIGTERM stops reading, and a
/// second SIGTERM exits. The first SIGINT only prints a message: Ctrl-C also reaches the service,
/// whose last lines must still be read. Each later SIGINT acts as SIGTERM.
fn install() -> Result<Caught> {
    let stop = Stop::new().or_fail(|| "cannot wait for signals".to_owned())?;
    let caught = Caught { log: Arc::default(), stop };
    let Caught { log, stop } = caught.clone();
    let mut is_interrupted = false;
    handle_signals(&ALL, move |signal| match signal {
        Signal::Hangup | Signal::Alarm | Signal::User => {
            // An error of the rotation is ignored, because the log reports it as an event.
            let rotated = log.get().map(|log| log.rotate());
            drop(rotated);
        }
        Signal::Interrupt if !is_interrupted && !stop.is_requested() && !stop.is_compressing() => {
            is_interrupted = true;
            try_print_message("reading to the end of the input; signal again to stop reading");
        }
        Signal::Interrupt | Signal::Terminate if stop.is_requested() => {
            // Closing the log unblocks the thread that waits for space on a full disk.
            if let Some(Err(error)) = log.get().map(|log| log.close()) {
                try_print_message(&chain("the log is incomplete", Some(&error)));
            }
            signal.end();
        }
        Signal::Interrupt | Signal::Terminate => {
            stop.request();
            if let Some(log) = log.get()
                && (log.stats().is_failing || stop.is_compressing())
            {
                // `close` stops the compression, which the next run continues. On a full disk, it
                // tries to write once more, and unblocks the thread that appends lines. Lines that
                // still cannot be written are counted as lost.
                drop(log.close());
            }
        }
    })?;
    Ok(caught)
}
