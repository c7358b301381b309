//! The store behind a server: one of its own, or the copy of another server's.

use std::path::Path;
use std::sync::Arc;

use haul_file_store::{Error, LifecycleObserver};
use haul_replicate::Takeover;
use haul_s3_server::{EventTargets, ServedStore};
use haul_store_pool::{Member, Pool};

use crate::args::ServeArgs;
use crate::handover::Predecessor;
use crate::open_store::{IfMissing, ServerOptions, open_for, read_only_options};
use crate::remote::Copy;
use crate::remote::copies::{self, Copies, Running};
use crate::remote::read_only::ReadOnlyStore;
use crate::report::{Exit, Failure, OrFail, Result, print_message};

/// The store of a server.
pub(super) enum Backend {
    /// A store in the directories of this server, and the threads that keep their copies.
    Own { store: Arc<Pool>, served: Arc<ServedStore>, running: Vec<Running> },
    /// The newest state of a copy.
    Copy(ReadOnlyStore),
}

/// The parts of a server with which its store is opened.
pub(super) struct Opening<'a> {
    /// The description of this process.
    pub(super) holder: String,
    pub(super) takeover: Option<Takeover>,
    pub(super) observer: LifecycleObserver,
    pub(super) events: Option<Arc<EventTargets>>,
    pub(super) predecessor: &'a Predecessor,
    /// The memory of the machine, or the limit of the control group of this process.
    pub(super) memory_bytes: u64,
}

impl Backend {
    /// Opens the store, or the newest state of the copy with `--read-only`.
    pub(super) fn open(args: &ServeArgs, copy: Option<Copy>, opening: Opening<'_>) -> Result<Self> {
        let Opening { holder, takeover, observer, events, predecessor, memory_bytes } = opening;
        if let Some(copy) = copy.as_ref().filter(|_| args.replication.read_only) {
            let dir = args.open.single_dir("--read-only")?;
            let options = read_only_options(&args.open, &holder);
            let refresh = args.replication.poll_interval();
            let opened = ReadOnlyStore::open(copy, dir, options, refresh, predecessor);
            return opened.map(Self::Copy);
        }
        let copies = copy.map(|copy| Arc::new(Copies::new(copy, takeover)));
        let shares = args.memory_shares(memory_bytes);
        let options = ServerOptions {
            scrub_rate: args.scrub_rate,
            disk_kind: args.disk_kind.map(Into::into),
            lifecycle_check: args.lifecycle_check,
            lifecycle_day: Some(args.lifecycle_day),
            pinned_memory: shares.pinned,
            locked_memory: shares.cache,
            lifecycle_observer: observer,
            lifecycle_events: events
                .as_ref()
                .map(EventTargets::lifecycle_events)
                .unwrap_or_default(),
            event_queues: events.as_deref().map(EventTargets::queues),
            enforces_quotas: true,
            move_rate: args.move_rate,
            adds_directories: true,
            accepted_losses: args.accept_loss.clone(),
            refill: args.refill.clone(),
            copies: copies.clone().map(|copies| copies as _),
        };
        let create = IfMissing::Create;
        let opened = open_for(&args.open, &holder, create, options, predecessor);
        let (mut store, _damage) = opened.map_err(|failure| {
            // Why a copy cannot be kept, with advice.
            copies.as_ref().and_then(|copies| copies.take_failure()).unwrap_or(failure)
        })?;
        if let Some(dir) = &args.refill {
            print_refill(&store, dir, copies.as_deref());
        }
        for dir in &args.retire {
            if !store.members().iter().any(|member| member.is_at(dir)) {
                // A server is started again with the same options.
                let dir = dir.display();
                print_message(&format!("{dir} is not in the store: remove its --retire"));
                continue;
            }
            store.remove_member(dir).map_err(|error| {
                let failure = Failure::new(format!("cannot retire {}", dir.display()));
                failure.because(error).exit(Exit::NotStarted)
            })?;
        }
        create_buckets(&store, &args.buckets)?;
        let store = Arc::new(store);
        let running = copies.map(|copies| copies.take_running()).unwrap_or_default();
        let served = Arc::new(ServedStore::new(Arc::clone(&store)));
        Ok(Self::Own { store, served, running })
    }

    /// Returns the store for the server.
    pub(super) fn served(&self) -> Arc<ServedStore> {
        match self {
            Self::Own { served, .. } => Arc::clone(served),
            Self::Copy(copy) => copy.served(),
        }
    }

    /// Ends the threads that keep the copies, after the last request.
    pub(super) fn stop_copying(&mut self) {
        if let Self::Own { running, .. } = self {
            copies::stop(std::mem::take(running));
        }
    }

    /// Closes the store.
    pub(super) fn close(self) -> Result {
        match self {
            Self::Own { store, served, .. } => {
                drop(served);
                match Arc::into_inner(store).map(Pool::close) {
                    Some(closed) => closed.or_fail(|| "cannot close the store".to_owned()),
                    None => Ok(()),
                }
            }
            Self::Copy(copy) => {
                copy.close();
                Ok(())
            }
        }
    }
}

/// Prints what was restored into a directory, or that it was refilled earlier.
fn print_refill(store: &Pool, dir: &Path, copies: Option<&Copies>) {
    let name = dir.display();
    match copies.and_then(Copies::take_restored) {
        Some(time) => print_message(&format!(
            "refilled {name} with the copy of {time}: what was stored on the lost disk later is \
             lost; the content is fetched in the background"
        )),
        // A server is started again with the same options.
        None => {
            let is_there = |member: &Member| member.is_at(dir) && member.why_missing().is_none();
            if store.members().iter().any(is_there) {
                print_message(&format!("{name} is in the store: remove its --refill"));
            }
        }
    }
}

/// Creates the buckets that do not exist.
fn create_buckets(store: &Pool, buckets: &[String]) -> Result {
    for bucket in buckets {
        match store.create_bucket(bucket) {
            Ok(()) | Err(Error::BucketExists { .. }) => {}
            Err(error) => {
                let failure = Failure::new(format!("cannot create the bucket \"{bucket}\""));
                return Err(failure.exit(Exit::NotStarted).because(error));
            }
        }
    }
    Ok(())
}
