//! The copies that a server keeps: that of a store of its own at the URL, and that of each of several
//! directories below it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use haul_disk::{Disk, error_chain};
use haul_file_store::{Error as StoreError, Result as StoreResult, Store};
use haul_replicate::{
    Error, Fetch, Progress, Remote, Replica, StoreSource, Takeover, Tier, TieredDisk, check_copy,
    finish_takeover, restore_store_beside,
};
use haul_store_pool::{CopiedBy, MembershipFile};

use crate::clock::rfc3339;
use crate::remote::{Copy, new_progress};
use crate::report::{Exit, Failure, OrFail, Result, print_message};

/// The size of the cache of a store whose local part is not limited: it is used only until
/// everything is fetched.
pub(crate) const CACHE_BYTES: u64 = 256 << 20;

/// The folders of the members' copies begin with this.
const MEMBER_PREFIX: &str = "member-";

/// The copies of a server's stores, by the number of the member.
pub(crate) struct Copies {
    copy: Copy,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    takeover: Option<Takeover>,
    prepared: BTreeMap<Option<u16>, Prepared>,
    running: Vec<Running>,
    /// The time of the copy that was restored.
    restored: Option<String>,
    failure: Option<Failure>,
}

/// What a store was opened with.
struct Prepared {
    remote: Remote,
    progress: Arc<Progress>,
    local: Arc<dyn Disk>,
    tiered: Option<Arc<TieredDisk>>,
}

/// The threads that keep a copy.
pub(crate) struct Running {
    /// The directory of one of several members.
    dir: Option<PathBuf>,
    replica: Replica,
    tier: Option<Tier>,
}

/// Returns the folder of a member's copy, below the URL.
pub(crate) fn member_name(number: u16) -> String {
    format!("{MEMBER_PREFIX}{number}")
}

/// Returns the number of the member whose copy a folder has.
pub(crate) fn member_number(folder: &str) -> Option<u16> {
    let number = folder.strip_prefix(MEMBER_PREFIX)?.parse().ok()?;
    (member_name(number) == folder).then_some(number)
}

impl fmt::Debug for Copies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copies").field("remote", &self.copy.remote).finish_non_exhaustive()
    }
}

impl Copies {
    /// Returns the copies for a store that is not open yet. With `takeover`, this process owns the
    /// copy of a store of its own already.
    pub(crate) fn new(copy: Copy, takeover: Option<Takeover>) -> Self {
        Self { copy, state: Mutex::new(State { takeover, ..State::default() }) }
    }

    /// Returns the threads that were started.
    pub(crate) fn take_running(&self) -> Vec<Running> {
        std::mem::take(&mut self.state().running)
    }

    /// Returns the time of the copy that was restored.
    pub(crate) fn take_restored(&self) -> Option<String> {
        self.state().restored.take()
    }

