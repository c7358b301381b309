//! The manifest: the list of existing volumes, by which a missing volume is detected.
//!
//! It has two copies in two files, which are overwritten in place, one after the other. A torn
//! write leaves the other copy intact, and removing a volume needs no space, which a full disk does
//! not have.

pub(crate) mod format;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haul_append_log::Lsn;
use haul_disk::{Disk, Durability, File, Open, link_count, read_full, write_full};
use haul_sync::Mutex;

use crate::error::{Error, Result};
use crate::manifest::format::{AcceptedLoss, Manifest};
use crate::names;
use crate::volume_index::format::VolumeId;

/// A manifest as loaded from its copies.
#[derive(Debug, Default)]
pub(crate) struct LoadedManifest {
    /// The newest intact copy.
    pub(crate) manifest: Option<Manifest>,
    /// The names of damaged or missing copies.
    pub(crate) damaged: Vec<&'static str>,
    /// `true` if the copies differ: the next change writes both.
    pub(crate) is_uneven: bool,
}

/// Loads both copies.
///
/// # Errors
/// [`crate::Error::Disk`] if an existing copy cannot be read.
pub(crate) fn load(disk: &dyn Disk) -> Result<LoadedManifest> {
    let mut found = LoadedManifest::default();
    let mut copies = Vec::new();
    for name in names::MANIFESTS {
        match read_copy(disk, name)? {
            Some(manifest) => copies.push(manifest),
            None => found.damaged.push(name),
        }
    }
    found.is_uneven = copies.len() < 2 || copies[0] != copies[1];
    found.manifest = copies.into_iter().max_by_key(|copy| copy.generation);
    Ok(found)
}

fn read_copy(disk: &dyn Disk, name: &str) -> Result<Option<Manifest>> {
    let file = match disk.open(name, Open { read_only: true, ..Open::default() }) {
        Err(error) if error.is_not_found() => return Ok(None),
        opened => opened?,
    };
    let mut bytes = vec![0; usize::try_from(file.bytes()?).unwrap_or(0)];
    let read = read_full(&*file, &mut bytes, 0)?;
    Ok(Manifest::decode(&bytes[..read]))
}

/// Replaces a manifest copy that has a second name (a hard link) by a new file: the old file also
/// belongs to a copy of the store, such as one that `cp -l` made. A snapshot has its own manifest.
///
/// After a crash in between, the file still has both names, and the next opening replaces it.
fn unshare(
    disk: &Arc<dyn Disk>,
    name: &str,
    file: Arc<dyn File>,
    manifest: &Manifest,
) -> Result<Arc<dyn File>> {
    if link_count(&*file)? == 1 {
        return Ok(file);
    }
    let unfinished = names::unfinished(name);
    match disk.remove(&unfinished) {
        Err(error) if !error.is_not_found() => return Err(error.into()),
        _ => {}
    }
    let file = disk.create(&unfinished, Open::default())?;
    write_full(&*file, &manifest.encode(), 0)?;
    file.sync(Durability::Data)?;
    disk.rename(&unfinished, name)?;
    disk.sync_dir("")?;
    Ok(file)
}

/// An open store's manifest.
#[derive(Debug)]
pub(crate) struct ManifestFile {
    /// Locked while the copies are written.
    state: Mutex<State>,
    /// `true` after a failed write or sync: the state of the copies is unknown, and no more volumes
    /// are removed. Apart from the state, so that a disk that does not respond delays no statistics.
    has_failed: AtomicBool,
}

#[derive(Debug)]
struct State {
    manifest: Manifest,
    copies: Vec<Arc<dyn File>>,
    /// The volumes removed since the store was opened. Some may still exist for a moment, and a
    /// thread that has seen their files must not list them again.
    removed: BTreeSet<u32>,
}

