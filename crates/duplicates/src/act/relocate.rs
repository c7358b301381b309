//! Moves a file to another directory, possibly on another file system.

use std::ffi::{OsStr, OsString};
use std::fs::{File, FileTimes};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Component, Path, PathBuf};

use haul_bulk_read::open_directory;
use haul_disk::{Error, Op, PAGE_BYTES, Pace, Pacer, next_hole};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::fs::{linkat, mkdirat, openat, renameat_with, statat, unlinkat};
use rustix::io::Errno;

use super::attributes::Attributes;
use super::open_file::OpenFile;
use super::replace::{self, Conditions, temp_name};
use super::skip_reason::SkipReason;

/// The number of bytes copied per step. After each step, the pacer starts writeback of the copied
/// pages.
const STEP_BYTES: u64 = 1 << 20;

/// The length in bytes from which a hole stays a hole: a page, the unit of [`next_hole`].
const HOLE_BYTES_MIN: u64 = PAGE_BYTES as u64;

/// Returns the destination of a file: its full path below `target`.
pub(super) fn destination(target: &Path, path: &Path) -> PathBuf {
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_)));
    target.join(parts.collect::<PathBuf>())
}

/// Moves the file; never replaces an existing file. On another file system, the copy has the
/// owner, mode, times, ACL, other extended attributes and holes of the file, and is durable before
/// the file is removed. With `loses_attributes`, attributes that the destination cannot have are
/// left out; otherwise they are a reason to skip the file.
///
/// 1. Creates the directories of the destination.
/// 2. Renames the file, if both directories are on one file system. A stop before or after leaves
///    the file at one of the two paths.
/// 3. Otherwise writes the copy as a file without a name and syncs it. After a stop the copy is
///    gone (on a file system without such files, it remains as `.haul-…`).
/// 4. Gives the copy its name, and syncs the directories. After a stop, both files exist.
/// 5. Removes the file.
///
/// If a step fails, the copy and the created directories are removed.
pub(super) fn relocate(
    drop: &OpenFile,
    destination: &Path,
    conditions: &Conditions<'_>,
    loses_attributes: bool,
) -> Result<(), SkipReason> {
    let (Some(parent), Some(name)) = (destination.parent(), destination.file_name()) else {
        return Err(SkipReason::NotRegularFile);
    };
    let created =
        Directories::create(parent).map_err(|source| Error::new(Op::Create, parent, source))?;
    let moved = move_into(drop, &created, name, destination, conditions, loses_attributes);
    if moved.is_err() {
        created.remove();
    }
    moved
}

fn move_into(
    drop: &OpenFile,
    created: &Directories,
    name: &OsStr,
    destination: &Path,
    conditions: &Conditions<'_>,
    loses_attributes: bool,
) -> Result<(), SkipReason> {
    let dir = &created.dir;
    conditions.check()?;
    match renameat_with(&drop.dir, &drop.name, dir, name, RenameFlags::NOREPLACE) {
        Ok(()) => verify(drop, dir, name, conditions),
        Err(Errno::EXIST) => Err(SkipReason::DestinationExists(destination.to_owned())),
        Err(Errno::XDEV) => {
            copy(drop, dir, name, destination, loses_attributes)?;
            let removed = created.sync().map_err(SkipReason::from);
            let removed = removed.and_then(|()| replace::remove(drop, conditions));
            if removed.is_err() {
                // The original still exists, so remove the copy.
                unlinkat(dir, name, AtFlags::empty()).ok();
            }
            removed
        }
        Err(errno) => Err(drop.error(Op::Rename, errno)),
    }
}

/// A directory, and those that were created for it.
struct Directories {
    path: PathBuf,
    dir: OwnedFd,
    /// The created directories, each with the directory that contains it, outermost first.
    created: Vec<(OwnedFd, OsString)>,
}

