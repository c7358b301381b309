//! The store behind a server: one of its own, or the copy of another server's.

use std::path::Path;
use std::sync::Arc;

use haul_file_store::{Error, LifecycleObserver, Store};
use haul_replicate::Takeover;
use haul_s3_server::ServedStore;
use haul_store_pool::Pool;

use crate::args::ServeArgs;
use crate::handover::Predecessor;
use crate::open_store::{IfMissing, ServerOptions, open_for, read_only_options};
use crate::remote::read_only::ReadOnlyStore;
use crate::remote::{self, Copy, Running};
use crate::report::{Exit, Failure, OrFail, Result, print_message};

/// The store of a server.
pub(super) enum Backend {
    /// A store in the directory of this server, and the threads that keep its copy.
    Own { store: Arc<Pool>, served: Arc<ServedStore>, running: Option<Running> },
    /// The newest state of a copy.
    Copy(ReadOnlyStore),
}

/// The parts of a server with which its store is opened.
pub(super) struct Opening<'a> {
    /// The description of this process.
    pub(super) holder: String,
    pub(super) takeover: Option<Takeover>,
    pub(super) observer: LifecycleObserver,
    pub(super) predecessor: &'a Predecessor,
    /// The memory of the machine, or the limit of the control group of this process.
    pub(super) memory_bytes: u64,
}

impl Backend {
    /// Opens the store, or the newest state of the copy with `--read-only`.
    pub(super) fn open(args: &ServeArgs, copy: Option<Copy>, opening: Opening<'_>) -> Result<Self> {
        let Opening { holder, takeover, observer, predecessor, memory_bytes } = opening;
        let dir = match &copy {
            Some(_) => args.open.single_dir("--remote")?,
            None => Path::new(""),
        };
        if let Some(copy) = copy.as_ref().filter(|_| args.replication.read_only) {
            let options = read_only_options(&args.open, &holder);
            let refresh = args.replication.poll_interval();
            let opened = ReadOnlyStore::open(copy, dir, options, refresh, predecessor);
            return opened.map(Self::Copy);
        }
        let disk = copy.as_ref().map(|copy| copy.disk(dir)).transpose()?.flatten();
        let shares = args.memory_shares(memory_bytes);
        let options = ServerOptions {
            scrub_rate: args.scrub_rate,
            disk_kind: args.disk_kind.map(Into::into),
            lifecycle_check: args.lifecycle_check,
            lifecycle_day: Some(args.lifecycle_day),
            pinned_memory: shares.pinned,
            locked_memory: shares.cache,
            lifecycle_observer: observer,
            enforces_quotas: true,
            accepted_losses: args.accept_loss.clone(),
            replication: copy.as_ref().map(|copy| Arc::clone(&copy.progress) as _),
            disk: disk.clone().map(|disk| disk as _),
        };
        let create = IfMissing::Create;
        let (mut store, _damage) = open_for(&args.open, &holder, create, options, predecessor)?;
        store.set_move_rate(args.move_rate);
        for dir in &args.accept_loss {
            let dir = dir.display();
            print_message(&format!("{dir} is not in the store: remove its --accept-loss"));
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
        let start = |(copy, own): (Copy, &Arc<Store>)| copy.start(own, dir, disk, takeover);
        let running = copy.zip(store.own_store()).map(start).transpose()?;
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

    /// Ends the threads that keep the copy, after the last request.
    pub(super) fn stop_copying(&mut self) {
        if let Self::Own { running, .. } = self
            && let Some(running) = running.take()
        {
            remote::stop(running);
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