impl ManifestFile {
    /// Opens the manifest's files, creates missing ones, and writes `manifest` to them if
    /// `must_write`.
    ///
    /// # Errors
    /// A failed system call; [`Error::Full`] if there is no space for new files.
    ///
    /// # Durability
    /// The manifest survives a power cut when this returns.
    pub(crate) fn open(disk: &Arc<dyn Disk>, manifest: Manifest, must_write: bool) -> Result<Self> {
        let (mut copies, mut has_new) = (Vec::new(), false);
        for name in names::MANIFESTS {
            copies.push(match disk.open(name, Open::default()) {
                Err(error) if error.is_not_found() => {
                    has_new = true;
                    disk.create(name, Open::default())?
                }
                opened => unshare(disk, name, opened?, &manifest)?,
            });
        }
        let state = State { manifest, copies, removed: BTreeSet::new() };
        if must_write || has_new {
            state.write()?;
        }
        if has_new {
            disk.sync_dir("")?;
        }
        Ok(Self { state: Mutex::new(state), has_failed: AtomicBool::new(false) })
    }

    /// Adds volumes that are not listed yet.
    ///
    /// # Errors
    /// A failed system call. The volumes are added by the next call.
    ///
    /// # Durability
    /// When this returns, the loss of a volume is detected even after a power cut.
    pub(crate) fn add(&self, volumes: &[VolumeId]) -> Result<()> {
        self.change(|manifest, removed| {
            for volume in volumes.iter().filter(|volume| !removed.contains(&volume.number)) {
                manifest.volumes.insert(volume.number, volume.nonce);
            }
        })
    }

    /// Removes a volume from the manifest, before its file is removed. Checkpoints with a position
    /// before `checkpoint` must not be used any more.
    ///
    /// # Errors
    /// A failed system call: the volume must then stay.
    ///
    /// # Durability
    /// The removal survives a power cut when this returns.
    pub(crate) fn remove(&self, volume: u32, checkpoint: Lsn) -> Result<()> {
        self.change(|manifest, removed| {
            manifest.checkpoint_min = manifest.checkpoint_min.max(checkpoint);
            removed.insert(volume);
            manifest.volumes.remove(&volume);
            manifest.accepted.retain(|loss| loss.volume != volume);
        })
    }

    /// Records that the loss of these ranges, and of an earlier manifest, is accepted.
    ///
    /// # Errors
    /// A failed system call.
    ///
    /// # Durability
    /// The record survives a power cut when this returns.
    pub(crate) fn accept(&self, losses: &[AcceptedLoss]) -> Result<()> {
        self.change(|manifest, _| {
            manifest.accepted.extend_from_slice(losses);
            manifest.accepted.sort_unstable();
            manifest.accepted.dedup();
            manifest.is_rebuilt = false;
        })
    }

    fn change(&self, change: impl FnOnce(&mut Manifest, &mut BTreeSet<u32>)) -> Result<()> {
        let mut state = self.state.lock();
        let mut changed = state.manifest.clone();
        change(&mut changed, &mut state.removed);
        if changed == state.manifest {
            return Ok(());
        }
        debug_assert!(changed.checkpoint_min >= state.manifest.checkpoint_min);
        changed.generation += 1;
        self.check()?;
        let before = std::mem::replace(&mut state.manifest, changed);
        let written = state.write();
        if let Err(error) = &written {
            // On a full disk, nothing effective was written.
            self.has_failed.store(!error.is_full(), Ordering::Relaxed);
            let generation = state.manifest.generation;
            state.manifest = Manifest { generation, ..before };
        }
        Ok(written?)
    }

    /// Clones the manifest in memory.
    pub(crate) fn current(&self) -> Manifest {
        self.state.lock().manifest.clone()
    }

    /// Returns the numbers of all listed volumes.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.state.lock().manifest.volumes.keys().copied().collect()
    }

    /// Returns an error if a write or sync failed: what the disk has is then unknown until the store
    /// is opened again. Does not wait for a write.
    pub(crate) fn check(&self) -> Result<()> {
        match self.has_failed.load(Ordering::Relaxed) {
            true => Err(Error::Stopped { what: "a write or sync of the manifest failed" }),
            false => Ok(()),
        }
    }
}