impl Directories {
    /// Opens the directory at a path of any length; creates it and its parents if they are missing.
    fn create(path: &Path) -> io::Result<Self> {
        let mut created = Vec::new();
        match open_directory(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return Ok(Self { path: path.to_owned(), dir: opened?, created }),
        }
        let start = if path.is_absolute() { "/" } else { "" };
        let mut at = open_directory(Path::new(start))?;
        for name in path.components().filter(|part| !matches!(part, Component::RootDir)) {
            let name = name.as_os_str();
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let open = |at: &OwnedFd| openat(at, name, flags, Mode::empty());
            let next = match open(&at) {
                Err(Errno::NOENT) => match mkdirat(&at, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) => {
                        let next = open(&at)?;
                        created.push((at, name.to_owned()));
                        next
                    }
                    // Another process created it meanwhile.
                    Err(Errno::EXIST) => open(&at)?,
                    Err(errno) => return Err(errno.into()),
                },
                opened => opened?,
            };
            at = next;
        }
        Ok(Self { path: path.to_owned(), dir: at, created })
    }

    /// Makes the names in the directory, and those of the created directories, durable.
    fn sync(&self) -> Result<(), Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dirs = self.created.iter().map(|(parent, _)| parent).chain([&self.dir]);
        for dir in dirs {
            openat(dir, ".", flags, Mode::empty())
                .and_then(rustix::fs::fsync)
                .map_err(|errno| Error::new(Op::SyncDir, &self.path, errno))?;
        }
        Ok(())
    }

    /// Removes the created directories that are still empty.
    fn remove(self) {
        for (parent, name) in self.created.iter().rev() {
            // An error is ignored: another process uses the directory.
            unlinkat(parent, name, AtFlags::REMOVEDIR).ok();
        }
    }
}

/// Checks that the moved file is the one that was compared, and that all conditions still hold;
/// otherwise moves it back.
fn verify(
    drop: &OpenFile,
    dir: &OwnedFd,
    name: &OsStr,
    conditions: &Conditions<'_>,
) -> Result<(), SkipReason> {
    let moved = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    let is_same = moved.is_ok_and(|stat| {
        (stat.st_dev, stat.st_ino) == (drop.identity.device, drop.identity.inode)
    });
    let verified = if is_same { conditions.check() } else { Err(SkipReason::Changed) };
    if verified.is_ok() {
        return Ok(());
    }
    match renameat_with(dir, name, &drop.dir, &drop.name, RenameFlags::NOREPLACE) {
        Ok(()) => verified,
        Err(errno) => Err(drop.error(Op::Rename, errno)),
    }
}

/// Copies the file, and syncs the copy before it receives its name.
fn copy(
    drop: &OpenFile,
    dir: &OwnedFd,
    name: &OsStr,
    destination: &Path,
    loses_attributes: bool,
) -> Result<(), SkipReason> {
    let fail = |op| move |source: io::Error| Error::new(op, destination, source);
    let attributes = Attributes::read(&drop.file)
        .map_err(|source| Error::new(Op::Status, &drop.path, source))?;
    let copy = Copy::create(dir).map_err(fail(Op::Create))?;
    let named = copy_bytes(drop, &copy.file)
        .map_err(|source| fail(Op::Write)(source).into())
        .and_then(|()| {
            copy_status(&drop.file, &copy.file, &attributes, destination, loses_attributes)
        })
        .and_then(|()| {
            copy.give_name(dir, name).map_err(|errno| match errno {
                Errno::EXIST => SkipReason::DestinationExists(destination.to_owned()),
                errno => Error::new(Op::Rename, destination, errno).into(),
            })
        });
    if named.is_err() {
        copy.discard(dir);
    }
    named
}

/// A copy that does not have its final name yet.
struct Copy {
    file: File,
    /// The temporary name, on a file system without unnamed files.
    temp: Option<OsString>,
}

