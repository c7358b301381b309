//! A store's free space, and the behaviour of calls on a full disk.

use haul_append_log as log;
use haul_sync::{elapsed, now};

use crate::error::{Error, Result};
use crate::failures::WorkKind;
use crate::inner::Inner;
use crate::maintenance::admission::SpaceWait;
use crate::maintenance::plan::{ShortSpace, SpaceThresholds};
use crate::maintenance::volume_states::VolumeStates;
use crate::names;

/// A store's free space, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Space {
    /// The free bytes for ordinary needles; `None` on a disk without a limit.
    pub(crate) free_bytes: Option<u64>,
    /// The number of volumes in compaction's reserve, and the number it should have.
    pub(crate) reserve_volumes: u64,
    pub(crate) reserve_volumes_wanted: u64,
}

impl Inner {
    pub(crate) fn space(&self) -> Result<Space> {
        let log = self.volumes.log.space()?;
        let log_bytes = log.tail_bytes + log.next_bytes + log.spare_bytes;
        // Disk space for less than a volume can store big objects, but no needles.
        let unit = if log.reserved_segments_wanted > 0 { log.reserved_segment_bytes } else { 1 };
        let creatable_bytes = log.creatable_bytes.map(|bytes| bytes - bytes % unit.max(1));
        Ok(Space {
            free_bytes: creatable_bytes.map(|bytes| bytes.saturating_add(log_bytes)),
            reserve_volumes: log.reserved_segments as u64,
            reserve_volumes_wanted: log.reserved_segments_wanted as u64,
        })
    }

    /// Measures the space for compacting volumes shorter than a whole one.
    pub(crate) fn short_space(&self) -> Result<ShortSpace> {
        let log = self.volumes.log.space()?;
        let wanted = log.reserved_segments_wanted;
        let missing = wanted.saturating_sub(log.reserved_segments) as u64;
        let free = self.volumes.disk.free_bytes()?.unwrap_or(u64::MAX);
        // The end of a volume stays unused if the next record does not fit.
        let unused = 2 * self.options.big_object_bytes;
        Ok(ShortSpace {
            whole_bytes: log.reserved_segment_bytes,
            missing_volumes: (wanted > 0).then_some(missing),
            tail_bytes: log.compaction_tail_bytes.saturating_sub(unused),
            free_bytes: free.saturating_sub(log.reserved_segment_bytes / 32),
        })
    }

    /// Measures the free space, reports it to the writers' admission, and returns the thresholds.
    pub(crate) fn measure_space(&self) -> Result<SpaceThresholds> {
        let free = self.space()?.free_bytes;
        let segments = self.volumes.log.segments();
        let volumes: u64 = segments.iter().map(|segment| u64::from(segment.bytes)).sum();
        Ok(self
            .maintenance
            .admission
            .measured(free.map(|free| (free, free.saturating_add(volumes)))))
    }

    /// Repeats a call that finds the disk full, as long as compaction frees space for it. The call
    /// must hold no lock when it returns.
    pub(crate) fn with_space<T>(&self, call: impl FnMut() -> Result<T>) -> Result<T> {
        let outcome = self.wait_for_space(call);
        // Other failures are recorded where they occur: a change may be rejected for a big file
        // only.
        if matches!(outcome, Ok(_) | Err(Error::Full { .. } | Error::Stalled { .. })) {
            self.maintenance.failures.note(WorkKind::Changes, &outcome);
        }
        outcome
    }

    fn wait_for_space<T>(&self, mut call: impl FnMut() -> Result<T>) -> Result<T> {
        let began = now();
        loop {
            // Counted before the call: a volume that is freed while it fails is space for the next.
            let freed = self.maintenance.admission.freed_volumes();
            let full = match call() {
                Err(full @ Error::Full { .. }) => full,
                outcome => return outcome,
            };
            match self.maintenance.admission.wait_for_space(freed, began + self.options.stall_max) {
                SpaceWait::Freed => {}
                SpaceWait::Exhausted => return Err(full),
                SpaceWait::TimedOut => return Err(Error::Stalled { waited: elapsed(began) }),
            }
        }
    }

