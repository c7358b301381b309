//! The shipping thread: runs a round when records are due, and retries failed rounds.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use haul_append_log::Lsn;

use crate::error::{Error, Result};
use crate::options::Options;
use crate::progress::{Progress, Request};
use crate::remote::Remote;
use crate::ship::round::Shipper;
use crate::source::Source;

/// The shortest and the longest pause after a failed round.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(15);

/// Claims the copy and starts the thread. If the remote store does not respond, and the log need
/// not wait for the copy, the thread claims it later.
pub(super) fn start<S: Source>(
    source: Arc<S>,
    remote: &Remote,
    options: Options,
    progress: Arc<Progress>,
) -> Result<JoinHandle<()>> {
    let claimed =
        match Shipper::claim_and_wait(Arc::clone(&source), remote, options.clone(), &progress) {
            Err(error @ Error::Remote { .. }) if progress.is_local() => {
                progress.note_error(&error);
                None
            }
            claimed => Some(claimed?),
        };
    let remote = remote.clone();
    spawn(move || {
        let _end = EndOnDrop(&progress);
        let claimed = claimed.or_else(|| claim_later(&source, &remote, &options, &progress));
        if let Some(mut shipper) = claimed {
            run(&mut shipper, &progress);
        }
    })
}

/// Starts the thread for a claimed copy.
pub(super) fn start_owned<S: Source>(
    mut shipper: Shipper<S>,
    progress: Arc<Progress>,
) -> Result<JoinHandle<()>> {
    spawn(move || {
        let _end = EndOnDrop(&progress);
        run(&mut shipper, &progress);
    })
}

fn spawn(run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let cannot = |error| Error::Invalid(format!("cannot start a thread: {error}"));
    Builder::new().name("replicate-ship".to_owned()).spawn(run).map_err(cannot)
}

/// Ends the progress when the thread ends, also by a panic, so that no thread waits for it.
struct EndOnDrop<'a>(&'a Progress);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end("shipping was stopped".to_owned());
    }
}

/// Claims the copy once the remote store responds. Returns `None` if it cannot be claimed, or if
/// shipping is to stop.
fn claim_later<S: Source>(
    source: &Arc<S>,
    remote: &Remote,
    options: &Options,
    progress: &Arc<Progress>,
) -> Option<Shipper<S>> {
    let mut pause = PAUSE_MIN;
    while !progress.pause(pause) {
        match Shipper::claim_and_wait(Arc::clone(source), remote, options.clone(), progress) {
            Ok(shipper) => return Some(shipper),
            Err(error) => {
                progress.note_error(&error);
                if !matches!(error, Error::Remote { .. }) {
                    progress.end(haul_disk::error_chain(&error).to_string());
                    return None;
                }
            }
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
    None
}

/// Ships until shipping is to stop, or another process took over the copy.
fn run<S: Source>(shipper: &mut Shipper<S>, progress: &Progress) {
    let mut shipped = Lsn::default();
    let mut is_stopping = false;
    let mut pause = PAUSE_MIN;
    // Without these, objects that are not needed stay until the next start, and chunks are not
    // merged.
    drop(shipper.find_leftovers());
    shipper.start_merger();
    loop {
        if shipper.is_behind(shipped) {
            progress.note_behind();
        }
        match shipper.ship(progress) {
            Ok(end) => {
                shipped = end;
                pause = PAUSE_MIN;
            }
            Err(error) => {
                if error.is_final() {
                    return;
                }
                // After a failed last attempt, the caller reads the error. It may be unknown which
                // manifest is stored, so nothing is deleted.
                if is_stopping {
                    return;
                }
                is_stopping = progress.pause(pause);
                pause = (pause * 2).min(PAUSE_MAX);
                continue;
            }
        }
        if is_stopping {
            break;
        }
        is_stopping = progress.wait_for_request(shipper.options.interval) == Request::Stop;
    }
    shipper.finish();
}
