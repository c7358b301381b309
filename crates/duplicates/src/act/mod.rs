//! Removes, links, moves or deduplicates (reflinks) duplicates, and never removes the last copy of
//! a content.
//!
//! Immediately before a file is removed or replaced, it is compared byte by byte with a kept file,
//! while both files are open and monitored for writers. See [`Executor::process`].

mod attributes;
mod compare;
mod distinct;
mod file_info;
mod open_file;
mod relocate;
mod replace;
mod script;
mod skip_reason;

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use haul_disk::{DedupeOutcome, Error, Op, Superblock, dedupe_range};
use rustix::fs::FlockOperation;

use crate::keep::{Choice, FileInfo, Rules, choose};
use crate::report::Group;
use crate::transform::Transform;

use attributes::Attributes;
pub(crate) use open_file::OpenFile;
use open_file::WriteMonitor;
use replace::{Conditions, Replacement};
pub(crate) use script::dedupe_command;
pub use script::script;
pub use skip_reason::SkipReason;

/// An action on a redundant file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Removes the file.
    Remove,
    /// Replaces the file by a hard link to the kept file.
    HardLink,
    /// Replaces the file by a symbolic link to the kept file.
    SymLink,
    /// Lets the file share the blocks of the kept file (`FIDEDUPERANGE`).
    Dedupe,
    /// Moves the file below this directory, where it keeps its full path.
    Move(PathBuf),
}

/// Options of an [`Executor`].
#[derive(Debug)]
pub struct Options {
    /// The action.
    pub action: Action,
    /// The rules that select the files to keep.
    pub rules: Rules,
    /// `true` to skip files that other processes have locked with `flock`.
    pub lock: bool,
    /// `true` to replace a file by a link even if the file to keep has another owner, mode, ACL,
    /// extended attribute or flag, and to move a file to a file system that cannot have its
    /// extended attributes.
    pub ignore_permissions: bool,
    /// `true` to report the actions without executing them.
    pub dry_run: bool,
    /// If set, the outputs of this command for the two files are compared instead of the contents.
    /// It must be the command of the search.
    pub transform: Option<Transform>,
}

impl Options {
    /// Creates options with which `action` keeps the first file of each group, and skips files that
    /// another process has locked.
    #[must_use]
    pub fn new(action: Action) -> Self {
        Self {
            action,
            rules: Rules::default(),
            lock: true,
            ignore_permissions: false,
            dry_run: false,
            transform: None,
        }
    }
}

/// A receiver of the results of actions.
pub trait Events {
    /// Reports that the action was executed on `drop`, or would be in a dry run. `keep` is the kept
    /// file with the same content, and `bytes` is the length of `drop`.
    fn done(&mut self, keep: &Path, drop: &Path, bytes: u64);
    /// Reports that a file was skipped, and why.
    fn skipped(&mut self, path: &Path, reason: &SkipReason);
}

/// An executor of one action on groups of duplicates.
#[derive(Debug)]
pub struct Executor {
    options: Options,
    /// The time of the last `syncfs` of each file system, by device number, in nanoseconds since
    /// 1970.
    synced: HashMap<u64, i64>,
    /// The number of links that a dry run would have created, by device and inode number.
    planned_links: HashMap<(u64, u64), u32>,
}

