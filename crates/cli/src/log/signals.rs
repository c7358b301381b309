//! What signals ask of `haul log`.

use std::sync::Arc;

use haul_line_log::LineLog;

use super::input::Stop;
use crate::report::{Result, chain, say_if_room};
use crate::signals::{Signal, on_each};

const ALL: [Signal; 5] =
    [Signal::Interrupt, Signal::Terminate, Signal::Hangup, Signal::Alarm, Signal::User];

/// Catches them from now on.
pub(super) fn catch(log: Arc<LineLog>, stop: Stop) -> Result {
    let mut is_interrupted = false;
    on_each(&ALL, move |signal| match signal {
        // What fails is told by whoever watches the log.
        Signal::Hangup | Signal::Alarm | Signal::User => drop(log.rotate()),
        Signal::Interrupt if !is_interrupted => {
            is_interrupted = true;
            say_if_room("reading on to the end of the input; once more ends it");
        }
        Signal::Interrupt | Signal::Terminate if stop.is_asked() => {
            // Whoever brings lines and waits for a full disk is let go.
            if let Err(error) = log.close() {
                say_if_room(&chain("the log is not complete", Some(&error)));
            }
            signal.end();
        }
        Signal::Interrupt | Signal::Terminate => {
            stop.ask();
            if log.stats().is_stuck {
                // One more attempt; what does not go out then is told, and lost.
                drop(log.close());
            }
        }
    })
}
