//! One process at a time in a directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use crate::error::{Error, Op, Result};

/// The name of the lock file in the directory it guards.
pub const LOCK_NAME: &str = "LOCK";

/// The lock of a directory, held until it is dropped or the process ends in whatever way.
#[derive(Debug)]
pub struct DirLock {
    _file: File,
}

/// What came of asking for the lock.
#[derive(Debug)]
pub enum Locked {
    /// It is ours.
    Ours(DirLock),
    /// Another process holds it; its own words about itself.
    HeldBy(String),
}

impl DirLock {
    /// Takes the lock of `dir`, or tells who holds it. `words` say who we are, for others.
    ///
    /// # Errors
    /// When the lock file cannot be made, locked, read or written.
    ///
    /// # Source
    /// `flock(2)`: the kernel lets go when the process dies, so no stale lock remains.
    pub fn take(dir: &Path, words: &str) -> Result<Locked> {
        let path = dir.join(LOCK_NAME);
        let fail = |source| Error::new(Op::Lock, &path, source);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(fail)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0).map_err(fail)?;
                file.rewind().map_err(fail)?;
                file.write_all(words.as_bytes()).map_err(fail)?;
                Ok(Locked::Ours(Self { _file: file }))
            }
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                file.take(256).read_to_string(&mut holder).map_err(fail)?;
                Ok(Locked::HeldBy(holder.trim().to_owned()))
            }
            Err(TryLockError::Error(source)) => Err(fail(source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_taker_is_told_who_holds_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let first = DirLock::take(dir.path(), "process 1").unwrap();
        assert!(matches!(first, Locked::Ours(_)));
        let Locked::HeldBy(holder) = DirLock::take(dir.path(), "process 2").unwrap() else {
            panic!("the lock was given twice");
        };
        assert_eq!(holder, "process 1");
        drop(first);
        assert!(matches!(DirLock::take(dir.path(), "process 3").unwrap(), Locked::Ours(_)));
    }
}
