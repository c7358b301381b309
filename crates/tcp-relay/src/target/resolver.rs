//! Resolves the host names of targets repeatedly, on a background thread, because a resolver may
//! take seconds.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use super::table::Targets;

/// The minimum time between two resolutions.
const PAUSE: Duration = Duration::from_secs(1);

/// Starts the thread, if a target has a host name. The thread resolves all names after each
/// `interval` and after failed connections, and ends when the targets are dropped.
pub(crate) fn start(targets: &Arc<Targets>, interval: Duration) -> io::Result<()> {
    if !targets.has_names() {
        return Ok(());
    }
    // One queued request suffices, because a resolution concerns all names.
    let (sender, requests) = sync_channel(1);
    targets.set_resolve_requests(sender);
    let targets = Arc::downgrade(targets);
    let run = move || resolve_repeatedly(&targets, &requests, interval);
    thread::Builder::new().name("resolver".into()).spawn(run).map(drop)
}

fn resolve_repeatedly(targets: &Weak<Targets>, requests: &Receiver<()>, interval: Duration) {
    while requests.recv_timeout(interval) != Err(RecvTimeoutError::Disconnected) {
        let Some(targets) = targets.upgrade() else { return };
        // An error is ignored: the targets keep the addresses that they have.
        targets.resolve().ok();
        drop(targets);
        thread::sleep(PAUSE);
    }
}