impl Executor {
    /// Creates an executor.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options, synced: HashMap::new(), planned_links: HashMap::new() }
    }

    /// Processes a group. [`choose`] selects the files to keep; the action is executed on each
    /// other file that still equals a kept file. A file that no longer does is skipped and reported
    /// to `events`.
    ///
    /// Guarantees at the moment of the action: the name of the file referred to a file with the
    /// same content as the kept file, and the kept file still had its own name. From the comparison
    /// to the end of the action no process could modify either file: a lease makes the kernel block
    /// writers. If a writer is waiting or already had a file open, the file is skipped. The kernel
    /// grants no lease for files of other users or on file systems such as NFS. Then the length and
    /// the `mtime` of both files are checked instead, which may not detect writes through a
    /// mapping.
    pub fn process(&mut self, group: &Group, events: &mut dyn Events) {
        let rules = &self.options.rules;
        let skipped = &mut |path: &Path, reason| events.skipped(path, &reason);
        let files = match file_info::collect(group, rules, skipped) {
            Ok(files) => files,
            Err(reason) => {
                group.members.iter().for_each(|member| events.skipped(&member.path, &reason));
                return;
            }
        };
        let Choice { keep, drop } = choose(&files, rules);
        let keep = keep.iter().map(|keep| &files[*keep]).filter(|keep| !keep.is_link);
        let mut keep: Vec<&FileInfo> = keep.collect();
        for drop in drop {
            let drop = &files[drop];
            match self.process_file(&mut keep, drop) {
                Ok(keep) => events.done(&keep.path, &drop.path, drop.identity.bytes),
                Err(reason) => events.skipped(&drop.path, &reason),
            }
        }
    }

    /// Processes a redundant file with the first file to keep that suits; returns that file. If the
    /// first one is a mount point, or differs from `drop` in content, permissions, attributes or
    /// file system, the next one is tried. A file to keep that can have no more links gives its
    /// place to `drop`.
    fn process_file<'a>(
        &mut self,
        keep: &mut Vec<&'a FileInfo>,
        drop: &'a FileInfo,
    ) -> Result<&'a FileInfo, SkipReason> {
        let mut outcome = Err(SkipReason::NoFileToKeep);
        let mut exhausted = None;
        let mut tried = 0;
        while let Some(next) = keep.get(tried).copied() {
            match self.process_pair(next, drop) {
                Ok(()) => return Ok(next),
                Err(reason @ SkipReason::LinksExhausted(_)) => {
                    exhausted = Some(reason);
                    keep.remove(tried);
                }
                Err(
                    reason @ (SkipReason::ContentDiffers(_)
                    | SkipReason::MountPoint(_)
                    | SkipReason::OtherFileSystem(_)
                    | SkipReason::OtherPermissions(_)
                    | SkipReason::OtherAttributes { .. }),
                ) => {
                    outcome = Err(reason);
                    tried += 1;
                }
                Err(reason) => return Err(reason),
            }
        }
        let Some(reason) = exhausted else { return outcome };
        keep.push(drop);
        Err(reason)
    }

    fn process_pair(&mut self, keep: &FileInfo, drop: &FileInfo) -> Result<(), SkipReason> {
        let changes_links = matches!(self.options.action, Action::HardLink | Action::SymLink);
        let keeps_permissions = changes_links && !self.options.ignore_permissions;
        if keeps_permissions && keep.permissions != drop.permissions {
            return Err(SkipReason::OtherPermissions(keep.path.clone()));
        }
        // Sharing the blocks of one file with itself would do no harm.
        if self.options.action != Action::Dedupe {
            distinct::check(keep, drop)?;
        }
        let keep = OpenFile::open(&keep.path, &keep.identity).map_err(|reason| match reason {
            SkipReason::Changed => SkipReason::NoFileToKeep,
            reason => reason,
        })?;
        let drop = OpenFile::open(&drop.path, &drop.identity)?;
        if keep.is_same_entry(&drop) {
            return Err(SkipReason::SameEntry(keep.path));
        }
        // Only sharing blocks leaves both names as they are.
        if keep.is_mount_point() && self.options.action != Action::Dedupe {
            return Err(SkipReason::MountPoint(keep.path));
        }
        let is_link = keep.is_same_file(&drop);
        if is_link && matches!(self.options.action, Action::HardLink | Action::Dedupe) {
            return Err(SkipReason::AlreadyLinked(keep.path));
        }
        if keeps_permissions && !is_link {
            check_attributes(&keep, &drop)?;
        }
        if self.options.dry_run {
            return self.plan_link(&keep);
        }
        // If `keep` and `drop` are names of one file, the two locks would conflict with each other.
        let _locks = match self.options.lock && !is_link {
            true => Some((
                keep.lock(FlockOperation::NonBlockingLockShared)?,
                drop.lock(FlockOperation::NonBlockingLockExclusive)?,
            )),
            false => None,
        };
        if self.options.action == Action::Dedupe {
            return dedupe(&keep, &drop);
        }
        let now = now_ns();
        let monitors = [keep.monitor(now)?, drop.monitor(now)?];
        self.compare(&keep, &drop, &monitors)?;
        self.make_durable(&keep, now)?;
        let conditions = Conditions::new(&keep, &drop, &monitors);
        match &self.options.action {
            Action::Remove => replace::remove(&drop, &conditions),
            Action::HardLink => replace::replace(&drop, Replacement::HardLink, &conditions),
            Action::SymLink => {
                replace::replace(&drop, Replacement::SymLink(&keep.path), &conditions)
            }
            Action::Move(target) => {
                let to = relocate::destination(target, &drop.path);
                relocate::relocate(&drop, &to, &conditions, self.options.ignore_permissions)
            }
            Action::Dedupe => Ok(()),
        }
    }

    /// Counts a link that a dry run does not create.
    fn plan_link(&mut self, keep: &OpenFile) -> Result<(), SkipReason> {
        if self.options.action != Action::HardLink {
            return Ok(());
        }
        let planned = self.planned_links.entry(keep.inode()).or_default();
        if keep.has_links_to_spare(*planned)? {
            *planned += 1;
            return Ok(());
        }
        Err(SkipReason::LinksExhausted(keep.path.clone()))
    }

    fn compare(
        &self,
        keep: &OpenFile,
        drop: &OpenFile,
        monitors: &[WriteMonitor<'_>],
    ) -> Result<(), SkipReason> {
        let Some(transform) = &self.options.transform else {
            return compare::compare(keep, drop, monitors);
        };
        let digest = |file: &OpenFile| {
            let digest = transform.digest_of(&file.path);
            digest.map_err(|error| SkipReason::Transform(error.to_string()))
        };
        if digest(keep)? != digest(drop)? {
            return Err(SkipReason::ContentDiffers(keep.path.clone()));
        }
        monitors.iter().try_for_each(WriteMonitor::check)
    }

    /// Makes the kept file durable before another copy is removed, so that a power failure cannot
    /// lose a content that is only in the page cache. Syncs each file system once (`syncfs`). After
    /// that, a kept file is synced only if it changed later.
    fn make_durable(&mut self, keep: &OpenFile, now: i64) -> Result<(), SkipReason> {
        let device = keep.identity.device;
        let fail = |source| SkipReason::from(Error::new(Op::Sync, &keep.path, source));
        match self.synced.get(&device) {
            Some(synced) if keep.identity.changed_ns < *synced => Ok(()),
            Some(_) => rustix::fs::fsync(&keep.file).map_err(fail),
            None => {
                rustix::fs::syncfs(&keep.file).map_err(fail)?;
                // The file timestamps lag behind the clock by up to one tick.
                self.synced.insert(device, now.saturating_sub(open_file::TICK_NS));
                Ok(())
            }
        }
    }
}

