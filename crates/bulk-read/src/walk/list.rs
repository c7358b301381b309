//! One thread of a walk: lists a directory, looks at its files, and passes its directories on.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use haul_disk::Op;
use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::entry::Entries;
use super::ignored::Ignored;
use super::pace::Pace;
use super::{PROGRESS_FILES, Shared, Skipped};
use crate::error::Error;
use crate::open::open_dir;
use crate::status::{Status, status, status_at};
use crate::tree::{DirId, Meta, join};

/// How many directories are kept open for what is below them; beyond that they are opened by
/// their whole path.
const HELD_MAX: usize = 128;

/// A directory to be listed.
#[derive(Debug)]
pub(super) struct Job {
    dir: DirId,
    root: u32,
    /// How many directories it is below its root.
    depth: usize,
    /// The file system of its root.
    device: u64,
    /// Its parent and its name there, where the parent is kept open.
    parent: Option<(Arc<Held>, CString)>,
    ignored: Option<Arc<Ignored>>,
    follow: bool,
}

impl Job {
    pub(super) fn root(dir: DirId, root: u32, device: u64) -> Self {
        Self { dir, root, depth: 0, device, parent: None, ignored: None, follow: true }
    }
}

/// What a worker keeps from one directory to the next.
pub(super) struct Lister<'a> {
    shared: &'a Shared<'a>,
    entries: Entries,
    path: Vec<u8>,
    /// Files of the directory, and where their names are in `entries`.
    files: Vec<(u32, Meta, bool)>,
    dirs: Vec<(u32, bool)>,
    untold: (u64, u64),
}

impl<'a> Lister<'a> {
    pub(super) fn new(shared: &'a Shared<'a>) -> Self {
        Self {
            shared,
            entries: Entries::default(),
            path: Vec::new(),
            files: Vec::new(),
            dirs: Vec::new(),
            untold: (0, 0),
        }
    }

    /// Lists directories until none is left.
    pub(super) fn run(mut self) {
        let mut pace = Pace::new();
        self.shared.pool.share().run(|job, more| {
            if self.shared.is_stopped() {
                return;
            }
            let begun = Instant::now();
            if let Err(error) = self.list(job, more) {
                self.shared.events.failed(error);
            }
            match pace.after(begun) {
                0 => {}
                threads => self.shared.pool.adjust(threads),
            }
        });
        self.tell();
    }

