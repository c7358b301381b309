//! Removes a redundant file, or replaces it by a link. At every step, and after a crash at any
//! step, the content has a name. If another process replaces the file meanwhile, the new file is
//! preserved.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd;
use std::path::Path;

use haul_disk::Op;
use rustix::fs::{AtFlags, CWD, RenameFlags, StatxAttributes, StatxFlags};
use rustix::fs::{linkat, renameat_with, statx, symlinkat, unlinkat};
use rustix::io::Errno;

use super::distinct::changed_ns;
use super::open_file::{OpenFile, WriteMonitor};
use super::skip_reason::SkipReason;

/// Returns a random temporary name.
pub(super) fn temp_name() -> OsString {
    let mut random = [0_u8; 12];
    // If `getrandom` fails, the digits of the name are zeros. An existing file of that name is
    // never replaced, because the system calls that create the name then fail.
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).ok();
    let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(".haul-{digits}").into()
}

/// The conditions that must hold until the action is complete: the kept file has its name, no
/// process writes to one of the two files, and what was done to the one does not show on the other.
pub(super) struct Conditions<'a> {
    pub(super) keep: &'a OpenFile,
    monitors: &'a [WriteMonitor<'a>],
    /// The `ctime` of the kept file. `None`: it cannot be read, or both are names of one file.
    keep_changed_ns: Option<i64>,
}

impl<'a> Conditions<'a> {
    /// Creates the conditions of an action that changes `drop`, but not `keep`.
    pub(super) fn new(
        keep: &'a OpenFile,
        drop: &OpenFile,
        monitors: &'a [WriteMonitor<'a>],
    ) -> Self {
        let is_other = !keep.is_same_file(drop);
        let keep_changed_ns = is_other.then(|| changed_ns(&keep.file)).flatten();
        Self { keep, monitors, keep_changed_ns }
    }

    /// Returns the conditions of an action that renames a hard link to the kept file, which sets
    /// its `ctime`. Both files are then in one mounted file system.
    fn without_change_of_keep(&self) -> Self {
        Self { keep_changed_ns: None, ..*self }
    }

    /// Checks that the kept file still has its name, that neither file has a writer, and that the
    /// kept file has not changed: a rename sets the `ctime` of the renamed file, so that two files
    /// that are one, seen through two mounts, are found here if not earlier.
    pub(super) fn check(&self) -> Result<(), SkipReason> {
        if !self.keep.has_name(&self.keep.name) {
            return Err(SkipReason::Changed);
        }
        if self.keep_changed_ns.is_some_and(|before| changed_ns(&self.keep.file) != Some(before)) {
            return Err(SkipReason::Changed);
        }
        self.monitors.iter().try_for_each(WriteMonitor::check)
    }
}

/// Removes the name of `drop`: renames the file to a temporary name, verifies the renamed file,
/// then unlinks it. If the verification fails, the file is renamed back.
pub(super) fn remove(drop: &OpenFile, conditions: &Conditions<'_>) -> Result<(), SkipReason> {
    let temp = temp_name();
    rename(drop, &drop.name, &temp, RenameFlags::NOREPLACE)?;
    let verified = verify(drop, &temp, conditions);
    if verified.is_err() {
        return match rename(drop, &temp, &drop.name, RenameFlags::NOREPLACE) {
            Ok(()) => verified,
            Err(_) => Err(SkipReason::Displaced(drop.path.with_file_name(temp))),
        };
    }
    unlinkat(&drop.dir, &temp, AtFlags::empty()).map_err(|errno| drop.error(Op::Remove, errno))
}

/// The link that replaces a redundant file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Replacement<'a> {
    /// A hard link to the kept file.
    HardLink,
    /// A symbolic link to this path.
    SymLink(&'a Path),
}

