//! Handles SIGHUP of servers: reloads certificates and keys, begins new log files, and tries to
//! deliver queued events at once.

use std::sync::Arc;
use std::thread;

use haul_line_log::LineLog;
use haul_s3_server::EventTargets;
use parking_lot::Mutex;

use crate::notify;
use crate::report::Result;
use crate::secrets::live_keys::LiveKeys;
use crate::signals::{self, Signal};
use crate::tls::Certificates;

/// The parts of a server that SIGHUP reloads.
pub(crate) struct Reload {
    pub(crate) certificates: Option<Certificates>,
    pub(crate) keys: Option<LiveKeys>,
    pub(crate) logs: Vec<LogFiles>,
    pub(crate) events: Option<Arc<EventTargets>>,
}

/// A log whose files are rotated. Another log may take its place.
#[derive(Clone)]
pub(crate) struct LogFiles(Arc<Mutex<Arc<LineLog>>>);

impl LogFiles {
    pub(crate) fn of(log: &Arc<LineLog>) -> Self {
        Self(Arc::new(Mutex::new(Arc::clone(log))))
    }

    pub(crate) fn set(&self, log: &Arc<LineLog>) {
        *self.0.lock() = Arc::clone(log);
    }

    fn get(&self) -> Arc<LineLog> {
        Arc::clone(&self.0.lock())
    }
}

/// Installs handlers of `signals`, which call `act`, and of SIGHUP, which reloads `reload`. Without
/// any part to reload, SIGHUP has no effect: administrators send it to any server. Threads also
/// reload certificates and keys when their files change.
pub(crate) fn handle_signals(
    signals: &[Signal],
    mut act: impl FnMut(Signal) + Send + 'static,
    reload: Reload,
) -> Result {
    reload.certificates.as_ref().map_or(Ok(()), Certificates::watch)?;
    reload.keys.as_ref().map_or(Ok(()), LiveKeys::watch)?;
    signals::handle_signals(&[signals, &[Signal::Hangup]].concat(), move |signal| match signal {
        Signal::Hangup => {
            reload.certificates.iter().for_each(Certificates::reload);
            reload.keys.iter().for_each(LiveKeys::reload);
            reload.events.iter().for_each(|targets| targets.retry());
            reload.logs.iter().map(LogFiles::get).for_each(rotate);
        }
        _ => {
            if Signal::ENDS.contains(&signal) {
                notify::stopping();
            }
            act(signal);
        }
    })
}

/// Rotates a log on a thread of its own: a slow disk must not delay the next signal.
fn rotate(log: Arc<LineLog>) {
    // An error is reported again when the log is closed. Without a thread, the file remains.
    let rotate = move || drop(log.rotate());
    thread::Builder::new().name("rotate".to_owned()).spawn(rotate).map(drop).unwrap_or_default();
}
