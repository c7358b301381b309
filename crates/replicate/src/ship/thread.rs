//! The shipping thread: runs a round when records are due, and retries failed ones.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use haul_append_log::Lsn;

use crate::error::{Error, Result};
use crate::progress::{Progress, Request};
use crate::ship::merger::Merger;
use crate::ship::round::Shipper;
use crate::source::Source;

/// The shortest and the longest pause after a failed round.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(15);

/// Starts the thread.
pub(super) fn start<S: Source>(
    mut shipper: Shipper<S>,
    progress: Arc<Progress>,
) -> Result<JoinHandle<()>> {
    let cannot = |error| Error::Invalid(format!("cannot start a thread: {error}"));
    let (source, remote) = (Arc::clone(&shipper.source), shipper.remote.clone());
    let merger = Merger::start(source, remote, shipper.object.current().epoch).map_err(cannot)?;
    shipper.merger = Some(merger);
    let run = move || run(&mut shipper, &progress);
    Builder::new().name("replicate-ship".to_owned()).spawn(run).map_err(cannot)
}

/// Ships until shipping is to stop, or another process took over the copy.
fn run<S: Source>(shipper: &mut Shipper<S>, progress: &Progress) {
    let mut shipped = Lsn::default();
    let mut is_stopping = false;
    let mut pause = PAUSE_MIN;
    // A failure only leaves them for the next start.
    drop(shipper.find_leftovers());
    loop {
        if shipper.is_behind(shipped) {
            progress.note_behind();
        }
        match shipper.round() {
            Ok(end) => {
                shipped = end;
                pause = PAUSE_MIN;
                progress.advance(shipped, shipper.is_behind(shipped));
            }
            Err(error) => {
                progress.note_error(&error);
                if error.is_final() {
                    return progress.end(haul_disk::error_chain(&error).to_string());
                }
                // After a failed last attempt, the caller reads the error. It may be unknown which
                // manifest is stored, so nothing is deleted.
                if is_stopping {
                    return progress.end("shipping was stopped".to_owned());
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
    progress.end("shipping was stopped".to_owned());
}