    fn list(&mut self, job: Job, more: &mut Vec<Job>) -> Result<(), Error> {
        self.shared.tree.lock().dir_path_into(job.dir, &mut self.path);
        let dir = self.open(&job)?;
        let here = status(&dir).map_err(|errno| self.failed(Op::Status, errno))?.meta;
        if self.shared.options.one_file_system && here.device != job.device {
            return Ok(());
        }
        let identity = (here.device, here.inode);
        let (is_new, has_root_files) = {
            let mut seen = self.shared.seen.lock();
            // A root was seen when it was taken.
            (job.depth == 0 || seen.is_new(identity), seen.has_files())
        };
        if !is_new {
            self.shared.events.skipped(as_path(&self.path), Skipped::SeenBefore);
            return Ok(());
        }
        let listed = self.entries.read(&dir).map_err(|errno| self.failed(Op::List, errno));
        let ignored = if self.shared.options.ignore_files {
            Ignored::below(job.ignored.clone(), &dir, &self.path)
        } else {
            None
        };
        self.look(&dir, &job, ignored.as_deref(), has_root_files.then_some(identity));
        self.keep(&job, dir, ignored, more)?;
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

    /// Sorts the entries of a directory into files and directories that are wanted.
    fn look(
        &mut self,
        dir: &OwnedFd,
        job: &Job,
        ignored: Option<&Ignored>,
        root_files: Option<(u64, u64)>,
    ) {
        self.files.clear();
        self.dirs.clear();
        let dir_bytes = self.path.len();
        for index in 0..self.entries.len() {
            let (entry, name) = self.entries.get(index);
            if name.to_bytes().starts_with(b".") && !self.shared.options.hidden {
                continue;
            }
            self.path.truncate(dir_bytes);
            join(&mut self.path, name);
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            let is_root =
                || root_files.is_some_and(|dir| self.shared.seen.lock().is_root(dir, name));
            match self.sort_out(dir, name, entry.kind, job, ignored) {
                Ok(Found::File(meta, link)) if !is_root() => self.files.push((index, meta, link)),
                Ok(Found::Dir { link }) => self.dirs.push((index, link)),
                Ok(Found::Skipped(why)) => self.shared.events.skipped(as_path(&self.path), why),
                Ok(Found::File(..) | Found::Unwanted) => {}
                Err(errno) => self.shared.events.failed(self.failed(Op::Status, errno)),
            }
        }
        self.path.truncate(dir_bytes);
    }

    fn sort_out(
        &self,
        dir: &OwnedFd,
        name: &CStr,
        kind: FileType,
        job: &Job,
        ignored: Option<&Ignored>,
    ) -> Result<Found, Errno> {
        let options = self.shared.options;
        match kind {
            FileType::RegularFile => self.file(dir, name, job, ignored),
            // What is to be mounted when somebody opens it is another file system, too.
            FileType::Directory
                if options.one_file_system
                    && status_at(dir, name, false)?.meta.device != job.device =>
            {
                Ok(Found::Unwanted)
            }
            FileType::Directory => Ok(self.dir(job, ignored, false)),
            FileType::Symlink if options.follow_links || options.report_links => {
                let status = match status_at(dir, name, true) {
                    Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => {
                        return Ok(Found::Skipped(Skipped::DanglingLink));
                    }
                    status => status?,
                };
                self.linked(&status, job, ignored)
            }
            FileType::Symlink => Ok(Found::Unwanted),
            // Some file systems do not tell in the listing.
            FileType::Unknown => match status_at(dir, name, false)?.kind {
                FileType::Unknown => Ok(Found::Skipped(Skipped::NotAFile)),
                kind => self.sort_out(dir, name, kind, job, ignored),
            },
            _ => Ok(Found::Skipped(Skipped::NotAFile)),
        }
    }

    /// What a symbolic link leads to.
    fn linked(&self, to: &Status, job: &Job, ignored: Option<&Ignored>) -> Result<Found, Errno> {
        match to.kind {
            FileType::Directory if !self.shared.options.follow_links => Ok(Found::Unwanted),
            FileType::Directory => Ok(self.dir(job, ignored, true)),
            FileType::RegularFile if self.accepts_file(job, ignored) => Ok(self.fitting(to, true)),
            FileType::RegularFile => Ok(Found::Unwanted),
            _ => Ok(Found::Skipped(Skipped::NotAFile)),
        }
    }

    fn file(
        &self,
        dir: &OwnedFd,
        name: &CStr,
        job: &Job,
        ignored: Option<&Ignored>,
    ) -> Result<Found, Errno> {
        if !self.accepts_file(job, ignored) {
            return Ok(Found::Unwanted);
        }
        match status_at(dir, name, false) {
            Ok(status) if status.kind == FileType::RegularFile => Ok(self.fitting(&status, false)),
            Ok(_) => Ok(Found::Skipped(Skipped::NotAFile)),
            Err(errno) => Err(errno),
        }
    }

    fn dir(&self, job: &Job, ignored: Option<&Ignored>, link: bool) -> Found {
        let options = self.shared.options;
        // What lies in it is two deeper than what it is in.
        let too_deep = options.depth_max.is_some_and(|depth_max| job.depth + 2 > depth_max);
        let path = &self.path;
        let left_out = ignored.is_some_and(|ignored| ignored.leaves_out(path, true));
        let accepted = options.accept_dir.is_none_or(|accept| accept(as_path(path)));
        if too_deep || left_out || !accepted { Found::Unwanted } else { Found::Dir { link } }
    }

    fn accepts_file(&self, job: &Job, ignored: Option<&Ignored>) -> bool {
        let options = self.shared.options;
        let path = &self.path;
        options.depth_max.is_none_or(|depth_max| job.depth < depth_max)
            && !ignored.is_some_and(|ignored| ignored.leaves_out(path, false))
            && options.accept.is_none_or(|accept| accept(as_path(path)))
    }

    fn fitting(&self, status: &Status, link: bool) -> Found {
        let options = self.shared.options;
        let fits = (options.bytes_min..=options.bytes_max).contains(&status.meta.bytes);
        if fits { Found::File(status.meta, link) } else { Found::Unwanted }
    }

    /// Remembers what was found, and passes the directories on.
    fn keep(
        &mut self,
        job: &Job,
        dir: OwnedFd,
        ignored: Option<Arc<Ignored>>,
        more: &mut Vec<Job>,
    ) -> Result<(), Error> {
        let shared = self.shared;
        let too_many = |name: &CStr| {
            let mut path = self.path.clone();
            join(&mut path, name);
            Error::TooMany { path: as_path(&path).to_path_buf() }
        };
        let parent = (!self.dirs.is_empty()).then(|| Held::new(dir, &shared.held)).flatten();
        let mut tree = shared.tree.lock();
        for (index, meta, link) in &self.files {
            let (_, name) = self.entries.get(*index as usize);
            let added = tree.add_file(job.dir, name.to_bytes(), meta, *link);
            added.ok_or_else(|| too_many(name))?;
            self.untold = (self.untold.0 + 1, self.untold.1.saturating_add(meta.bytes));
        }
        // The newest is taken first, so the last is pushed first: small inodes come first.
        for (index, follow) in self.dirs.iter().rev() {
            let (_, name) = self.entries.get(*index as usize);
            let added = tree.add_dir(Some(job.dir), name.to_bytes(), job.root);
            more.push(Job {
                dir: added.ok_or_else(|| too_many(name))?,
                root: job.root,
                depth: job.depth + 1,
                device: job.device,
                parent: parent.as_ref().map(|parent| (Arc::clone(parent), name.to_owned())),
                ignored: ignored.clone(),
                follow: *follow,
            });
        }
        drop(tree);
        if self.untold.0 >= PROGRESS_FILES {
            self.tell();
        }
        Ok(())
    }

    fn tell(&mut self) {
        let (files, bytes) = std::mem::take(&mut self.untold);
        if files > 0 {
            self.shared.found(files, bytes);
        }
    }

    /// An error about what `path` names now.
    fn failed(&self, op: Op, errno: Errno) -> Error {
        haul_disk::Error::new(op, as_path(&self.path), errno).into()
    }
}

/// What an entry turned out to be.
enum Found {
    File(Meta, bool),
    Dir { link: bool },
    Skipped(Skipped),
    Unwanted,
}

/// A directory kept open for those below it.
#[derive(Debug)]
struct Held {
    dir: OwnedFd,
    count: Arc<AtomicUsize>,
}

impl Held {
    /// Keeps it open, if not too many are.
    fn new(dir: OwnedFd, count: &Arc<AtomicUsize>) -> Option<Arc<Self>> {
        if count.fetch_add(1, Ordering::Relaxed) < HELD_MAX {
            Some(Arc::new(Self { dir, count: Arc::clone(count) }))
        } else {
            count.fetch_sub(1, Ordering::Relaxed);
            None
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

fn as_path(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}
