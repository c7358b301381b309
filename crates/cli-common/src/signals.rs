//! Handles signals on a dedicated thread.
//!
//! The first SIGTERM or SIGINT requests a graceful stop. The second one ends the process
//! immediately. Some commands also handle other signals.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Poll;
use std::time::Duration;
use std::{io, thread};

use tokio::runtime;
use tokio::signal::unix::{self, SignalKind, signal};

use crate::report::{Exit, OrFail, Result, try_print_message};

/// A signal that a command handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT, sent by Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP.
    Hangup,
    /// SIGALRM.
    Alarm,
    /// SIGUSR1.
    User,
}

impl Signal {
    /// The signals that terminate a command.
    pub const ENDS: [Self; 2] = [Self::Interrupt, Self::Terminate];

    fn kind(self) -> SignalKind {
        match self {
            Self::Interrupt => SignalKind::interrupt(),
            Self::Terminate => SignalKind::terminate(),
            Self::Hangup => SignalKind::hangup(),
            Self::Alarm => SignalKind::alarm(),
            Self::User => SignalKind::user_defined1(),
        }
    }

    fn number(self) -> u8 {
        // The conversion cannot fail: signal numbers are at most 64.
        u8::try_from(self.kind().as_raw_value()).unwrap_or(u8::MAX)
    }

    /// Exits with 128 plus the number of the signal, as shells report a process that the signal
    /// terminated.
    pub fn end(self) -> ! {
        std::process::exit(128 + i32::from(self.number()))
    }
}

/// Installs handlers for `signals`. A dedicated thread calls `act` for each signal received.
pub fn handle_signals(signals: &[Signal], mut act: impl FnMut(Signal) + Send + 'static) -> Result {
    let cannot = || "cannot start a thread for signals".to_owned();
    let runtime = runtime::Builder::new_current_thread().enable_all().build().or_fail(cannot)?;
    let mut caught = {
        let _within = runtime.enter();
        let catch = |which: &Signal| io::Result::Ok((*which, signal(which.kind())?));
        let caught: io::Result<Vec<_>> = signals.iter().map(catch).collect();
        caught.or_fail(|| "cannot catch signals".to_owned())?
    };
    let listen = move || {
        runtime.block_on(async {
            loop {
                act(next(&mut caught).await)
            }
        })
    };
    thread::Builder::new().name("signals".into()).spawn(listen).or_fail(cannot)?;
    Ok(())
}

async fn next(caught: &mut [(Signal, unix::Signal)]) -> Signal {
    poll_fn(|context| {
        for (which, signal) in &mut *caught {
            if signal.poll_recv(context).is_ready() {
                return Poll::Ready(*which);
            }
        }
        Poll::Pending
    })
    .await
}

/// Returns a handler of termination signals. At the first signal the handler calls `act` and prints
/// that `work` is being finished. At the second signal it ends the process.
pub fn termination_handler(work: &'static str, act: impl FnOnce(Signal)) -> impl FnMut(Signal) {
    let mut act = Some(act);
    move |signal| match act.take() {
        Some(act) => {
            act(signal);
            // The message must not block, because then the second signal would not be handled.
            try_print_message(&format!("finishing {work}; signal again to exit immediately"));
        }
        // Exiting is safe at any time: stores and benchmarks are built to survive a killed process.
        None => signal.end(),
    }
}

/// Ends the process after `time`, unless it has ended by then: a thread may wait for a disk or a file
/// system that never answers.
pub fn exit_after(time: Duration) {
    let end = move || {
        thread::sleep(time);
        try_print_message("not finished in time, because the disk does not answer: exiting");
        std::process::exit(Exit::Failed.code().into());
    };
    // Without a thread, the process ends when its work has ended.
    thread::Builder::new().name("exit".into()).spawn(end).ok();
}

/// Installs handlers of termination signals, as [`termination_handler`] describes them.
pub fn on_termination(work: &'static str, act: impl FnOnce(Signal) + Send + 'static) -> Result {
    handle_signals(&Signal::ENDS, termination_handler(work, act))
}

/// A flag that is set when a signal requests a stop.
#[derive(Clone, Default)]
pub struct Stop(Arc<AtomicU8>);

impl Stop {
    /// Installs handlers of termination signals. The first signal sets the flag and prints that
    /// `work` is being finished. The second one ends the process.
    pub fn on_signals(work: &'static str) -> Result<Self> {
        let stop = Self::default();
        let number = Arc::clone(&stop.0);
        on_termination(work, move |signal| number.store(signal.number(), Ordering::Relaxed))?;
        Ok(stop)
    }

    /// Returns the exit code if a signal requested a stop.
    pub fn requested(&self) -> Option<Exit> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            number => Some(Exit::Signal(number)),
        }
    }
}