impl State {
    /// Writes the copies one after the other.
    ///
    /// 1. Writes and syncs the first copy. After a crash it is the old one, the new one, or torn;
    ///    the second copy is then still the old one.
    /// 2. Writes and syncs the second copy. The first copy is the new one by now.
    fn write(&self) -> haul_disk::Result<()> {
        let bytes = self.manifest.encode();
        debug_assert_eq!(Manifest::decode(&bytes).as_ref(), Some(&self.manifest));
        debug_assert_eq!(self.copies.len(), names::MANIFESTS.len());
        for copy in &self.copies {
            write_full(&**copy, &bytes, 0)?;
            copy.sync(Durability::Data)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use haul_disk::Op;
    use haul_disk_sim::{MemoryDisk, Survival};
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn crash_leaves_the_manifest_before_or_after_the_change() {
        let disk = MemoryDisk::default();
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let file = ManifestFile::open(&shared, Manifest::default(), true).unwrap();
        file.add(&[VolumeId { number: 1, nonce: 1 }]).unwrap();
        let (before, steps) = (disk.medium(), disk.steps().len());
        file.add(&[VolumeId { number: 2, nonce: 2 }]).unwrap();
        let mut medium = before;
        for step in &disk.steps()[steps..] {
            medium.apply_step(step);
            for survival in [Survival::Nothing, Survival::Everything]
                .into_iter()
                .chain((0..32).map(|seed| Survival::Half { seed }))
            {
                let left = MemoryDisk::on(&medium.cut(survival));
                let found = load(&left).unwrap().manifest.unwrap();
                assert!([1, 2].contains(&found.volumes.len()), "{step:?}: {found:?}");
            }
        }
        assert_eq!(load(&disk).unwrap().manifest.unwrap().volumes.len(), 2);
    }

    #[test]
    fn removed_volume_is_not_listed_again() {
        let shared: Arc<dyn Disk> = Arc::new(MemoryDisk::default());
        let file = ManifestFile::open(&shared, Manifest::default(), true).unwrap();
        let volumes = [1, 2].map(|number| VolumeId { number, nonce: 1 });
        file.add(&volumes).unwrap();
        file.remove(1, Lsn::new(2, 4096)).unwrap();
        file.add(&volumes).unwrap();
        assert_eq!(file.numbers(), [2]);
    }

    #[test]
    fn check_does_not_wait_for_a_write() {
        let disk = MemoryDisk::default();
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let file = ManifestFile::open(&shared, Manifest::default(), true).unwrap();
        disk.block(Op::Sync);
        let checked = thread::scope(|scope| {
            scope.spawn(|| file.add(&[VolumeId { number: 1, nonce: 1 }]).unwrap());
            disk.wait_until_blocked();
            let (sender, checked) = mpsc::channel();
            let file = &file;
            scope.spawn(move || sender.send(file.check()));
            let checked = checked.recv_timeout(Duration::from_secs(10));
            disk.unblock();
            checked
        });
        checked.expect("the check waits for the disk").unwrap();
        disk.fail(Op::Sync, 1, 1, Errno::IO);
        file.add(&[VolumeId { number: 2, nonce: 1 }]).unwrap_err();
        assert!(matches!(file.check(), Err(Error::Stopped { .. })));
        assert!(matches!(
            file.add(&[VolumeId { number: 3, nonce: 1 }]),
            Err(Error::Stopped { .. })
        ));
    }

    #[test]
    fn one_damaged_copy_is_harmless_and_two_are_reported() {
        let disk = MemoryDisk::default();
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let file = ManifestFile::open(&shared, Manifest::default(), true).unwrap();
        file.add(&[VolumeId { number: 1, nonce: 1 }]).unwrap();
        disk.rot(names::MANIFESTS[0], 20, 0);
        let found = load(&disk).unwrap();
        assert_eq!(found.damaged, [names::MANIFESTS[0]]);
        assert!(found.is_uneven && found.manifest.unwrap().volumes.len() == 1);
        disk.remove(names::MANIFESTS[1]).unwrap();
        let found = load(&disk).unwrap();
        assert_eq!((found.damaged.len(), found.manifest), (2, None));
    }
}