/// Checks that a link to `keep` would not change the ACL, another extended attribute or the flags
/// of `drop`.
fn check_attributes(keep: &OpenFile, drop: &OpenFile) -> Result<(), SkipReason> {
    let read = |file: &OpenFile| {
        let attributes = Attributes::read(&file.file);
        attributes.map_err(|source| Error::new(Op::Status, &file.path, source))
    };
    match read(keep)?.difference(&read(drop)?) {
        Some(what) => Err(SkipReason::OtherAttributes { path: keep.path.clone(), what }),
        None => Ok(()),
    }
}

/// Lets `drop` share the blocks of `keep`. The kernel locks both files while it compares them, and
/// knows which device numbers belong to one file system: each btrfs subvolume has its own.
fn dedupe(keep: &OpenFile, drop: &OpenFile) -> Result<(), SkipReason> {
    match dedupe_range(keep.file.as_fd(), drop.file.as_fd(), drop.identity.bytes) {
        Ok(DedupeOutcome::Same) => Ok(()),
        Ok(DedupeOutcome::Differs) => Err(SkipReason::ContentDiffers(keep.path.clone())),
        Err(error) if error.crosses_file_systems() => {
            Err(SkipReason::OtherFileSystem(keep.path.clone()))
        }
        Err(error) if error.is_unsupported() => match are_apart(keep, drop) {
            true => Err(SkipReason::OtherFileSystem(keep.path.clone())),
            false => Err(SkipReason::ReflinkUnsupported),
        },
        Err(error) => Err(error.into()),
    }
}

/// `true` if the files are on different file systems.
fn are_apart(keep: &OpenFile, drop: &OpenFile) -> bool {
    let device = |file: &OpenFile| {
        let found = Superblock::of(file.file.as_fd());
        found.map_or(file.identity.device, |superblock| superblock.device)
    };
    device(keep) != device(drop)
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
