//! Opens a log, for writing or read-only.

use std::path::Path;
use std::sync::Arc;

use haul_disk::{Disk, Locked, OsDisk, probe, this_process};
use haul_sync::{Mutex, thread};

use super::Log;
use crate::append::appender::Appender;
use crate::append::batch::Tail;
use crate::append::commit::{Shared, Start};
use crate::append::prepare::Preparer;
use crate::append::writer::{Writer, choose_sync_method};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::read_only::{ReadOnlyLog, ReadOnlyReport};
use crate::recover::{RecoveredLog, recover};
use crate::replay::{Recovered, Replay};
use crate::segments::Segment;
use crate::strategy::strategy;

impl Log {
    /// Opens the log in the directory `dir` and delivers its records to `replay`. Creates the
    /// directory and its parents if they do not exist.
    ///
    /// # Errors
    /// Fails like [`Log::open`], and with [`Error::Disk`] if the directory cannot be created.
    ///
    /// # Durability
    /// Like [`Log::open`]. A directory created by this call survives a power cut.
    pub fn open_dir(
        dir: impl AsRef<Path>,
        options: Options,
        replay: &mut dyn Replay,
    ) -> Result<(Self, Recovered)> {
        options.check()?;
        Self::open(Arc::new(OsDisk::open_or_create(dir)?), options, replay)
    }

    /// Opens the log in the root directory of `disk` and delivers its records to `replay`. Creates
    /// a new log if the directory contains none. The directory is locked until the log is closed or
    /// dropped.
    ///
    /// # Errors
    /// Returns [`Error::InUse`] if the log is already open, in this process or another one,
    /// [`Error::Damaged`] if bytes are invalid and `options.on_damage` is
    /// [`crate::OnDamage::Refuse`], [`Error::UnsupportedFormat`] if a file is not this log's
    /// segment in a supported format, and [`Error::Full`] if the disk has no space for a segment
    /// that the log needs.
    ///
    /// # Durability
    /// Every record that this call reads and delivers is durable.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: Options,
        replay: &mut dyn Replay,
    ) -> Result<(Self, Recovered)> {
        options.check()?;
        let lock = match disk.lock("", &this_process())? {
            Locked::Acquired(lock) => lock,
            Locked::HeldBy(holder) => {
                return Err(Error::InUse { dir: disk.root().to_path_buf(), holder });
            }
        };
        // Probing fails on a simulated disk, because its root does not exist. `None` selects the
        // strategy for simulated disks.
        let mut strategy = strategy(probe(disk.root()).ok().as_ref());
        let opened = recover(&disk, &options, &strategy, replay)?;
        let RecoveredLog { segments, pool, current, end, next, is_proven, recovered } = opened;
        choose_sync_method(&*disk, &current, end, options.sync_method, &mut strategy)?;
        let tail = |segment: Arc<Segment>| -> Result<Tail> {
            let writer = Writer::open(&*disk, &segment, strategy.sync_method)?;
            Ok(Tail { segment, writer })
        };
        let (current, next) = (tail(current)?, next.map(tail).transpose()?);
        let current = Start { tail: current, end, is_proven };
        let shared = Shared::new(Arc::clone(&disk), segments, current, next, &options)?;
        let (shared, pool) = (Arc::new(shared), Arc::new(pool));

        let no_thread = |source| haul_disk::Error::new(haul_disk::Op::Open, disk.root(), source);
        let preparer =
            Preparer::start(Arc::clone(&shared), Arc::clone(&pool), strategy.sync_methods())
                .map_err(no_thread)?;
        let committer = thread::Builder::new()
            .name("log-commit".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.commit_until_closed()
            })
            .map_err(no_thread)?;
        let committer = Some(committer);
        let appender = Appender {
            shared: Arc::clone(&shared),
            pool: Arc::clone(&pool),
            payload_bytes_max: options.payload_bytes_max(),
        };
        let log = Self {
            appender,
            shared,
            pool,
            strategy,
            preparer,
            committer,
            removes_in_order: options.removes_in_order,
            removal: Mutex::new(()),
            _lock: lock,
        };
        Ok((log, recovered))
    }

    /// Opens the log in the root of `disk` read-only and delivers its records to `replay`.
    /// Meanwhile another process may append records and remove or recycle segments. This function
    /// does not write, sync, create, rename, remove or lock any file. It reports damage, and the
    /// torn tail (what an interrupted write left) that [`Log::open`] would truncate.
    ///
    /// Records are delivered in order and without a gap up to [`ReadOnlyReport::end`]. The last
    /// delivered records may not be synced yet by the writing process.
    ///
    /// # Errors
    /// Returns [`Error::Damaged`] and [`Error::UnsupportedFormat`] like [`Log::open`], and
    /// [`Error::SegmentRemoved`] if the writing process repeatedly removes segments before this
    /// call opens them.
    ///
    /// # Durability
    /// None: a power cut may lose delivered records that the writing process has not acknowledged.
    pub fn open_read_only(
        disk: Arc<dyn Disk>,
        options: Options,
        replay: &mut dyn Replay,
    ) -> Result<(ReadOnlyLog, ReadOnlyReport)> {
        ReadOnlyLog::open(disk, &options, replay)
    }
}