/// Replaces the directory entry of `drop`, atomically if the file system supports
/// `RENAME_EXCHANGE`.
pub(super) fn replace(
    drop: &OpenFile,
    replacement: Replacement<'_>,
    conditions: &Conditions<'_>,
) -> Result<(), SkipReason> {
    if is_append_only(drop) {
        return Err(SkipReason::AppendOnly);
    }
    let temp = temp_name();
    create(drop, replacement, &temp, conditions.keep)?;
    let swapped = match replacement {
        Replacement::HardLink => exchange(drop, &temp, &conditions.without_change_of_keep()),
        Replacement::SymLink(_) => exchange(drop, &temp, conditions),
    };
    if !matches!(swapped, Err(SkipReason::Displaced(_))) {
        // If the exchange succeeded, the temporary name refers to the replaced file. If it failed,
        // the temporary name refers to the unused link.
        let removed = unlinkat(&drop.dir, &temp, AtFlags::empty());
        return match (swapped, removed) {
            (Ok(()), removed) => removed.map_err(|errno| drop.error(Op::Remove, errno)),
            (Err(reason), Ok(()) | Err(Errno::NOENT)) => Err(reason),
            (Err(reason), Err(_)) => Err(SkipReason::LeftBehind {
                path: drop.path.with_file_name(temp),
                error: Box::new(reason),
            }),
        };
    }
    swapped
}

/// `true` if names can be created in the directory of the file, but not renamed or removed.
fn is_append_only(drop: &OpenFile) -> bool {
    let status = statx(&drop.dir, c"", AtFlags::EMPTY_PATH, StatxFlags::empty());
    status.is_ok_and(|status| status.stx_attributes.contains(StatxAttributes::APPEND))
}

fn create(
    drop: &OpenFile,
    replacement: Replacement<'_>,
    name: &OsStr,
    keep: &OpenFile,
) -> Result<(), SkipReason> {
    match replacement {
        Replacement::HardLink => {
            // Link by descriptor, so that the link refers to the file that was compared.
            let file = format!("/proc/self/fd/{}", keep.file.as_raw_fd());
            linkat(CWD, file, &drop.dir, name, AtFlags::SYMLINK_FOLLOW).map_err(|errno| match errno
            {
                Errno::XDEV => SkipReason::OtherFileSystem(keep.path.clone()),
                Errno::MLINK => SkipReason::LinksExhausted(keep.path.clone()),
                _ => drop.error(Op::Create, errno),
            })
        }
        Replacement::SymLink(target) => {
            symlinkat(target, &drop.dir, name).map_err(|errno| drop.error(Op::Create, errno))
        }
    }
}

/// Exchanges the two names, and exchanges them back if the verification fails.
fn exchange(drop: &OpenFile, temp: &OsStr, conditions: &Conditions<'_>) -> Result<(), SkipReason> {
    match rename(drop, temp, &drop.name, RenameFlags::EXCHANGE) {
        Ok(()) => {}
        Err(SkipReason::Disk(error))
            if error.source.raw_os_error() == Some(Errno::INVAL.raw_os_error()) =>
        {
            return replace_in_two_steps(drop, temp, conditions);
        }
        Err(reason) => return Err(reason),
    }
    let verified = verify(drop, temp, conditions);
    if verified.is_err() && rename(drop, temp, &drop.name, RenameFlags::EXCHANGE).is_err() {
        return Err(SkipReason::Displaced(drop.path.with_file_name(temp)));
    }
    verified
}

/// Replaces the entry without `RENAME_EXCHANGE`: renames the file to a temporary name, then renames
/// the link to the name of the file. Between the two steps the name does not exist.
fn replace_in_two_steps(
    drop: &OpenFile,
    link: &OsStr,
    conditions: &Conditions<'_>,
) -> Result<(), SkipReason> {
    let temp = temp_name();
    rename(drop, &drop.name, &temp, RenameFlags::NOREPLACE)?;
    let verified = verify(drop, &temp, conditions)
        .and_then(|()| rename(drop, link, &drop.name, RenameFlags::NOREPLACE));
    if verified.is_err() && rename(drop, &temp, &drop.name, RenameFlags::NOREPLACE).is_err() {
        unlinkat(&drop.dir, link, AtFlags::empty()).ok();
        return Err(SkipReason::Displaced(drop.path.with_file_name(temp)));
    }
    verified?;
    // The caller unlinks the name `link`, which now refers to the replaced file.
    rename(drop, &temp, link, RenameFlags::NOREPLACE)
}

