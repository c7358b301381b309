//! SIGTERM and Ctrl-C: the first asks to finish what is in flight, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::{io, thread};

use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::report::{Exit, OrFail, Result, say};

const INTERRUPT: u8 = 2;
const TERMINATE: u8 = 15;

/// Both signals, caught from the moment this is made.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Starts to catch them; within a runtime.
    pub(crate) fn catch() -> Result<Self> {
        let catch = || -> io::Result<Self> {
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
            })
        };
        catch().or_fail(|| "cannot catch signals".to_owned())
    }

    /// Waits for one of them, and gives its number.
    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPT,
            _ = self.terminate.recv() => TERMINATE,
        }
    }

    /// Waits for the first, and says that `work` is finished now. From then on a second one ends
    /// the process at once.
    pub(crate) async fn first(mut self, work: &str) -> u8 {
        let number = self.next().await;
        say(&format!("finishing {work}; once more ends at once"));
        tokio::spawn(async move {
            let number = self.next().await;
            // Nothing is lost: stores and benches are always ready for the end of their process.
            std::process::exit(128 + i32::from(number));
        });
        number
    }
}

/// For work without a runtime: catches both signals on a thread of its own. The first says that
/// `work` is finished now, and does `act` with its number; a second one ends the process.
pub(crate) fn on_first(work: &'static str, act: impl FnOnce(u8) + Send + 'static) -> Result {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .or_fail(|| "cannot start a thread for signals".to_owned())?;
    let signals = {
        let _within = runtime.enter();
        Signals::catch()?
    };
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            runtime.block_on(async {
                act(signals.first(work).await);
                // Waits for the second one.
                std::future::pending::<()>().await;
            });
        })
        .or_fail(|| "cannot start a thread for signals".to_owned())?;
    Ok(())
}

/// For work without a runtime: whether it was asked to stop.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<AtomicU8>);

impl Stop {
    /// Catches both signals on a thread of its own; the first says that `work` is finished now.
    pub(crate) fn on_signals(work: &'static str) -> Result<Self> {
        let stop = Self::default();
        let asked = Arc::clone(&stop.0);
        on_first(work, move |number| asked.store(number, Ordering::Relaxed))?;
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
