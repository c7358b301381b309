//! Moves a file to another directory, possibly on another file system.

use std::ffi::OsStr;
use std::fs::{File, FileTimes};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Component, Path, PathBuf};

use haul_bulk_read::open_directory;
use haul_disk::{Error, Op, Pace, Pacer};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::fs::{mkdirat, openat, renameat_with, statat, unlinkat};
use rustix::io::Errno;

use super::open_file::OpenFile;
use super::replace::{self, Conditions, temp_name};
use super::skip_reason::SkipReason;

/// The number of bytes copied per step. After each step, the pacer starts writeback of the copied
/// pages.
const STEP_BYTES: u64 = 1 << 20;

/// Returns the destination of a file: its full path below `target`.
pub(super) fn destination(target: &Path, path: &Path) -> PathBuf {
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_)));
    target.join(parts.collect::<PathBuf>())
}

/// Moves the file; never replaces an existing file.
pub(super) fn relocate(
    drop: &OpenFile,
    destination: &Path,
    conditions: &Conditions<'_>,
) -> Result<(), SkipReason> {
    let (Some(parent), Some(name)) = (destination.parent(), destination.file_name()) else {
        return Err(SkipReason::NotRegularFile);
    };
    let dir = create_directory(parent).map_err(|source| Error::new(Op::Create, parent, source))?;
    conditions.check()?;
    match renameat_with(&drop.dir, &drop.name, &dir, name, RenameFlags::NOREPLACE) {
        Ok(()) => verify(drop, &dir, name),
        Err(Errno::EXIST) => Err(SkipReason::DestinationExists(destination.to_owned())),
        Err(Errno::XDEV) => {
            copy(drop, &dir, name, destination)?;
            let removed = replace::remove(drop, conditions);
            if removed.is_err() {
                // The original still exists, so remove the copy.
                unlinkat(&dir, name, AtFlags::empty()).ok();
            }
            removed
        }
        Err(errno) => Err(drop.error(Op::Rename, errno)),
    }
}

/// Opens the directory at a path of any length; creates it and its parents if they are missing.
fn create_directory(path: &Path) -> io::Result<OwnedFd> {
    match open_directory(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    let start = if path.is_absolute() { "/" } else { "" };
    let mut at = open_directory(Path::new(start))?;
    for name in path.components().filter(|part| !matches!(part, Component::RootDir)) {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |at: &OwnedFd| openat(at, name.as_os_str(), flags, Mode::empty());
        at = match open(&at) {
            Err(Errno::NOENT) => {
                match mkdirat(&at, name.as_os_str(), Mode::from_raw_mode(0o777)) {
                    // Another process may have created it meanwhile.
                    Ok(()) | Err(Errno::EXIST) => open(&at)?,
                    Err(errno) => return Err(errno.into()),
                }
            }
            opened => opened?,
        };
    }
    Ok(at)
}

/// Checks that the moved file is the one that was compared; otherwise moves it back.
fn verify(drop: &OpenFile, dir: &OwnedFd, name: &OsStr) -> Result<(), SkipReason> {
    let moved = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    if moved
        .is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (drop.identity.device, drop.identity.inode))
    {
        return Ok(());
    }
    match renameat_with(dir, name, &drop.dir, &drop.name, RenameFlags::NOREPLACE) {
        Ok(()) => Err(SkipReason::Changed),
        Err(errno) => Err(drop.error(Op::Rename, errno)),
    }
}

/// Copies content, owner, mode and times, and syncs them before the copy receives its final name.
fn copy(
    drop: &OpenFile,
    dir: &OwnedFd,
    name: &OsStr,
    destination: &Path,
) -> Result<(), SkipReason> {
    let temp = temp_name();
    let fail = |op| move |source: io::Error| Error::new(op, destination, source);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = openat(dir, &temp, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|errno| Error::new(Op::Create, destination, errno))?;
    let renamed =
        write_copy(&drop.file, &File::from(file)).map_err(fail(Op::Write)).and_then(|()| {
            renameat_with(dir, &temp, dir, name, RenameFlags::NOREPLACE)
                .map_err(|errno| Error::new(Op::Rename, destination, errno))
        });
    if let Err(error) = renamed {
        unlinkat(dir, &temp, AtFlags::empty()).ok();
        return Err(if error.is_already_exists() {
            SkipReason::DestinationExists(destination.to_owned())
        } else {
            error.into()
        });
    }
    let parent = destination.parent().unwrap_or(destination);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let synced = openat(dir, ".", flags, Mode::empty()).and_then(rustix::fs::fsync);
    synced.map_err(|errno| Error::new(Op::SyncDir, parent, errno))?;
    Ok(())
}

fn write_copy(from: &File, to: &File) -> io::Result<()> {
    let metadata = from.metadata()?;
    // Open a separate file description, because the copy moves the file offset.
    let from = File::open(format!("/proc/self/fd/{}", from.as_raw_fd()))?;
    copy_paced(&from, to)?;
    // Changing the owner clears set-user-ID bits, so the mode is set after it.
    let created = to.metadata()?;
    if (created.uid(), created.gid()) != (metadata.uid(), metadata.gid()) {
        fchown(to, Some(metadata.uid()), Some(metadata.gid()))?;
    }
    to.set_permissions(metadata.permissions())?;
    let times = FileTimes::new().set_modified(metadata.modified()?);
    to.set_times(times.set_accessed(metadata.accessed()?))?;
    rustix::fs::fsync(to.as_fd())?;
    Ok(())
}

/// Copies within the kernel if possible. Starts writeback after each step: if all dirty pages of a
/// large file were written at once, other writers would stall.
fn copy_paced(from: &File, to: &File) -> io::Result<()> {
    let descriptor = to.as_fd();
    let (mut at, mut pacer) = (0, Pacer::of(&descriptor, Pace::default()));
    loop {
        let copied = io::copy(&mut from.take(STEP_BYTES), &mut &*to)?;
        if copied == 0 {
            return Ok(());
        }
        // Report a write error now: a later sync does not report it again.
        pacer.wrote(at, copied).map_err(|error| error.source)?;
        at += copied;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_file_keeps_its_path_below_the_target() {
        for (path, expected) in [("/a/b", "/t/a/b"), ("/x", "/t/x"), ("/a/../b", "/t/a/b")] {
            assert_eq!(destination(Path::new("/t"), Path::new(path)), Path::new(expected));
        }
    }
}
