//! Installs the signal handlers of `haul log`.

use std::sync::{Arc, OnceLock};

use haul_line_log::LineLog;

use super::input::Stop;
use crate::report::{Result, chain, try_print_message};
use crate::signals::{Signal, handle_signals};

const ALL: [Signal; 5] =
    [Signal::Interrupt, Signal::Terminate, Signal::Hangup, Signal::Alarm, Signal::User];

/// Installs the handlers, before the log is open: a signal must not end a process that others
/// believe to be running. SIGHUP, SIGALRM and SIGUSR1 rotate the log. SIGTERM stops reading, and a
/// second SIGTERM exits. The first SIGINT only prints a message: Ctrl-C also reaches the service,
/// whose last lines must still be read. Each later SIGINT acts as SIGTERM.
pub(super) fn catch(log: Arc<OnceLock<Arc<LineLog>>>, stop: Stop) -> Result {
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
    })
}
