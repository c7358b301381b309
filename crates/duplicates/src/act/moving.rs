//! Moving a file to another directory, of whatever file system.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use haul_disk::{Error, Op, Pace, Pacer};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::fs::{openat, renameat_with, statat, unlinkat};
use rustix::io::Errno;

use super::left::Left;
use super::side::Side;
use super::swap::{self, Conditions, passing_name};

/// How much is copied between two looks at how much waits for the device.
const STEP_BYTES: u64 = 1 << 20;

/// Where a file below `/` comes to stand below `target`: its path is kept.
pub(super) fn destination(target: &Path, path: &Path) -> PathBuf {
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_)));
    target.join(parts.collect::<PathBuf>())
}

/// Moves the file; it never takes the name of another.
pub(super) fn relocate(
    drop: &Side,
    destination: &Path,
    conditions: &Conditions<'_>,
) -> Result<(), Left> {
    let (Some(parent), Some(name)) = (destination.parent(), destination.file_name()) else {
        return Err(Left::NotAFile);
    };
    fs::create_dir_all(parent).map_err(|source| Error::new(Op::Create, parent, source))?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = openat(CWD, parent, flags, Mode::empty())
        .map_err(|errno| Error::new(Op::Open, parent, errno))?;
    conditions.check()?;
    match renameat_with(&drop.dir, &drop.name, &dir, name, RenameFlags::NOREPLACE) {
        Ok(()) => judge(drop, &dir, name),
        Err(Errno::EXIST) => Err(Left::Taken(destination.to_owned())),
        Err(Errno::XDEV) => {
            copy(drop, &dir, name, destination)?;
            let removed = swap::remove(drop, conditions);
            if removed.is_err() {
                // The original stands, so the copy is one too many.
                unlinkat(&dir, name, AtFlags::empty()).ok();
            }
            removed
        }
        Err(errno) => Err(drop.fail(Op::Rename, errno)),
    }
}

/// Whether it is the file that was looked at that came to the new place; else it goes back.
fn judge(drop: &Side, dir: &OwnedFd, name: &OsStr) -> Result<(), Left> {
    let moved = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    if moved
        .is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (drop.identity.device, drop.identity.inode))
    {
        return Ok(());
    }
    match renameat_with(dir, name, &drop.dir, &drop.name, RenameFlags::NOREPLACE) {
        Ok(()) => Err(Left::Changed),
        Err(errno) => Err(drop.fail(Op::Rename, errno)),
    }
}

/// Copies the bytes, the mode and the times, and syncs them before the name is given.
fn copy(drop: &Side, dir: &OwnedFd, name: &OsStr, destination: &Path) -> Result<(), Left> {
    let passing = passing_name();
    let fail = |op| move |source: io::Error| Error::new(op, destination, source);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = openat(dir, &passing, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|errno| Error::new(Op::Create, destination, errno))?;
    let named = write_copy(&drop.file, &File::from(file)).map_err(fail(Op::Write)).and_then(|()| {
        renameat_with(dir, &passing, dir, name, RenameFlags::NOREPLACE)
            .map_err(|errno| Error::new(Op::Rename, destination, errno))
    });
    if let Err(error) = named {
        unlinkat(dir, &passing, AtFlags::empty()).ok();
        return Err(if error.is_already_there() {
            Left::Taken(destination.to_owned())
        } else {
            error.into()
        });
    }
    let parent = destination.parent().unwrap_or(destination);
    let synced = File::open(parent).and_then(|dir| dir.sync_all());
    synced.map_err(|source| Error::new(Op::SyncDir, parent, source))?;
    Ok(())
}

fn write_copy(from: &File, to: &File) -> io::Result<()> {
    let metadata = from.metadata()?;
    // A descriptor of its own place: comparing moved none, but copying does.
    let from = File::open(format!("/proc/self/fd/{}", from.as_raw_fd()))?;
    pour(&from, to)?;
    to.set_permissions(metadata.permissions())?;
    let times = FileTimes::new().set_modified(metadata.modified()?);
    to.set_times(times.set_accessed(metadata.accessed()?))?;
    rustix::fs::fsync(to.as_fd())?;
    Ok(())
}

/// Copies within the kernel where it can, a window at a time: a big file must not make everybody
/// else on the machine wait for its pages.
fn pour(from: &File, to: &File) -> io::Result<()> {
    let descriptor = to.as_fd();
    let (mut at, mut pacer) = (0, Pacer::of(&descriptor, Pace::default()));
    loop {
        let copied = io::copy(&mut from.take(STEP_BYTES), &mut &*to)?;
        if copied == 0 {
            return Ok(());
        }
        // The sync after this would not tell again what failed here.
        pacer.wrote(at, copied).map_err(|error| error.source)?;
        at += copied;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_file_keeps_its_path_below_the_target() {
        for (path, destination_is) in [("/a/b", "/t/a/b"), ("/x", "/t/x"), ("/a/../b", "/t/a/b")] {
            assert_eq!(destination(Path::new("/t"), Path::new(path)), Path::new(destination_is));
        }
    }
}
