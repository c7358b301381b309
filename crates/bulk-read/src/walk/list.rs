//! Runs a thread of a walk, which lists directories, examines their entries and queues the
//! subdirectories.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use haul_disk::Op;
use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

use super::classify::{Classifier, EntryClass};
use super::concurrency::UtilizationMeter;
use super::entry::Entries;
use super::events::SkipReason;
use super::ignore_rules::IgnoreRules;
use super::job::{Job, OpenDir};
use super::shared::Shared;
use crate::error::Error;
use crate::open::open_dir;
use crate::path::{as_path, join};
use crate::status::status;
use crate::tree::Meta;

/// The number of newly found files after which a thread calls
/// [`WalkEvents::progress`](super::WalkEvents::progress) again.
const PROGRESS_FILES: u64 = 1024;

/// The state of a walk thread, whose buffers are reused for each directory.
pub(super) struct Lister<'a> {
    shared: &'a Shared<'a>,
    entries: Entries,
    path: Vec<u8>,
    /// The files of the directory: index in `entries`, metadata, and `true` for a symbolic link.
    files: Vec<(u32, Meta, bool)>,
    /// The subdirectories: index in `entries`, and `true` for a symbolic link, which is followed.
    dirs: Vec<(u32, bool)>,
    /// The files found since the last progress report: their number and their total length in
    /// bytes.
    unreported: (u64, u64),
}

impl<'a> Lister<'a> {
    pub(super) fn new(shared: &'a Shared<'a>) -> Self {
        Self {
            shared,
            entries: Entries::default(),
            path: Vec::new(),
            files: Vec::new(),
            dirs: Vec::new(),
            unreported: (0, 0),
        }
    }

    /// Lists directories until the pool has no jobs left.
    pub(super) fn run(mut self) {
        let mut utilization = UtilizationMeter::new();
        self.shared.pool.run(|job, more| {
            let started = Instant::now();
            self.list_one(job, more);
            if let Some(threads) = utilization.record(started) {
                self.shared.pool.adjust(threads);
            }
        });
        self.report();
    }

    /// Lists a directory and adds its subdirectories to `more`.
    pub(super) fn list_one(&mut self, job: Job, more: &mut Vec<(u64, Job)>) {
        if self.shared.is_stopped() {
            return;
        }
        if let Err(error) = self.list(job, more) {
            self.shared.events.failed(error);
        }
    }

    fn list(&mut self, job: Job, more: &mut Vec<(u64, Job)>) -> Result<(), Error> {
        self.shared.tree.lock().dir_path_into(job.dir, &mut self.path);
        let dir = self.open(&job)?;
        let meta = status(&dir).map_err(|errno| self.failed(Op::Status, errno))?.meta;
        if self.shared.options.one_file_system && meta.device != job.device {
            return Ok(());
        }
        let identity = (meta.device, meta.inode);
        let (is_new, has_root_files) = {
            let mut visited = self.shared.visited.lock();
            // Roots were marked as visited before the walk started.
            (job.depth == 0 || visited.insert_dir(identity), visited.has_root_files())
        };
        if !is_new {
            self.shared.events.skipped(as_path(&self.path), SkipReason::AlreadyVisited);
            return Ok(());
        }
        let listed = self.entries.read(&dir).map_err(|errno| self.failed(Op::List, errno));
        let rules = if self.shared.options.ignore_files {
            IgnoreRules::read(job.rules.clone(), &dir, &self.path)
        } else {
            None
        };
        let classifier = Classifier {
            options: self.shared.options,
            dir: &dir,
            depth: job.depth,
            device: job.device,
            rules: rules.as_deref(),
        };
        self.classify_entries(&classifier, has_root_files.then_some(identity));
        self.record(&job, dir, rules, more)?;
        listed
    }

    fn open(&self, job: &Job) -> Result<OwnedFd, Error> {
        let link = if job.follow { OFlags::empty() } else { OFlags::NOFOLLOW };
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | link;
        let opened = match &job.parent {
            Some((parent, name)) => fs::openat(&parent.dir, name, flags, Mode::empty()),
            None => open_dir(&self.path, flags),
        };
        opened.map_err(|errno| self.failed(Op::Open, errno))
    }

    /// Collects the entries to include into `files` and `dirs`.
    fn classify_entries(&mut self, classifier: &Classifier<'_>, root_files: Option<(u64, u64)>) {
        self.files.clear();
        self.dirs.clear();
        let dir_bytes = self.path.len();
        for index in 0..self.entries.len() {
            let (entry, name) = self.entries.get(index);
            if name.to_bytes().starts_with(b".") && !classifier.options.hidden {
                continue;
            }
            self.path.truncate(dir_bytes);
            join(&mut self.path, name);
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            let is_root =
                || root_files.is_some_and(|dir| self.shared.visited.lock().is_root_file(dir, name));
            match classifier.classify(&self.path, name, entry.kind) {
                Ok(EntryClass::File(meta, link)) if !is_root() => {
                    self.files.push((index, meta, link))
                }
                Ok(EntryClass::Dir { link }) => self.dirs.push((index, link)),
                Ok(EntryClass::Skipped(reason)) => {
                    self.shared.events.skipped(as_path(&self.path), reason);
                }
                Ok(EntryClass::File(..) | EntryClass::Excluded) => {}
                Err(errno) => self.shared.events.failed(self.failed(Op::Status, errno)),
            }
        }
        self.path.truncate(dir_bytes);
    }

    /// Adds the files to the tree, and queues the subdirectories and the links to directories.
    fn record(
        &mut self,
        job: &Job,
        dir: OwnedFd,
        rules: Option<Arc<IgnoreRules>>,
        more: &mut Vec<(u64, Job)>,
    ) -> Result<(), Error> {
        let shared = self.shared;
        let too_many = |name: &CStr| {
            let mut path = self.path.clone();
            join(&mut path, name);
            Error::TreeFull { path: as_path(&path).to_path_buf() }
        };
        let parent =
            (!self.dirs.is_empty()).then(|| OpenDir::new(dir, &shared.open_dirs)).flatten();
        let mut tree = shared.tree.lock();
        for (index, meta, link) in &self.files {
            let (_, name) = self.entries.get(*index as usize);
            let added = tree.add_file(job.dir, name.to_bytes(), meta, *link);
            added.ok_or_else(|| too_many(name))?;
            let (files, bytes) = self.unreported;
            self.unreported = (files + 1, bytes.saturating_add(meta.bytes));
        }
        for (index, follow) in &self.dirs {
            let (entry, name) = self.entries.get(*index as usize);
            let added = tree.add_dir(Some(job.dir), name.to_bytes(), job.root);
            // A link may wait for long, so it does not keep its directory open.
            let parent = parent.as_ref().filter(|_| !follow);
            let found = Job {
                dir: added.ok_or_else(|| too_many(name))?,
                root: job.root,
                depth: job.depth + 1,
                device: job.device,
                parent: parent.map(|parent| (Arc::clone(parent), name.to_owned())),
                rules: rules.clone(),
                follow: *follow,
            };
            if *follow { shared.add_link(found) } else { more.push((entry.inode, found)) }
        }
        drop(tree);
        if self.unreported.0 >= PROGRESS_FILES {
            self.report();
        }
        Ok(())
    }

    pub(super) fn report(&mut self) {
        let (files, bytes) = std::mem::take(&mut self.unreported);
        if files > 0 {
            self.shared.add_found(files, bytes);
        }
    }

    /// Creates an error for the current `path`.
    fn failed(&self, op: Op, errno: Errno) -> Error {
        haul_disk::Error::new(op, as_path(&self.path), errno).into()
    }
}
