//! Implements [`crate::Disk::lock`] with `flock(2)`.
//!
//! # Source
//! `flock(2)`: the lock belongs to an open file description. If the process that holds the lock
//! opens and locks the same file again, the second lock is therefore rejected. The kernel releases
//! the lock when the process ends, so no stale lock remains.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{self, FlockOperation, OFlags};
use rustix::io::Errno;

use super::root::Root;
use crate::disk::{LOCK_NAME, Lock, Locked};
use crate::error::{Error, Op, Result};

/// The maximum number of bytes read from [`LOCK_NAME`].
const HOLDER_BYTES_MAX: usize = 256;

/// The number of bytes requested per read of `/proc/locks`, the kernel's list of all locks. If a
/// process releases a lock between two reads, the kernel may omit a line from the second read.
/// Large reads make this rare.
const LOCKS_READ_BYTES: usize = 64 << 10;

/// The maximum number of times that `/proc/locks` is read from its beginning to find a lock's
/// holder. A list that needs several reads may lack the lock's line (see [`LOCKS_READ_BYTES`]).
const LOCKS_READS_MAX: usize = 4;

/// A `flock(2)` lock.
#[derive(Debug)]
struct OsLock(OwnedFd);

impl Drop for OsLock {
    fn drop(&mut self) {
        // Closing the descriptor is not enough: a child process between fork and exec shares the
        // file description and would keep the lock.
        fs::flock(&self.0, FlockOperation::Unlock).ok();
    }
}

/// Locks the directory or file `name` below `root`; see [`crate::Disk::lock`].
///
/// 1. Locks the directory or file itself.
/// 2. For a directory, writes the holder's description to the file [`LOCK_NAME`] in it. This file
///    is informational: removing the file does not release the lock, and a failure to write it
///    (full or read-only disk) is ignored.
pub(super) fn lock(root: &Root, name: &str, holder: &str) -> Result<Locked> {
    // The file is opened for writing, since NFS grants an exclusive lock only on a descriptor open
    // for writing.
    let (target, is_dir) = match root.open(name, OFlags::RDWR, Op::Lock) {
        Err(error) if error.source.raw_os_error() == Some(Errno::ISDIR.raw_os_error()) => {
            (root.open(name, OFlags::RDONLY | OFlags::DIRECTORY, Op::Lock)?, true)
        }
        opened => (opened?, false),
    };
    let description = match name {
        "" => LOCK_NAME.to_owned(),
        dir => format!("{dir}/{LOCK_NAME}"),
    };
    match fs::flock(&target, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            if is_dir {
                describe(root, &description, holder);
            }
            Ok(Locked::Acquired(Lock::new(OsLock(target))))
        }
        Err(Errno::WOULDBLOCK) => {
            let written = if is_dir { description_in(root, &description) } else { None };
            let known = written.or_else(|| holder_by_kernel(&target));
            Ok(Locked::HeldBy(known.unwrap_or_else(|| "an unknown process".to_owned())))
        }
        Err(errno) => Err(Error::new(Op::Lock, root.path(name), errno)),
    }
}

fn describe(root: &Root, name: &str, holder: &str) {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let written = match root.open(name, flags, Op::Create) {
        Ok(file) => std::fs::File::from(file).write_all(holder.as_bytes()).is_ok(),
        Err(_) => false,
    };
    if !written {
        // An earlier holder may have left its description, which would name the wrong process.
        root.remove(name).ok();
    }
}

fn description_in(root: &Root, name: &str) -> Option<String> {
    let file = root.open(name, OFlags::RDONLY, Op::Open).ok()?;
    let mut bytes = [0; HOLDER_BYTES_MAX];
    let read = rustix::io::pread(&file, &mut bytes, 0).ok()?;
    let holder = String::from_utf8_lossy(&bytes[..read]).trim().to_owned();
    (!holder.is_empty()).then_some(holder)
}

fn holder_by_kernel(target: &OwnedFd) -> Option<String> {
    let status = fs::fstat(target).ok()?;
    let (major, minor) = (fs::major(status.st_dev), fs::minor(status.st_dev));
    let file = format!("{major:02x}:{minor:02x}:{}", status.st_ino);
    let id = (0..LOCKS_READS_MAX).find_map(|_| flock_holder(&kernel_locks().ok()?, &file))?;
    Some(format!("process {id}"))
}

/// Returns the text in `/proc/locks`.
fn kernel_locks() -> std::io::Result<String> {
    let mut file = std::fs::File::open("/proc/locks")?;
    let (mut locks, mut buffer) = (Vec::new(), vec![0; LOCKS_READ_BYTES]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(String::from_utf8_lossy(&locks).into_owned()),
            read => locks.extend_from_slice(&buffer[..read]),
        }
    }
}

