//! Handles SIGHUP of servers: reloads certificates, and begins new log files.

use std::sync::Arc;
use std::thread;

use haul_line_log::LineLog;

use crate::report::Result;
use crate::signals::{self, Signal};
use crate::tls::Certificates;

/// The parts of a server that SIGHUP reloads.
#[derive(Default)]
pub(crate) struct Reload {
    pub(crate) certificates: Option<Certificates>,
    pub(crate) logs: Vec<Arc<LineLog>>,
}

/// Installs handlers of `signals`, which call `act`. SIGHUP reloads `reload`, if it has any part;
/// a thread also reloads certificates when their files change.
pub(crate) fn handle_signals(
    signals: &[Signal],
    mut act: impl FnMut(Signal) + Send + 'static,
    reload: Reload,
) -> Result {
    reload.certificates.as_ref().map_or(Ok(()), Certificates::watch)?;
    if reload.certificates.is_none() && reload.logs.is_empty() {
        return signals::handle_signals(signals, act);
    }
    signals::handle_signals(&[signals, &[Signal::Hangup]].concat(), move |signal| match signal {
        Signal::Hangup => {
            reload.certificates.iter().for_each(Certificates::reload);
            reload.logs.iter().for_each(rotate);
        }
        _ => act(signal),
    })
}

/// Rotates a log on a thread of its own: a slow disk must not delay the next signal.
fn rotate(log: &Arc<LineLog>) {
    let log = Arc::clone(log);
    // An error is reported again when the log is closed. Without a thread, the file remains.
    let rotate = move || drop(log.rotate());
    thread::Builder::new().name("rotate".to_owned()).spawn(rotate).map(drop).unwrap_or_default();
}
