//! Opens the stores of a pool.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use haul_disk::{Disk, OsDisk};
use haul_file_store::{Error, LifecycleGate, Options, RecoveryReport, Result, SharedQuotas, Store};

use crate::copies::Copies;
use crate::opening::look::Place;
use crate::opening::plan::Found;

/// A store that was opened, and its directory.
pub(super) struct OpenedStore {
    pub(super) number: u16,
    pub(super) dir: PathBuf,
    /// The directory itself, which has the pool file.
    pub(super) disk: Arc<dyn Disk>,
    /// What the directory had before it was locked.
    pub(super) found: Found,
    pub(super) store: Arc<Store>,
    pub(super) recovery: RecoveryReport,
    /// `true` if it was restored from its copy, and has the buckets of the copy.
    pub(super) is_restored: bool,
}

/// A member of the table: its store, or the reason why it is missing.
pub(super) struct MemberStore {
    pub(super) dir: PathBuf,
    pub(super) opened: std::result::Result<OpenedStore, String>,
}

/// A directory whose store is to be opened.
pub(super) struct Chosen {
    pub(super) place: Place,
    pub(super) number: u16,
    /// `true` if it is becoming a member.
    pub(super) is_new: bool,
}

/// What all stores of a pool are opened with.
pub(super) struct StoreOptions<'a> {
    options: &'a Options,
    quotas: SharedQuotas,
    /// Closed until the members have the same lifecycle rules.
    lifecycle_gate: LifecycleGate,
    members: u64,
    pub(super) copies: Option<&'a dyn Copies>,
}

/// The memory for recent changes that a member has at least.
const INDEX_MEMORY_MIN: u64 = 8 << 20;

impl<'a> StoreOptions<'a> {
    pub(super) fn new(
        options: &'a Options,
        members: usize,
        copies: Option<&'a dyn Copies>,
    ) -> Self {
        let quotas = SharedQuotas::new(options.enforces_quotas);
        let lifecycle_gate = LifecycleGate::closed();
        Self { options, quotas, lifecycle_gate, members: members as u64, copies }
    }

    /// Returns the gate before the lifecycle rules of all members.
    pub(super) fn lifecycle_gate(&self) -> &LifecycleGate {
        &self.lifecycle_gate
    }

    /// Returns the description of this process, for locks.
    pub(super) fn holder(&self) -> &str {
        &self.options.holder
    }

    /// Opens some stores at once.
    pub(super) fn open_all(&self, chosen: Vec<Chosen>) -> Vec<Result<OpenedStore>> {
        thread::scope(|scope| {
            let opening: Vec<_> =
                chosen.into_iter().map(|chosen| scope.spawn(|| self.open(chosen))).collect();
            let panicked = || Err(Error::Stopped { what: "opening a member panicked" });
            opening.into_iter().map(|opened| opened.join().unwrap_or_else(|_| panicked())).collect()
        })
    }

    /// Opens a store.
    pub(super) fn open(&self, chosen: Chosen) -> Result<OpenedStore> {
        let Chosen { place: Place { dir, disk, found, is_restored }, number, is_new } = chosen;
        let disk = disk.map_or_else(|| open_or_create(&dir), Ok)?;
        let options = Options {
            member: number,
            shared_quotas: Some(self.quotas.clone()),
            lifecycle_gate: self.lifecycle_gate.clone(),
            pinned_bytes_max: self.options.pinned_bytes_max / self.members,
            locked_bytes_max: self.options.locked_bytes_max / self.members,
            index_memory_bytes: (self.options.index_memory_bytes / self.members)
                .max(INDEX_MEMORY_MIN),
            ..self.options.clone()
        };
        let copy = self.copies.map(|copies| copies.prepare(Some(number), &disk, is_new));
        let (tiered, replication) =
            copy.transpose()?.map_or((None, None), |copy| (copy.disk, Some(copy.replication)));
        let options = Options { replication, ..options };
        let (store, recovery) =
            Store::open_on(tiered.unwrap_or_else(|| Arc::clone(&disk)), options)?;
        let store = Arc::new(store);
        Ok(OpenedStore { number, dir, disk, found, store, recovery, is_restored })
    }
}

/// Opens a directory, or creates it.
pub(crate) fn open_or_create(dir: &Path) -> Result<Arc<dyn Disk>> {
    Ok(Arc::new(OsDisk::open_or_create(dir)?))
}
