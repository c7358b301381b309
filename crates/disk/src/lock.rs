//! One process at a time in a directory.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use crate::error::{Error, Op, Result};

/// The name of the file in which the holder of a directory's lock says who it is.
pub const LOCK_NAME: &str = "LOCK";

/// The lock of a directory, held until it is dropped or the process ends in whatever way.
#[derive(Debug)]
pub struct DirLock {
    _dir: File,
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
    /// The directory itself is locked: removing the file with the words frees nothing.
    ///
    /// # Errors
    /// When the directory cannot be opened or locked.
    ///
    /// # Source
    /// `flock(2)`: the kernel lets go when the process dies, so no stale lock remains.
    pub fn take(dir: &Path, words: &str) -> Result<Locked> {
        let path = dir.join(LOCK_NAME);
        let lock = File::open(dir).map_err(|source| Error::new(Op::Lock, dir, source))?;
        match lock.try_lock() {
            Ok(()) => {
                // A full disk is no reason to lock out who would make room on it.
                fs::write(&path, words).ok();
                Ok(Locked::Ours(Self { _dir: lock }))
            }
            Err(TryLockError::WouldBlock) => {
                let holder = fs::read(&path).unwrap_or_default();
                let holder = String::from_utf8_lossy(&holder[..holder.len().min(256)]);
                let holder = holder.trim();
                let unnamed = || "a process that does not say which".to_owned();
                Ok(Locked::HeldBy(if holder.is_empty() { unnamed() } else { holder.to_owned() }))
            }
            Err(TryLockError::Error(source)) => Err(Error::new(Op::Lock, dir, source)),
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
        fs::remove_file(dir.path().join(LOCK_NAME)).unwrap();
        let without_words = DirLock::take(dir.path(), "process 2").unwrap();
        assert!(matches!(without_words, Locked::HeldBy(_)), "the words are not the lock");
        drop(first);
        assert!(matches!(DirLock::take(dir.path(), "process 3").unwrap(), Locked::Ours(_)));
    }
}
