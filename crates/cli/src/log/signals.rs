//! What signals ask of `haul log`.

use std::io;
use std::sync::Arc;
use std::thread;

use haul_line_log::LineLog;
use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::input::Stop;
use crate::report::{OrFail, Result, chain, say};

const INTERRUPT: i32 = 2;
const TERMINATE: i32 = 15;

/// The signals, caught from the moment this is made.
struct Caught {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    alarm: Signal,
    user: Signal,
}

enum Asked {
    Interrupt,
    Terminate,
    Rotate,
}

/// Catches signals on a thread of its own.
pub(super) fn catch(log: Arc<LineLog>, stop: Stop) -> Result {
    let cannot = || "cannot start a thread for signals".to_owned();
    let runtime = runtime::Builder::new_current_thread().enable_all().build().or_fail(cannot)?;
    let caught = {
        let _within = runtime.enter();
        Caught::new().or_fail(|| "cannot catch signals".to_owned())?
    };
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || runtime.block_on(caught.follow(&log, &stop)))
        .or_fail(cannot)?;
    Ok(())
}

impl Caught {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            alarm: signal(SignalKind::alarm())?,
            user: signal(SignalKind::user_defined1())?,
        })
    }

    async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Interrupt,
            _ = self.terminate.recv() => Asked::Terminate,
            _ = self.hangup.recv() => Asked::Rotate,
            _ = self.alarm.recv() => Asked::Rotate,
            _ = self.user.recv() => Asked::Rotate,
        }
    }

    async fn follow(mut self, log: &LineLog, stop: &Stop) {
        let mut is_interrupted = false;
        loop {
            match self.next().await {
                // What fails is told by whoever watches the log.
                Asked::Rotate => drop(log.rotate()),
                Asked::Interrupt if !is_interrupted => {
                    is_interrupted = true;
                    say("reading on to the end of the input; once more ends it");
                }
                asked if stop.is_asked() => {
                    // Whoever brings lines and waits for a full disk is let go.
                    if let Err(error) = log.close() {
                        say(&chain("the log is not complete", Some(&error)));
                    }
                    let number =
                        if matches!(asked, Asked::Interrupt) { INTERRUPT } else { TERMINATE };
                    std::process::exit(128 + number);
                }
                _ => {
                    stop.ask();
                    if log.stats().is_stuck {
                        // One more attempt; what does not go out then is told, and lost.
                        drop(log.close());
                    }
                }
            }
        }
    }
}
