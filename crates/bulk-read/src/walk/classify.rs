//! Decides by the options of the walk whether a directory entry is included, skipped or excluded.

use std::ffi::CStr;
use std::os::fd::OwnedFd;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::events::SkipReason;
use super::ignore_rules::IgnoreRules;
use super::options::WalkOptions;
use crate::path::as_path;
use crate::status::{Status, status_at};
use crate::tree::Meta;

/// The classification of a directory entry.
pub(super) enum EntryClass {
    /// A file to include; `true` for a symbolic link to it.
    File(Meta, bool),
    /// A directory to walk; `link` for a symbolic link to it.
    Dir { link: bool },
    /// An entry to skip and to report as skipped.
    Skipped(SkipReason),
    /// An entry excluded by the options or by ignore files, which is not reported.
    Excluded,
}

/// A classifier of the entries of one directory.
pub(super) struct Classifier<'a> {
    pub(super) options: &'a WalkOptions<'a>,
    pub(super) dir: &'a OwnedFd,
    /// The depth of the directory below its root.
    pub(super) depth: usize,
    /// The device number of the root's file system.
    pub(super) device: u64,
    pub(super) rules: Option<&'a IgnoreRules>,
}

impl Classifier<'_> {
    /// Classifies the entry `name`, whose full path is `path`.
    pub(super) fn classify(
        &self,
        path: &[u8],
        name: &CStr,
        kind: FileType,
    ) -> Result<EntryClass, Errno> {
        let (options, dir) = (self.options, self.dir);
        match kind {
            FileType::RegularFile => self.file(path, name),
            // An automount point counts as another file system even before a file system is mounted
            // on it. `status_at` does not trigger the mount.
            FileType::Directory
                if options.one_file_system
                    && status_at(dir, name, false)?.meta.device != self.device =>
            {
                Ok(EntryClass::Excluded)
            }
            FileType::Directory => Ok(self.directory(path, false)),
            FileType::Symlink if options.follow_links || options.report_links => {
                let status = match status_at(dir, name, true) {
                    Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => {
                        return Ok(EntryClass::Skipped(SkipReason::DanglingLink));
                    }
                    status => status?,
                };
                self.link_target(path, &status)
            }
            FileType::Symlink => Ok(EntryClass::Excluded),
            // Some file systems do not fill in `d_type`, so the entry needs a `statx`.
            FileType::Unknown => match status_at(dir, name, false)?.kind {
                FileType::Unknown => Ok(EntryClass::Skipped(SkipReason::NotRegularFile)),
                kind => self.classify(path, name, kind),
            },
            _ => Ok(EntryClass::Skipped(SkipReason::NotRegularFile)),
        }
    }

    /// Classifies a symbolic link by its target.
    fn link_target(&self, path: &[u8], target: &Status) -> Result<EntryClass, Errno> {
        match target.kind {
            FileType::Directory if !self.options.follow_links => Ok(EntryClass::Excluded),
            FileType::Directory => Ok(self.directory(path, true)),
            FileType::RegularFile if self.accepts_file(path) => Ok(self.check_size(target, true)),
            FileType::RegularFile => Ok(EntryClass::Excluded),
            _ => Ok(EntryClass::Skipped(SkipReason::NotRegularFile)),
        }
    }

    fn file(&self, path: &[u8], name: &CStr) -> Result<EntryClass, Errno> {
        if !self.accepts_file(path) {
            return Ok(EntryClass::Excluded);
        }
        match status_at(self.dir, name, false) {
            Ok(status) if status.kind == FileType::RegularFile => {
                Ok(self.check_size(&status, false))
            }
            Ok(_) => Ok(EntryClass::Skipped(SkipReason::NotRegularFile)),
            Err(errno) => Err(errno),
        }
    }

    fn directory(&self, path: &[u8], link: bool) -> EntryClass {
        let options = self.options;
        // The files in this subdirectory are two levels below the directory being listed.
        let too_deep = options.depth_max.is_some_and(|depth_max| self.depth + 2 > depth_max);
        let ignored = self.rules.is_some_and(|rules| rules.excludes(path, true));
        let accepted = options.accept_dir.is_none_or(|accept| accept(as_path(path)));
        if too_deep || ignored || !accepted {
            EntryClass::Excluded
        } else {
            EntryClass::Dir { link }
        }
    }

    fn accepts_file(&self, path: &[u8]) -> bool {
        let options = self.options;
        options.depth_max.is_none_or(|depth_max| self.depth < depth_max)
            && !self.rules.is_some_and(|rules| rules.excludes(path, false))
            && options.accept.is_none_or(|accept| accept(as_path(path)))
    }

    fn check_size(&self, status: &Status, link: bool) -> EntryClass {
        let options = self.options;
        let fits = (options.bytes_min..=options.bytes_max).contains(&status.meta.bytes);
        if fits { EntryClass::File(status.meta, link) } else { EntryClass::Excluded }
    }
}