    /// Rejects a big object that would use the space reserved for volumes and compaction. Removes
    /// spare volumes first to make room for it.
    pub(crate) fn check_space_for_file(&self, bytes: u64) -> Result<()> {
        let has_space = || -> Result<bool> {
            let log = self.volumes.log.space()?;
            Ok(log.creatable_bytes.is_none_or(|creatable| creatable >= bytes))
        };
        if has_space()? {
            return Ok(());
        }
        if self.volumes.log.release_spares()? > 0 && has_space()? {
            return Ok(());
        }
        let kept = self.options.free_bytes_min();
        let what = format!(
            "an object of {bytes} bytes would not leave {kept} bytes of the file system free, \
             in addition to the volumes reserved for compaction"
        );
        Err(Error::Full { source: what.into() })
    }

    /// Frees space for compaction if there is no reserve, by removing volume indexes, which are
    /// derived data.
    ///
    /// Removes only sealed volumes' indexes: if the newest volume's end is damaged, only its index
    /// states which keys the damage affects. A crash in between leaves volumes without an index,
    /// which opening the store reads.
    pub(crate) fn release_indexes(&self, volume_states: &mut VolumeStates) -> Result<u64> {
        let mut removed = 0;
        for volume in self.sealed_volumes() {
            self.volumes.indexes.forget(volume.number);
            volume_states.indexed.remove(&volume.number);
            match self.volumes.disk.remove(&names::index(volume.number)) {
                Ok(()) => removed += 1,
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error.into()),
            }
        }
        if removed > 0 {
            self.volumes.disk.sync_dir("")?;
        }
        Ok(removed)
    }

    /// Returns `true` if an index file fits into the space that is not reserved for compaction and
    /// for small derived files.
    pub(crate) fn has_space_for_index(&self, bytes: u64) -> Result<bool> {
        Ok(self.volumes.log.space()?.creatable_bytes.is_none_or(|creatable| creatable >= bytes))
    }

    /// Returns `true` if derived data has to wait: the reserve is incomplete and cannot be
    /// refilled, or there is probably no space for an index.
    pub(crate) fn is_tight(&self) -> bool {
        let lacks_reserve = |space: log::Space| {
            space.reserved_segments < space.reserved_segments_wanted
                && space.creatable_bytes == Some(0)
        };
        // The approximate index size for a volume with small objects.
        let index_bytes = self.options.volume_bytes / 32;
        self.volumes.log.space().is_ok_and(lacks_reserve)
            || matches!(self.volumes.disk.free_bytes(), Ok(Some(free)) if free < index_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use crate::compaction::thread::index_sealed_volumes;
    use crate::{Attributes, Options, Precondition, Store, names, volume_index};

    #[test]
    fn released_indexes_are_rewritten_and_the_newest_one_stays() {
        let dir = tempfile::tempdir().unwrap();
        let options =
            Options { volume_bytes: 4 << 20, big_object_bytes: 256 << 10, ..Options::default() };
        let (store, _) = Store::open(dir.path(), options).unwrap();
        store.create_bucket("bucket").unwrap();
        for n in 0..30_u8 {
            let (key, none) = (n.to_string(), Attributes::new());
            store.put("bucket", &key, &[n; 200_000], &none, &Precondition::None).unwrap();
        }
        let inner = &store.inner;
        let indexed = || -> Vec<u32> {
            let names = inner.volumes.disk.list("").unwrap();
            names.iter().filter_map(|name| names::parse_index(name)).collect()
        };
        let is_complete = |volume| {
            volume_index::read(&*inner.volumes.disk, volume, None)
                .is_some_and(|index| index.is_complete)
        };
        let complete = || index_sealed_volumes(inner, &AtomicBool::new(false)).unwrap();
        complete();
        inner.volumes.indexes.write(&crate::volumes::nonempty_volumes(&inner.volumes.log));
        assert_eq!((indexed(), is_complete(1), is_complete(2)), (vec![1, 2], true, false));

        let mut volume_states = inner.maintenance.volume_states.lock();
        assert_eq!(inner.release_indexes(&mut volume_states).unwrap(), 1);
        assert_eq!(indexed(), [2]);
        drop(volume_states);
        complete();
        assert_eq!((indexed(), is_complete(1)), (vec![1, 2], true));
    }
}