    /// Returns the reason why a copy could not be started.
    pub(crate) fn take_failure(&self) -> Option<Failure> {
        self.state().failure.take()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remote(&self, member: Option<u16>) -> Remote {
        let below = |number: u16| self.copy.remote.below(&member_name(number));
        member.map_or_else(|| self.copy.remote.clone(), below)
    }

    /// Claims the copy of an open store, unless a standby has taken it over, and starts to ship.
    fn start_copy(
        &self,
        member: Option<u16>,
        store: &Arc<Store>,
        file: Option<MembershipFile>,
    ) -> Result<Running> {
        let dir = member.map(|_| store.dir().to_path_buf());
        let name = dir.as_ref().map_or("the store".to_owned(), |dir| dir.display().to_string());
        let cannot = || format!("cannot keep the copy of {name}");
        let mut state = self.state();
        let (prepared, takeover) = (state.prepared.remove(&member), state.takeover.take());
        drop(state);
        let Some(Prepared { remote, progress, local, tiered }) = prepared else {
            return Err(Failure::new(cannot()));
        };
        let source = StoreSource::new(Arc::clone(store), Arc::clone(&local));
        let source = match file {
            Some(MembershipFile { content }) => source.with_file(MembershipFile::NAME, content),
            None => source,
        };
        let options = self.copy.options.clone();
        let started = match takeover {
            Some(takeover) => takeover.follow(source, options, progress),
            None => Replica::follow_with(source, &remote, options, progress),
        };
        let started = started.and_then(|replica| {
            finish_takeover(&remote, store, &*local)?;
            Ok(replica)
        });
        let replica = started.map_err(|error| {
            let failure = Failure::new(cannot()).exit(Exit::NotStarted);
            let failure = match error {
                Error::Fenced { .. } => failure.advise(
                    "another server continues the copy; restore it into an empty directory",
                ),
                Error::NotThisLog { .. } => failure.advise(
                    "restore the copy into an empty directory, or use another prefix for this store",
                ),
                _ => failure,
            };
            failure.because(error)
        })?;
        if let Some(error) = replica.status().last_error {
            print_message(&format!("{name} has no copy yet, retrying: {error}"));
        }
        let tier = |disk| Tier::start(Arc::clone(store), disk, self.copy.local_space);
        let tier = tiered.map(tier).transpose().or_fail(cannot)?;
        Ok(Running { dir, replica, tier })
    }
}

fn invalid(what: String) -> StoreError {
    StoreError::Invalid { what }
}

impl haul_store_pool::Copies for Copies {
    fn prepare(
        &self,
        member: Option<u16>,
        local: &Arc<dyn Disk>,
        is_new: bool,
    ) -> StoreResult<CopiedBy> {
        if let (Some(option), Some(_)) = (self.copy.single_option, member) {
            let what = format!("{option} needs a store that never had several directories");
            return Err(invalid(what));
        }
        let (remote, local) = (self.remote(member), Arc::clone(local));
        let progress = match member {
            None => Arc::clone(&self.copy.progress),
            Some(_) => new_progress(self.copy.ack_time),
        };
        let is_needed = TieredDisk::is_needed(&*local)?;
        if is_needed && is_new {
            // The member's copy is at another place than that of the store.
            let what = "parts of it are only in its copy; serve it alone until all are fetched";
            return Err(invalid(format!("{}: {what}", local.root().display())));
        }
        let cache_bytes = self.copy.local_space.map_or(CACHE_BYTES, |space| space / 8);
        let tiered = (is_needed || self.copy.local_space.is_some())
            .then(|| Arc::new(TieredDisk::new(Arc::clone(&local), &remote, cache_bytes)));
        let disk = tiered.clone().map(|disk| disk as _);
        let replication = Arc::clone(&progress) as _;
        let prepared = Prepared { remote, progress, local, tiered };
        self.state().prepared.insert(member, prepared);
        Ok(CopiedBy { disk, replication })
    }

    fn start(
        &self,
        member: Option<u16>,
        store: &Arc<Store>,
        file: Option<MembershipFile>,
    ) -> StoreResult<()> {
        match self.start_copy(member, store, file) {
            Ok(running) => {
                self.state().running.push(running);
                Ok(())
            }
            Err(failure) => {
                self.state().failure = Some(failure);
                Err(invalid("the copy cannot be kept".to_owned()))
            }
        }
    }

    fn check(&self, member: u16) -> StoreResult<()> {
        let checked = check_copy(&self.remote(Some(member)));
        checked.map_err(|error| invalid(error_chain(&error).to_string()))
    }

    fn restore(&self, member: u16, disk: &Arc<dyn Disk>) -> StoreResult<u64> {
        let remote = self.remote(Some(member));
        let restored = restore_store_beside(&remote, disk, Fetch::OnDemand);
        let restored = restored.map_err(|error| invalid(error_chain(&error).to_string()))?;
        let time = UNIX_EPOCH + Duration::from_millis(restored.written_ms);
        self.state().restored = Some(rfc3339(time).to_string());
        Ok(restored.written_ms)
    }
}

/// Ends the threads. Ships the rest, and reports if that fails: the next start ships it.
pub(crate) fn stop(running: Vec<Running>) {
    // Together, so that a slow copy does not take the time of the others.
    thread::scope(|scope| {
        for Running { dir, replica, tier } in running {
            scope.spawn(move || {
                drop(tier);
                let status = replica.status();
                let Err(error) = replica.stop() else { return };
                let reason = status.stopped.or(status.last_error);
                let reason = reason.unwrap_or_else(|| error.to_string());
                let copy = match dir {
                    Some(dir) => format!("the copy of {}", dir.display()),
                    None => "the copy".to_owned(),
                };
                print_message(&format!("{copy} does not contain the last writes: {reason}"));
            });
        }
    });
}