impl Copy {
    fn create(dir: &OwnedFd) -> io::Result<Self> {
        let mode = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        match openat(dir, ".", flags | OFlags::TMPFILE, mode) {
            Ok(file) => Ok(Self { file: file.into(), temp: None }),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {
                let temp = temp_name();
                let file = openat(dir, &temp, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
                Ok(Self { file: file.into(), temp: Some(temp) })
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Gives the copy its name. Never replaces a file.
    fn give_name(&self, dir: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
        match &self.temp {
            Some(temp) => renameat_with(dir, temp, dir, name, RenameFlags::NOREPLACE),
            None => {
                let file = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                linkat(CWD, file, dir, name, AtFlags::SYMLINK_FOLLOW)
            }
        }
    }

    fn discard(self, dir: &OwnedFd) {
        if let Some(temp) = &self.temp {
            unlinkat(dir, temp, AtFlags::empty()).ok();
        }
    }
}

/// Copies owner, extended attributes, mode, ACL and times, and syncs the copy.
fn copy_status(
    from: &File,
    to: &File,
    attributes: &Attributes,
    destination: &Path,
    loses_attributes: bool,
) -> Result<(), SkipReason> {
    let fail = |source: io::Error| Error::new(Op::Write, destination, source);
    let keep = |written: Result<(), (String, io::Error)>| match written {
        Err((what, source)) if !loses_attributes => Err(SkipReason::AttributeLost { what, source }),
        _ => Ok(()),
    };
    let metadata = from.metadata().map_err(fail)?;
    let created = to.metadata().map_err(fail)?;
    // A change of the owner clears capabilities and set-user-ID bits, a mode without write
    // permission keeps its owner from setting attributes, and a change of the mode changes the ACL:
    // hence this order.
    if (created.uid(), created.gid()) != (metadata.uid(), metadata.gid()) {
        fchown(to, Some(metadata.uid()), Some(metadata.gid())).map_err(fail)?;
    }
    keep(attributes.write_all_but_acl(to))?;
    to.set_permissions(metadata.permissions()).map_err(fail)?;
    keep(attributes.write_acl(to))?;
    let times = FileTimes::new().set_modified(metadata.modified().map_err(fail)?);
    to.set_times(times.set_accessed(metadata.accessed().map_err(fail)?)).map_err(fail)?;
    rustix::fs::fsync(to.as_fd()).map_err(|errno| Error::new(Op::Sync, destination, errno))?;
    Ok(())
}

/// Copies the content, without the holes of at least [`HOLE_BYTES_MIN`].
fn copy_bytes(drop: &OpenFile, to: &File) -> io::Result<()> {
    // Open a separate file description, because the copy moves the file offset.
    let mut from = File::open(format!("/proc/self/fd/{}", drop.file.as_raw_fd()))?;
    let mut to = to;
    let bytes = from.metadata()?.len();
    let mut at = 0;
    while at < bytes {
        // After an error, all bytes are copied.
        let hole = next_hole(from.as_fd(), at..bytes, HOLE_BYTES_MIN).ok().flatten();
        let hole = hole.unwrap_or(bytes..bytes);
        from.seek(SeekFrom::Start(at))?;
        to.seek(SeekFrom::Start(at))?;
        copy_paced(&from, to, at, hole.start - at)?;
        at = hole.end;
    }
    to.set_len(bytes)
}

/// Copies within the kernel if possible. Starts writeback after each step: if all dirty pages of a
/// large file were written at once, other writers would stall.
fn copy_paced(from: &File, to: &File, mut at: u64, mut left: u64) -> io::Result<()> {
    let descriptor = to.as_fd();
    let mut pacer = Pacer::of(&descriptor, Pace::default());
    while left > 0 {
        let copied = io::copy(&mut from.take(STEP_BYTES.min(left)), &mut &*to)?;
        if copied == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // Report a write error now: a later sync does not report it again.
        pacer.wrote(at, copied).map_err(|error| error.source)?;
        at += copied;
        left -= copied;
    }
    Ok(())
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