/// Returns the process that holds a file's `flock`, from the text in `/proc/locks`. `file` is, for
/// example, `fd:01:77`.
fn flock_holder(locks: &str, file: &str) -> Option<u32> {
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", id, at, ..] = fields[..] else { return None };
        id.parse().ok().filter(|id| at == file && *id > 0)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use crate::disk::{Disk, Subdir};
    use crate::os::OsDisk;

    use super::*;

    fn holder(locked: Locked) -> Option<String> {
        match locked {
            Locked::Acquired(_) => None,
            Locked::HeldBy(holder) => Some(holder),
        }
    }

    #[test]
    fn second_lock_of_a_directory_reports_its_holder() {
        let dir = tempfile::tempdir().unwrap();
        let (disk, other) = (OsDisk::open(dir.path()).unwrap(), OsDisk::open(dir.path()).unwrap());
        let first = disk.lock("", "process 1").unwrap();
        for disk in [&disk, &other] {
            let refused = disk.lock("", "process 2").unwrap();
            assert_eq!(holder(refused).unwrap(), "process 1");
        }
        std::fs::remove_file(dir.path().join(LOCK_NAME)).unwrap();
        let id = std::process::id();
        let refused = disk.lock("", "process 2").unwrap();
        assert_eq!(holder(refused).unwrap(), format!("process {id}"), "from /proc/locks");
        drop(first);
        assert!(holder(other.lock("", "process 3").unwrap()).is_none());
    }

    #[test]
    fn files_and_subdirectories_are_locked_independently() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "content").unwrap();
        let disk = Arc::new(OsDisk::open(dir.path()).unwrap());
        disk.create_dir("below").unwrap();
        let below = Subdir::new(Arc::clone(&disk) as Arc<dyn Disk>, "below");
        let held: Vec<Locked> = vec![
            disk.lock("", "a").unwrap(),
            disk.lock("file", "b").unwrap(),
            below.lock("", "c").unwrap(),
        ];
        assert!(held.iter().all(|locked| matches!(locked, Locked::Acquired(_))), "{held:?}");
        assert_eq!(holder(disk.lock("below", "d").unwrap()).unwrap(), "c");
        let file_holder = holder(disk.lock("file", "d").unwrap()).unwrap();
        assert_eq!(file_holder, format!("process {}", std::process::id()));
        assert_eq!(std::fs::read(dir.path().join("file")).unwrap(), b"content");
        assert!(disk.lock("missing", "d").unwrap_err().is_not_found());
    }

    #[test]
    fn directory_is_locked_without_writable_description() {
        let dir = tempfile::tempdir().unwrap();
        let disk = OsDisk::open(dir.path()).unwrap();
        // A directory with the name `LOCK` makes the write of the description fail even for root.
        std::fs::create_dir(dir.path().join(LOCK_NAME)).unwrap();
        let first = disk.lock("", "process 1").unwrap();
        let refused = disk.lock("", "process 2").unwrap();
        assert_eq!(holder(refused).unwrap(), format!("process {}", std::process::id()));
        assert!(holder(first).is_none());
    }

    #[test]
    fn holder_is_found_while_other_locks_come_and_go() {
        let dir = tempfile::tempdir().unwrap();
        let disk = OsDisk::open(dir.path()).unwrap();
        let names: Vec<String> = (0..8).map(|n| n.to_string()).collect();
        for name in &names {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let _held = disk.lock("7", "").unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    names[..7].iter().for_each(|name| drop(disk.lock(name, "").unwrap()));
                }
            });
            let expected = format!("process {}", std::process::id());
            let found = (0..2000).all(|_| holder(disk.lock("7", "").unwrap()).unwrap() == expected);
            stop.store(true, Ordering::Relaxed);
            assert!(found);
        });
    }

    #[test]
    fn holder_is_parsed_from_proc_locks() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 fd:01:77 0 EOF\n\
                     2: FLOCK  ADVISORY  READ  12 fd:01:77 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 0 fd:01:77 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 13 fd:02:77 0 EOF\n\
                     4: -> FLOCK  ADVISORY  WRITE 14 fd:01:77 0 EOF\n\
                     5: FLOCK  ADVISORY  WRITE 15 fd:01:77 0 EOF\n";
        assert_eq!(flock_holder(locks, "fd:01:77"), Some(15));
        assert_eq!(flock_holder(locks, "fd:01:7"), None);
        assert_eq!(flock_holder("", "fd:01:77"), None);
    }
}
