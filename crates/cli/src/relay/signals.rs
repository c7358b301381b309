//! What signals ask of `haul relay`.

use std::io;
use std::thread;

use haul_tcp_relay::Handle;
use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::report;
use crate::report::{OrFail, Result, say};

const INTERRUPT: u8 = 2;
const TERMINATE: u8 = 15;

/// The signals, caught from the moment this is made.
struct Caught {
    interrupt: Signal,
    terminate: Signal,
    user: Signal,
}

/// Catches signals on a thread of its own.
pub(super) fn catch(relay: Handle) -> Result {
    let cannot = || "cannot start a thread for signals".to_owned();
    let runtime = runtime::Builder::new_current_thread().enable_all().build().or_fail(cannot)?;
    let caught = {
        let _within = runtime.enter();
        Caught::new().or_fail(|| "cannot catch signals".to_owned())?
    };
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || runtime.block_on(caught.follow(&relay)))
        .or_fail(cannot)?;
    Ok(())
}

impl Caught {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            user: signal(SignalKind::user_defined1())?,
        })
    }

    async fn follow(mut self, relay: &Handle) {
        let mut is_ending = false;
        loop {
            let number = tokio::select! {
                _ = self.interrupt.recv() => INTERRUPT,
                _ = self.terminate.recv() => TERMINATE,
                _ = self.user.recv() => {
                    say(report::text(&relay.stats()).trim_end());
                    continue;
                }
            };
            if is_ending {
                std::process::exit(128 + i32::from(number));
            }
            is_ending = true;
            say("finishing the connections there are; once more ends at once");
            relay.drain();
        }
    }
}