/// Checks that `temp` is the file that was compared, and that all conditions still hold.
fn verify(drop: &OpenFile, temp: &OsStr, conditions: &Conditions<'_>) -> Result<(), SkipReason> {
    if !drop.has_name(temp) {
        return Err(SkipReason::Changed);
    }
    conditions.check()
}

fn rename(file: &OpenFile, from: &OsStr, to: &OsStr, flags: RenameFlags) -> Result<(), SkipReason> {
    renameat_with(&file.dir, from, &file.dir, to, flags)
        .or_else(|errno| match errno {
            // The file system does not support `RENAME_NOREPLACE`: use `link`, which never replaces
            // an existing name, and `unlink`.
            Errno::INVAL if flags == RenameFlags::NOREPLACE => {
                linkat(&file.dir, from, &file.dir, to, AtFlags::empty())?;
                unlinkat(&file.dir, from, AtFlags::empty())
            }
            _ => Err(errno),
        })
        .map_err(|errno| file.error(Op::Rename, errno))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::path::PathBuf;

    use rustix::fs::stat;
    use tempfile::TempDir;

    use super::super::open_file::identity;
    use super::*;

    /// Two equal files, and a hard link to the kept one that is to replace the other.
    struct Files {
        dir: TempDir,
        keep: OpenFile,
        drop: OpenFile,
    }

    impl Files {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let opened = |name: &str| {
                let path = dir.path().join(name);
                fs::write(&path, "content").unwrap();
                OpenFile::open(&path, &identity(&stat(&path).unwrap())).unwrap()
            };
            let (keep, drop) = (opened("keep"), opened("drop"));
            fs::hard_link(dir.path().join("keep"), dir.path().join("link")).unwrap();
            Self { dir, keep, drop }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn inode(&self, name: &str) -> u64 {
            fs::metadata(self.path(name)).unwrap().ino()
        }

        /// Returns the names in the directory.
        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(self.dir.path()).unwrap();
            let mut names: Vec<_> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }

        /// Replaces the file as on a file system without `RENAME_EXCHANGE`.
        fn replace(&self) -> Result<(), SkipReason> {
            let conditions = Conditions::new(&self.keep, &self.drop, &[]).without_change_of_keep();
            replace_in_two_steps(&self.drop, OsStr::new("link"), &conditions)
        }
    }

    #[test]
    fn two_steps_exchange_the_file_and_the_link() {
        let files = Files::new();
        let (kept, dropped) = (files.inode("keep"), files.inode("drop"));
        files.replace().unwrap();
        assert_eq!([files.inode("drop"), files.inode("keep")], [kept, kept]);
        assert_eq!(files.inode("link"), dropped, "the caller unlinks it");
        assert_eq!(files.names(), ["drop", "keep", "link"]);
    }

    #[test]
    fn file_gets_its_name_back_if_the_kept_file_has_lost_its_own() {
        let files = Files::new();
        let dropped = files.inode("drop");
        fs::rename(files.path("keep"), files.path("moved")).unwrap();
        assert!(matches!(files.replace(), Err(SkipReason::Changed)));
        assert_eq!(files.inode("drop"), dropped);
        assert_eq!(files.names(), ["drop", "link", "moved"]);
    }

    #[test]
    fn other_file_of_the_same_name_is_preserved() {
        let files = Files::new();
        fs::write(files.path("other"), "other content").unwrap();
        fs::rename(files.path("other"), files.path("drop")).unwrap();
        assert!(matches!(files.replace(), Err(SkipReason::Changed)));
        assert_eq!(fs::read(files.path("drop")).unwrap(), b"other content");
        assert_eq!(files.names(), ["drop", "keep", "link"]);
    }
}
