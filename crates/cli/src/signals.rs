//! What signals ask for, heard on a thread of its own.
//!
//! SIGTERM and Ctrl-C: the first asks to finish what is in flight, the second ends at once. Some
//! commands hear others, too.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Poll;
use std::{io, thread};

use tokio::runtime;
use tokio::signal::unix::{self, SignalKind, signal};

use crate::report::{Exit, OrFail, Result, say_if_room};

/// A signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Interrupt,
    Terminate,
    Hangup,
    Alarm,
    User,
}

impl Signal {
    /// Those that end a program.
    pub(crate) const ENDS: [Self; 2] = [Self::Interrupt, Self::Terminate];

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
        // The numbers of these are small.
        u8::try_from(self.kind().as_raw_value()).unwrap_or(u8::MAX)
    }

    /// Ends the process as one that this signal ended.
    pub(crate) fn end(self) -> ! {
        std::process::exit(128 + i32::from(self.number()))
    }
}

/// Catches signals from now on, and does `act` for each, on a thread of its own.
pub(crate) fn on_each(signals: &[Signal], mut act: impl FnMut(Signal) + Send + 'static) -> Result {
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

/// What the signals that end a program do: the first does `act`, and says that `work` is
/// finished now; a second one ends the process.
pub(crate) fn ending(work: &'static str, act: impl FnOnce(Signal)) -> impl FnMut(Signal) {
    let mut act = Some(act);
    move |signal| match act.take() {
        Some(act) => {
            act(signal);
            // The second one is heard even if nobody reads this.
            say_if_room(&format!("finishing {work}; once more ends at once"));
        }
        // Nothing is lost: stores and benches are always ready for the end of their process.
        None => signal.end(),
    }
}

/// Does `act` at the first signal that asks to end, and ends at the second.
pub(crate) fn on_end(work: &'static str, act: impl FnOnce(Signal) + Send + 'static) -> Result {
    on_each(&Signal::ENDS, ending(work, act))
}

/// Whether the program was asked to stop.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<AtomicU8>);

impl Stop {
    /// Catches the signals that end a program; the first says that `work` is finished now.
    pub(crate) fn on_signals(work: &'static str) -> Result<Self> {
        let stop = Self::default();
        let asked = Arc::clone(&stop.0);
        on_end(work, move |signal| asked.store(signal.number(), Ordering::Relaxed))?;
        Ok(stop)
    }

    /// How the program ends, when it was asked to stop.
    pub(crate) fn asked(&self) -> Option<Exit> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            number => Some(Exit::Signal(number)),
        }
    }
}
