//! The lines of processes that served while another process had their log open.
//!
//! Such a process logs into a directory of its own within that of the log, `overlap/PID-1`. When it
//! has ended, the process that has the log open appends these lines, and removes the directory. If
//! that process is killed meanwhile, the lines that it had appended are appended again.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use haul_disk::{Disk, Locked, OsDisk};
use haul_line_log::{CURRENT, Environment, Error, LineLog, Options, Retention};

/// The directory that contains the directories of the processes. It is locked while one of them is
/// created, and while another process looks for those that are not locked.
const PARENT: &str = "overlap";

/// The pause between two attempts to lock it.
const PAUSE: Duration = Duration::from_millis(5);

/// The bytes that are appended at once, and written before the next ones, so that they do not fill
/// the buffers of the log.
const CHUNK_BYTES: usize = 256 << 10;

/// Returns `true` if processes may have left lines in the directory `dir` of a log.
pub(super) fn exists(dir: &Path) -> bool {
    dir.join(PARENT).is_dir()
}

/// Opens a log of this process within the directory `dir` of a log that is in use.
pub(super) fn open(dir: &Path, options: &Options) -> Result<LineLog, Error> {
    let keep = Retention { files_max: None, ..Retention::default() };
    let options = Options { keep, ..options.clone() };
    let parent = dir.join(PARENT);
    let disk = OsDisk::open_or_create(&parent)?;
    let _lock = loop {
        match disk.lock("", &options.holder)? {
            Locked::Acquired(lock) => break lock,
            Locked::HeldBy(_) => thread::sleep(PAUSE),
        }
    };
    let mut number = 1;
    loop {
        let own = parent.join(format!("{}-{number}", std::process::id()));
        match LineLog::open(own, options.clone(), Environment::default()) {
            // A process in another container may have the same number.
            Err(Error::InUse { .. }) => number += 1,
            opened => return opened,
        }
    }
}

/// Appends the lines of processes that have ended to `log`, which is open in `dir`. Returns `true`
/// if no process is left that logs into a directory of its own.
pub(super) fn merge(dir: &Path, log: &LineLog) -> io::Result<bool> {
    let parent = dir.join(PARENT);
    if !parent.try_exists()? {
        return Ok(true);
    }
    let disk = OsDisk::open(&parent).map_err(io::Error::other)?;
    let lock = match disk.lock("", "merging a log").map_err(io::Error::other)? {
        Locked::Acquired(lock) => lock,
        Locked::HeldBy(_) => return Ok(false),
    };
    let (mut ended, mut is_complete) = (Vec::new(), true);
    for own in directories(&parent)? {
        let disk = OsDisk::open(&own).map_err(io::Error::other)?;
        match disk.lock("", "merging a log").map_err(io::Error::other)? {
            Locked::Acquired(lock) => ended.push((own, lock)),
            Locked::HeldBy(_) => is_complete = false,
        }
    }
    drop(lock);
    for (own, lock) in ended {
        for file in files(&own)? {
            append(&file, log)?;
        }
        fs::remove_dir_all(&own)?;
        drop(lock);
    }
    Ok(is_complete)
}

/// Returns the directories of processes.
fn directories(parent: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the files of a log, the oldest first.
fn files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        names.push(entry?.file_name());
    }
    // Names of closed files begin with a digit.
    names.retain(|name| {
        let first = name.as_encoded_bytes().first();
        name == CURRENT || first.is_some_and(u8::is_ascii_digit)
    });
    names.sort();
    Ok(names.into_iter().map(|name| dir.join(name)).collect())
}

/// Appends the lines of a file to the log.
fn append(path: &Path, log: &LineLog) -> io::Result<()> {
    let mut file = fs::File::open(path)?;
    let mut lines = Vec::new();
    loop {
        let read = file.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut lines)?;
        // A process that was killed may have left an incomplete line.
        if read == 0 && !lines.is_empty() {
            lines.push(b'\n');
        }
        let end = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        log.append(&lines[..end]).map_err(io::Error::other)?;
        log.write_out().map_err(io::Error::other)?;
        lines.drain(..end);
        if read == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_log(dir: &Path) -> LineLog {
        LineLog::open(dir, Options::default(), Environment::default()).unwrap()
    }

    #[test]
    fn lines_of_ended_processes_are_appended_once() {
        let dir = tempfile::tempdir().unwrap();
        let log = open_log(dir.path());
        let own = [(); 2].map(|()| open(dir.path(), &Options::default()).unwrap());
        let numbers: Vec<_> = (0..100_000).map(|number| format!("{number}\n")).collect();
        own[0].append(numbers.concat().as_bytes()).unwrap();
        own[0].rotate().unwrap();
        own[0].append(b"last").unwrap();
        own[1].append(b"second\n").unwrap();
        assert!(!merge(dir.path(), &log).unwrap(), "both are open");
        own[0].close().unwrap();
        assert!(!merge(dir.path(), &log).unwrap(), "one is open");
        own[1].close().unwrap();
        assert!(merge(dir.path(), &log).unwrap() && merge(dir.path(), &log).unwrap());
        log.close().unwrap();
        let current = fs::read_to_string(dir.path().join(CURRENT)).unwrap();
        assert_eq!(current, format!("{}last\nsecond\n", numbers.concat()));
        assert!(directories(&dir.path().join(PARENT)).unwrap().is_empty());
    }
}
