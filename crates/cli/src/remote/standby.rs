//! `haul serve --standby`: follows the copy of a store until it is taken over.

use std::sync::Arc;

use haul_disk::{Disk, OsDisk};
use haul_replicate::{Standby, StandbyControl, Takeover};
use haul_s3_server::{Listening, StandbyState};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::args::ServeArgs;
use crate::ready;
use crate::remote::Copy;
use crate::report::{Exit, Failure, OrFail, Result, print_message};
use crate::signals::{Signal, handle_signals};
use crate::units::Bytes;

/// The end of a standby.
pub(crate) enum End {
    /// The directory has a store, or no standby was requested.
    IsStore,
    /// The copy was taken over.
    TakenOver(Takeover),
    /// A signal requested a stop.
    Stopped,
}

/// With `--standby`, follows the copy, and responds to requests with the state, until the copy is
/// taken over.
pub(crate) fn run(
    copy: Option<&Copy>,
    args: &ServeArgs,
    listening: &mut Listening,
    runtime: &Runtime,
) -> Result<End> {
    let Some(copy) = copy.filter(|_| args.replication.standby) else { return Ok(End::IsStore) };
    let dir = args.open.single_dir("--standby")?;
    let cannot = || format!("cannot follow the copy in {}", dir.display());
    let disk = OsDisk::open_or_create(dir).or_fail(cannot)?;
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let opened = Standby::open(&copy.remote, &disk, args.replication.poll_interval());
    let not_started = |failure: Failure| failure.exit(Exit::NotStarted);
    let Some(standby) = opened.or_fail(cannot).map_err(not_started)? else {
        return Ok(End::IsStore);
    };
    let standby = standby.on_event(|event| print_message(&format!("standby: {event}")));
    let control = standby.control();
    handle(&control)?;
    let (sender, ended) = oneshot::channel();
    let (progress, options) = (Arc::clone(&copy.progress), copy.options.clone());
    let run = move || {
        let outcome = standby.run(&progress, &options);
        // If the server has failed, the receiver is gone.
        sender.send(()).unwrap_or_default();
        outcome
    };
    let thread = std::thread::Builder::new().name("standby".to_owned()).spawn(run);
    let thread = thread.or_fail(|| "cannot start a thread".to_owned())?;
    let addresses = listening.addresses();
    let (listen, admin) = (addresses.listen_url(), addresses.admin_url());
    let announce = || match args.json {
        true => ready::print_of_kind("standby", json!({ "s3": listen, "admin": admin })),
        false => ready::announce(None, &format!("S3 on {listen}, admin on {admin}, standing by")),
    };
    let described = Arc::clone(&control);
    let state: StandbyState = Arc::new(move || described.state());
    let served = runtime
        .block_on(listening.stand_by(state, announce, async { ended.await.unwrap_or_default() }));
    control.stop();
    let outcome = match thread.join() {
        Ok(outcome) => outcome,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    served.or_fail(|| "the server failed".to_owned())?;
    Ok(match outcome.or_fail(cannot)? {
        Some(takeover) => {
            let fetched = Bytes(takeover.fetched_bytes());
            print_message(&format!("took over the copy; fetched {fetched} as a standby"));
            End::TakenOver(takeover)
        }
        None => End::Stopped,
    })
}

/// Installs handlers of the signals that stop a standby or make it take over.
fn handle(control: &Arc<StandbyControl>) -> Result {
    let control = Arc::clone(control);
    let signals = [&Signal::ENDS[..], &[Signal::User]].concat();
    handle_signals(&signals, move |signal| match signal {
        Signal::User => control.take_over(),
        _ => control.stop(),
    })
}
